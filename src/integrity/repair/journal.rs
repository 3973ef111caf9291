//! The journal: left as it is where it fits, else written anew with what fits.
//!
//! The new segment gets numbers above all that were seen and is put into place whole. Until the drained mark is moved
//! it changes nothing: a repair that is begun again finds the same events in it a second time, and steps over them.

use std::collections::{HashMap, HashSet};

use super::Mending;
use crate::error::{Error, Result};
use crate::event::EventParts;
use crate::format::{
    self, Action, Drained, FrameBuilder, Hash, NewHeader, Origin, Run, RunEncoder, RunView, Sections,
    SessionHeader, Summary,
};
use crate::id::StorageKey;
use crate::integrity::journal::Spot;
use crate::integrity::work::RemedyKind;
use crate::labels::Labels;
use crate::log::journal::segment_size;
use crate::storage::Map;

/// As the journal names its files.
const SEGMENT: &str = "segment-";
const UNFINISHED: &str = "new-";

/// What of a frame is kept.
enum Kept<'a> {
    Create(NewHeader),
    Run(StorageKey, Run),
    Whole(StorageKey, RunView<'a>),
    Delete(StorageKey),
    Label(StorageKey, Labels),
    Begin(NewHeader),
    Publish(StorageKey, Labels),
}

/// Where sessions are while frames are put onto them.
#[derive(Default)]
struct Ends {
    next: HashMap<StorageKey, u64>,
    created: HashMap<StorageKey, NewHeader>,
    deleted: HashSet<StorageKey>,
    /// Hidden sessions that the journal begins.
    begun: HashMap<StorageKey, NewHeader>,
}

