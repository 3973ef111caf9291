//! Any bytes as a file to import: refused with its faults, and nothing is left; or taken, and then what is exported
//! comes in again the same. A salvage keeps a prefix, and loses no line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sessionlog::transfer::{ExportOptions, ImportOptions, ImportReport, export, import};
use sessionlog::{Error, NewEvent, NewSession, Result, Session, Store};
use sessionlog_fuzz::base::id;

sessionlog_fuzz::limit_memory!();

fuzz_target!(|file: &[u8]| {
    let store = Store::in_memory().expect("a store");
    // What a file may name as its parent.
    let parent = store.create(NewSession::with_id(id("p"))).expect("a session");
    parent.append_batch(["a", "b", "c"].map(said)).expect("events");

    let dry = import(&store, file, &ImportOptions::new().dry_run());
    assert_eq!(sessions(&store), 1, "a dry run makes nothing");
    match taken(import(&store, file, &ImportOptions::new())) {
        Some(report) => {
            assert_eq!(dry.expect("a dry run finds the same"), report);
            round_trip(&store, &report);
        }
        None => {
            assert!(dry.is_err(), "a dry run finds the same");
            assert_eq!(sessions(&store), 1, "what is refused leaves nothing");
            if let Some(report) = taken(import(&store, file, &ImportOptions::new().salvage())) {
                assert!(report.total_faults > 0);
                round_trip(&store, &report);
            }
        }
    }
    store.drain().expect("memory drains");
    let check = store.scan().expect("it is open");
    assert!(check.is_clean(), "{:?}", check.findings);
});

/// What was imported. A refusal says where.
fn taken(result: Result<ImportReport>) -> Option<ImportReport> {
    match result {
        Ok(report) => Some(report),
        Err(Error::Import { faults, total }) => {
            assert!(!faults.is_empty() && faults.len() as u64 <= total);
            assert!(faults.iter().all(|fault| fault.line > 0 && !fault.to_string().is_empty()));
            None
        }
        Err(Error::SessionExists { .. }) => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn sessions(store: &Store) -> usize {
    store.list().expect("it is open").filter(|info| info.is_ok()).count()
}

fn round_trip(store: &Store, report: &ImportReport) {
    let session = store.session(&report.session).expect("it was imported");
    assert_eq!(session.len(), report.appended + report.shared);
    let first = exported(&session);
    let there = Store::in_memory().expect("a store");
    let again = import(&there, &first[..], &ImportOptions::new()).expect("what was exported can be imported");
    let again = there.session(&again.session).expect("it was imported");
    assert!(exported(&again) == first, "an export comes back as it was");
    assert_eq!(again.messages().expect("memory is read"), session.messages().expect("memory is read"));
}

fn exported(session: &Session) -> Vec<u8> {
    let mut out = Vec::new();
    export(session, ExportOptions::new(), &mut out).expect("memory takes it");
    out
}

fn said(text: &str) -> NewEvent {
    let line = format!(r#"{{"type":"user/message","content":"{text}","timestamp":5}}"#);
    NewEvent::from_json(line.as_bytes()).expect("it is an event")
}
