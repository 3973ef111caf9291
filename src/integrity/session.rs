//! One session checked: its records against each other, against its parent, and its events.

use super::finding::{Finding, FindingKind, fault};
use super::journal::Pending;
use super::view::View;
use super::walk::{Buffers, Extent, Walk, walk};
use crate::error::{Error, Result};
use crate::format::{self, Hash, NewHeader, SessionHeader, Summary, Tombstone, WriteNumber};
use crate::id::StorageKey;
use crate::storage::Map;

/// What checking a session gave beside its findings.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    pub(super) id: Option<String>,
    pub(super) events: u64,
    pub(super) len: u64,
    /// The running hash behind its last event.
    pub(super) head: Option<Hash>,
}

/// Checks the session `key`, whose records or blocks are in storage or in the journal.
pub(super) fn check(
    ground: View<'_>,
    key: StorageKey,
    mark: WriteNumber,
    live: bool,
    buffers: &mut Buffers,
    tell: &mut dyn FnMut(Finding),
) -> Result<Checked> {
    let pending = ground.pending.get(&key);
    let stored = stored_header(ground, key, tell)?;
    let created = pending.and_then(|pending| pending.created.as_ref());
    let (new, prefix_hash) = match (stored, created) {
        (Some(Some(header)), created) => {
            if let Some((commit, _)) = created {
                let finding = Finding::error(
                    FindingKind::JournalOrder,
                    "a session that does not exist yet",
                    "the creation of one that does",
                );
                tell(finding.in_journal(format!("commit {commit}")).of(Some(header.id.as_str()), key));
            }
            let hash = header.prefix_hash;
            (header.into_new(), Some(hash))
        }
        (Some(None), _) => return Ok(Checked { id: None, ..Checked::default() }),
        (None, Some((_, new))) => (new.clone(), None),
        (None, None) => return Ok(Checked::default()),
    };
    if let Some(tombstone) = ground.deleted(key)? {
        return deleted(ground, &new, prefix_hash, tombstone, buffers, tell);
    }
    let id = new.id.as_str().to_owned();
    let mut tell = |finding: Finding| tell(finding.of(Some(&id), key));
    let from = new.prefix_len();
    let summary = if prefix_hash.is_some() { summary(ground, key, &mut tell)? } else { None };
    if prefix_hash.is_some() {
        reachable(ground, &new, &mut tell)?;
    }
    let known = |hash: Hash| Some(hash).filter(|hash| *hash != Hash::UNKNOWN);
    let start = match new.parent {
        None => Some(Hash::START),
        Some((parent, prefix_len)) => {
            self::parent(ground, &new, parent, prefix_len, prefix_hash, &mut tell)?;
            match prefix_hash {
                Some(hash) => known(hash),
                None => {
                    let hash = ground.hash_at(parent, prefix_len)?;
                    if let (Some(hash), Some(pending)) = (hash, pending) {
                        let _ = pending.prefix_hash.set(hash);
                    }
                    hash
                }
            }
        }
    };
    let to = match (&summary, prefix_hash) {
        (Some(summary), _) => summary.len,
        (None, Some(_)) => u64::MAX,
        (None, None) => from,
    };
    // The journal's frames are not drained: what stands behind the summary is what an interrupted pass left.
    let extent = Extent { key, from, hash: start, to, part: false, mark };
    let mut walk = Walk::new(extent, None, buffers, &mut tell);
    walk.stored(ground.storage, summary.and_then(|summary| known(summary.hash)));
    let mut runs_fit = true;
    for (commit, run) in pending.into_iter().flat_map(|pending| &pending.runs) {
        if !walk.run(&format!("commit {commit}"), run) {
            runs_fit = false;
            break;
        }
    }
    let stored_end = walk.stored_end();
    let walked = walk.done();
    if walked.leftovers && !live {
        let finding = Finding::notice(
            FindingKind::Leftover,
            format!("the end at seq {to}"),
            "values behind it, of a drain that was interrupted",
        );
        tell(finding.at(Map::Events, &format::block_key(key, to)));
    }
    if let Some(summary) = &summary {
        agree(ground, &new, summary, &stored_end, &mut tell)?;
    }
    let len = if runs_fit { pending.and_then(Pending::end) } else { None };
    let len = len.or(summary.map(|summary| summary.len)).unwrap_or(walked.end);
    ended(ground, &new, len, &mut tell)?;
    Ok(Checked { id: Some(new.id.as_str().to_owned()), events: walked.events, len, head: walked.hash_at_end })
}

