//! What the tests share.

pub mod dice;
pub mod events;
pub mod medium;
pub mod model;
pub mod run;
