//! Records that no session led to: each must belong to one that is there.

use super::finding::{Finding, FindingKind, fault};
use super::view::{HIDDEN_PREFIX, LABELS_PREFIX, View};
use crate::error::Result;
use crate::format::{self, FormatError, QuarantineKey};
use crate::id::StorageKey;
use crate::storage::Map;

/// Checks a record of `sessions` from its own side. What its session's check looks at is left to that.
pub(super) fn of_sessions(ground: View<'_>, key: &[u8], value: &[u8]) -> Result<Option<Finding>> {
    let at = |finding: Finding| Some(finding.at(Map::Sessions, key));
    let broken = |kind: FindingKind, what: &str, error: FormatError| {
        Some(Finding::error(kind.unless_newer(&error), what, fault(&error)).at(Map::Sessions, key))
    };
    let strange = || Ok(at(Finding::error(FindingKind::NotRecognised, "a key of this store", "another")));
    if key == format::DRAINED_KEY {
        return Ok(format::decode_drained(value)
            .err()
            .and_then(|error| broken(FindingKind::StoreRecord, "the drained mark", error)));
    }
    if key == format::OPENED_KEY {
        return Ok(format::decode_opened(value)
            .err()
            .and_then(|error| broken(FindingKind::StoreRecord, "the open count", error)));
    }
    if key.starts_with(format::HEADER_PREFIX) {
        return if format::parse_tagged_key(format::HEADER_PREFIX, key).is_some() {
            Ok(None)
        } else {
            strange()
        };
    }
    if key.starts_with(format::ID_PREFIX) {
        let Some(id) = format::parse_id_key(key) else { return strange() };
        let session = match format::decode_id(&id, value) {
            Ok(session) => session,
            Err(error) => return Ok(broken(FindingKind::IdRecord, "the record of an id", error)),
        };
        let found = match ground.new_header(session)? {
            Some(header) if header.id == id && ground.deleted(session)?.is_none() => return Ok(None),
            Some(header) if header.id == id => "one that was deleted".to_owned(),
            Some(header) => format!("one that is called {}", header.id),
            // A broken header is its session's finding, and this one is not more than that.
            None if ground.storage.get(Map::Sessions, &format::header_key(session))?.is_some() => {
                return Ok(None);
            }
            None => "none".to_owned(),
        };
        let finding = Finding::error(FindingKind::IdRecord, "the session that the id leads to", found);
        return Ok(at(finding.of(Some(id.as_str()), session)));
    }
    if key.starts_with(format::SUMMARY_PREFIX) {
        let Some(session) = format::parse_tagged_key(format::SUMMARY_PREFIX, key) else { return strange() };
        return lost_header(ground, session, "summary", key);
    }
    if key.starts_with(LABELS_PREFIX) || key.starts_with(HIDDEN_PREFIX) {
        let (prefix, _) = key.split_at(1);
        let Some(session) = format::parse_tagged_key(prefix, key) else { return strange() };
        if format::write_number(value).is_none() {
            let finding = Finding::error(FindingKind::Label, "a sound record", "one whose checksum is wrong");
            return Ok(at(finding.of(None, session)));
        }
        if prefix == HIDDEN_PREFIX {
            let finding =
                Finding::notice(FindingKind::Leftover, "a finished import", "one that was interrupted");
            return Ok(at(finding.of(None, session)));
        }
        return lost_header(ground, session, "labels", key);
    }
    if key.starts_with(format::TOMBSTONE_PREFIX) {
        let Some(session) = format::parse_tagged_key(format::TOMBSTONE_PREFIX, key) else { return strange() };
        if let Err(error) = format::decode_tombstone(session, value) {
            return Ok(broken(FindingKind::Tombstone, "the record of a deleted session", error)
                .map(|finding| finding.of(None, session)));
        }
        if ground.storage.get(Map::Sessions, &format::header_key(session))?.is_none() {
            let finding = Finding::notice(
                FindingKind::Leftover,
                "a session that was deleted",
                "only the record of that",
            );
            return Ok(at(finding.of(None, session)));
        }
        return Ok(None);
    }
    if key.starts_with(format::EDGE_PREFIX) {
        let Some(edge) = format::parse_edge_key(key) else { return strange() };
        if let Err(error) = format::check_edge(&edge, value) {
            return Ok(broken(FindingKind::Edge, "a fork's edge", error));
        }
        let header = ground.new_header(edge.child)?;
        let parent = header.as_ref().and_then(|header| header.parent);
        if header.is_some() && parent != Some((edge.parent, edge.prefix_len)) {
            let found = match parent {
                Some((parent, at)) => format!("a fork of {parent} at {at}"),
                None => "a session without a parent".to_owned(),
            };
            let expected = format!("a fork of {} at {}", edge.parent, edge.prefix_len);
            return Ok(at(Finding::error(FindingKind::Edge, expected, found).of(None, edge.child)));
        }
        return lost_header(ground, edge.child, "edge", key);
    }
    if key.starts_with(format::ORDER_PREFIX) {
        let Some(order) = format::parse_order_key(key) else { return strange() };
        if let Err(error) = format::check_order(&order, value) {
            return Ok(broken(FindingKind::OrderRecord, "a place in the order by last update", error));
        }
        if ground.deleted(order.key)?.is_some() {
            let finding = Finding::error(FindingKind::OrderRecord, "none of a deleted session", "one");
            return Ok(at(finding.of(None, order.key)));
        }
        let summary = ground.summary(order.key)?;
        if let Some(summary) = summary.filter(|summary| summary.updated != order.updated) {
            let found = format!("last update {}", order.updated);
            let expected = format!("last update {}", summary.updated);
            return Ok(at(Finding::error(FindingKind::OrderRecord, expected, found).of(None, order.key)));
        }
        return lost_header(ground, order.key, "place in the order", key);
    }
    strange()
}

