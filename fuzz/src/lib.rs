//! What the fuzz targets share: stores in memory as bytes, ways to damage them, and what must hold afterwards.
//!
//! Everything goes through the library's public API and its two seams. The layout of frames and values that is needed
//! to reach what stands behind a checksum is written down once more here, from the tables in `src/format/mod.rs`.

pub mod base;
pub mod frames;
pub mod image;
pub mod input;
pub mod reads;
pub mod values;

/// Decoding must not allocate more than this, whatever the bytes say: the greatest event has 80 MiB in stored form.
/// A target that gets there aborts, which the fuzzer reports.
pub const MEMORY_LIMIT: usize = 512 << 20;

/// Gives a target the limit on its memory.
#[macro_export]
macro_rules! limit_memory {
    () => {
        #[global_allocator]
        static ALLOCATOR: cap::Cap<std::alloc::System> =
            cap::Cap::new(std::alloc::System, $crate::MEMORY_LIMIT);
    };
}
