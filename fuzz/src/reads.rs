//! Everything that can be asked of a store, and what the answers must be: the truth or a typed error, in every way of
//! reading.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use sessionlog::{
    Error, Event, EventKind, Events, NewEvent, NewSession, Result, Seq, Session, Store, Timestamp,
};

use crate::base::id;

/// The lines of each session.
pub type Truth = BTreeMap<String, Vec<String>>;

/// Forged bytes can make a session seem as long as they like; what is really there is short.
const MAX_EVENTS: usize = 10_000;

/// Everything that a sound store holds.
pub fn truth_of(store: &Store) -> Truth {
    let session = |info: Result<sessionlog::SessionInfo>| {
        let id = info?.header.id;
        let events = store.session(&id)?.read_from(Seq::ZERO)?;
        Ok((id.to_string(), events.map(|event| Ok(event?.to_json())).collect::<Result<_>>()?))
    };
    let all: Result<Truth> = store.list().expect("the store is open").map(session).collect();
    all.unwrap_or_else(|error| panic!("a sound store: {error:?}"))
}

/// How far the store's bytes can be trusted.
#[derive(Debug)]
pub enum Trust {
    /// They are damaged: an error, or this. Never another event.
    Damaged(Truth),
    /// Checksums were made right on purpose: they can say anything, and must do no harm.
    Forged,
}

/// How much to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// In every way there is.
    EveryWay,
    /// From first to last.
    Forward,
}

/// Reads all that can be reached. `names`: sessions to ask for, listed or not.
pub fn read_all<'a>(store: &Store, names: impl Iterator<Item = &'a String>, trust: &Trust, depth: Depth) {
    let mut all: Vec<String> = names.cloned().collect();
    for info in store.list().expect("the store is open").take(MAX_EVENTS) {
        match info {
            Ok(info) => all.push(info.header.id.to_string()),
            Err(error) => look_at_error(&error, trust),
        }
    }
    all.sort();
    all.dedup();
    for name in all {
        match store.session(&name.parse().expect("an id that was given out")) {
            Ok(session) => read_session(&session, trust, depth),
            Err(Error::SessionNotFound { .. }) => {}
            Err(error) => look_at_error(&error, trust),
        }
    }
    if depth == Depth::Forward {
        return;
    }
    match store.scan() {
        // Findings are told, not judged here: what each reads as must not panic.
        Ok(report) => report.findings.iter().for_each(|finding| drop(finding.to_string())),
        Err(error) => look_at_error(&error, trust),
    }
    if let Err(error) = store.info() {
        look_at_error(&error, trust);
    }
}

fn read_session(session: &Session, trust: &Trust, depth: Depth) {
    let name = session.id().to_string();
    let truth = match trust {
        Trust::Damaged(truth) => {
            Some(truth.get(&name).unwrap_or_else(|| panic!("there never was a session {name}")))
        }
        Trust::Forged => None,
    };
    for error in [session.header().err(), session.info().err()].into_iter().flatten() {
        look_at_error(&error, trust);
    }
    let len = session.len();
    assert!(session.durable_len() <= len);
    if let Some(truth) = truth {
        assert_eq!(len, truth.len() as u64, "the length of session {name}");
    }
    let (start, end) = (Seq::ZERO, Seq::new(len));
    let (third, half) = (Seq::new(len / 3), Seq::new(len / 2));
    let read = |events| Read::of(events, truth, trust);
    let forward = read(session.read_from(start));
    forward.check_ascending(start, end);
    if depth == Depth::Forward {
        return;
    }
    let reverse = read(session.read_reverse(start..end));
    reverse.check_descending(start, end);
    let words = read(session.read_range(start..end).map(Events::without_chunks));
    read(session.read_range(third..half)).check_ascending(third, half);
    read(session.read_reverse(third..half)).check_descending(third, half);
    let last = read(session.last(5));
    last.check_ascending(Seq::new(len.saturating_sub(5)), end);
    read(session.read_from(half)).check_ascending(half, end);
    // Forged blocks may overlap: which of two says what an event is, is for a scan to find.
    if matches!(trust, Trust::Damaged(_)) && forward.whole() && reverse.whole() {
        assert!(forward.events.iter().eq(reverse.events.iter().rev()), "forward and reverse of {name}");
    }
    if forward.whole() && words.whole() {
        let expected = forward.events.iter().filter(|event| !is_plain_chunk(event));
        assert!(words.events.iter().eq(expected), "session {name} without chunks");
    }
    match session.follow(third) {
        Ok(mut follow) => {
            for event in forward.events.iter().filter(|event| event.seq >= third).take(3) {
                match follow.next_timeout(Duration::ZERO) {
                    Ok(next) => match trust {
                        Trust::Damaged(_) => assert_eq!(next.as_ref(), Some(event), "a follower of {name}"),
                        Trust::Forged => assert_eq!(next.map(|next| next.seq), Some(event.seq)),
                    },
                    Err(error) => {
                        look_at_error(&error, trust);
                        break;
                    }
                }
            }
        }
        Err(error) => look_at_error(&error, trust),
    }
}

/// What `without_chunks` leaves out.
fn is_plain_chunk(event: &Event) -> bool {
    matches!(event.kind, EventKind::AssistantChunk { .. })
        && event.extra.is_empty()
        && event.surface_op.is_none()
        && event.source_event_seqs.is_none()
}

