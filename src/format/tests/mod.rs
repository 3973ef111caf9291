//! Goals, of all of these: what was written comes back; what is damaged, or never was, is an error and never a panic
//! or another truth.

mod blocks;
mod frames;
mod golden;
mod records;
mod runs;
mod support;
