//! Merging small blocks of an open store.

use std::path::Path;

use super::Store;
use crate::error::Result;
use crate::integrity::RewriteReport;
use crate::log::compact::CompactReport;

impl Store {
    /// Merges small blocks that stand side by side into full ones, while the store is in use.
    ///
    /// Sessions that grow slowly leave none: a last block is continued until it is full, also after a restart. Small
    /// blocks are what deletions cut, and what stood beside damage. The space of merged blocks is used again by later
    /// events; the engine's files get smaller only by a [`rewrite`](Self::rewrite).
    ///
    /// Events and their order stay as they are, and readers, followers, appends, forks and deletions go on meanwhile. A
    /// crash at any moment leaves the old blocks or the new ones.
    ///
    /// # Cost
    /// A [`drain`](Self::drain), then one read of all blocks, some hundred at a time between the passes of the drain;
    /// what is merged is written and flushed in batches of at most 64 blocks. Memory: one such batch.
    /// # Errors
    /// [`Error::DiskFull`](crate::Error::DiskFull): what was merged so far stays, nothing is lost.
    /// [`Error::Failed`](crate::Error::Failed), [`Error::Closed`](crate::Error::Closed).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// let store = sessionlog::Store::in_memory()?;
    /// let report = store.compact()?;
    /// assert_eq!((report.blocks_before, report.blocks_after), (0, 0));
    /// # Ok(()) }
    /// ```
    pub fn compact(&self) -> Result<CompactReport> {
        self.drain()?;
        self.core().drain.compact(self.core())
    }

    /// Writes the engine of the store in the folder `path` anew, with only what is live, checks it, and swaps it in. Nobody
    /// may have the store open.
    ///
    /// This gives space back to the disk, and takes deleted text off it: afterwards the folder holds none in any of its
    /// files. For that the journal's files go, whose events are all in the engine by then, with the bytes of torn ends
    /// (`torn-N`) and the copies that repairs have made (`repair-N`). What a repair has set aside in the store
    /// ([`quarantine`](Self::quarantine)) stays with its session. What the file system and the disk do with the blocks of
    /// removed files is up to them, as are backups.
    ///
    /// # Durability
    /// Interrupted at any moment, by `kill -9` or a power cut, it leaves the store as it was or rewritten, each whole; what
    /// is left of the other goes at the next open. When it returns, the rewritten one is durable.
    /// # Cost
    /// Reads all of the store four times and writes what is live once. It needs about twice the live data of free space,
    /// for as long as both engines are there.
    /// # Errors
    /// [`Error::NotClean`](crate::Error::NotClean): the store is damaged; nothing was changed.
    /// [`Error::DiskFull`](crate::Error::DiskFull): nothing was changed. As
    /// [`StoreOptions::open`](crate::StoreOptions::open) and [`close`](Self::close). Whatever the error, the store is whole.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("sessions");
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let store = Store::open(&path)?;
    /// let session = store.create(NewSession::new())?;
    /// session.append(NewEvent::user_message("my password is hunter2"))?;
    /// store.delete(session.id())?;
    /// store.close()?;
    /// # drop((session, store));
    /// let report = Store::rewrite(&path)?;
    /// assert_eq!(report.sessions, 0);
    /// # Ok(()) }
    /// ```
    pub fn rewrite(path: impl AsRef<Path>) -> Result<RewriteReport> {
        crate::integrity::rewrite(path.as_ref())
    }
}
