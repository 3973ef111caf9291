//! Sessions as trees of forks.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::error::{Error, Result};
use crate::id::{SessionId, StorageKey};
use crate::session::{SessionInfo, info};
use crate::store::{Handle, Store};

/// A session of a [`Tree`], or what is left of one that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeNode {
    /// The session; `None` of one that was deleted and that only its forks hold.
    pub session: Option<SessionInfo>,
    /// How many events it shares with the node above it, if there is one.
    pub prefix_len: Option<u64>,
    /// How many nodes stand above it.
    pub depth: usize,
    /// Whether it is the last of those that stand below the same node.
    pub is_last: bool,
}

/// Sessions and their forks, each behind the one that it was forked from; see [`Store::tree`]. The first error is the last
/// item. It keeps the store open.
pub struct Tree {
    handle: Handle,
    children: HashMap<StorageKey, Vec<Child>>,
    /// What is still to be given, the next one last.
    waiting: Vec<(Child, usize, bool)>,
    failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Child {
    prefix_len: Option<u64>,
    key: StorageKey,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns all sessions, or only `root` and what was forked from it, as trees: each session behind the one that it
    /// was forked from, forks by how much they share. Trees come in the order of their last update.
    ///
    /// A session that was deleted stands there without a name where a living fork hangs on it.
    ///
    /// # Cost
    /// Reads the records of all sessions, and no events. Memory: some 100 bytes for each session.
    /// # Errors
    /// [`Error::SessionNotFound`] for `root`; as [`list`](Self::list).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_batch(["one", "two"].map(NewEvent::user_message))?;
    /// session.fork(Seq::new(1))?.fork(Seq::new(1))?;
    /// session.fork(Seq::new(2))?;
    /// let depths: Vec<usize> = store.tree(None)?.map(|node| Ok(node?.depth)).collect::<sessionlog::Result<_>>()?;
    /// assert_eq!(depths, [0, 1, 2, 1]);
    /// # Ok(()) }
    /// ```
    pub fn tree(&self, root: Option<&SessionId>) -> Result<Tree> {
        let core = self.handle().core();
        let root = root.map(|id| core.session(id)).transpose()?.map(|state| state.key());
        // Every session, and every deleted one above it; in the order in which they are come upon.
        let mut known = HashSet::new();
        let mut parents: Vec<(StorageKey, Option<(StorageKey, u64)>)> = Vec::new();
        let mut sessions = self.list()?;
        while let Some((listed, _)) = sessions.next_with_key().transpose()? {
            let mut next = Some(listed);
            while let Some(key) = next.filter(|key| !known.contains(key)) {
                let Some(state) = core.catalog.by_key(key, core.storage.as_ref())? else { break };
                known.insert(key);
                parents.push((key, state.header.parent));
                next = state.header.parent.map(|(parent, _)| parent);
            }
        }
        let mut children: HashMap<StorageKey, Vec<Child>> = HashMap::new();
        let mut roots = Vec::new();
        for (key, parent) in parents {
            match parent.filter(|(parent, _)| known.contains(parent)) {
                Some((parent, prefix_len)) => {
                    children.entry(parent).or_default().push(Child { prefix_len: Some(prefix_len), key });
                }
                None => roots.push(Child { prefix_len: None, key }),
            }
        }
        children.values_mut().for_each(|children| children.sort_unstable());
        if let Some(key) = root {
            roots = vec![Child { prefix_len: None, key }];
        }
        let mut tree = Tree { handle: self.handle().clone(), children, waiting: Vec::new(), failed: false };
        tree.push(roots, 0);
        Ok(tree)
    }
}

impl Tree {
    /// Puts nodes that stand beside each other before those that wait.
    fn push(&mut self, nodes: Vec<Child>, depth: usize) {
        let last = nodes.len().saturating_sub(1);
        let nodes = nodes.into_iter().enumerate().rev();
        self.waiting.extend(nodes.map(|(index, node)| (node, depth, index == last)));
    }

    fn step(&mut self) -> Result<Option<TreeNode>> {
        let Some((node, depth, is_last)) = self.waiting.pop() else { return Ok(None) };
        let children = self.children.remove(&node.key).unwrap_or_default();
        self.push(children, depth + 1);
        let core = self.handle.core();
        let state = core.catalog.by_key(node.key, core.storage.as_ref())?;
        let session = match state.map(|state| info(core, &state)) {
            None | Some(Err(Error::SessionNotFound { .. })) => None,
            Some(found) => Some(found?),
        };
        Ok(Some(TreeNode { session, prefix_len: node.prefix_len, depth, is_last }))
    }
}

impl Iterator for Tree {
    type Item = Result<TreeNode>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step().transpose();
        self.failed = matches!(step, Some(Err(_)));
        step
    }
}

impl std::iter::FusedIterator for Tree {}