impl Mending<'_> {
    pub(super) fn journal(&mut self) -> Result<()> {
        let mut ends = Ends::default();
        let mut kept: Vec<(u64, Vec<Kept<'_>>)> = Vec::new();
        let mut changed = self.frames.damaged || !self.marked || self.bytes.cut_short().next().is_some();
        let frames: Vec<_> = self.frames.counting().collect();
        let mut dropped: Vec<(u64, StorageKey, RunView<'_>)> = Vec::new();
        // What does not follow in a hidden session counts when that is published: else all of it goes.
        let mut torn: HashMap<StorageKey, Vec<(u64, StorageKey, RunView<'_>)>> = HashMap::new();
        let mut undecodable = Vec::new();
        for (commit, frame, spot) in frames {
            let mut actions = Vec::new();
            for action in frame.actions() {
                let Ok(action) = action else {
                    changed = true;
                    undecodable.push(spot);
                    break;
                };
                match action {
                    Action::Create(new) | Action::Fork(new) => {
                        if !self.is_new(&new, &mut ends)? {
                            changed = true;
                        } else if self.parent_holds(&new, &ends)? && !self.is_named(&new)? {
                            actions.push(Kept::Create(new));
                        } else {
                            changed = true;
                            self.store_creation(&new)?;
                        }
                    }
                    Action::Run { key, run } => {
                        let end = run.first_seq + u64::from(run.count);
                        let Some(next) = self.next(key, &mut ends)? else {
                            changed = true;
                            dropped.push((commit, key, run));
                            continue;
                        };
                        if run.first_seq == next && decodes(&run) {
                            ends.next.insert(key, end);
                            actions.push(Kept::Whole(key, run));
                            continue;
                        }
                        changed = true;
                        if end <= next {
                            continue;
                        }
                        match cut(&run, next) {
                            Some(run) if run.first_seq == next => {
                                ends.next.insert(key, end);
                                actions.push(Kept::Run(key, run));
                            }
                            _ if self.is_hidden(key, &ends)? => {
                                torn.entry(key).or_default().push((commit, key, run));
                            }
                            _ => {
                                dropped.push((commit, key, run));
                                self.end_in_journal(key, next, end, &mut ends)?;
                            }
                        }
                    }
                    Action::Delete { key } => {
                        let there = self.next(key, &mut ends)?.is_some() || self.view().ended(key)?.is_some();
                        if there && ends.deleted.insert(key) {
                            actions.push(Kept::Delete(key));
                        } else {
                            changed = true;
                        }
                    }
                    Action::Label { key, labels } => {
                        if self.next(key, &mut ends)?.is_some() || self.view().ended(key)?.is_some() {
                            actions.push(Kept::Label(key, labels));
                        } else {
                            changed = true;
                        }
                    }
                    Action::Begin(new) => {
                        if self.is_hidden(new.key, &ends)? || self.next(new.key, &mut ends)?.is_some() {
                            changed = true;
                        } else {
                            ends.next.insert(new.key, new.prefix_len());
                            ends.begun.insert(new.key, new.clone());
                            actions.push(Kept::Begin(new));
                        }
                    }
                    Action::Publish { key, labels } => {
                        if self.can_be_published(key, &mut ends)? {
                            let runs = torn.remove(&key).unwrap_or_default();
                            let end = runs.last().map(|(_, _, run)| run.first_seq + u64::from(run.count));
                            if let (Some(end), Some(next)) = (end, self.next(key, &mut ends)?) {
                                self.end_in_journal(key, next, end, &mut ends)?;
                            }
                            dropped.extend(runs);
                            actions.push(Kept::Publish(key, labels));
                        } else {
                            changed = true;
                        }
                    }
                    Action::Seal => {}
                }
            }
            if !actions.is_empty() {
                kept.push((commit, actions));
            }
        }
        if changed {
            self.set_aside(&dropped, &undecodable)?;
            self.rewrite_journal(&kept)?;
        }
        Ok(())
    }

    /// Whether a session is one that an import has begun and not published.
    fn is_hidden(&self, key: StorageKey, ends: &Ends) -> Result<bool> {
        let published = ends.created.contains_key(&key);
        Ok(!published && (ends.begun.contains_key(&key) || self.view().is_hidden(key)?))
    }

    /// Whether a hidden session becomes one like any other: it is there, and its id is free. What is not published
    /// goes at the next open.
    fn can_be_published(&self, key: StorageKey, ends: &mut Ends) -> Result<bool> {
        let new = match ends.begun.remove(&key) {
            Some(new) => new,
            None => match self.view().hidden_header(key)? {
                Some(header) => header.into_new(),
                None => return Ok(false),
            },
        };
        let next = ends.next.get(&key).copied();
        let is_new = self.is_new(&new, ends)?;
        // What it has got already stays.
        ends.next.extend(next.map(|next| (key, next)));
        Ok(is_new)
    }

    /// Whether a creation is to be kept.
    fn is_new(&self, new: &NewHeader, ends: &mut Ends) -> Result<bool> {
        let storage = self.work.storage;
        let known = storage.get(Map::Sessions, &format::header_key(new.key))?.is_some()
            || ends.created.contains_key(&new.key)
            || self
                .view()
                .leads_to(&new.id)?
                .is_some_and(|key| key != new.key && !ends.deleted.contains(&key))
            || ends
                .created
                .values()
                .any(|created| created.id == new.id && !ends.deleted.contains(&created.key));
        if known {
            return Ok(false);
        }
        ends.created.insert(new.key, new.clone());
        ends.next.insert(new.key, new.prefix_len());
        Ok(true)
    }

    /// Whether a fork's parent still has the events that it shares: only then can the journal be replayed.
    fn parent_holds(&self, new: &NewHeader, ends: &Ends) -> Result<bool> {
        let Some((parent, prefix_len)) = new.parent else { return Ok(true) };
        if let Some(next) = ends.next.get(&parent) {
            return Ok(prefix_len <= *next);
        }
        let there = self.work.storage.get(Map::Sessions, &format::header_key(parent))?.is_some();
        let len = self.view().summary(parent)?.map(|summary| summary.len);
        Ok(there && len.is_some_and(|len| prefix_len <= len))
    }

    /// Whether a session's id leads to it already: its header was lost, and replay would take it for one that exists.
    fn is_named(&self, new: &NewHeader) -> Result<bool> {
        Ok(self.view().leads_to(&new.id)? == Some(new.key))
    }

    /// Stores a session that the journal creates, as one that was drained and damaged afterwards.
    fn store_creation(&mut self, new: &NewHeader) -> Result<()> {
        let hash = match new.parent {
            None => Hash::START,
            Some((parent, prefix_len)) => self.view().hash_at(parent, prefix_len)?.unwrap_or(Hash::UNKNOWN),
        };
        self.put_header(
            &SessionHeader::new(new.clone(), hash),
            "the journal creates it, and does not stand alone",
        )?;
        let summary = Summary { len: new.prefix_len(), updated: new.created, hash };
        self.summarise(new, None, summary)?;
        self.relations(new.key)
    }

    /// The next seq of a session; `None` for one that is not there or was ended before it.
    fn next(&self, key: StorageKey, ends: &mut Ends) -> Result<Option<u64>> {
        if ends.deleted.contains(&key) || self.view().deleted(key)?.is_some() {
            return Ok(None);
        }
        let next = match ends.next.get(&key) {
            Some(next) => *next,
            None => {
                let stored = self.work.storage.get(Map::Sessions, &format::header_key(key))?.is_some();
                if !stored && !self.view().is_hidden(key)? {
                    return Ok(None);
                }
                let Some(summary) = self.view().summary(key)? else { return Ok(None) };
                ends.next.insert(key, summary.len);
                summary.len
            }
        };
        let ended = self.view().ended(key)?.is_some_and(|at| next >= at);
        Ok(Some(next).filter(|_| !ended))
    }

    /// Ends a session whose next events are not in the journal.
    fn end_in_journal(&mut self, key: StorageKey, at: u64, to: u64, ends: &mut Ends) -> Result<()> {
        let id = match ends.created.get(&key) {
            Some(new) => new.id.to_string(),
            None => self.view().header(key)?.map_or_else(|| key.to_string(), |header| header.id.to_string()),
        };
        self.put_end(key, &id, at, to, "the frame with its next events is damaged or missing")
    }

    /// Puts into quarantine what is not applied: runs as frames of their own, and bytes that are no frame.
    fn set_aside(&mut self, dropped: &[(u64, StorageKey, RunView<'_>)], undecodable: &[Spot]) -> Result<()> {
        for (commit, key, run) in dropped {
            let mut builder = FrameBuilder::new(Vec::new());
            builder.begin(self.ground.store_id, *commit, commit.saturating_sub(1));
            builder.add(&Action::Run { key: *key, run: *run });
            let bytes = builder.finish().to_vec();
            let place = format!("commit {commit}");
            let reason = "events of the journal that do not follow the session's last";
            self.work.quarantine(
                (*key, run.first_seq),
                (Origin::Journal, place.as_bytes()),
                reason,
                &bytes,
            )?;
            let seqs = run.first_seq..run.first_seq + u64::from(run.count);
            self.work.say(
                RemedyKind::Quarantined,
                Some(&key.to_string()),
                Some(seqs),
                format!("events of {place}"),
            );
        }
        let broken: Vec<Spot> = self.frames.broken.iter().map(|(_, spot)| *spot).collect();
        let torn = if self.frames.damaged { Vec::new() } else { self.torn() };
        for spot in broken.iter().chain(undecodable).chain(&torn) {
            let place = self.bytes.name(*spot);
            let bytes = self.bytes.slice(*spot);
            let reason = "bytes of the journal that are no sound frame";
            self.work.quarantine(
                (StorageKey([0; 16]), 0),
                (Origin::Journal, place.as_bytes()),
                reason,
                bytes,
            )?;
            self.work.say(RemedyKind::Quarantined, None, None, format!("{} bytes of {place}", bytes.len()));
        }
        self.work.storage.flush()
    }

    /// Whole frames behind a torn end.
    fn torn(&self) -> Vec<Spot> {
        self.frames.valid.range(self.frames.end..).map(|(_, (_, spot))| *spot).collect()
    }

    fn rewrite_journal(&mut self, kept: &[(u64, Vec<Kept<'_>>)]) -> Result<()> {
        let highest = self.frames.highest();
        let kept_frames = kept.len();
        self.work.say(
            RemedyKind::Journal,
            None,
            None,
            format!("written anew with {kept_frames} commits; drained through {highest}"),
        );
        if self.work.real {
            if let Some(copies) = &mut self.work.copies {
                for segment in &self.bytes.segments {
                    copies.file(&segment.name, &segment.bytes)?;
                }
            }
            self.write_segment(kept, highest)?;
        }
        let number = self.work.number();
        let mark = format::encode_drained(Drained { through: highest }, number);
        self.work.change(Map::Sessions, &[(format::DRAINED_KEY.to_vec(), Some(mark))])?;
        if self.work.real {
            for segment in &self.bytes.segments {
                self.io("remove", &segment.name, self.ground.files.remove(&segment.name))?;
            }
            self.io("sync", "", self.ground.files.sync_folder())?;
        }
        Ok(())
    }

    fn write_segment(&self, kept: &[(u64, Vec<Kept<'_>>)], highest: u64) -> Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let mut builder = FrameBuilder::new(Vec::new());
        for (commit, (_, actions)) in (highest + 1..).zip(kept) {
            builder.begin(self.ground.store_id, commit, commit - 1);
            for action in actions {
                match action {
                    Kept::Create(new) if new.parent.is_none() => builder.add(&Action::Create(new.clone())),
                    Kept::Create(new) => builder.add(&Action::Fork(new.clone())),
                    Kept::Delete(key) => builder.add(&Action::Delete { key: *key }),
                    Kept::Label(key, labels) => {
                        builder.add(&Action::Label { key: *key, labels: labels.clone() });
                    }
                    Kept::Begin(new) => builder.add(&Action::Begin(new.clone())),
                    Kept::Publish(key, labels) => {
                        builder.add(&Action::Publish { key: *key, labels: labels.clone() });
                    }
                    Kept::Run(key, run) => builder.add_run(*key, run),
                    Kept::Whole(key, run) => builder.add(&Action::Run { key: *key, run: *run }),
                }
            }
            bytes.extend_from_slice(builder.finish());
        }
        let files = self.ground.files;
        let number = self.bytes.highest_name + 1;
        let (unfinished, name) = (format!("{UNFINISHED}{number}"), format!("{SEGMENT}{number}"));
        // One that an interrupted repair left.
        if self.io("list", "", files.list())?.contains(&unfinished) {
            self.io("remove", &unfinished, files.remove(&unfinished))?;
        }
        let file =
            self.io("create", &unfinished, files.create(&unfinished, segment_size(bytes.len() as u64)))?;
        self.io("write", &unfinished, file.write_at(&bytes, 0))?;
        self.io("sync", &unfinished, file.sync())?;
        self.io("rename", &unfinished, files.rename(&unfinished, &name))?;
        self.io("sync", "", files.sync_folder())
    }

    fn io<T>(&self, action: &'static str, name: &str, result: std::io::Result<T>) -> Result<T> {
        let path = || std::path::PathBuf::from("journal").join(name);
        result.map_err(|source| Error::Io { action, path: path(), source })
    }
}

fn decodes(run: &RunView<'_>) -> bool {
    run.decode(0, run.count, Sections::All, &mut Vec::new()).is_ok()
}

/// The part of a run from `next` on.
fn cut(run: &RunView<'_>, next: u64) -> Option<Run> {
    if run.first_seq > next {
        return None;
    }
    let skip = u32::try_from(next - run.first_seq).ok()?;
    let mut events = Vec::new();
    run.decode(skip, run.count.saturating_sub(skip), Sections::All, &mut events).ok()?;
    let mut encoder = RunEncoder::new(next);
    for event in &events {
        let parts: EventParts<'_> = event.parts();
        encoder.push(&parts);
    }
    (!events.is_empty()).then(|| encoder.finish())
}
