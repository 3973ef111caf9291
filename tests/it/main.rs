//! The integration tests: one crate, one module for each behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "in a test a panic is a finding; helpers are not covered by clippy.toml"
)]

mod append;
#[cfg(feature = "async")]
mod asynchronous;
mod backup;
mod care_of_imports;
mod cli;
mod compact;
mod damage;
mod delete;
mod engine;
mod fault;
mod flips;
mod flow;
mod follow;
mod fork;
mod full_disk;
mod full_store;
mod fuzz_finds;
mod journal;
mod labels;
mod lifecycle;
mod list;
mod long_reads;
mod metrics;
mod model;
mod prune;
mod read;
mod readme;
mod recovery;
mod repair;
mod replay;
mod salvage;
mod scan;
mod sessions;
mod small_disk;
#[cfg(feature = "tracing")]
mod spans;
mod stats;
mod storage;
mod support;
mod surface;
mod transfer;
mod tree;
