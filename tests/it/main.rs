//! Integration tests: the behaviour that users of the library and of the program see.

mod fault;
mod journal;
mod model;
mod support;
