//! A session's events: whole, or ended where one is missing.

use std::ops::Bound;

use super::Mending;
use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, Hash, NewHeader, SessionHeader, Summary, Tombstone};
use crate::id::StorageKey;
use crate::integrity::finding::{Finding, FindingKind};
use crate::integrity::view::View;
use crate::integrity::walk::{Extent, Walked, walk};
use crate::integrity::work::RemedyKind;
use crate::storage::Map;

/// Rounds of taking stray values away: each leaves fewer.
const ROUNDS: usize = 4;

/// A walk and what it told.
struct Looked {
    walked: Walked,
    findings: Vec<Finding>,
}

impl Looked {
    fn told(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}

impl Mending<'_> {
    /// Mends the events of one session, and its summary, id and place in the order.
    pub(super) fn events(&mut self, key: StorageKey) -> Result<()> {
        let view = self.view();
        let stored = view.header(key)?;
        let is_stored = stored.is_some();
        let created = self.pending.get(&key).and_then(|pending| pending.created.as_ref());
        let header = match (stored, created) {
            (Some(header), _) => header,
            (None, Some((_, new))) => {
                let hash = match new.parent {
                    None => Hash::START,
                    Some((parent, prefix_len)) => view.hash_at(parent, prefix_len)?.unwrap_or(Hash::UNKNOWN),
                };
                SessionHeader::new(new.clone(), hash)
            }
            (None, None) => return Ok(()),
        };
        let summary = if is_stored { view.summary(key)? } else { None };
        let from = header.parent.map_or(0, |(_, prefix_len)| prefix_len);
        let counted = match (&summary, is_stored) {
            (Some(summary), _) if summary.len >= from => Some(summary.len),
            (None, false) => Some(from),
            _ => None,
        };
        if let Some(tombstone) = self.view().deleted(key)? {
            return self.lent(&header, summary, tombstone);
        }
        let (header, mut looked) = self.look(header, is_stored, counted)?;
        for _ in 0..ROUNDS {
            if looked.walked.stray.is_empty() {
                break;
            }
            let stray = self.stray(key, &looked)?;
            if stray.is_empty() {
                break;
            }
            let id = header.id.to_string();
            let moved = self.work.move_blocks(
                key,
                stray.into_iter(),
                "it stood in the way of the session's blocks",
            )?;
            if moved > 0 {
                self.work.say(
                    RemedyKind::Quarantined,
                    Some(&id),
                    None,
                    format!("{moved} values that stood in the way of its blocks"),
                );
            }
            looked = self.look(header.clone(), is_stored, counted)?.1;
        }
        // What an unfinished pass has stored counts, and where the journal has it too it steps over it; so does what a
        // lost summary counted.
        let extend =
            counted.is_some() && (looked.told(FindingKind::SummaryBehind) || looked.walked.leftovers);
        let behind = looked.told(FindingKind::SummaryBehind);
        if extend && looked.walked.sound.len >= counted.unwrap_or_default() {
            looked = self.look(header.clone(), is_stored, None)?.1;
        }
        let id = header.id.to_string();
        let sound = looked.walked.sound;
        let beyond = looked.walked.end > sound.len || !looked.findings.is_empty();
        let hole = match counted {
            Some(to) if !behind => sound.len < to,
            // Something that was counted once lies behind what is sound.
            _ => beyond || counted.is_some_and(|to| sound.len < to),
        };
        if hole {
            self.end(&header, &looked, counted.filter(|_| !behind))?;
        } else if extend && beyond {
            let keys = self.keys_from(key, sound.len)?;
            let changes: Vec<_> = keys.into_iter().map(|key| (key, None)).collect();
            let detail = format!("{} values that an interrupted drain left", changes.len());
            self.work.say(RemedyKind::Removed, Some(&id), None, detail);
            self.work.change(Map::Events, &changes)?;
        }
        if !is_stored {
            // The journal makes it; but where its blocks count now, its records must say so.
            if sound.len == from {
                return Ok(());
            }
            self.put_header(&header, "it was only in the journal")?;
        }
        let updated = sound.updated.unwrap_or(header.created);
        let known = Summary { len: sound.len, updated, hash: sound.hash.unwrap_or(Hash::UNKNOWN) };
        self.summarise(&header.into_new(), summary, known)
    }

