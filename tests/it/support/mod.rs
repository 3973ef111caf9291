//! What the tests share, with the fuzz target `ops`: nothing but this crate and the standard library.

pub(crate) mod bytes;
pub(crate) mod chat;
pub(crate) mod dice;
pub(crate) mod events;
pub(crate) mod medium;
pub(crate) mod model;
pub(crate) mod run;
pub(crate) mod watched;
