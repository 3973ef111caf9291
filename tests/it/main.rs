//! The integration tests: one crate, one module for each behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "in a test a panic is a finding; helpers are not covered by clippy.toml"
)]

mod cli;
mod engine;
mod fault;
mod journal;
mod model;
mod storage;
mod support;
mod surface;
