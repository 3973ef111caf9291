//! Figures of a whole store.

use super::Store;
use crate::error::{Error, Result};
use crate::id::Seq;
use crate::stats::Statistics;

impl Store {
    /// Counts and measures all sessions together. Events that forks share with their parents count once.
    ///
    /// What began in a parent and ended in its fork (a turn, a call) is not measured; events of a deleted session that
    /// only its forks still hold are not counted.
    ///
    /// # Cost
    /// Reads every event of the store once. Memory does not depend on their number.
    /// # Errors
    /// As reading: see [`Events`](crate::Events). The first session that cannot be read ends it.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_batch(["one", "two"].map(NewEvent::user_message))?;
    /// session.fork(Seq::new(2))?.append(NewEvent::user_message("three"))?;
    /// let figures = store.statistics()?;
    /// assert_eq!((figures.sessions, figures.messages), (2, 3));
    /// # Ok(()) }
    /// ```
    pub fn statistics(&self) -> Result<Statistics> {
        let mut all = Statistics::default();
        for info in self.list()? {
            let header = info?.header;
            let own = header.parent.map_or(0, |parent| parent.prefix_len);
            let found = self
                .session(&header.id)
                .and_then(|session| session.statistics_of(Seq::new(own)..Seq::new(u64::MAX)));
            match found {
                Ok(found) => all.merge(&found),
                // Deleted since it was listed.
                Err(Error::SessionNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}
