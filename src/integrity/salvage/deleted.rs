//! Sessions that were deleted, and of which something is still there.

use super::sieve::Sieve;
use crate::error::Result;
use crate::format::{self, SessionHeader, WriteNumbers};
use crate::id::{SessionId, StorageKey};
use crate::storage::{Map, Storage};

/// What stands before the id of a session that had been deleted.
const RECOVERED: &str = "recovered ";

/// Gives the deleted sessions that were asked for other ids. Returns them.
pub(super) fn settle(
    storage: &dyn Storage,
    sieve: &Sieve<'_>,
    numbers: &mut WriteNumbers,
) -> Result<Vec<StorageKey>> {
    if !sieve.deleted_too {
        return Ok(Vec::new());
    }
    let mut recovered = Vec::new();
    for key in sieve.deleted.iter().copied() {
        let header = storage.get(Map::Sessions, &format::header_key(key))?;
        let Some(header) = header.and_then(|value| format::decode_header(key, &value).ok()) else { continue };
        let old = format::id_key(&header.id);
        let leads_here = storage
            .get(Map::Sessions, &old)?
            .and_then(|value| format::decode_id(&header.id, &value).ok())
            .is_some_and(|found| found == key);
        if leads_here {
            storage.apply(Map::Sessions, &[(old, None)])?;
        }
        let header = SessionHeader { id: new_id(&header.id, key), ..header };
        let id_value = format::encode_id(&header.id, key, numbers.next());
        let value = format::encode_header(&header, numbers.next());
        storage.insert(Map::Sessions, &format::header_key(key), &value)?;
        storage.insert(Map::Sessions, &format::id_key(&header.id), &id_value)?;
        recovered.push(key);
    }
    Ok(recovered)
}

/// An id that says what happened. Too long with that, it is the storage key's.
fn new_id(id: &SessionId, key: StorageKey) -> SessionId {
    SessionId::new(&format!("{RECOVERED}{id}"))
        .or_else(|_| SessionId::new(&format!("{RECOVERED}{key}")))
        .unwrap_or_else(|_| key.to_id())
}
