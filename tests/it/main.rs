//! The integration tests: one crate, one module for each behaviour.

mod cli;
mod engine;
mod storage;
