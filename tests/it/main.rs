//! The integration tests: one crate, one module a behaviour.

mod fault;
mod journal;
mod model;
mod support;
