//! A surface as plain data, to go on from later: as large as what stands on it, whatever was replaced.

use serde::{Deserialize, Serialize};

use super::entry::{Answer, Call, Entry, Outcome, What};
use super::origin::Replaced;
use super::{ReplaceFault, Surface, SurfaceOptions};
use crate::event::{Content, JsonString, JsonText};

/// The version that is written. Another one is not read: the surface is folded anew.
const VERSION: u32 = 1;

/// A surface as plain data, for any serde format.
///
/// It is a shortcut, never an authority: whoever keeps one must know that it belongs to the session and to its first
/// [`next_seq`](Surface::next_seq) events. Equal surfaces give equal snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceSnapshot {
    version: u32,
    next: u64,
    breaks: bool,
    entries: Vec<SavedEntry>,
    replaced: Vec<SavedReplace>,
    bad_replaces: Vec<(u64, ReplaceFault)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedEntry {
    seq: u64,
    order: u64,
    breaks: bool,
    what: Saved,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedReplace {
    by: u64,
    order: u64,
    ranges: Vec<(u64, u64)>,
}

/// Texts are JSON, ids and names the spelling between the quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Saved {
    User { content: Box<str> },
    Assistant { content: Box<str> },
    Call { id: Box<str>, nth: u32, name: Box<str>, args: Box<str>, answer: Option<u64> },
    Result { id: Box<str>, text: Box<str>, is_error: bool, call: Option<u64> },
}

/// Why a snapshot cannot be used: fold the events anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// It was made by another version.
    #[error("surface snapshot of version {found}, {VERSION} expected")]
    Version {
        /// Its version.
        found: u32,
    },
    /// No surface gives such a snapshot.
    #[error("surface snapshot damaged at event {seq}")]
    Damaged {
        /// Where.
        seq: u64,
    },
}

impl Surface {
    /// Returns the surface as plain data.
    ///
    /// # Cost
    /// All that stands is copied; what was replaced takes a few numbers for each replace.
    /// # Examples
    /// ```
    /// use sessionlog::{Event, Surface, SurfaceOptions, SurfaceSnapshot};
    /// let mut surface = Surface::default();
    /// let line = r#"{"type":"user/message","seq":0,"content":"hello","timestamp":0}"#;
    /// surface.push(&Event::from_json(line.as_bytes())?);
    /// let saved = serde_json::to_string(&surface.to_snapshot())?;
    /// let snapshot: SurfaceSnapshot = serde_json::from_str(&saved)?;
    /// assert_eq!(Surface::from_snapshot(snapshot, SurfaceOptions::new())?, surface);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_snapshot(&self) -> SurfaceSnapshot {
        let save_replace = |replaced: &Replaced| SavedReplace {
            by: replaced.by,
            order: replaced.order,
            ranges: replaced.ranges.iter().map(|range| (range.start, range.end)).collect(),
        };
        SurfaceSnapshot {
            version: VERSION,
            next: self.next,
            breaks: self.breaks,
            entries: self.entries.iter().filter_map(save).collect(),
            replaced: self.replaced.iter().map(save_replace).collect(),
            bad_replaces: self.bad_replaces.iter().map(|(seq, fault)| (*seq, *fault)).collect(),
        }
    }

    /// Returns the surface that gave the snapshot; its events are to be pushed from [`next_seq`](Self::next_seq) on.
    ///
    /// # Errors
    /// Another version, or something that no surface gives. What is merely wrong is not noticed.
    pub fn from_snapshot(snapshot: SurfaceSnapshot, options: SurfaceOptions) -> Result<Self, SnapshotFault> {
        if snapshot.version != VERSION {
            return Err(SnapshotFault::Version { found: snapshot.version });
        }
        let mut surface = Self::new(options);
        surface.next = snapshot.next;
        surface.breaks = snapshot.breaks;
        for saved in snapshot.entries {
            let seq = saved.seq;
            surface.restore(saved).ok_or(SnapshotFault::Damaged { seq })?;
        }
        surface.check_pairs()?;
        for SavedReplace { by, order, ranges } in snapshot.replaced {
            let ascends = surface.replaced.last().is_none_or(|last| last.by < by);
            if !ascends || by >= snapshot.next {
                return Err(SnapshotFault::Damaged { seq: by });
            }
            let ranges = ranges.into_iter().map(|(start, end)| start..end).collect();
            surface.replaced.push(Replaced { by, order, ranges });
        }
        surface.bad_replaces = snapshot.bad_replaces.into_iter().collect();
        Ok(surface)
    }

    fn restore(&mut self, saved: SavedEntry) -> Option<()> {
        let SavedEntry { seq, order, breaks, what } = saved;
        let last = self.entries.len().checked_sub(1).and_then(|last| self.entries.get(last));
        if last.is_some_and(|last| last.order >= order) || seq >= self.next || order > seq {
            return None;
        }
        let entry = Entry { seq, order, breaks, what: load(what)? };
        match &entry.what {
            What::Call(call) if call.answer.is_none() => self.open.add(call, order),
            What::Result(answer) if answer.call.is_none() => self.left_out += 1,
            _ => {}
        }
        self.bytes += entry.bytes();
        self.rendered.touch(order);
        self.entries.push(entry);
        Some(())
    }

    /// Checks that calls and results name each other.
    fn check_pairs(&self) -> Result<(), SnapshotFault> {
        for entry in self.entries.iter() {
            let other = |at: u64| self.entries.of_order(at).map(|entry| &entry.what);
            let is_sound = match &entry.what {
                What::Call(call) => call.answer.is_none_or(|answer| {
                    matches!(other(answer), Some(What::Result(answer)) if answer.call == Some(entry.order))
                }),
                What::Result(answer) => answer.call.is_none_or(|call| {
                    matches!(other(call), Some(What::Call(call)) if call.answer == Some(entry.order))
                }),
                _ => true,
            };
            if !is_sound {
                return Err(SnapshotFault::Damaged { seq: entry.seq });
            }
        }
        Ok(())
    }
}

