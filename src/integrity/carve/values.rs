//! Values in raw files.

use std::io;

use super::Raw;
use crate::format::{self, FoundValue, MAX_FOUND_BYTES, NotFound};

/// Bytes read at a time.
const WINDOW_BYTES: usize = 1 << 20;
const _: () = assert!(WINDOW_BYTES > 4 * MAX_FOUND_BYTES);

/// What stands at a place that starts as a value does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carved<'a> {
    /// A sound value.
    Value(FoundValue<'a>),
    /// A sound value of a newer format.
    Newer(u32),
    /// Not sound: damaged, or a piece of something else.
    Damaged,
    /// The system could not read so many bytes.
    Unreadable(u64),
}

/// Looks through the whole file, and tells each place to `sink`. A piece that the system cannot read is passed over.
///
/// Memory: one window, whatever the file's size.
pub(crate) fn carve_values<E>(
    raw: &dyn Raw,
    sink: &mut dyn FnMut(u64, Carved<'_>) -> Result<(), E>,
) -> Result<io::Result<()>, E> {
    let len = match raw.len() {
        Ok(len) => len,
        Err(error) => return Ok(Err(error)),
    };
    let mut window = Window { raw, len, start: 0, bytes: Vec::new() };
    let mut at = 0;
    while at < len {
        if let Err(lost) = window.move_to(at) {
            sink(at, Carved::Unreadable(lost))?;
            at += lost;
            continue;
        }
        let from = usize::try_from(at - window.start).unwrap_or(usize::MAX);
        let Some(found) = format::find_value(&window.bytes, from) else {
            // The last bytes may be the first ones of what goes on behind the window.
            at = window.end().saturating_sub(3).max(at + 1);
            if window.end() >= len {
                break;
            }
            continue;
        };
        let place = window.start + found as u64;
        if window.end() < len && found > 0 && window.bytes.len() - found < MAX_FOUND_BYTES {
            // Cut by the window's end: look again with all of it in sight, or as much as can be read.
            at = place;
            window.forget();
            continue;
        }
        let (carved, step) = match format::read_found(window.bytes.get(found..).unwrap_or_default()) {
            Ok(value) => (Carved::Value(value), value.value.len()),
            Err(NotFound::Newer { found, len }) => (Carved::Newer(found), len),
            Err(NotFound::Damaged) => (Carved::Damaged, 1),
        };
        sink(place, carved)?;
        at = place + step as u64;
    }
    Ok(Ok(()))
}

struct Window<'a> {
    raw: &'a dyn Raw,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn forget(&mut self) {
        self.bytes.clear();
    }

    /// Makes sure that `at` is in the window. The error is the number of bytes from there that cannot be read.
    fn move_to(&mut self, at: u64) -> Result<(), u64> {
        if (self.start..self.end()).contains(&at) {
            return Ok(());
        }
        let fit = |len: u64| usize::try_from(len.min(self.len - at)).unwrap_or(WINDOW_BYTES);
        let (whole, piece) = (fit(WINDOW_BYTES as u64), fit(PIECE_BYTES));
        self.start = at;
        for len in [whole, piece] {
            self.bytes.resize(len, 0);
            if self.raw.read_at(&mut self.bytes, at).is_ok() {
                return Ok(());
            }
        }
        self.bytes.clear();
        Err(piece as u64)
    }
}

/// What is given up where the medium cannot be read: a sector of most of them.
const PIECE_BYTES: u64 = 4096;