    fn look(
        &mut self,
        mut header: SessionHeader,
        is_stored: bool,
        to: Option<u64>,
    ) -> Result<(SessionHeader, Looked)> {
        let key = header.key;
        let from = header.parent.map_or(0, |(_, prefix_len)| prefix_len);
        let known = |hash: Hash| Some(hash).filter(|hash| *hash != Hash::UNKNOWN);
        let said = if from == 0 { Some(Hash::START) } else { known(header.prefix_hash) };
        let expected = match header.parent {
            Some((parent, prefix_len)) if prefix_len > 0 => self.view().hash_at(parent, prefix_len)?,
            _ => Some(Hash::START),
        };
        let mut looked = self.walk(key, from, expected.or(said), to)?;
        if let Some(hash) = expected.filter(|hash| header.prefix_hash != *hash) {
            let first = |finding: &Finding| {
                finding.kind == FindingKind::RunningHash
                    && finding.seqs.as_ref().is_some_and(|seqs| seqs.start == from)
            };
            let disagrees = looked.findings.iter().any(first);
            // The blocks go on from another history than the parent's: the hash at the prefix is then nobody's.
            let hash = if disagrees { Hash::UNKNOWN } else { hash };
            if disagrees {
                looked = self.walk(key, from, said, to)?;
            }
            if is_stored && header.prefix_hash != hash {
                header.prefix_hash = hash;
                let number = self.work.number();
                let value = format::encode_header(&header, number);
                self.work.say(
                    RemedyKind::Rebuilt,
                    Some(header.id.as_str()),
                    None,
                    "the running hash at its prefix",
                );
                self.work.change(Map::Sessions, &[(format::header_key(key).to_vec(), Some(value))])?;
            }
        }
        Ok((header, looked))
    }

    fn walk(&mut self, key: StorageKey, from: u64, hash: Option<Hash>, to: Option<u64>) -> Result<Looked> {
        self.walk_over(Extent { key, from, hash, to: to.unwrap_or(u64::MAX), part: false, mark: self.mark })
    }

    fn walk_over(&mut self, extent: Extent) -> Result<Looked> {
        let key = extent.key;
        let mut findings = Vec::new();
        let mut newer = None;
        let mut engine = None;
        let walked = walk(self.work.storage, extent, &mut self.buffers, &mut |finding| match finding.kind {
            FindingKind::UnknownVersion => newer = Some(finding),
            FindingKind::Engine => engine = Some(finding),
            _ if findings.len() < 1_000 => findings.push(finding),
            _ => {}
        });
        let place =
            |finding: &Finding| Place::new("block").session(key).at(finding.key.clone().unwrap_or_default());
        if let Some(finding) = newer {
            let found = finding.found.rsplit(' ').next().and_then(|number| number.parse().ok());
            return Err(super::newer(place(&finding), found.unwrap_or_default()));
        }
        if let Some(finding) = engine {
            let corruption = Corruption::Engine { message: finding.found.clone() };
            return Err(Error::Corrupt { place: place(&finding), corruption });
        }
        Ok(Looked { walked, findings })
    }

    /// Mends what a deleted session lends to its forks: where a value of that cannot be read it lends less.
    fn lent(&mut self, header: &SessionHeader, summary: Option<Summary>, tombstone: Tombstone) -> Result<()> {
        let key = header.key;
        let from = header.parent.map_or(0, |(_, prefix_len)| prefix_len);
        if tombstone.kept == 0 {
            return Ok(());
        }
        let known = |hash: Hash| Some(hash).filter(|hash| *hash != Hash::UNKNOWN);
        let hash = if from == 0 { Some(Hash::START) } else { known(header.prefix_hash) };
        let end = tombstone.kept.max(from);
        let to = summary.map_or(end, |summary| summary.len.min(end));
        let extent = Extent { key, from, hash, to, part: true, mark: self.mark };
        let looked = self.walk_over(extent)?;
        let sound = looked.walked.sound;
        if sound.len >= to && summary.is_some() && looked.walked.stray.is_empty() {
            return Ok(());
        }
        let stray = looked.walked.stray.clone();
        let keys = self.keys_from(key, sound.len)?;
        let why = format!("events of a deleted session that its forks share are missing at {}", sound.len);
        let id = header.id.to_string();
        if sound.len < to {
            self.work.cut = true;
            self.work.say(RemedyKind::Ended, Some(&id), Some(sound.len..to), why.clone());
        }
        self.work.move_blocks(key, keys.into_iter().chain(stray), &why)?;
        let updated = summary.map_or(header.created, |summary| summary.updated);
        let summary = Summary { len: sound.len, updated, hash: sound.hash.unwrap_or(Hash::UNKNOWN) };
        let kept = Tombstone { kept: sound.len.min(tombstone.kept), pending: false };
        let (one, other) = (self.work.number(), self.work.number());
        let changes = [
            (format::summary_key(key).to_vec(), Some(format::encode_summary(key, &summary, one))),
            (format::tombstone_key(key).to_vec(), Some(format::encode_tombstone(key, kept, other))),
        ];
        self.work.say(RemedyKind::Rebuilt, Some(&id), None, "what is left of a deleted session");
        self.work.change(Map::Sessions, &changes)
    }