/// A finding for a record whose session has no header.
fn lost_header(ground: View<'_>, session: StorageKey, what: &str, key: &[u8]) -> Result<Option<Finding>> {
    if ground.storage.get(Map::Sessions, &format::header_key(session))?.is_some()
        || ground.is_hidden(session)?
    {
        return Ok(None);
    }
    let finding = Finding::error(FindingKind::Header, "a session's header", format!("only its {what}"));
    Ok(Some(finding.at(Map::Sessions, key).of(None, session)))
}

/// Checks a value of `care`. Counts what is in quarantine.
pub(super) fn of_care(
    ground: View<'_>,
    key: &[u8],
    value: &[u8],
    quarantined: &mut u64,
) -> Result<Option<Finding>> {
    let broken = |what: &str, error: FormatError| {
        let kind = FindingKind::Quarantine.unless_newer(&error);
        Some(Finding::error(kind, what, fault(&error)).at(Map::Care, key))
    };
    if let Some(session) = format::parse_tagged_key(format::END_MARK_PREFIX, key) {
        let stored = ground.storage.get(Map::Sessions, &format::header_key(session))?.is_some();
        if stored || ground.new_header(session)?.is_some() {
            return Ok(None);
        }
        let finding = Finding::error(FindingKind::Header, "a session's header", "only its end mark");
        return Ok(Some(finding.at(Map::Care, key).of(None, session)));
    }
    if let Some(at) = format::parse_quarantine_key(key) {
        if at.part == 0 {
            *quarantined += 1;
            return Ok(match format::decode_quarantine(&at, value) {
                Ok(_) => None,
                Err(error) => broken("a value in quarantine", error),
            });
        }
        let head = QuarantineKey { part: 0, ..at }.to_bytes();
        return Ok(match format::quarantine_part(&at, value) {
            Err(error) => broken("a part of a value in quarantine", error),
            Ok(_) if ground.storage.get(Map::Care, &head)?.is_some() => None,
            Ok(_) => {
                let finding = Finding::error(
                    FindingKind::Quarantine,
                    "the first part of a value in quarantine",
                    "none",
                );
                Some(finding.at(Map::Care, key))
            }
        });
    }
    let finding = Finding::error(FindingKind::NotRecognised, "a key of this store", "another");
    Ok(Some(finding.at(Map::Care, key)))
}
