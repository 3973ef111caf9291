//! One session, followed from its very first event, through the parents of a fork.

use super::tail::follow;
use super::{KEPT, Scanner};
use crate::error::{Error, Place, Result};
use crate::format::{self, Hash, NewHeader};
use crate::id::{SessionId, StorageKey};
use crate::integrity::finding::{Finding, FindingKind};
use crate::integrity::hash::HistoryHash;
use crate::integrity::walk::{Extent, Walk};
use crate::storage::Map;

impl Scanner<'_> {
    /// One session, from its very first event on.
    pub(super) fn one(&mut self, id: &SessionId, expect: Option<(u64, HistoryHash)>) -> Result<()> {
        let key = self.find(id)?;
        self.session(key)?;
        let Some(new) = self.new_header(key)? else { return Ok(()) };
        let mut chain = vec![new];
        let mut circle = false;
        while let Some((parent, _)) =
            chain.last().and_then(|new| new.parent.filter(|(_, shared)| *shared > 0))
        {
            circle = chain.iter().any(|new| new.key == parent);
            match self.new_header(parent)?.filter(|_| !circle) {
                Some(new) => chain.push(new),
                None => break,
            }
        }
        let rooted = chain.last().is_some_and(|new| new.prefix_len() == 0);
        let mut hash = Some(Hash::START).filter(|_| rooted && !circle);
        let mut probed = hash.filter(|_| matches!(expect, Some((0, _))));
        let whole = self.report.heads.first().map_or(0, |head| head.length);
        let mut findings = Vec::new();
        for at in (0..chain.len()).rev() {
            let Some(new) = chain.get(at) else { continue };
            let to = (0..at).filter_map(|below| chain.get(below)).map(NewHeader::prefix_len).min();
            // Its own part was looked at; here only its hash is followed.
            let own = to.is_none();
            let to = to.unwrap_or(whole);
            let from = new.prefix_len();
            if from >= to && !own {
                continue;
            }
            let stored = self.ground.summary(new.key)?.map_or(from, |summary| summary.len).min(to);
            let extent = Extent { key: new.key, from, hash, to: stored, part: true, mark: self.mark };
            let id = new.id.as_str().to_owned();
            let key = new.key;
            let mut tell = |finding: Finding| {
                if !own && findings.len() < KEPT {
                    findings.push(finding.of(Some(&id), key));
                }
            };
            let mut walk = Walk::new(extent, expect.map(|(seq, _)| seq), &mut self.buffers, &mut tell);
            walk.stored(self.ground.storage, None);
            for (commit, run) in self.ground.pending.get(&key).into_iter().flat_map(|pending| &pending.runs) {
                walk.run(&format!("commit {commit}"), run);
            }
            let walked = walk.done();
            probed = probed.or(walked.probed);
            hash = walked.hash_at_end;
            if let (Some(handle), true) = (self.live, stored < to) {
                (hash, probed) = follow(handle, new, (stored, to), (hash, probed), expect)?;
            }
        }
        findings.into_iter().for_each(|finding| self.report.add(finding));
        if let Some((seq, expected)) = expect {
            let found = match probed.map(HistoryHash::from) {
                Some(hash) if hash == expected => return Ok(()),
                Some(hash) => format!("hash {hash}"),
                None if seq > whole => format!("a session of {whole} events"),
                None => "events that cannot be read".to_owned(),
            };
            let expected = format!("hash {expected} after the first {seq} events");
            let mut finding = Finding::error(FindingKind::Expected, expected, found);
            finding.map = "events";
            self.report.add(finding.seqs(0..seq).of(Some(id.as_str()), key));
        }
        Ok(())
    }

    fn new_header(&self, key: StorageKey) -> Result<Option<NewHeader>> {
        if let Some(new) = self.ground.new_header(key)? {
            return Ok(Some(new));
        }
        let Some(core) = self.core() else { return Ok(None) };
        Ok(core.catalog.by_key(key, core.storage.as_ref())?.map(|state| state.header.clone()))
    }

    fn find(&mut self, id: &SessionId) -> Result<StorageKey> {
        let waiting = self.ground.pending.values().filter_map(|pending| pending.created.as_ref());
        if let Some((_, new)) = waiting.into_iter().find(|(_, new)| new.id == *id) {
            return Ok(new.key);
        }
        if let Some(core) = self.core()
            && let Some(state) = core.undrained().iter().find(|state| state.header.id == *id)
        {
            return Ok(state.key());
        }
        match self.ground.storage.get(Map::Sessions, &format::id_key(id))? {
            None => Err(Error::SessionNotFound { session: id.clone() }),
            Some(value) => {
                format::decode_id(id, &value).map_err(|error| error.at(Place::new("id record").session(id)))
            }
        }
    }
}
