//! Integration tests: the behaviour that users of the library and of the program see.

mod model;
mod support;