/// Checks what a deleted session still lends to its forks.
fn deleted(
    ground: View<'_>,
    new: &NewHeader,
    prefix_hash: Option<Hash>,
    tombstone: Tombstone,
    buffers: &mut Buffers,
    tell: &mut dyn FnMut(Finding),
) -> Result<Checked> {
    let key = new.key;
    let id = new.id.as_str().to_owned();
    let mut tell = |finding: Finding| tell(finding.of(Some(&id), key));
    if tombstone.pending {
        let finding =
            Finding::notice(FindingKind::Leftover, "nothing of a deleted session", "a removal that goes on");
        tell(finding.at(Map::Sessions, &format::tombstone_key(key)));
    }
    if tombstone.kept == 0 {
        return Ok(Checked::default());
    }
    let from = new.prefix_len();
    let Some(summary) = summary(ground, key, &mut tell)? else { return Ok(Checked::default()) };
    if let Some((parent, prefix_len)) = new.parent {
        lent(ground, new, parent, prefix_len.min(tombstone.kept), &mut tell)?;
    }
    let known = |hash: Hash| Some(hash).filter(|hash| *hash != Hash::UNKNOWN);
    let hash = if from == 0 { Some(Hash::START) } else { prefix_hash.and_then(known) };
    let to = summary.len.min(tombstone.kept.max(from));
    let extent = Extent { key, from, hash, to, part: true, mark: WriteNumber::default() };
    let walked = walk(ground.storage, extent, buffers, &mut tell);
    Ok(Checked { events: walked.events, ..Checked::default() })
}

/// Whether a deleted session's parent still lends what the session's forks need of it.
fn lent(
    ground: View<'_>,
    new: &NewHeader,
    parent: StorageKey,
    needed: u64,
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let header = format::header_key(new.key);
    if needed == 0 {
        return Ok(());
    }
    let Some(parent_header) = ground.new_header(parent)? else {
        let finding = Finding::error(FindingKind::MissingParent, format!("parent {parent}"), "none");
        tell(finding.at(Map::Sessions, &header).seqs(0..needed));
        return Ok(());
    };
    match ground.len(&parent_header)? {
        Some(len) if len < needed => too_short(ground, new, parent, (needed, len), tell),
        _ => Ok(()),
    }
}

/// The session's header: `None` where there is none, `Some(None)` where it is broken.
fn stored_header(
    ground: View<'_>,
    key: StorageKey,
    tell: &mut dyn FnMut(Finding),
) -> Result<Option<Option<SessionHeader>>> {
    let at = format::header_key(key);
    let Some(value) = ground.storage.get(Map::Sessions, &at)? else { return Ok(None) };
    match format::decode_header(key, &value) {
        Ok(header) => Ok(Some(Some(header))),
        Err(error) => {
            let kind = FindingKind::Header.unless_newer(&error);
            tell(
                Finding::error(kind, "a session's header", fault(&error))
                    .at(Map::Sessions, &at)
                    .of(None, key),
            );
            Ok(Some(None))
        }
    }
}

