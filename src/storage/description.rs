//! The description of a store: a small text file that says what the folder is and how to read it.
//!
//! ```text
//! sessionlog store
//! format 1
//! store 0195f2c8a1b47e0c9d3f5a6b7c8d9e0f
//! durability synchronous-attribute
//! engine engine-1
//! checksum 5d41402a
//! ```
//!
//! The first two lines and the last one keep their form in every format to come; the checksum is the CRC-32 of all
//! bytes before its line. So a program can tell a store that is too new for it from one that is damaged.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::{EngineDurability, files};
use crate::error::{Corruption, Error, Place, Result};

/// Its file's name: what makes a folder a store.
pub(super) const NAME: &str = "sessionlog";
/// The name under which it is written before it is renamed.
pub(super) const NEW_NAME: &str = "sessionlog.new";
/// More than any description has.
const MAX_BYTES: u64 = 64 * 1024;
const FIRST_LINE: &str = "sessionlog store";

/// What a store's folder says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// The format of all that the folder holds.
    pub(crate) format: u32,
    /// Tells this store's journal frames from those of any other.
    pub(crate) store_id: [u8; 16],
    /// How the engine's writes became durable when the store was last opened.
    pub(crate) durability: EngineDurability,
    /// The name of the engine's folder: `engine-` and a number.
    pub(crate) engine: String,
}

impl Description {
    /// The newest format that this program reads, and the one that it writes.
    pub(crate) const FORMAT: u32 = 1;

    /// Reads the description of the store in `dir`; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::UnsupportedFormat`]: its format line names a newer format, whatever else is wrong with it.
    /// [`Error::Corrupt`]: it is damaged.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        let file = match files::open(&path, OFlags::RDONLY) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(files::at("read", &path))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(files::at("read", &path))?;
        Self::parse(&bytes, &path).map(Some)
    }

    /// Reads what a damaged store says of itself: `None` where it says nothing that can be believed.
    ///
    /// # Errors
    /// [`Error::UnsupportedFormat`]: a newer format, said by a sound description. [`Error::Io`].
    pub(crate) fn read_damaged(dir: &Path) -> Result<Option<Self>> {
        match Self::read(dir) {
            Err(Error::Corrupt { .. }) => Ok(None),
            Err(error @ Error::UnsupportedFormat { .. }) => {
                let path = dir.join(NAME);
                let bytes = std::fs::read(&path).map_err(files::at("read", &path))?;
                // Its number is as little believed as the rest.
                if check(&bytes).is_ok() { Err(error) } else { Ok(None) }
            }
            read => read,
        }
    }

    /// Replaces the description of the store in `dir`: after a crash the old one is there or the new one. Durable when
    /// it returns.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(NEW_NAME);
        let written =
            files::open(&path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).and_then(|mut file| {
                file.write_all(self.to_text().as_bytes())?;
                file.sync_all()
            });
        written.map_err(files::at("write", &path))?;
        std::fs::rename(&path, dir.join(NAME)).map_err(files::at("rename", &path))?;
        files::sync_folder(dir)
    }

    fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nformat {}\nstore ", self.format);
        for byte in self.store_id {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "\ndurability {}\nengine {}\n", self.durability, self.engine);
        let _ = writeln!(text, "checksum {:08x}", crc32fast::hash(text.as_bytes()));
        text
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |corruption| Error::Corrupt { place: place(path), corruption };
        let after_first =
            bytes.strip_prefix(FIRST_LINE.as_bytes()).and_then(|rest| rest.strip_prefix(b"\nformat "));
        let rest = after_first.ok_or_else(|| corrupt(Corruption::NotRecognised))?;
        let checked = check(bytes);
        // A newer format may change all but these lines, so its number is judged first.
        let format = rest.split(|byte| *byte == b'\n').next().and_then(number);
        match format {
            Some(found) if found > Self::FORMAT => {
                let mut place = place(path);
                if checked.is_err() {
                    place = place.at(format!("{}, whose checksum does not agree", path.display()));
                }
                return Err(Error::UnsupportedFormat { place, found, known: Self::FORMAT });
            }
            Some(Self::FORMAT) => {}
            _ => return Err(corrupt(Corruption::Undecodable { what: "the format" })),
        }
        let text = checked.map_err(corrupt)?;
        let lines =
            Lines::split(text).ok_or_else(|| corrupt(Corruption::Undecodable { what: "the text" }))?;
        lines.describe().map_err(|what| corrupt(Corruption::Undecodable { what }))
    }
}

fn place(path: &Path) -> Place {
    Place::new("description").at(path.display().to_string())
}

/// Reads a number as `to_text` writes it: no sign, no leading zero.
fn number(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    let number = text.parse().ok()?;
    (format!("{number}") == text).then_some(number)
}

/// Checks the last line against all before it and returns that.
fn check(bytes: &[u8]) -> Result<&[u8], Corruption> {
    const LINE: &[u8] = b"checksum 00000000\n";
    let (text, line) = bytes
        .len()
        .checked_sub(LINE.len())
        .and_then(|at| bytes.split_at_checked(at))
        .ok_or(Corruption::NotRecognised)?;
    let digits = line.strip_prefix(b"checksum ").and_then(|rest| rest.strip_suffix(b"\n"));
    let computed = crc32fast::hash(text);
    let expected = format!("{computed:08x}");
    let digits = digits.ok_or(Corruption::NotRecognised)?;
    if digits == expected.as_bytes() {
        return Ok(text);
    }
    let stored = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match stored {
        Some(stored) if stored != computed => Err(Corruption::Checksum { stored, computed }),
        _ => Err(Corruption::NotRecognised),
    }
}

