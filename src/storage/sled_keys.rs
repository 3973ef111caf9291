//! Keys as sled gets them: without four bytes 0xFF in a row.
//!
//! To step from a page to the one before it sled looks up the page's lower bound, last byte less one, and four bytes
//! 0xFF, as if no key could lie behind that (`possible_predecessor` in its `iter.rs`). Where a page's worth of keys
//! does, such as sessions last updated in the millisecond before the epoch, it turns in circles a million times and
//! then panics with the whole tree in the message. So behind each third 0xFF in a row stands a zero byte here. That
//! keeps the order, also of keys that begin alike, and nearly every key as it is.

use std::borrow::Cow;

const RUN: usize = 3;

/// Makes sled's key.
pub(super) fn to_engine(key: &[u8]) -> Cow<'_, [u8]> {
    if !key.windows(RUN).any(|bytes| bytes == [0xFF; RUN]) {
        return Cow::Borrowed(key);
    }
    let mut stuffed = Vec::with_capacity(key.len() + key.len() / RUN);
    let mut run = 0;
    for byte in key {
        stuffed.push(*byte);
        run = if *byte == 0xFF { run + 1 } else { 0 };
        if run == RUN {
            stuffed.push(0);
            run = 0;
        }
    }
    Cow::Owned(stuffed)
}

/// Makes our key of sled's.
pub(super) fn from_engine(stuffed: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(stuffed.len());
    let mut run = 0;
    for byte in stuffed {
        if run == RUN {
            run = 0;
            continue;
        }
        key.push(*byte);
        run = if *byte == 0xFF { run + 1 } else { 0 };
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of up to seven bytes out of three: none with four 0xFF, all come back, all in the same order.
    #[test]
    fn short_runs_same_order() {
        let mut keys = vec![Vec::new()];
        let mut longest = keys.clone();
        for _ in 0..7 {
            longest = longest
                .iter()
                .flat_map(|key: &Vec<u8>| [0, 1, 0xFF].map(|byte| [key.as_slice(), &[byte]].concat()))
                .collect();
            keys.extend(longest.clone());
        }
        keys.sort();
        let stuffed = keys.iter().map(|key| to_engine(key).into_owned()).collect::<Vec<_>>();
        assert!(stuffed.is_sorted_by(|a, b| a < b));
        for (key, stuffed) in keys.iter().zip(&stuffed) {
            assert!(!stuffed.windows(4).any(|bytes| bytes == [0xFF; 4]), "{stuffed:?}");
            assert_eq!(&from_engine(stuffed), key);
        }
    }

    /// The stored form is frozen.
    #[test]
    fn golden() {
        assert_eq!(*to_engine(b"\xFF\xFFplain\xFF"), *b"\xFF\xFFplain\xFF");
        assert_eq!(
            *to_engine(b"\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFa"),
            *b"\x7F\xFF\xFF\xFF\0\xFF\xFF\xFF\0\xFFa"
        );
    }
}