fn summary(ground: View<'_>, key: StorageKey, tell: &mut dyn FnMut(Finding)) -> Result<Option<Summary>> {
    let at = format::summary_key(key);
    let found = match ground.storage.get(Map::Sessions, &at)? {
        None => Err((FindingKind::Summary, "none".to_owned())),
        Some(value) => format::decode_summary(key, &value)
            .map_err(|error| (FindingKind::Summary.unless_newer(&error), fault(&error))),
    };
    match found {
        Ok(summary) => Ok(Some(summary)),
        Err((kind, found)) => {
            tell(Finding::error(kind, "the session's summary", found).at(Map::Sessions, &at));
            Ok(None)
        }
    }
}

/// Whether the id leads to the session.
fn reachable(ground: View<'_>, new: &NewHeader, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    let at = format::id_key(&new.id);
    let expected = "a record that leads from the id to the session";
    let found = match ground.storage.get(Map::Sessions, &at)? {
        None => (FindingKind::Unreachable, "none".to_owned()),
        Some(value) => match format::decode_id(&new.id, &value) {
            Ok(key) if key == new.key => return Ok(()),
            Ok(key) => (FindingKind::Unreachable, format!("one that leads to {key}")),
            Err(error) => (FindingKind::IdRecord.unless_newer(&error), fault(&error)),
        },
    };
    tell(Finding::error(found.0, expected, found.1).at(Map::Sessions, &at));
    Ok(())
}

/// Whether a fork and its parent agree.
fn parent(
    ground: View<'_>,
    new: &NewHeader,
    parent: StorageKey,
    prefix_len: u64,
    prefix_hash: Option<Hash>,
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let header = format::header_key(new.key);
    if prefix_hash.is_some() {
        let at = format::edge_key(parent, prefix_len, new.key);
        let edge = format::EdgeKey { parent, prefix_len, child: new.key };
        let found = match ground.storage.get(Map::Sessions, &at)? {
            None => Some((FindingKind::Edge, "none".to_owned())),
            Some(value) => format::check_edge(&edge, &value)
                .err()
                .map(|error| (FindingKind::Edge.unless_newer(&error), fault(&error))),
        };
        if let Some((kind, found)) = found {
            tell(Finding::error(kind, "the edge from the parent", found).at(Map::Sessions, &at));
        }
    }
    // Who shares nothing needs no parent: that may have been deleted, and be gone.
    if prefix_len == 0 && ground.new_header(parent)?.is_none() {
        return Ok(());
    }
    let Some(parent_header) = ground.new_header(parent)? else {
        let finding = Finding::error(FindingKind::MissingParent, format!("parent {parent}"), "none");
        tell(finding.at(Map::Sessions, &header).seqs(0..prefix_len));
        return Ok(());
    };
    if ground.is_circle(new)? {
        let finding = Finding::error(
            FindingKind::ParentCycle,
            "parents that end in a session without one",
            "a chain that leads back",
        );
        tell(finding.at(Map::Sessions, &header));
        return Ok(());
    }
    let Some(parent_len) = ground.len(&parent_header)? else { return Ok(()) };
    if prefix_len > parent_len {
        too_short(ground, new, parent, (prefix_len, parent_len), tell)?;
        return Ok(());
    }
    match prefix_hash {
        Some(hash) if hash == Hash::UNKNOWN => {
            let finding = Finding::notice(
                FindingKind::HashUnknown,
                "the running hash at the prefix",
                "none: the parent was damaged",
            );
            tell(finding.at(Map::Sessions, &header));
        }
        Some(hash) => {
            // Where the parent is damaged its own check says so.
            if let Some(expected) = ground.hash_at(parent, prefix_len)?.filter(|expected| *expected != hash) {
                let finding = Finding::error(
                    FindingKind::RunningHash,
                    format!("the parent's hash {expected}"),
                    format!("hash {hash}"),
                );
                tell(finding.at(Map::Sessions, &header).seqs(prefix_len..prefix_len + 1));
            }
        }
        None => {}
    }
    Ok(())
}

