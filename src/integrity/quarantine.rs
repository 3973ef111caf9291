//! What repairs have set aside, to be looked at and taken out.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::finding::map_name;
use crate::error::{Corruption, Error, Place, Result};
use crate::event::Event;
use crate::format::{self, Action, LargeReader, Origin, QuarantineKey, Quarantined, Scratch, Sections};
use crate::id::StorageKey;
use crate::storage::{Entries, Map, Storage};
use crate::store::Handle;

/// Something that a repair has set aside, with its bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuarantinedItem {
    /// The storage key of the session that it belonged to, where that is known.
    pub storage_key: Option<String>,
    /// The seq of its first event, where it has some.
    pub seq: Option<u64>,
    /// Where it stood: the map and the key in hexadecimal, or the journal and the place there.
    pub place: String,
    /// Why it was set aside.
    pub reason: String,
    /// What it was.
    pub bytes: Vec<u8>,
    /// The events in it, with their seqs; none where they cannot be read.
    pub events: Vec<Event>,
}

/// What is in quarantine, by session and seq. The first error is the last item.
pub struct Quarantine {
    storage: Arc<dyn Storage>,
    entries: std::iter::Peekable<Entries>,
    store_id: [u8; 16],
    ready: VecDeque<QuarantinedItem>,
    failed: bool,
    _open: Handle,
}

impl fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quarantine").finish_non_exhaustive()
    }
}

impl Quarantine {
    /// All of it, or that of one session.
    pub(crate) fn new(handle: Handle, of: Option<StorageKey>) -> Self {
        let storage = Arc::clone(&handle.core().storage);
        let prefix = [format::QUARANTINE_PREFIX, of.as_ref().map_or(&[][..], |key| &key.0)].concat();
        let last = [&prefix[..], &[0xff; 40]].concat();
        let entries = storage.range(Map::Care, Bound::Included(&prefix), Bound::Included(&last)).peekable();
        Self {
            storage,
            entries,
            store_id: handle.store_id(),
            ready: VecDeque::new(),
            failed: false,
            _open: handle,
        }
    }

    /// Reads everything with the next seq: a large event lies in several values.
    fn group(&mut self) -> Result<()> {
        let mut group: Vec<(QuarantineKey, Quarantined)> = Vec::new();
        loop {
            let next = match self.entries.peek() {
                None => break,
                Some(Ok((key, _))) => key.clone(),
                Some(Err(_)) => match self.entries.next() {
                    Some(Err(error)) => return Err(error),
                    _ => break,
                },
            };
            let place = || Place::new("quarantine").at(format::hex(&next));
            let at = format::parse_quarantine_key(&next)
                .ok_or_else(|| Error::Corrupt { place: place(), corruption: Corruption::NotRecognised })?;
            if group.first().is_some_and(|(first, _)| (first.key, first.seq) != (at.key, at.seq)) {
                break;
            }
            let Some(entry) = self.entries.next() else { break };
            let (_, value) = entry?;
            if at.part > 0 {
                // Read with its first part.
                continue;
            }
            let head = format::decode_quarantine(&at, &value).map_err(|error| error.at(place()))?;
            let whole = self.whole(at, head)?;
            group.push((at, whole));
        }
        for (at, item) in &group {
            let events = self.events(*at, item, &group);
            self.ready.push_back(shown(*at, item, events));
        }
        Ok(())
    }

    /// Adds the bytes of the later parts.
    fn whole(&self, at: QuarantineKey, mut item: Quarantined) -> Result<Quarantined> {
        for part in 1.. {
            if item.bytes.len() as u64 >= item.len {
                break;
            }
            let at = QuarantineKey { part, ..at };
            let key = at.to_bytes();
            let place = || Place::new("quarantine").at(format::hex(&key));
            let missing =
                || Error::Corrupt { place: place(), corruption: Corruption::Missing { what: "a part" } };
            let value = self.storage.get(Map::Care, &key)?.ok_or_else(missing)?;
            item.bytes
                .extend_from_slice(format::quarantine_part(&at, &value).map_err(|error| error.at(place()))?);
        }
        Ok(item)
    }

    fn events(
        &self,
        at: QuarantineKey,
        item: &Quarantined,
        group: &[(QuarantineKey, Quarantined)],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let read = match item.origin {
            Origin::Events => block(at, item, group, &mut events),
            Origin::Journal => self.frame(at, item, &mut events),
            _ => None,
        };
        if read.is_none() {
            events.clear();
        }
        events
    }

    fn frame(&self, at: QuarantineKey, item: &Quarantined, events: &mut Vec<Event>) -> Option<()> {
        let frame = format::read_frame(&item.bytes, self.store_id).ok()?;
        for action in frame.actions() {
            if let Action::Run { key, run } = action.ok()?
                && key == at.key
            {
                run.decode(0, run.count, Sections::All, events).ok()?;
            }
        }
        Some(())
    }
}

fn block(
    at: QuarantineKey,
    item: &Quarantined,
    group: &[(QuarantineKey, Quarantined)],
    events: &mut Vec<Event>,
) -> Option<()> {
    let key = format::parse_event_key(&item.place).filter(|key| key.part.is_none())?;
    let view = format::open_block(key.key, key.seq, &item.bytes).ok()?;
    let mut scratch = Scratch::default();
    if view.is_large().is_none_or(|parts| parts == 1) {
        return view.decode(&mut scratch, 0, u32::MAX, Sections::All, events).ok();
    }
    let mut reader = LargeReader::new(&view);
    while let Some(part) = reader.next_part() {
        let place = format::part_key(at.key, at.seq, part);
        let pushed = group.iter().filter(|(_, other)| other.place == place);
        let mut pushed = pushed.map(|(_, other)| reader.push(part, &other.bytes).is_ok());
        if !pushed.any(|pushed| pushed) {
            return None;
        }
    }
    reader.finish(&mut scratch, Sections::All, events).ok()
}

fn shown(at: QuarantineKey, item: &Quarantined, events: Vec<Event>) -> QuarantinedItem {
    let map = match item.origin {
        Origin::Sessions => map_name(Map::Sessions),
        Origin::Events => map_name(Map::Events),
        Origin::Care => map_name(Map::Care),
        Origin::Derived => map_name(Map::Derived),
        Origin::Journal => "journal",
    };
    let place = match item.origin {
        Origin::Journal => format!("{map} {}", String::from_utf8_lossy(&item.place)),
        _ => format!("{map} {}", format::hex(&item.place)),
    };
    let known = at.key.0 != [0; 16];
    QuarantinedItem {
        storage_key: known.then(|| at.key.to_string()),
        seq: (known && matches!(item.origin, Origin::Events | Origin::Journal)).then_some(at.seq),
        place,
        reason: item.reason.clone(),
        bytes: item.bytes.clone(),
        events,
    }
}

impl Iterator for Quarantine {
    type Item = Result<QuarantinedItem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && !self.failed
            && let Err(error) = self.group()
        {
            self.failed = true;
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}
