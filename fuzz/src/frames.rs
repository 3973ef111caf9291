//! Journal frames from the outside: finding them and making their checksums right.

use std::collections::HashSet;

use crate::image::Image;

const MAGIC: [u8; 8] = [0xff, b'S', b'L', b'f', b'r', b'a', b'm', b'e'];
const HEADER_LEN: usize = 56;
const CRC: std::ops::Range<usize> = 12..16;

/// Where the fields of a frame's header stand, and their lengths.
pub const FIELDS: [(usize, usize); 7] = [(8, 4), (16, 1), (17, 1), (20, 4), (24, 8), (40, 8), (48, 8)];

/// The places where frames start, whatever is behind them.
pub fn starts(file: &[u8]) -> Vec<usize> {
    let (places, _) = file.as_chunks::<8>();
    places.iter().enumerate().filter(|(_, place)| **place == MAGIC).map(|(index, _)| index * 8).collect()
}

/// The bytes of the frame at `start`, as long as it says it is.
fn frame(file: &[u8], start: usize) -> Option<&[u8]> {
    let rest = file.get(start..)?;
    let len = u32::from_be_bytes(*rest.get(8..)?.first_chunk()?) as usize;
    rest.get(..len).filter(|frame| frame.len() >= HEADER_LEN)
}

fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..CRC.start]);
    hasher.update(&frame[CRC.end..]);
    hasher.finalize()
}

fn is_whole(frame: &[u8]) -> bool {
    frame[CRC] == checksum(frame).to_be_bytes()
}

/// Makes the checksum of each frame right, in the order in which they stand. A start within a frame is left alone.
pub fn fix(file: &mut [u8]) {
    let mut end = 0;
    for start in starts(file) {
        if start < end {
            continue;
        }
        if let Some(frame) = frame(file, start) {
            let (len, crc) = (frame.len(), checksum(frame));
            file[start + CRC.start..start + CRC.end].copy_from_slice(&crc.to_be_bytes());
            end = start + len;
        }
    }
}

/// The whole frames in a file, wherever they stand.
pub fn found(file: &[u8]) -> Vec<&[u8]> {
    let starts = file.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
    let frames = starts.filter_map(|(start, _)| frame(file, start));
    frames.filter(|frame| is_whole(frame)).collect()
}

/// The whole frames in the journal of `image`.
pub fn whole(image: &Image) -> HashSet<&[u8]> {
    let frames = image.files.values().flat_map(|file| {
        let frames = starts(file).into_iter().filter_map(|start| frame(file, start));
        frames.filter(|frame| is_whole(frame))
    });
    frames.collect()
}
