//! The small records beside the blocks: each must be sound, and agree with those that it refers to.

use std::ops::Bound;
use std::sync::Arc;

use super::CheckReport;
use crate::error::{Corruption, Error, Place, Result};
use crate::format;
use crate::id::StorageKey;
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::storage::{Entries, Map};

/// All records of a kind.
pub(super) fn all(core: &Core, prefix: &[u8]) -> Entries {
    let behind: Vec<u8> = prefix.iter().map(|byte| byte + 1).collect();
    core.storage.range(Map::Sessions, Bound::Included(prefix), Bound::Excluded(&behind))
}

/// Checks a session's header and what belongs to it: its id, its summary, the edge from its parent.
pub(super) fn session(core: &Core, key: StorageKey, value: &[u8]) -> Result<Arc<SessionState>> {
    let place = |what| Place::new(what).session(key);
    let header = format::decode_header(key, value).map_err(|error| error.at(place("header")))?;
    let id = core.storage.get(Map::Sessions, &format::id_key(&header.id))?;
    let id = id.ok_or_else(|| missing(place("id record"), "the id of a session that is there"))?;
    if format::decode_id(&header.id, &id).map_err(|error| error.at(place("id record")))? != key {
        return Err(missing(place("id record"), "the id: it leads to another session"));
    }
    if let Some((parent, prefix_len)) = header.parent {
        let edge_key = format::edge_key(parent, prefix_len, key);
        let edge = core.storage.get(Map::Sessions, &edge_key)?;
        let edge = edge.ok_or_else(|| missing(place("fork edge"), "the edge from the parent"))?;
        let expected = format::EdgeKey { parent, prefix_len, child: key };
        format::check_edge(&expected, &edge).map_err(|error| error.at(place("fork edge")))?;
    }
    listed(core, key)?;
    let state = core.catalog.by_key(key, core.storage.as_ref())?;
    state.ok_or_else(|| missing(place("header"), "the header that was there a moment ago"))
}

/// Whether a session was deleted, by now: then it has no id, no place in lists, and what nobody needs of it goes.
pub(super) fn is_deleted(core: &Core, key: StorageKey) -> Result<bool> {
    let has = |key: &[u8]| Ok(core.storage.get(Map::Sessions, key)?.is_some());
    Ok(has(&format::tombstone_key(key))? || !has(&format::header_key(key))?)
}

/// Checks that the order by last update names the session. A drain may move it between two looks.
fn listed(core: &Core, key: StorageKey) -> Result<()> {
    let place = || Place::new("summary").session(key);
    let mut before = None;
    loop {
        let summary = core.storage.get(Map::Sessions, &format::summary_key(key))?;
        let summary = summary.ok_or_else(|| missing(place(), "the session's summary"))?;
        let summary = format::decode_summary(key, &summary).map_err(|error| error.at(place()))?;
        if core.storage.get(Map::Sessions, &format::order_key(summary.updated, key))?.is_some() {
            return Ok(());
        }
        if before.replace(summary) == Some(summary) {
            return Err(missing(Place::new("order record").session(key), "the session's place in lists"));
        }
    }
}

/// Checks ids, edges and the order by last update from their side.
pub(super) fn check(core: &Core, report: &mut CheckReport) -> Result<()> {
    let prefixes = [
        format::ID_PREFIX,
        format::EDGE_PREFIX,
        format::ORDER_PREFIX,
        format::LABELS_PREFIX,
        format::HIDDEN_PREFIX,
    ];
    for prefix in prefixes {
        for entry in all(core, prefix) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    report.add(None, error)?;
                    break;
                }
            };
            if let Err(error) = record(core, prefix, &entry.0, &entry.1)
                // A deletion may have taken it meanwhile.
                && core.storage.get(Map::Sessions, &entry.0)?.is_some()
            {
                report.add(None, error)?;
            }
        }
    }
    Ok(())
}

fn record(core: &Core, prefix: &[u8], key: &[u8], value: &[u8]) -> Result<()> {
    let place = |what| Place::new(what).at(format::hex(key));
    let strange = |what| Error::Corrupt { place: place(what), corruption: Corruption::NotRecognised };
    if prefix == format::ID_PREFIX {
        let id = format::parse_id_key(key).ok_or_else(|| strange("id record"))?;
        let session = format::decode_id(&id, value).map_err(|error| error.at(place("id record")))?;
        return needs_header(core, session, place("id record"));
    }
    if prefix == format::EDGE_PREFIX {
        let edge = format::parse_edge_key(key).ok_or_else(|| strange("fork edge"))?;
        format::check_edge(&edge, value).map_err(|error| error.at(place("fork edge")))?;
        return needs_header(core, edge.child, place("fork edge"));
    }
    if prefix == format::LABELS_PREFIX {
        let session = format::parse_tagged_key(prefix, key).ok_or_else(|| strange("labels"))?;
        format::decode_labels(session, value).map_err(|error| error.at(place("labels")))?;
        return needs_header(core, session, place("labels"));
    }
    if prefix == format::HIDDEN_PREFIX {
        let session = format::parse_tagged_key(prefix, key).ok_or_else(|| strange("hidden session"))?;
        format::decode_hidden(session, value).map_err(|error| error.at(place("hidden session")))?;
        return Ok(());
    }
    let order = format::parse_order_key(key).ok_or_else(|| strange("order record"))?;
    format::check_order(&order, value).map_err(|error| error.at(place("order record")))?;
    needs_header(core, order.key, place("order record"))?;
    let summary = core.storage.get(Map::Sessions, &format::summary_key(order.key))?;
    let summary = summary.ok_or_else(|| missing(place("order record"), "the session's summary"))?;
    let summary = format::decode_summary(order.key, &summary).map_err(|error| error.at(place("summary")))?;
    // A drain may have moved the session since the record was read; then the record is gone.
    if summary.updated != order.updated && core.storage.get(Map::Sessions, key)?.is_some() {
        return Err(missing(place("order record"), "a summary with that time"));
    }
    Ok(())
}

fn needs_header(core: &Core, session: StorageKey, place: Place) -> Result<()> {
    match core.storage.get(Map::Sessions, &format::header_key(session))? {
        Some(_) => Ok(()),
        None => Err(missing(place.session(session), "the header of the session")),
    }
}

fn missing(place: Place, what: &'static str) -> Error {
    Error::Corrupt { place, corruption: Corruption::Missing { what } }
}
