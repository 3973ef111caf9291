//! What the tests share.

pub(crate) mod bytes;
pub(crate) mod chat;
pub(crate) mod dice;
pub(crate) mod events;
pub(crate) mod medium;
pub(crate) mod model;
pub(crate) mod run;
pub(crate) mod small_disk;
pub(crate) mod watched;
