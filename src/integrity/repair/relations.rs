//! What sessions are to each other, and records that belong to none.

use std::ops::Bound;

use super::Mending;
use crate::error::{Place, Result};
use crate::format::{self, FormatError, Hash, SessionHeader, Tombstone};
use crate::id::StorageKey;
use crate::integrity::finding::{Finding, FindingKind};
use crate::integrity::records;
use crate::integrity::view::entries;
use crate::integrity::work::RemedyKind;
use crate::storage::Map;

impl Mending<'_> {
    /// Mends how a session is found, and what it is to its parent.
    pub(super) fn relations(&mut self, key: StorageKey) -> Result<()> {
        let Some(mut header) = self.view().header(key)? else { return Ok(()) };
        if self.view().deleted(key)?.is_some() {
            return Ok(());
        }
        self.reachable(&mut header)?;
        let Some((parent, prefix_len)) = header.parent else { return Ok(()) };
        let id = header.id.to_string();
        if self.view().is_circle(&header.clone().into_new())? {
            self.work.say(
                RemedyKind::Rebuilt,
                Some(&id),
                None,
                "its parents led back to it: it has none now",
            );
            header.parent = None;
            header.prefix_hash = Hash::START;
            self.rewrite(&header)?;
            return self.events(key);
        }
        let edge = format::EdgeKey { parent, prefix_len, child: key };
        let at = format::edge_key(parent, prefix_len, key);
        let value = self.work.storage.get(Map::Sessions, &at)?;
        if value.is_none_or(|value| format::check_edge(&edge, &value).is_err()) {
            let number = self.work.number();
            let value = format::encode_edge(parent, prefix_len, key, number);
            self.work.say(RemedyKind::Rebuilt, Some(&id), None, "the edge from its parent");
            self.work.change(Map::Sessions, &[(at.to_vec(), Some(value))])?;
        }
        let Some(parent_header) = self.view().new_header(parent)? else {
            // Who shares nothing needs none: it was deleted.
            return if prefix_len == 0 { Ok(()) } else { self.stand_in(parent) };
        };
        let len = self.view().len(&parent_header)?.unwrap_or_default();
        let cut = self.view().deleted(parent)?.is_some_and(|tombstone| tombstone.kept <= len);
        if prefix_len > len && !cut && self.view().ended(parent)? != Some(len) {
            let why = format!("its fork {id} shares {prefix_len} events");
            let parent_id = parent_header.id.to_string();
            self.put_end(parent, &parent_id, len, prefix_len, &why)?;
        }
        Ok(())
    }

    fn rewrite(&mut self, header: &SessionHeader) -> Result<()> {
        let number = self.work.number();
        let value = format::encode_header(header, number);
        self.work.change(Map::Sessions, &[(format::header_key(header.key).to_vec(), Some(value))])
    }

    /// Lets the session's id lead to it; where the id is another's, it gets a new one.
    fn reachable(&mut self, header: &mut SessionHeader) -> Result<()> {
        let at = format::id_key(&header.id);
        let value = self.work.storage.get(Map::Sessions, &at)?;
        let leads_to = value.and_then(|value| format::decode_id(&header.id, &value).ok());
        if leads_to == Some(header.key) {
            return Ok(());
        }
        let taken = match leads_to {
            Some(other) => self.view().new_header(other)?.is_some_and(|other| other.id == header.id),
            None => false,
        };
        if taken {
            let old = std::mem::replace(&mut header.id, header.key.to_id());
            let detail = format!("its id: {old} is another session's");
            self.work.say(RemedyKind::Rebuilt, Some(header.id.as_str()), None, detail);
            self.rewrite(header)?;
            return self.reachable(header);
        }
        let number = self.work.number();
        let value = format::encode_id(&header.id, header.key, number);
        self.work.say(RemedyKind::Rebuilt, Some(header.id.as_str()), None, "the record of its id");
        self.work.change(Map::Sessions, &[(at, Some(value))])
    }

    /// Removes records that belong to nothing. What belongs to something was made anew before.
    pub(super) fn records(&mut self) -> Result<()> {
        let mut found = Vec::new();
        for entry in self.work.storage.range(Map::Sessions, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry?;
            if key == format::DRAINED_KEY || key == format::OPENED_KEY {
                continue;
            }
            if self.tombstone(&key, &value)? {
                continue;
            }
            // An import that was interrupted is taken away as a whole, by the next open.
            let hidden = format::parse_tagged_key(format::HIDDEN_PREFIX, &key);
            let goes = match hidden {
                Some(session) => self.view().is_hidden(session)?,
                None => false,
            };
            let finding = records::of_sessions(self.view(), &key, &value)?;
            if let Some(finding) = finding.filter(|finding| !(goes && finding.kind == FindingKind::Leftover))
            {
                found.push((key, value, finding));
            }
        }
        self.remove(Map::Sessions, found)
    }

    /// Makes a broken record of a deletion anew: what forks share stays, and the next open removes the rest. Returns
    /// whether it was one.
    fn tombstone(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let Some(session) = format::parse_tagged_key(format::TOMBSTONE_PREFIX, key) else { return Ok(false) };
        match format::decode_tombstone(session, value) {
            Ok(_) => return Ok(false),
            Err(FormatError::Unsupported { found }) => {
                return Err(super::newer(Place::new("tombstone").session(session), found));
            }
            Err(FormatError::Corrupt(_)) => {}
        }
        let mut kept = 0;
        for entry in entries(self.work.storage, Map::Sessions, &[format::EDGE_PREFIX, &session.0].concat()) {
            kept = kept.max(format::parse_edge_key(&entry?.0).map_or(0, |edge| edge.prefix_len));
        }
        let number = self.work.number();
        let tombstone = format::encode_tombstone(session, Tombstone { kept, pending: true }, number);
        self.work.say(RemedyKind::Rebuilt, Some(&session.to_string()), None, "the record of its deletion");
        self.work.change(Map::Sessions, &[(key.to_vec(), Some(tombstone))])?;
        Ok(true)
    }

    /// The same for `care`.
    pub(super) fn care(&mut self) -> Result<()> {
        let mut found = Vec::new();
        let mut quarantined = 0;
        for entry in self.work.storage.range(Map::Care, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry?;
            let finding = records::of_care(self.view(), &key, &value, &mut quarantined)?;
            let broken = self.end_mark(&key, &value)?;
            if let Some(finding) = finding.or(broken) {
                found.push((key, value, finding));
            }
        }
        self.remove(Map::Care, found)
    }

    /// An end mark that cannot be read says nothing.
    fn end_mark(&self, key: &[u8], value: &[u8]) -> Result<Option<Finding>> {
        let Some(session) = format::parse_tagged_key(format::END_MARK_PREFIX, key) else { return Ok(None) };
        let Err(error) = format::decode_end_mark(session, value) else { return Ok(None) };
        let kind = FindingKind::Undecodable.unless_newer(&error);
        Ok(Some(Finding::error(kind, "an end mark", crate::integrity::finding::fault(&error))))
    }

    fn remove(&mut self, map: Map, found: Vec<(Vec<u8>, Vec<u8>, Finding)>) -> Result<()> {
        for (key, value, finding) in found {
            if finding.kind == FindingKind::UnknownVersion {
                let number = finding.found.rsplit(' ').next().and_then(|number| number.parse().ok());
                return Err(super::newer(
                    Place::new("record").at(format::hex(&key)),
                    number.unwrap_or_default(),
                ));
            }
            let why = format!("{}: {} expected, {} found", finding.kind, finding.expected, finding.found);
            self.work.move_record(map, StorageKey([0; 16]), &key, &value, &why)?;
            self.work.say(RemedyKind::Removed, finding.session.as_deref(), None, format!("a record ({why})"));
        }
        Ok(())
    }
}
