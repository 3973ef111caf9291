//! The plain model that stores are compared with: sessions are lists of lines, a fork is a copy.
//!
//! It also knows what a crash may leave: a **kill** every commit that returned, a **power cut** the commits up to any
//! one behind the last that is durable (the journal is one sequence), and either of them the commit in flight, whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::events::difference;
use super::medium::Crash;

/// Lines by session id.
pub(crate) type State = BTreeMap<String, Vec<Arc<str>>>;

#[derive(Clone, Debug)]
pub(crate) enum Commit {
    Create { id: String },
    Fork { parent: String, at: usize, id: String },
    Append { id: String, lines: Vec<Arc<str>> },
    Delete { id: String },
}

impl Commit {
    fn on(&self, state: &mut State) {
        match self {
            Self::Create { id } => {
                state.insert(id.clone(), Vec::new());
            }
            Self::Fork { parent, at, id } => {
                let prefix = state[parent][..*at].to_vec();
                state.insert(id.clone(), prefix);
            }
            Self::Delete { id } => {
                state.remove(id);
            }
            Self::Append { id, lines } => state.get_mut(id).unwrap().extend_from_slice(lines),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// What is durable for certain.
    durable: State,
    /// What came after it and was accepted, in order.
    accepted: Vec<Commit>,
    /// Both together: what readers see.
    seen: State,
    /// The commit whose outcome is unknown.
    flying: Option<Commit>,
    /// Whether the power was cut since all that was seen was known to be there.
    power_lost: bool,
}

impl Model {
    pub(crate) fn seen(&self) -> &State {
        &self.seen
    }

    pub(crate) fn len(&self, id: &str) -> usize {
        self.seen[id].len()
    }

    /// The number of events of a session that are durable for certain.
    pub(crate) fn durable_len(&self, id: &str) -> usize {
        self.durable.get(id).map_or(0, Vec::len)
    }

    /// A commit returned; a durable one makes all before it durable.
    pub(crate) fn accept(&mut self, commit: Commit, durable: bool) {
        commit.on(&mut self.seen);
        self.accepted.push(commit);
        if durable {
            self.settle();
        }
    }

    /// A commit failed in a way that leaves its outcome open.
    pub(crate) fn fly(&mut self, commit: Commit) {
        assert!(self.flying.is_none(), "the store took a commit after it had failed");
        self.flying = Some(commit);
    }

    /// All that was accepted is durable.
    pub(crate) fn settle(&mut self) {
        self.durable = self.seen.clone();
        self.accepted.clear();
    }

    pub(crate) fn crash(&mut self, crash: Crash) {
        self.power_lost |= crash == Crash::Power;
    }

    /// The states that readers may find after a crash, the likeliest last.
    fn possible(&self) -> Vec<State> {
        let mut states = Vec::new();
        let mut state = self.durable.clone();
        for commit in &self.accepted {
            if self.power_lost {
                states.push(state.clone());
            }
            commit.on(&mut state);
        }
        states.push(state.clone());
        if let Some(commit) = &self.flying {
            commit.on(&mut state);
            states.push(state);
        }
        states
    }

    /// The states that readers of a failed store may find: what is in flight is not shown.
    fn possible_while_failed(&self) -> Vec<State> {
        let without = Self { flying: None, power_lost: true, ..self.clone() };
        without.possible()
    }

    /// Checks what a store holds after a crash, and goes on from there: it is durable now.
    pub(crate) fn reopened(&mut self, found: &State) -> Result<(), String> {
        self.check_among(self.possible(), found)?;
        *self = Self { durable: found.clone(), seen: found.clone(), ..Self::default() };
        Ok(())
    }

    pub(crate) fn check_failed(&self, found: &State) -> Result<(), String> {
        self.check_among(self.possible_while_failed(), found)
    }

    pub(crate) fn check(&self, found: &State) -> Result<(), String> {
        self.check_among(vec![self.seen.clone()], found)
    }

    fn check_among(&self, possible: Vec<State>, found: &State) -> Result<(), String> {
        if possible.contains(found) {
            return Ok(());
        }
        let mut text = format!("none of {} possible states; compared with the last:", possible.len());
        let expected = possible.last().unwrap();
        for id in expected.keys().chain(found.keys().filter(|id| !expected.contains_key(*id))) {
            let lines = |state: &State| {
                state.get(id).map(|lines| lines.iter().map(ToString::to_string).collect::<Vec<_>>())
            };
            match (lines(found), lines(expected)) {
                (Some(found), Some(expected)) => {
                    let durable = self.durable_len(id);
                    if let Some(difference) = difference(&found, &expected) {
                        text += &format!("\n session {id} (durable: {durable}): {difference}");
                    }
                }
                (None, _) => text += &format!("\n session {id} is missing"),
                (_, None) => text += &format!("\n session {id} should not be there"),
            }
        }
        Err(text)
    }
}
