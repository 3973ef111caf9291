//! The engine's values from the outside: their envelope, and blocks in whose sections something can be changed.

use std::collections::HashSet;

use crate::image::Image;
use crate::input::overwrite;

const MAGIC: [u8; 4] = [0xff, b'S', b'L', b'v'];
const CODEC: usize = 6;
pub const KEY: std::ops::Range<usize> = 8..24;
const SEQ: std::ops::Range<usize> = 24..32;
const COUNT: std::ops::Range<usize> = 32..36;
const PAYLOAD_LEN: std::ops::Range<usize> = 44..48;
const CRC: std::ops::Range<usize> = 48..52;
/// Bytes of the envelope.
pub const ENVELOPE_LEN: usize = 52;
/// Bytes of the envelope and the sections header of a block.
const BLOCK_HEADER_LEN: usize = ENVELOPE_LEN + 52;

/// Where the fields of the envelope and of a block's sections header stand, and their lengths.
pub const FIELDS: [(usize, usize); 13] = [
    (4, 1),
    (5, 1),
    (CODEC, 1),
    (7, 1),
    (24, 8),
    (32, 4),
    (36, 8),
    (44, 4),
    (84, 4),
    (88, 4),
    (92, 4),
    (96, 4),
    (100, 4),
];

fn checksum(value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&value[..CRC.start]);
    hasher.update(&value[CRC.end..]);
    hasher.finalize()
}

fn is_whole(value: &[u8]) -> bool {
    value.len() >= ENVELOPE_LEN && value.starts_with(&MAGIC) && value[CRC] == checksum(value).to_be_bytes()
}

/// Makes length and checksum right.
pub fn fix(value: &mut [u8]) {
    if let Some(payload_len) = value.len().checked_sub(ENVELOPE_LEN) {
        let payload_len = u32::try_from(payload_len).expect("values are small");
        value[PAYLOAD_LEN].copy_from_slice(&payload_len.to_be_bytes());
        let crc = checksum(value);
        value[CRC].copy_from_slice(&crc.to_be_bytes());
    }
}

/// Lets a value of the map `events` say that it belongs under `key`.
pub fn rekey(key: &[u8], value: &mut [u8]) {
    let Some((id, rest)) = key.split_first_chunk::<16>() else { return };
    overwrite(value, KEY.start, id);
    if let Some((seq, part)) = rest.split_first_chunk::<8>() {
        overwrite(value, SEQ.start, seq);
        if part.len() == COUNT.len() {
            overwrite(value, COUNT.start, part);
        }
    }
}

/// The places where values start in a raw file, whatever is behind them.
pub fn starts(file: &[u8]) -> Vec<usize> {
    let starts = file.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
    starts.map(|(at, _)| at).collect()
}

/// The value at `start`, as long as it says it is.
fn value(file: &[u8], start: usize) -> Option<&[u8]> {
    let rest = file.get(start..)?;
    let len = u32::from_be_bytes(*rest.get(PAYLOAD_LEN.start..)?.first_chunk()?) as usize;
    rest.get(..ENVELOPE_LEN.checked_add(len)?)
}

/// The values in a raw file whose checksums are right.
pub fn found(file: &[u8]) -> Vec<&[u8]> {
    let values = starts(file).into_iter().filter_map(|start| value(file, start));
    values.filter(|value| is_whole(value)).collect()
}

/// Makes the checksum of each value in a raw file right, in the order in which they stand. A start within a value is left
/// alone.
pub fn fix_all(file: &mut [u8]) {
    let mut end = 0;
    for start in starts(file) {
        if start < end {
            continue;
        }
        if let Some(len) = value(file, start).map(<[u8]>::len) {
            fix(&mut file[start..start + len]);
            end = start + len;
        }
    }
}

/// The values whose checksums are right.
pub fn whole(image: &Image) -> HashSet<&[u8]> {
    let values = image.sessions.values().chain(image.events.values());
    values.map(Vec::as_slice).filter(|value| is_whole(value)).collect()
}

/// The same block with sections that are not compressed, so that changes in them reach their decoder; `None` when
/// it is no block, or too large then.
pub fn unpacked(value: &[u8]) -> Option<Vec<u8>> {
    const BLOCK: u8 = 1;
    if !is_whole(value) || value.get(4) != Some(&BLOCK) {
        return None;
    }
    let (header, stored) = value.split_at_checked(BLOCK_HEADER_LEN)?;
    let number = |at: usize| Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?) as usize);
    let (main_len, main_stored, chunks_len) = (number(84)?, number(88)?, number(92)?);
    let (main, chunks) = stored.split_at_checked(main_stored)?;
    let codec = *header.get(CODEC)?;
    let unpack = |stored: &[u8], len, codec, dictionary: &[u8]| match codec {
        0 => Some(stored.to_vec()),
        1 => zstd::bulk::Decompressor::new().ok()?.decompress(stored, len).ok(),
        _ => zstd::bulk::Decompressor::with_dictionary(dictionary).ok()?.decompress(stored, len).ok(),
    };
    let main = unpack(main, main_len, codec & 0xf, &[])?;
    let chunks = unpack(chunks, chunks_len, codec >> 4, &main)?;
    let mut value = [header, &main, &chunks].concat();
    value[CODEC] = 0;
    overwrite(&mut value, 88, &u32::try_from(main.len()).ok()?.to_be_bytes());
    overwrite(&mut value, 96, &u32::try_from(chunks.len()).ok()?.to_be_bytes());
    fix(&mut value);
    Some(value)
}
