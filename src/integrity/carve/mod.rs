//! Carving: finds values and journal frames in raw files by what they start with, without the engine.
//!
//! A file is looked through in windows, so its size is no matter; what is found is told by place, and read again when
//! it is wanted. Every value says itself what it is and how new, and its checksum covers that.

mod raw;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::raw::Raw;
pub(crate) use self::values::{Carved, carve_values};