/// The lines between the format and the checksum.
struct Lines<'a> {
    store: &'a str,
    durability: &'a str,
    engine: &'a str,
}

impl<'a> Lines<'a> {
    fn split(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.strip_suffix('\n')?.split('\n').skip(2);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let found =
            Self { store: field("store")?, durability: field("durability")?, engine: field("engine")? };
        lines.next().is_none().then_some(found)
    }

    fn describe(&self) -> Result<Description, &'static str> {
        let durability = EngineDurability::from_word(self.durability).ok_or("the durability mode")?;
        if engine_number(self.engine).is_none() {
            return Err("the engine's name");
        }
        let store_id = store_id(self.store).ok_or("the store id")?;
        Ok(Description { format: Description::FORMAT, store_id, durability, engine: self.engine.to_owned() })
    }
}

fn store_id(digits: &str) -> Option<[u8; 16]> {
    if digits.len() != 32 || digits.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

/// Returns N when `name` is `engine-N`: the only folders that may be taken for leftovers.
pub(super) fn engine_number(name: &str) -> Option<u32> {
    number(name.strip_prefix("engine-")?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Description {
        Description {
            format: 1,
            store_id: *b"0123456789abcdef",
            durability: EngineDurability::SynchronousAttribute,
            engine: "engine-12".into(),
        }
    }

    fn parse(text: impl AsRef<[u8]>) -> Result<Description> {
        Description::parse(text.as_ref(), Path::new("store/sessionlog"))
    }

    fn with_checksum(text: &str) -> String {
        format!("{text}checksum {:08x}\n", crc32fast::hash(text.as_bytes()))
    }

    /// The bytes are frozen: a store of format 1 is recognised for ever.
    #[test]
    fn golden() {
        let text = "sessionlog store\nformat 1\nstore 30313233343536373839616263646566\n\
                    durability synchronous-attribute\nengine engine-12\nchecksum 558dd400\n";
        assert_eq!(sample().to_text(), text);
        assert_eq!(parse(text).unwrap(), sample());
    }

    /// Every flipped bit and every cut is an error that names the description; only the format's digit may make it
    /// look newer.
    #[test]
    fn damage_is_noticed() {
        let text = sample().to_text().into_bytes();
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut damaged = text.clone();
                damaged[at] ^= 1 << bit;
                match parse(&damaged).unwrap_err() {
                    Error::Corrupt { place, .. } => assert_eq!(place.what, "description"),
                    Error::UnsupportedFormat { place, .. } => {
                        assert_eq!(text[at], b'1', "byte {at}");
                        assert!(place.to_string().contains("checksum does not agree"), "{place}");
                    }
                    other => panic!("byte {at}, bit {bit}: {other}"),
                }
            }
            assert!(matches!(parse(&text[..at]), Err(Error::Corrupt { .. })), "cut at {at}");
        }
        assert!(matches!(parse([text.as_slice(), b"\n"].concat()), Err(Error::Corrupt { .. })));
    }

    /// Newer formats are told apart from damage, whatever lines they have.
    #[test]
    fn newer_formats_are_named() {
        let edited = sample().to_text().replace("format 1", "format 2");
        let longer = with_checksum("sessionlog store\nformat 2\nshape new\nstore x\n");
        let without_checksum = "sessionlog store\nformat 2\nblake3 00\n".to_owned();
        for text in [edited, longer, without_checksum] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, Error::UnsupportedFormat { found: 2, known: 1, .. }), "{error}");
        }
    }

    /// A right checksum does not make wrong lines right.
    #[test]
    fn wrong_lines_are_refused() {
        for (from, to) in [
            ("engine engine-12", "engine ../elsewhere"),
            ("engine engine-12", "engine engine-012"),
            ("durability sync", "durability maybe-sync"),
            ("store 30", "store +0"),
            ("format 1", "format 0"),
            ("format 1", "format 01"),
            ("engine engine-12\n", "engine engine-12\nextra line\n"),
        ] {
            let text = sample().to_text();
            let body = text.split("checksum").next().unwrap();
            let changed = body.replace(from, to);
            assert_ne!(changed, body);
            assert!(matches!(parse(with_checksum(&changed)), Err(Error::Corrupt { .. })), "{to}");
        }
    }

    /// Written 0600 and whole; a half-written new one from a crash is in nobody's way.
    #[test]
    fn written_and_read() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Description::read(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(NEW_NAME), b"sessionlog st").unwrap();
        assert_eq!(Description::read(dir.path()).unwrap(), None);
        sample().write(dir.path()).unwrap();
        assert_eq!(Description::read(dir.path()).unwrap(), Some(sample()));
        assert_eq!(dir.path().join(NAME).metadata().unwrap().mode() & 0o777, 0o600);
        assert!(!dir.path().join(NEW_NAME).exists());
    }
}