/// A parent that has fewer events than its fork shares. Where a repair has ended it that is known.
fn too_short(
    ground: View<'_>,
    new: &NewHeader,
    parent: StorageKey,
    (prefix_len, parent_len): (u64, u64),
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let cut = ground.deleted(parent)?.is_some_and(|tombstone| tombstone.kept <= parent_len);
    let ended = cut || ground.ended(parent)? == Some(parent_len);
    let found = if ended {
        format!("a parent that was ended at {parent_len}")
    } else {
        format!("a parent of {parent_len} events")
    };
    let expected = format!("a parent of at least {prefix_len} events");
    let finding = if ended {
        Finding::notice(FindingKind::PrefixBeyondParent, expected, found)
    } else {
        Finding::error(FindingKind::PrefixBeyondParent, expected, found)
    };
    tell(finding.at(Map::Sessions, &format::header_key(new.key)).seqs(parent_len..prefix_len));
    Ok(())
}

/// Whether the summary says of the events what they are, and the order by last update what the summary says.
fn agree(
    ground: View<'_>,
    new: &NewHeader,
    summary: &Summary,
    walked: &super::walk::StoredEnd,
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let at = format::summary_key(new.key);
    if summary.len < new.prefix_len() {
        let finding = Finding::error(
            FindingKind::Summary,
            format!("at least the {} events of the prefix", new.prefix_len()),
            format!("{} events", summary.len),
        );
        tell(finding.at(Map::Sessions, &at));
    } else if walked.whole {
        let unknown = summary.hash == Hash::UNKNOWN;
        if let Some(hash) = walked.hash.filter(|hash| !unknown && *hash != summary.hash) {
            let finding = Finding::error(
                FindingKind::RunningHash,
                format!("hash {hash}"),
                format!("hash {}", summary.hash),
            );
            tell(finding.at(Map::Sessions, &at).seqs(summary.len.saturating_sub(1)..summary.len));
        }
        let updated = walked.updated.unwrap_or(new.created);
        if updated != summary.updated {
            let finding = Finding::error(
                FindingKind::Summary,
                format!("last update {updated}"),
                format!("last update {}", summary.updated),
            );
            tell(finding.at(Map::Sessions, &at));
        }
    }
    let order_at = format::order_key(summary.updated, new.key);
    let order = format::OrderKey { updated: summary.updated, key: new.key };
    let found = match ground.storage.get(Map::Sessions, &order_at)? {
        None => Some((FindingKind::OrderRecord, "none".to_owned())),
        Some(value) => format::check_order(&order, &value)
            .err()
            .map(|error| (FindingKind::OrderRecord.unless_newer(&error), fault(&error))),
    };
    if let Some((kind, found)) = found {
        tell(
            Finding::error(kind, "the session's place in the order by last update", found)
                .at(Map::Sessions, &order_at),
        );
    }
    Ok(())
}

/// Where a repair has ended the session: it has that many events, and no more.
fn ended(ground: View<'_>, new: &NewHeader, len: u64, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    if let Some(value) = ground.storage.get(Map::Care, &format::end_mark_key(new.key))? {
        let at = format::end_mark_key(new.key);
        match format::decode_end_mark(new.key, &value) {
            Ok(end) if end == len => {
                let finding = Finding::notice(
                    FindingKind::Ended,
                    "a session that goes on",
                    format!("one that was ended at {end}"),
                );
                tell(finding.at(Map::Care, &at).seqs(end..u64::MAX));
            }
            Ok(end) => {
                let finding =
                    Finding::error(FindingKind::Summary, format!("an end at {end}"), format!("{len} events"));
                tell(finding.at(Map::Care, &at));
            }
            Err(error) => {
                let kind = FindingKind::Undecodable.unless_newer(&error);
                tell(Finding::error(kind, "an end mark", fault(&error)).at(Map::Care, &at));
            }
        }
    }
    Ok(())
}

/// Whether an error ends a scan: the store was closed meanwhile.
pub(super) fn is_final(error: &Error) -> bool {
    matches!(error, Error::Closed)
}
