//! Goals, of all of these: what was written comes back; what is damaged, or never was, is an error and never a panic
//! or another truth.

#![expect(clippy::cast_possible_truncation, reason = "the numbers of tests are small")]

mod blocks;
mod frames;
mod golden;
mod records;
mod runs;
mod support;