    /// Which values go out of the way: stray ones, and where blocks overlap the older ones.
    fn stray(&self, key: StorageKey, looked: &Looked) -> Result<Vec<Vec<u8>>> {
        if !looked.told(FindingKind::Overlap) {
            return Ok(looked.walked.stray.clone());
        }
        let mut stray: Vec<_> = looked.walked.stray.clone();
        let mut blocks = Vec::new();
        for entry in self.events_of(key, 0) {
            let (at, value) = entry?;
            let Some(parsed) = format::parse_event_key(&at).filter(|at| at.part.is_none()) else { continue };
            let Ok(view) = format::open_block(key, parsed.seq, &value) else { continue };
            let header = view.header();
            blocks.push((header.write_number, header.first_seq, header.end(), at));
        }
        // What was written last is how it was in the end.
        blocks.sort_unstable_by(|one, other| other.cmp(one));
        let mut kept: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
        stray.retain(|stray| !blocks.iter().any(|(.., at)| at == stray));
        for (_, from, to, at) in blocks {
            let before = kept.range(..to).next_back();
            if before.is_some_and(|(_, end)| *end > from) {
                stray.push(at);
            } else {
                kept.insert(from, to);
            }
        }
        Ok(stray)
    }

    fn events_of(&self, key: StorageKey, from: u64) -> crate::storage::Entries {
        let from = format::block_key(key, from);
        let to = format::part_key(key, u64::MAX, u32::MAX);
        self.work.storage.range(Map::Events, Bound::Included(&from), Bound::Included(&to))
    }

    /// The keys of a session's values from a seq on.
    fn keys_from(&self, key: StorageKey, from: u64) -> Result<Vec<Vec<u8>>> {
        self.events_of(key, from).map(|entry| entry.map(|(key, _)| key)).collect()
    }

    /// Ends a session where its events stop being sound.
    fn end(&mut self, header: &SessionHeader, looked: &Looked, to: Option<u64>) -> Result<()> {
        let at = looked.walked.sound.len;
        let to = to.unwrap_or(u64::MAX);
        let id = header.id.to_string();
        let why =
            looked.findings.iter().find(|finding| finding.seqs.as_ref().is_some_and(|seqs| seqs.end > at));
        let why = why.map_or_else(
            || "events are missing".to_owned(),
            |finding| format!("{}: {} found", finding.kind, finding.found),
        );
        // Where the journal still has the next events, they count.
        let covered = self.pending.get(&header.key).map_or(at, |pending| pending.covers_from(at));
        if covered < to {
            self.put_end(header.key, &id, covered, to, &why)?;
        }
        let keys = self.keys_from(header.key, at)?;
        let moved = self.work.move_blocks(
            header.key,
            keys.into_iter(),
            &format!("the session was ended at {at}: {why}"),
        )?;
        if moved > 0 {
            self.work.say(
                RemedyKind::Quarantined,
                Some(&id),
                Some(at..to),
                format!("{moved} values from seq {at} on"),
            );
        }
        Ok(())
    }

    /// Writes an end mark.
    pub(super) fn put_end(&mut self, key: StorageKey, id: &str, at: u64, to: u64, why: &str) -> Result<()> {
        self.work.cut = true;
        self.work.say(
            RemedyKind::Ended,
            Some(id),
            Some(at..to),
            format!("it has {at} events and gets no more ({why})"),
        );
        let number = self.work.number();
        let mark = format::encode_end_mark(key, at, number);
        self.work.change(Map::Care, &[(format::end_mark_key(key), Some(mark))])
    }

    /// Makes a session's summary, its id record and its place in the order what they should be.
    pub(super) fn summarise(
        &mut self,
        new: &NewHeader,
        before: Option<Summary>,
        known: Summary,
    ) -> Result<()> {
        let key = new.key;
        let id = new.id.to_string();
        let view = View { storage: self.work.storage, pending: &self.pending };
        let mut changes = Vec::new();
        let mut done = Vec::new();
        if before != Some(known) {
            let number = self.work.number();
            changes
                .push((format::summary_key(key).to_vec(), Some(format::encode_summary(key, &known, number))));
            done.push("summary");
            if before.is_none_or(|before| before.len > known.len) {
                self.work.cut = true;
            }
        }
        let order = format::OrderKey { updated: known.updated, key };
        let order_key = format::order_key(known.updated, key);
        let value = view.storage.get(Map::Sessions, &order_key)?;
        if value.is_none_or(|value| format::check_order(&order, &value).is_err()) {
            let number = self.work.number();
            changes.push((order_key.to_vec(), Some(format::encode_order(known.updated, key, number))));
            done.push("place in the order by last update");
        }
        if let Some(before) = before.filter(|before| before.updated != known.updated) {
            changes.push((format::order_key(before.updated, key).to_vec(), None));
        }
        if !done.is_empty() {
            self.work.say(RemedyKind::Rebuilt, Some(&id), None, done.join(", "));
        }
        if changes.is_empty() { Ok(()) } else { self.work.change(Map::Sessions, &changes) }
    }
}
