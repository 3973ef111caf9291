//! What an open store has of a session beside what is stored: as its readers get it.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{Hash, NewHeader};
use crate::id::{Seq, StorageKey};
use crate::integrity::finding::{Finding, FindingKind, told};
use crate::integrity::hash::HistoryHash;
use crate::integrity::session::{Checked, is_final};
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::session::Session;
use crate::store::Handle;

/// The session as an open store has it. Damage is found where it stands, not here.
pub(super) fn state(core: &Core, key: StorageKey) -> Option<Arc<SessionState>> {
    core.catalog.by_key(key, core.storage.as_ref()).ok().flatten()
}

/// What an open store has of a session that is not in blocks: as readers get it.
pub(super) fn read(
    handle: &Handle,
    core: &Core,
    key: StorageKey,
    checked: &mut Checked,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let Some(state) = state(core, key) else { return Ok(()) };
    if state.lock().created.is_none() || state.is_deleted() {
        return Ok(());
    }
    if checked.id.is_none() {
        checked.id = Some(state.header.id.as_str().to_owned());
        checked.len = state.header.prefix_len();
        let session = Session::new(handle.clone(), Arc::clone(&state));
        checked.head = session.history_hash_at(Seq::new(checked.len)).ok().map(|hash| Hash(*hash.as_bytes()));
    }
    let session = Session::new(handle.clone(), Arc::clone(&state));
    if session.len() <= checked.len {
        return Ok(());
    }
    let mut line = Vec::new();
    for event in session.read_from(Seq::new(checked.len))? {
        match event {
            Ok(event) => {
                line.clear();
                event.write_json(&mut line);
                checked.head = checked.head.map(|hash| hash.next(&line));
                checked.len += 1;
                checked.events += 1;
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                let finding = Finding::error(FindingKind::Gap, format!("seq {}", checked.len), told(&error));
                findings.push(finding.of(Some(state.header.id.as_str()), key));
                break;
            }
        }
    }
    Ok(())
}

/// Follows the running hash through the tail of an open store.
pub(super) fn follow(
    handle: &Handle,
    new: &NewHeader,
    (from, to): (u64, u64),
    (mut hash, mut probed): (Option<Hash>, Option<Hash>),
    expect: Option<(u64, HistoryHash)>,
) -> Result<(Option<Hash>, Option<Hash>)> {
    let core = handle.core();
    let Some(state) = core.catalog.by_key(new.key, core.storage.as_ref())? else { return Ok((None, probed)) };
    let session = Session::new(handle.clone(), state);
    let mut line = Vec::new();
    for event in session.read_range(Seq::new(from)..Seq::new(to))? {
        let Ok(event) = event else { return Ok((None, probed)) };
        line.clear();
        event.write_json(&mut line);
        hash = hash.map(|hash| hash.next(&line));
        if expect.is_some_and(|(seq, _)| seq == event.seq.get() + 1) {
            probed = hash;
        }
    }
    Ok((hash, probed))
}