fn save(entry: &Entry) -> Option<SavedEntry> {
    let text = |text: &JsonText| Box::from(text.as_str());
    let what = match &entry.what {
        What::User(content) => Saved::User { content: text(content.json()) },
        What::Assistant(content) => Saved::Assistant { content: text(content.json()) },
        What::Call(call) => Saved::Call {
            id: call.id.spelling().into(),
            nth: call.nth,
            name: call.name.spelling().into(),
            args: text(&call.args),
            answer: call.answer,
        },
        What::Result(answer) => {
            let (json, is_error) = match &answer.outcome {
                Outcome::Error(json) => (json, true),
                Outcome::Result(json) => (json, false),
            };
            Saved::Result { id: answer.id.spelling().into(), text: text(json), is_error, call: answer.call }
        }
        What::Gone => return None,
    };
    let Entry { seq, order, breaks, .. } = *entry;
    Some(SavedEntry { seq, order, breaks, what })
}

/// The reverse; `None` where no event could say this.
fn load(saved: Saved) -> Option<What> {
    Some(match saved {
        Saved::User { content } => What::User(load_content(&content).filter(|content| !content.is_null())?),
        Saved::Assistant { content } => What::Assistant(load_content(&content)?),
        Saved::Call { id, nth, name, args, answer } => {
            let (id, name) = (load_string(&id)?, load_string(&name)?);
            What::Call(Box::new(Call { id, nth, name, args: load_json(&args)?, answer }))
        }
        Saved::Result { id, text, is_error, call } => {
            let text = load_json(&text)?;
            let outcome = match is_error {
                true if !text.as_str().starts_with('"') => return None,
                true => Outcome::Error(text),
                false => Outcome::Result(text),
            };
            What::Result(Box::new(Answer { id: load_string(&id)?, outcome, call }))
        }
    })
}

fn load_json(text: &str) -> Option<JsonText> {
    JsonText::parse(text).ok()
}

fn load_content(text: &str) -> Option<Content> {
    let json = load_json(text)?;
    match json.as_str().as_bytes().first() {
        Some(b'[') => Content::parts(json).ok(),
        Some(b'"' | b'n') => Some(Content::from_checked(json)),
        _ => None,
    }
}

fn load_string(spelling: &str) -> Option<JsonString> {
    let json = load_json(&format!("\"{spelling}\""))?;
    json.as_str().strip_prefix('"')?.strip_suffix('"').map(JsonString::from_checked)
}
