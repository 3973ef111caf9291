//! A store on a faulty medium beside the model: each call goes to both, and what the store gives is checked.

use std::sync::Arc;
use std::time::Duration;

use sessionlog::{Append, Durability, Error, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use super::events::{Said, lines};
use super::medium::{Crash, Fault, Medium};
use super::model::{Commit, Model, State};

/// Longer than any test: nothing happens in the background by age.
pub(crate) const NEVER: Duration = Duration::from_secs(100_000);

/// A store in which only calls and sizes start syncs and drains.
pub(crate) fn quiet() -> StoreOptions {
    StoreOptions::new().sync_window(NEVER).drain_age(NEVER)
}

pub(crate) fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// Everything a store holds. Every way of reading that leads to it must agree.
pub(crate) fn whole(store: &Store) -> sessionlog::Result<State> {
    let mut state = State::new();
    for info in store.list()? {
        let info = info?;
        let session = store.session(&info.header.id)?;
        let mut lines: Vec<Arc<str>> = Vec::new();
        for event in session.read_from(Seq::ZERO)? {
            lines.push(event?.to_string().into());
        }
        let name = info.header.id.to_string();
        let before = state.insert(name, lines);
        assert!(before.is_none(), "session {} is listed twice", info.header.id);
    }
    Ok(state)
}

pub(crate) struct Run {
    pub(crate) medium: Medium,
    pub(crate) model: Model,
    options: fn() -> StoreOptions,
    store: Option<Store>,
    /// The store has failed or its process has ended: further calls of a script do nothing.
    over: bool,
    closed: bool,
}

impl Run {
    /// Opens a new store; a planned fault may stop even this.
    pub(crate) fn new(medium: Medium, options: fn() -> StoreOptions) -> Self {
        let mut run =
            Self { medium, model: Model::default(), options, store: None, over: false, closed: false };
        run.open();
        run
    }

    /// The same crashed store and model once more.
    pub(crate) fn copy(&self, seed: u64) -> Self {
        assert!(self.store.is_none(), "only a crashed store can be copied");
        let (medium, model) = (self.medium.copy(seed), self.model.clone());
        Self { medium, model, options: self.options, store: None, over: true, closed: false }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    /// A session's handle; `None` when a fault in the background has just ended the process.
    pub(crate) fn session(&self, name: &str) -> Option<Session> {
        match self.store().session(&id(name)) {
            Ok(session) => Some(session),
            Err(_) if self.medium.stopped() => None,
            Err(error) => panic!("{}", self.context(&format!("session {name}: {error:?}"))),
        }
    }

    /// Whether the store is open and takes writes.
    pub(crate) fn goes_on(&self) -> bool {
        !self.over && self.store.is_some() && !self.medium.stopped()
    }

    fn context(&self, text: &str) -> String {
        let log = self.medium.take_log();
        let log = &log[log.len().saturating_sub(12)..];
        format!("{text}\n last operations: {log:?}")
    }

    /// Opens the store and checks all it holds. False when a fault stopped it.
    pub(crate) fn open(&mut self) -> bool {
        assert!(self.store.is_none());
        (self.over, self.closed) = (false, false);
        let opened = self.medium.open((self.options)()).and_then(|store| Ok((whole(&store)?, store)));
        match opened {
            Ok((found, store)) => {
                let checked = self.model.reopened(&found);
                checked.unwrap_or_else(|text| panic!("{}", self.context(&text)));
                self.store = Some(store);
                self.check();
                true
            }
            Err(error) => {
                assert!(self.medium.fired(), "{}", self.context(&format!("open failed: {error:?}")));
                self.over = true;
                false
            }
        }
    }

    /// Checks that every session is there with what it holds, in the list, the headers and the lengths.
    pub(crate) fn check(&self) {
        match self.compare() {
            Ok(()) => {}
            // A fault in the background may come at any moment; the next call meets it.
            Err(_) if self.medium.fired() => {}
            Err(text) => panic!("{}", self.context(&text)),
        }
    }

    fn compare(&self) -> Result<(), String> {
        let told = |error: Error| format!("{error:?}");
        let same = |what: &str, found: u64, expected: u64| {
            if found == expected { Ok(()) } else { Err(format!("{what}: {found}, not {expected}")) }
        };
        let store = self.store();
        self.model.check(&whole(store).map_err(told)?)?;
        let mut newest_first = None;
        for info in store.list().map_err(told)? {
            let info = info.map_err(told)?;
            let name = info.header.id.as_str();
            let session = store.session(&info.header.id).map_err(told)?;
            let len = self.model.len(name) as u64;
            same(&format!("length of {name} in the list"), info.len, len)?;
            same(&format!("length of {name}"), session.len(), len)?;
            same(&format!("length of {name} in its info"), session.info().map_err(told)?.len, len)?;
            let durable = self.model.durable_len(name) as u64..=len;
            if !durable.contains(&session.durable_len()) {
                return Err(format!("durable length of {name}: {}, not {durable:?}", session.durable_len()));
            }
            if newest_first.is_some_and(|before| before < info.updated_at) {
                return Err(format!("{name} stands behind an older one in the list"));
            }
            newest_first = Some(info.updated_at);
        }
        Ok(())
    }

    /// Takes note of a call's result. An error other than `Failed` leaves no trace unless a fault fired.
    fn note(&mut self, result: Result<(), Error>, commit: Option<Commit>, durable: bool) {
        match (result, commit) {
            (Ok(()), Some(commit)) => self.model.accept(commit, durable),
            (Ok(()), None) => self.model.settle(),
            (Err(error), commit) => {
                assert!(self.medium.fired(), "{}", self.context(&format!("{error:?}")));
                if let Error::Failed { .. } = error {
                    self.over = true;
                } else {
                    assert!(
                        !matches!(error, Error::Corrupt { .. } | Error::SeqConflict { .. }),
                        "a failing medium is no corruption: {error:?}"
                    );
                }
                if self.over || self.medium.stopped() {
                    self.over = true;
                    if let Some(commit) = commit {
                        self.model.fly(commit);
                    }
                    self.check_failed();
                }
            }
        }
    }

    /// A failed store refuses writes, shows what is durable and nothing in flight.
    fn check_failed(&self) {
        if self.medium.stopped() {
            return;
        }
        let store = self.store();
        let found = whole(store).unwrap_or_else(|error| panic!("reads go on: {error:?}"));
        self.model.check_failed(&found).unwrap_or_else(|text| panic!("{}", self.context(&text)));
        for name in found.keys() {
            let session = self.session(name).expect("reads go on");
            assert_eq!(session.len(), session.durable_len(), "the visible end falls back to the durable end");
            let refused = session.append(super::events::user("after the failure").to_new());
            assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
        }
        assert!(matches!(store.create(NewSession::new()), Err(Error::Failed { .. })));
        assert!(matches!(store.flush(), Err(Error::Failed { .. })));
    }

    pub(crate) fn create(&mut self, name: &str) {
        if self.goes_on() {
            let created = self.store().create(NewSession::with_id(id(name)));
            self.note(created.map(drop), Some(Commit::Create { id: name.into() }), true);
        }
    }

    pub(crate) fn delete(&mut self, name: &str) {
        if self.goes_on() && self.model.seen().contains_key(name) {
            let deleted = self.store().delete(&id(name));
            self.note(deleted, Some(Commit::Delete { id: name.into() }), true);
        }
    }

    pub(crate) fn fork(&mut self, parent: &str, at: usize, name: &str) {
        if self.goes_on() && self.model.seen().contains_key(parent) {
            let at = at.min(self.model.len(parent));
            let new = NewSession::with_id(id(name));
            let forked = self.store().fork(&id(parent), Seq::new(at as u64), new);
            if let Ok(child) = &forked {
                let found = child.header().unwrap().parent.expect("a fork has a parent");
                assert_eq!((found.session, found.prefix_len), (Some(id(parent)), at as u64));
            }
            let commit = Commit::Fork { parent: parent.into(), at, id: name.into() };
            self.note(forked.map(drop), Some(commit), true);
        }
    }

    /// Appends with the store's durability, or with the given one; half of the calls name the expected seq.
    pub(crate) fn append(&mut self, name: &str, said: &[Said], how: Option<Durability>) {
        if !self.goes_on() || !self.model.seen().contains_key(name) {
            return;
        }
        let len = self.model.len(name);
        let by_type = if said.iter().all(Said::is_chunk) { Durability::Buffered } else { Durability::Sync };
        let durable = how.unwrap_or(by_type) == Durability::Sync;
        let mut append = match how {
            None => Append::new(),
            Some(Durability::Sync) => Append::new().sync(),
            Some(Durability::Buffered) => Append::new().buffered(),
        };
        if len.is_multiple_of(2) {
            append = append.expect(Seq::new(len as u64));
        }
        let Some(session) = self.session(name) else { return };
        let result = session.append_with(append, said.iter().map(Said::to_new));
        if let Ok(seqs) = &result {
            let expected = Seq::new(len as u64)..Seq::new((len + said.len()) as u64);
            assert_eq!(*seqs, expected, "the seqs given to {name}");
        }
        let lines = lines(said, len).into_iter().map(Into::into).collect();
        let commit = Commit::Append { id: name.into(), lines };
        self.note(result.map(drop), Some(commit), durable);
    }

    /// An append that must be refused whole.
    pub(crate) fn append_expecting_wrong(&mut self, name: &str, said: &[Said], wrong: u64) {
        if !self.goes_on() || !self.model.seen().contains_key(name) {
            return;
        }
        let len = self.model.len(name) as u64;
        let expected = Seq::new(if wrong == len { len + 1 } else { wrong });
        let append = Append::new().expect(expected);
        let Some(session) = self.session(name) else { return };
        match session.append_with(append, said.iter().map(Said::to_new)) {
            Err(Error::SeqConflict { session, expected: e, actual }) => {
                assert_eq!((session.as_str(), e, actual), (name, expected, Seq::new(len)));
            }
            Err(_) if self.medium.stopped() => self.over = true,
            Err(Error::Failed { .. }) if self.medium.fired() => self.over = true,
            other => panic!("a wrong expected seq gave {other:?}"),
        }
    }

    pub(crate) fn flush(&mut self) {
        if self.goes_on() {
            let result = self.store().flush();
            self.note(result, None, true);
        }
    }

    pub(crate) fn drain(&mut self) {
        if self.goes_on() {
            let result = self.store().drain();
            // It drains what is durable; what is not may stay so.
            if result.is_err() {
                self.note(result, None, false);
            }
        }
    }

    pub(crate) fn compact(&mut self) {
        if self.goes_on() {
            let result = self.store().compact();
            // As a drain.
            if result.is_err() {
                self.note(result.map(drop), None, false);
            }
        }
    }

    /// Appends, and stores it in a block of its own behind the session's last one. What was appended before is drained
    /// first: a fork of a block that looks damaged would have an unknown hash.
    pub(crate) fn scatter(&mut self, name: &str, said: &[Said]) {
        self.drain();
        self.medium.scatter(true);
        self.append(name, said, None);
        self.drain();
        self.medium.scatter(false);
    }

    pub(crate) fn close(&mut self) {
        if self.goes_on() {
            match self.store().close() {
                Ok(()) => {
                    self.model.settle();
                    self.closed = true;
                }
                Err(error) => assert!(self.medium.fired(), "{}", self.context(&format!("{error:?}"))),
            }
            self.over = true;
        }
    }

    /// Drops all handles: an orderly close, unless the process has ended.
    pub(crate) fn drop_store(&mut self) {
        let was_open = self.goes_on();
        self.store = None;
        if was_open && !self.medium.fired() {
            self.model.settle();
        }
        self.over = true;
    }

    /// Ends this life, whatever state it is in, and begins the next.
    pub(crate) fn crash(&mut self, crash: Crash) {
        self.medium.stop();
        self.store = None;
        self.medium.restart(crash);
        self.model.crash(crash);
        self.over = true;
    }

    /// Reopens until it works; a planned fault may stop the first tries.
    pub(crate) fn recover(&mut self, crash: Crash) {
        self.crash(crash);
        while !self.open() {
            self.crash(crash);
        }
    }

    /// After any trouble: appends go on with the next seq, and an orderly close loses nothing.
    pub(crate) fn check_goes_on(&mut self) {
        self.medium.forget_plan();
        let name = match self.model.seen().keys().next() {
            Some(name) => name.clone(),
            None => {
                self.create("afterwards");
                "afterwards".into()
            }
        };
        self.append(&name, &[super::events::user("afterwards").at(1)], None);
        self.check();
        self.close();
        assert!(self.closed, "an orderly close");
        self.store = None;
        self.medium.take_log();
        assert!(self.open(), "open after an orderly close");
        assert_eq!(self.store().open_report().replayed_commits, 0, "a clean open replays nothing");
        self.check();
    }

    /// Deletes everything there is: then nothing is left in the engine but its two counters.
    pub(crate) fn check_leaves_nothing(&mut self) {
        let report = self.store().scan().unwrap();
        assert!(report.is_clean(), "{}", self.context(&format!("{report:?}")));
        let names: Vec<String> = self.model.seen().keys().cloned().collect();
        for name in &names {
            self.delete(name);
        }
        self.drain();
        self.check();
        let maps = self.medium.image().maps;
        let left: Vec<Vec<&Vec<u8>>> =
            maps.iter().map(|map| map.iter().map(|(key, _)| key).collect()).collect();
        let none: [&Vec<u8>; 0] = [];
        assert_eq!(left[0], [b"D", b"O"], "{names:?}");
        assert_eq!(left[1..], [none, none, none], "{names:?}");
    }

    /// Plans a fault, unless one has happened in this life already.
    pub(crate) fn plan(&self, after: u64, fault: Fault) {
        if !self.medium.fired() {
            self.medium.plan(after, fault);
        }
    }
}
