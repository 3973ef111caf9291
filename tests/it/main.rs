//! The integration tests: one crate, one module a behaviour.

mod engine;
mod fault;
mod journal;
mod model;
mod storage;
mod support;
