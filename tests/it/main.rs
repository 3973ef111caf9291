//! The integration tests: one crate, one module for each behaviour.

mod engine;
mod storage;
