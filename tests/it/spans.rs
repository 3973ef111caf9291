//! Spans, as somebody's subscriber sees them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sessionlog::NewSession;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::events::user;
use crate::support::medium::{Crash, Medium};
use crate::support::run::quiet;

/// Keeps the names of spans with their fields, as they are entered and left.
#[derive(Clone, Default)]
struct Heard {
    said: Arc<Mutex<Vec<String>>>,
    names: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicU64>,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.said.lock().unwrap())
    }

    fn name(&self, id: &Id) -> String {
        let at = usize::try_from(id.into_u64() - 1).unwrap();
        self.names.lock().unwrap()[at].clone()
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sessionlog"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut name = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut name));
        self.names.lock().unwrap().push(name);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.said.lock().unwrap().push(format!("> {}", self.name(id)));
    }

    fn exit(&self, id: &Id) {
        self.said.lock().unwrap().push(format!("< {}", self.name(id)));
    }
}

/// Goal: each of the five spans is opened where its work is done, ends with it, and lies within the one that did it.
#[test]
fn open_commit_sync_drain_scan() {
    let heard = Heard::default();
    // While there is one subscriber only, a span that another thread meets first is taken for one that nobody wants.
    let _second = tracing::Dispatch::new(Heard::default());
    tracing::subscriber::with_default(heard.clone(), || {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        assert_eq!(heard.take(), ["> open", "< open"]);
        let session = store.create(NewSession::new()).unwrap();
        assert_eq!(heard.take(), ["> commit requests=1", "> sync", "< sync", "< commit requests=1"]);
        session.append(user("hello").to_new()).unwrap();
        heard.take();
        store.scan().unwrap();
        assert_eq!(heard.take(), ["> scan", "< scan"]);
        // Other passes may be those of a thread that this subscriber does not hear; the one of an open is this thread's.
        medium.stop();
        drop((session, store));
        medium.restart(Crash::Kill);
        heard.take();
        let _store = medium.open(quiet()).unwrap();
        let heard = heard.take();
        let at = |what| heard.iter().position(|said| said == what);
        assert!(at("> open") < at("> drain") && at("> drain") < at("< drain"), "{heard:?}");
        assert!(at("> drain").is_some() && at("< drain") < at("< open"), "{heard:?}");
    });
}