/// What reading gave.
struct Read {
    events: Vec<Event>,
    failed: bool,
}

impl Read {
    fn of(events: Result<Events>, truth: Option<&Vec<String>>, trust: &Trust) -> Self {
        let mut read = Self { events: Vec::new(), failed: false };
        let mut events = match events {
            Ok(events) => events,
            Err(error) => {
                look_at_error(&error, trust);
                read.failed = true;
                return read;
            }
        };
        for item in events.by_ref().take(MAX_EVENTS) {
            match item {
                Ok(event) => {
                    assert!(!read.failed, "the first error is the last item");
                    let line = look_at(&event);
                    if let Some(truth) = truth {
                        let expected = usize::try_from(event.seq.get()).ok().and_then(|seq| truth.get(seq));
                        assert_eq!(Some(&line), expected, "never a wrong event");
                    }
                    read.events.push(event);
                }
                Err(error) => {
                    if std::env::var_os("SHOW").is_some() {
                        eprintln!("{error:?}");
                    }
                    assert!(!read.failed, "the first error is the last item");
                    look_at_error(&error, trust);
                    read.failed = true;
                }
            }
        }
        if read.events.len() < MAX_EVENTS {
            assert!(events.next().is_none());
        }
        read
    }

    /// All there is was read.
    fn whole(&self) -> bool {
        !self.failed && self.events.len() < MAX_EVENTS
    }

    fn check_ascending(&self, from: Seq, to: Seq) {
        self.check_seqs(from.get()..to.get(), to.get().saturating_sub(from.get()));
    }

    fn check_descending(&self, from: Seq, to: Seq) {
        self.check_seqs((from.get()..to.get()).rev(), to.get().saturating_sub(from.get()));
    }

    /// The seqs are these, as far as they go, and an error says that they do not go to the end.
    fn check_seqs(&self, expected: impl Iterator<Item = u64>, count: u64) {
        let found: Vec<u64> = self.events.iter().map(|event| event.seq.get()).collect();
        let expected: Vec<u64> = expected.take(found.len()).collect();
        assert_eq!(found, expected, "contiguous");
        assert!(!self.whole() || found.len() as u64 == count, "nothing is skipped");
    }
}

/// Looks at everything an event can be asked. Returns its line.
fn look_at(event: &Event) -> String {
    let line = event.to_json();
    let _ = (event.event_type(), event.surface_op(), event.source_event_seqs());
    for (name, value) in &event.extra {
        let _ = (name.to_str(), value.to_str(), value.is_null());
    }
    if let EventKind::UserMessage { content } | EventKind::AssistantMessage { content, .. } = &event.kind {
        let _ = content.as_text();
    }
    line
}

/// An error says what is wrong with the bytes. A medium in memory has no faults, and nobody closed the store.
pub fn look_at_error(error: &Error, trust: &Trust) {
    let _ = (error.to_string(), error.source().map(ToString::to_string));
    let about_bytes = match error {
        Error::Corrupt { .. } | Error::UnsupportedFormat { .. } => true,
        Error::Failed { .. } | Error::DiskFull { .. } => matches!(trust, Trust::Forged),
        _ => false,
    };
    assert!(about_bytes, "{error:?}");
}

/// What is appended to see whether a store goes on.
fn afterwards() -> NewEvent {
    NewEvent::user_message("afterwards").timestamp(Timestamp::from_millis(1).expect("in range"))
}

/// Writes to every session and drains. In damaged bytes a session may refuse; what is accepted joins the truth.
pub fn go_on<'a>(store: &Store, names: impl Iterator<Item = &'a String>, trust: &mut Trust) {
    let names: Vec<String> = names.cloned().collect();
    for name in &names {
        let Ok(session) = store.session(&id(name)) else { continue };
        append(&session, trust);
        fork(store, &session, trust);
    }
    match store.create(NewSession::with_id(id("afterwards"))) {
        Ok(session) => {
            if let Trust::Damaged(truth) = trust {
                truth.insert("afterwards".into(), Vec::new());
            }
            append(&session, trust);
        }
        Err(error) => look_at_error(&error, trust),
    }
    if let Err(error) = store.drain() {
        look_at_error(&error, trust);
    }
}

fn append(session: &Session, trust: &mut Trust) {
    match session.append(afterwards()) {
        Ok(seq) => {
            if let Trust::Damaged(truth) = trust {
                let truth = truth.get_mut(session.id().as_str()).expect("it was listed");
                assert_eq!(seq.get(), truth.len() as u64, "the seq that an event is given");
                let line =
                    format!(r#"{{"type":"user/message","seq":{seq},"content":"afterwards","timestamp":1}}"#);
                truth.push(line);
            }
        }
        Err(error) => look_at_error(&error, trust),
    }
}

fn fork(store: &Store, parent: &Session, trust: &mut Trust) {
    let at = parent.len() / 2;
    let name = format!("{}'s child", parent.id());
    match store.fork(parent.id(), Seq::new(at), NewSession::with_id(id(&name))) {
        Ok(_) => {
            if let Trust::Damaged(truth) = trust {
                let prefix = truth[parent.id().as_str()].iter().take(at as usize).cloned().collect();
                truth.insert(name, prefix);
            }
        }
        Err(error) => look_at_error(&error, trust),
    }
}
