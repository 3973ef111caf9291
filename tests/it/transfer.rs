//! Export and import of native JSON Lines: what goes out comes in the same, and nothing else comes in.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sessionlog::transfer::{
    ExportOptions, FaultKind, ImportOptions, ImportReport, export, export_all, import, import_file,
    import_files,
};
use sessionlog::{Error, LabelChange, NewSession, Seq, Session, SessionId, Store};

use crate::support::events::{chunk, custom, difference, noise, read, user};
use crate::support::medium::{Crash, Fault, Medium};
use crate::support::run::{id, quiet};

fn memory() -> Store {
    Store::in_memory().unwrap()
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases").join(name)
}

fn exported(session: &Session) -> String {
    exported_as(session, ExportOptions::new())
}

fn exported_as(session: &Session, options: ExportOptions) -> String {
    let mut out = Vec::new();
    let told = export(session, options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!((told.bytes, told.events + 1), (text.len() as u64, text.lines().count() as u64));
    text
}

fn imported(store: &Store, text: &str) -> Session {
    let report = import(store, text.as_bytes(), &ImportOptions::new()).unwrap();
    store.session(&report.session).unwrap()
}

/// What is wrong with a file: line and text of each fault.
fn faults(result: sessionlog::Result<ImportReport>) -> Vec<(u64, String)> {
    match result {
        Err(Error::Import { faults, total }) => {
            assert_eq!(faults.len() as u64, total.min(1_000));
            faults.iter().map(|fault| (fault.line, fault.to_string())).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> Vec<(u64, String)> {
    let store = memory();
    let found = faults(import(&store, text.as_bytes(), &ImportOptions::new()));
    assert_eq!(store.list().unwrap().count(), 0);
    found
}

fn sound(store: &Store) {
    let report = store.scan().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

const HEADER: &str = r#"{"type":"session","version":1,"id":"s","createdAt":5}"#;

fn event(seq: u64) -> String {
    user(&format!("message {seq}")).line(seq)
}

fn file(seqs: impl IntoIterator<Item = u64>) -> String {
    std::iter::once(HEADER.to_owned()).chain(seqs.into_iter().map(event)).map(|line| line + "\n").collect()
}

const ACCEPTED: [&str; 15] = [
    "orphan_call_tail",
    "no_final_newline",
    "compacted_parent",
    "unicode_line_separators",
    "clock_backwards",
    "unknown_event_type",
    "parallel_calls",
    "reused_call_id",
    "big_ints",
    "bad_args",
    "non_object_args",
    "empty_content",
    "import_existing_id_a",
    "bom_crlf",
    "header_only",
];

/// Goal: H05, H12, H20, H27, H32, H41 and the others that are sound come in, every event as it is spelled; exported,
/// imported and exported again they are the same, and so are their surfaces.
#[test]
fn handed_files_that_are_accepted() {
    for name in ACCEPTED {
        let store = memory();
        let report = import_file(&store, &case(&format!("{name}.jsonl")), &ImportOptions::new()).unwrap();
        let session = store.session(&report.session).unwrap();
        let bytes = fs::read_to_string(case(&format!("{name}.jsonl"))).unwrap();
        let lines = bytes.trim_start_matches('\u{feff}').split('\n').map(|line| line.trim_end_matches('\r'));
        let given: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).skip(1).collect();
        let found = read(session.read_from(Seq::ZERO));
        assert_eq!(found.len(), given.len(), "{name}");
        for (line, given) in found.iter().zip(given) {
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(line), value(given), "{name}");
        }
        let first = exported(&session);
        let there = memory();
        let again = imported(&there, &first);
        assert_eq!(exported(&again), first, "{name}");
        assert_eq!(surface(&again), surface(&session), "{name}");
        sound(&there);
    }
}

fn surface(session: &Session) -> String {
    format!("{:?}", session.messages().unwrap())
}

/// Goal: H02, H03, H04, H15, H20, H31, H43: refused with the line, nothing stored; a salvage keeps what it should and
/// writes the rest, byte for byte, beside the file.
#[test]
fn handed_files_that_are_refused() {
    let cases: [(&str, u64, Option<u64>); 8] = [
        ("glued_retry_line", 4, Some(2)),
        ("bad_middle_line", 8, Some(6)),
        ("torn_last_line", 13, Some(11)),
        ("lone_high_surrogate", 3, None),
        ("stringly_numbers", 3, None),
        ("nul_middle_and_tail", 7, Some(12)),
        ("import_existing_id_b", 0, None),
        ("invalid_utf8_middle", 5, Some(3)),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, line, kept) in cases {
        let store = memory();
        let path = folder.path().join(format!("{name}.jsonl"));
        fs::copy(case(&format!("{name}.jsonl")), &path).unwrap();
        let found = faults(import_file(&store, &path, &ImportOptions::new()));
        assert!(line == 0 || found[0].0 == line, "{name}: {found:?}");
        assert_eq!(store.list().unwrap().count(), 0, "{name}");
        let Some(kept) = kept else { continue };
        let report = import_file(&store, &path, &ImportOptions::new().salvage()).unwrap();
        let session = store.session(&report.session).unwrap();
        assert_eq!((session.len(), report.appended), (kept, kept), "{name}");
        assert!(report.total_faults > 0 && report.rest_lines > 0, "{report:?}");
        let rest = fs::read(folder.path().join(format!("{name}.jsonl.rest"))).unwrap();
        let whole = fs::read(&path).unwrap();
        let lines = |bytes: &[u8]| {
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let (rest, whole) = (lines(&rest), lines(&whole));
        assert_eq!(rest.len() as u64 + kept + 1, whole.len() as u64, "{name}: no line is lost");
        assert!(rest.iter().all(|line| whole.contains(line)), "{name}");
        let again = import_file(&store, &path, &ImportOptions::new().salvage().id(id("other")));
        assert!(matches!(again, Err(Error::Io { .. })), "a rest that is there is not overwritten: {again:?}");
        sound(&store);
    }
}

/// Goal: H15: the field and the line are named.
#[test]
fn h15_the_field_is_named() {
    let store = memory();
    let found = import_file(&store, &case("stringly_numbers.jsonl"), &ImportOptions::new());
    let Err(Error::Import { faults, .. }) = found else { panic!("{found:?}") };
    assert_eq!(faults[0].field.as_deref(), Some("seq"));
    assert!(faults[0].column.is_some());
}

/// Goal: H31: what is here is never overwritten, by a sound file or a broken one.
#[test]
fn h31_an_existing_session_stays() {
    let store = memory();
    import_file(&store, &case("import_existing_id_a.jsonl"), &ImportOptions::new()).unwrap();
    let session = store.list().unwrap().next().unwrap().unwrap().header.id;
    let before = exported(&store.session(&session).unwrap());
    for name in ["import_existing_id_a.jsonl", "import_existing_id_b.jsonl"] {
        let again = import_file(&store, &case(name), &ImportOptions::new());
        assert!(matches!(again, Err(Error::SessionExists { .. })), "{again:?}");
        assert_eq!(exported(&store.session(&session).unwrap()), before);
    }
    let update = import_file(&store, &case("import_existing_id_b.jsonl"), &ImportOptions::new().update());
    assert!(update.is_err());
    assert_eq!(exported(&store.session(&session).unwrap()), before);
}

/// Goal: H49: a file that is still being written is refused, and taken when it is whole.
#[test]
fn h49_half_a_record_is_not_eaten() {
    let whole = file(0..3);
    let store = memory();
    for cut in [1, 20, 60] {
        let half = &whole[..whole.len() - cut];
        match import(&store, half.as_bytes(), &ImportOptions::new().dry_run()) {
            Ok(report) => assert_eq!((cut, report.appended), (1, 3), "only the newline is missing"),
            error => assert_eq!(faults(error)[0].0, 4),
        }
    }
    assert_eq!(imported(&store, &whole).len(), 3);
}

/// Goal: every fault of a file is listed, with its line, and none twice.
#[test]
fn all_faults_are_listed() {
    let lines =
        [HEADER, &event(0), "{", &event(2), &event(2), &event(5), "", "\t \r", HEADER, &event(6), "3"];
    let found = refused(&lines.join("\n"));
    let lines: Vec<u64> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 5, 6, 9, 11], "{found:?}");
    for (fault, part) in
        found.iter().zip(["not JSON", "seq 2 again", "seq 3 is missing", "second header", "object"])
    {
        assert!(fault.1.contains(part), "{fault:?}");
    }
    let mut text = file([0]);
    text.push_str(&"x\n".repeat(2_000));
    let Err(Error::Import { faults, total }) = import(&memory(), text.as_bytes(), &ImportOptions::new())
    else {
        panic!("it is wrong")
    };
    assert_eq!((faults.len(), total, faults[999].line), (1_000, 2_000, 1_002));
}

/// Goal: what a header may not say is refused with its field, and what is not a header at all.
#[test]
fn bad_headers_are_refused() {
    let with =
        |fields: &str| format!("{{\"type\":\"session\",\"version\":1,\"id\":\"s\",\"createdAt\":5{fields}}}");
    let cases = [
        (String::new(), "a header expected"),
        (event(0), "a header expected"),
        ("[]".into(), "object"),
        (with(r#","id":"t""#), "twice"),
        (r#"{"type":"session","version":1,"createdAt":5}"#.into(), "field `id`"),
        (r#"{"type":"session","version":1,"id":"s"}"#.into(), "field `createdAt`"),
        (r#"{"type":"session","id":"s","createdAt":5}"#.into(), "field `version`"),
        (r#"{"type":"session","version":2,"id":"s","createdAt":5}"#.into(), "version 2"),
        (r#"{"type":"session","version":1,"id":"","createdAt":5}"#.into(), "field `id`"),
        (r#"{"type":"session","version":1,"id":7,"createdAt":5}"#.into(), "field `id`"),
        (with(r#","length":"1""#), "field `length`"),
        (with(r#","length":1.0"#), "field `length`"),
        (with(r#","hash":"abc""#), "field `hash`"),
        (with(r#","meta":{"a":1}"#), "field `meta`"),
        (with(r#","labels":{"a":"1","a":"2"}"#), "field `labels`"),
        (with(r#","labels":{"a=b":"1"}"#), "field `labels`"),
        (with(&format!(r#","x":"{}""#, "x".repeat(5_000))), "metadata"),
        (with(r#","x":"\ud800""#), "surrogate"),
    ];
    for (header, part) in cases {
        let found = refused(&format!("{header}\n"));
        assert!(found.len() == 1 && found[0].0 == 1 && found[0].1.contains(part), "{header}: {found:?}");
    }
}

/// Goal: a length or hash that disagrees is refused, and a file that begins behind 0 without all that it needs.
#[test]
fn lengths_and_hashes_are_checked() {
    let store = memory();
    let session = imported(&store, &file(0..4));
    let text = exported(&session);
    let longer = format!("{text}{}\n", event(4));
    assert!(refused(&longer)[0].1.contains("length"));
    let shorter: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    assert!(refused(&shorter)[0].1.contains("end at 3"), "{:?}", refused(&shorter));
    let changed = text.replace("message 2", "message 7");
    assert!(refused(&changed)[0].1.contains("hash"));
    let late = text.replacen(r#""length""#, r#""firstSeq":2,"length""#, 1);
    assert!(refused(&late)[0].1.contains("parent"));
}

/// Goal: fields that this program does not know, also in the header, come back as they were.
#[test]
fn unknown_fields_come_back() {
    let header = r#"{"type":"session","version":1,"id":"s","createdAt":-5,"parent":"gone","prefixLength":1,"length":1,"hash":"H","title":"T é","labels":{"k":"v"},"meta":{"a":"","b":"2"},"x-y":[1e400,{"b":1,"a":2}]}"#;
    let line = custom(r#","sessionId":"another","n":-0"#).line(0);
    let hash = sessionlog::RunningHash::START.next_line(line.as_bytes());
    let text = format!("{}\n{line}\n", header.replace("\"H\"", &format!("\"{hash}\"")));
    let store = memory();
    let report = import(&store, text.as_bytes(), &ImportOptions::new()).unwrap();
    assert_eq!(report.other_session_ids, 1);
    let session = store.session(&id("s")).unwrap();
    assert_eq!(exported(&session), text);
    store.drain().unwrap();
    assert_eq!(exported(&session), text);
    assert_eq!(session.title().as_deref(), Some("T é"));
}

/// A store with a parent, a fork and a fork of that.
fn family(store: &Store) -> [Session; 3] {
    let parent = store.create(NewSession::with_id(id("parent")).meta("model", "m")).unwrap();
    parent.append_batch((0..6).map(|n| user(&n.to_string()).to_new())).unwrap();
    let child = store.fork(parent.id(), Seq::new(4), NewSession::with_id(id("child"))).unwrap();
    child.append_batch((0..3).map(|n| user(&format!("child {n}")).to_new())).unwrap();
    let grandchild = store.fork(child.id(), Seq::new(5), NewSession::with_id(id("grandchild"))).unwrap();
    grandchild.append(user("grandchild").to_new()).unwrap();
    grandchild.label(LabelChange::new().title("Last").set("k", "v")).unwrap();
    parent.append(user("later").to_new()).unwrap();
    [parent, child, grandchild]
}

fn shared(session: &Session) -> Option<(Option<SessionId>, u64)> {
    session.header().unwrap().parent.map(|parent| (parent.session, parent.prefix_len))
}

/// Goal: a fork's file needs no other; where its parent is here, with the same events, they are shared again, and
/// where the parent has others they are not. In each case it is exported as it was.
#[test]
fn forks_are_shared_again_where_they_can_be() {
    let here = memory();
    let family = family(&here);
    let texts: Vec<String> = family.iter().map(exported).collect();
    let alone = memory();
    for text in texts.iter().rev() {
        let session = imported(&alone, text);
        assert_eq!((exported(&session), shared(&session)), (text.clone(), None));
    }
    let together = memory();
    for text in &texts {
        assert_eq!(&exported(&imported(&together, text)), text);
    }
    let parents: Vec<_> =
        ["child", "grandchild"].map(|name| shared(&together.session(&id(name)).unwrap())).into();
    assert_eq!(parents, [Some((Some(id("parent")), 4)), Some((Some(id("child")), 5))]);
    let other = memory();
    let parent = other.create(NewSession::with_id(id("parent"))).unwrap();
    parent
        .append_batch([user("0").to_new(), user("1").to_new(), user("else").to_new(), user("3").to_new()])
        .unwrap();
    let child = imported(&other, &texts[1]);
    assert_eq!((exported(&child), shared(&child)), (texts[1].clone(), None));
    for store in [alone, together, other] {
        store.drain().unwrap();
        sound(&store);
    }
}

/// Goal: a whole store goes out, a file a session, named by storage keys, and comes in whatever the order; exported
/// again the files are the same. H35: no id is a file's name; H45: files and folder are their owner's.
#[test]
fn a_whole_store_goes_out_and_in() {
    let folder = tempfile::tempdir().unwrap();
    let here = memory();
    family(&here);
    here.create(NewSession::with_id(id("../../x"))).unwrap();
    let first = folder.path().join("first");
    assert_eq!(export_all(&here, &first, |_, _, _| ()).unwrap(), 4);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o700);
    let files = |folder: &Path| -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort_by(|a, b| a.1.cmp(&b.1));
        files
    };
    for (name, _) in files(&first) {
        assert!(uuid::Uuid::parse_str(name.strip_suffix(".jsonl").unwrap()).is_ok(), "{name}");
    }
    let refused = export_all(&here, &first, |_, _, _| ());
    assert!(matches!(refused, Err(Error::Io { .. })), "what is there is not overwritten");

    let there = memory();
    let mut paths: Vec<PathBuf> = fs::read_dir(&first).unwrap().map(|entry| entry.unwrap().path()).collect();
    for _ in 0..2 {
        let there = memory();
        paths.reverse();
        import_files(&there, &paths, &ImportOptions::new(), &mut |_| {}).unwrap();
        assert_eq!(there.list().unwrap().count(), 4);
    }
    import_files(&there, std::slice::from_ref(&first), &ImportOptions::new(), &mut |_| {}).unwrap();
    let second = folder.path().join("second");
    export_all(&there, &second, |_, _, _| ()).unwrap();
    let texts = |folder: &Path| files(folder).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(&first), texts(&second));
    sound(&there);
}

/// Goal: a fork's own events need the parent, with the history that leads to the file's hash.
#[test]
fn own_events_need_their_parent() {
    let here = memory();
    let [parent, child, _] = family(&here);
    let (parent, own) = (exported(&parent), exported_as(&child, ExportOptions::new().own()));
    assert!(own.lines().next().unwrap().contains(r#""firstSeq":4"#), "{own}");
    assert!(refused(&own)[0].1.contains("not here"));
    let wrong = memory();
    imported(&wrong, &parent.replace(r#""2""#, r#""7""#).replace("\"hash\"", "\"was\""));
    assert!(faults(import(&wrong, own.as_bytes(), &ImportOptions::new()))[0].1.contains("hash"));
    let there = memory();
    imported(&there, &parent);
    let child_there = imported(&there, &own);
    assert_eq!(exported_as(&child_there, ExportOptions::new().own()), own);
    assert_eq!(exported(&child_there), exported(&child));
}

/// Goal: a fork whose parent was deleted is exported as a whole, also among all others, and comes in the same.
#[test]
fn a_fork_of_a_deleted_session_goes_out_and_in() {
    let folder = tempfile::tempdir().unwrap();
    let here = memory();
    let [parent, child, _] = family(&here);
    here.delete(parent.id()).unwrap();
    let text = exported(&child);
    assert!(!text.contains(r#""parent""#) && text.contains(r#""prefixLength":4"#), "{text}");
    let all = folder.path().join("all");
    assert_eq!(export_all(&here, &all, |_, _, _| ()).unwrap(), 2);
    let there = memory();
    import_files(&there, &[all], &ImportOptions::new(), &mut |_| {}).unwrap();
    assert_eq!(exported(&there.session(&id("child")).unwrap()), text);
    assert_eq!(shared(&there.session(&id("grandchild")).unwrap()), Some((Some(id("child")), 5)));
    sound(&there);
}

/// Goal: an update appends what a longer file adds, goes on where it ended, does nothing for an equal file, and
/// appends nothing from any other.
#[test]
fn updates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let store = memory();
    let session = imported(&store, &file(0..3));
    let update = |text: &str| {
        fs::write(&path, text).unwrap();
        import_file(&store, &path, &ImportOptions::new().update())
    };
    assert_eq!(update(&file(0..3)).unwrap().appended, 0);
    assert!(faults(update(&file(0..2)))[0].1.contains("has 3 events"));
    assert!(faults(update(&file(0..6).replace("message 1", "message x")))[0].1.contains("another event"));
    assert!(faults(update(&(file(0..6) + "{"))).iter().any(|(line, _)| *line == 8));
    let hash =
        file(0..6).replacen("\"createdAt\"", &format!("\"hash\":\"{}\",\"createdAt\"", "0".repeat(64)), 1);
    assert!(faults(update(&hash))[0].1.contains("hash"));
    assert_eq!(session.len(), 3, "nothing was appended");
    session.append(user("message 3").to_new()).unwrap();
    let report = update(&file(0..6)).unwrap();
    assert_eq!((report.appended, report.existed, session.len()), (2, true, 6));
    assert_eq!(read(session.read_from(Seq::ZERO)), (0..6).map(event).collect::<Vec<_>>());
    fs::write(&path, file(0..2).replace("\"s\"", "\"new\"")).unwrap();
    assert!(!import_file(&store, &path, &ImportOptions::new().update()).unwrap().existed);
    sound(&store);
}

/// Goal: a dry run finds what an import would, and stores nothing.
#[test]
fn a_dry_run_stores_nothing() {
    let store = memory();
    let dry = ImportOptions::new().dry_run();
    assert_eq!(import(&store, file(0..9).as_bytes(), &dry).unwrap().appended, 9);
    assert_eq!(faults(import(&store, file([0, 2]).as_bytes(), &dry)).len(), 1);
    assert_eq!(store.list().unwrap().count(), 0);
    assert_eq!(store.info().unwrap().tail_bytes, 0);
}

/// Goal: one bad file keeps no other from being imported.
#[test]
fn other_files_go_on() {
    let store = memory();
    let paths = ["bom_crlf", "invalid_utf8_middle", "header_only"].map(|name| case(&format!("{name}.jsonl")));
    let mut results = Vec::new();
    import_files(&store, &paths, &ImportOptions::new(), &mut |watched| {
        if let sessionlog::transfer::Watched::Done { result, .. } = watched {
            results.push(result.is_ok());
        }
    })
    .unwrap();
    results.sort();
    assert_eq!((results, store.list().unwrap().count()), (vec![false, true, true], 2));
}

/// Goal: an event of the greatest size comes in and goes out; a line that is longer is refused without being held in
/// memory, whatever its length, and the faults behind it are found.
#[test]
fn the_longest_lines() {
    let room = sessionlog::MAX_EVENT_BYTES as usize - user("").line(0).len();
    let text = format!("{HEADER}\n{}\n", noise(1, room).line(0));
    let store = memory();
    let session = imported(&store, &text);
    assert_eq!(exported(&session).lines().nth(1), text.lines().nth(1));
    let endless = io::repeat(b'x').take(200 << 20);
    let input = format!("{HEADER}\n").into_bytes();
    let input = input.chain(endless).chain(&b"\n{}\n"[..]);
    let found = import(&memory(), input, &ImportOptions::new());
    let Err(Error::Import { faults, .. }) = found else { panic!("{found:?}") };
    assert!(matches!(faults[0].kind, FaultKind::TooLong { .. }), "{faults:?}");
    assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2, 3]);
}

/// Goal: nothing of an import is seen before it is whole, also when the store is drained meanwhile.
#[test]
fn an_import_under_way_is_not_seen() {
    struct Slow<'a> {
        store: &'a Store,
        left: &'a [u8],
    }
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(self.store.list().unwrap().count(), 0);
            assert!(self.store.session(&id("s")).is_err());
            self.store.drain().unwrap();
            sound(self.store);
            Read::read(&mut self.left, buffer)
        }
    }
    let text: String = std::iter::once(HEADER.to_owned())
        .chain((0..200).map(|seq| noise(seq, 20_000).line(seq)))
        .map(|line| line + "\n")
        .collect();
    let store = memory();
    let report =
        import(&store, Slow { store: &store, left: text.as_bytes() }, &ImportOptions::new()).unwrap();
    let session = store.session(&report.session).unwrap();
    let expected: Vec<_> = text.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(difference(&read(session.read_from(Seq::ZERO)), &expected), None);
    store.drain().unwrap();
    sound(&store);
}

/// Goal: with a fault at every operation of an import, and a kill or a power cut behind it, the session is there as a
/// whole or not at all; where it is not its id can be used, and nothing is left of it.
#[test]
fn imports_are_whole_or_absent() {
    let here = memory();
    let [parent, child, _] = family(&here);
    let (parent, child) = (exported(&parent), exported(&child));
    for fault in [Fault::Fail, Fault::StayFailing, Fault::Tear, Fault::Stop] {
        for crash in [Crash::Kill, Crash::Power] {
            let mut operation = 0;
            loop {
                operation += 1;
                let medium = Medium::new(operation);
                medium.plan(operation, fault);
                let mut done = 0;
                let script = |done: &mut usize| -> sessionlog::Result<()> {
                    let store = medium.open(quiet())?;
                    for text in [&parent, &child] {
                        import(&store, text.as_bytes(), &ImportOptions::new())?;
                        *done += 1;
                    }
                    store.close()
                };
                let outcome = script(&mut done);
                let fired = medium.fired();
                medium.restart(crash);
                let store = medium.open(quiet()).unwrap();
                sound(&store);
                let mut found = 0;
                for (at, (name, text)) in [("parent", &parent), ("child", &child)].into_iter().enumerate() {
                    match store.session(&id(name)) {
                        Ok(session) => {
                            assert_eq!(&exported(&session), text, "{outcome:?}");
                            found += 1;
                        }
                        Err(_) => {
                            assert!(done <= at, "{name} was imported, and is gone: {operation} {fault:?}");
                            assert_eq!(&exported(&imported(&store, text)), text);
                        }
                    }
                }
                assert!(found >= done);
                store.drain().unwrap();
                sound(&store);
                let maps = medium.image().maps;
                assert!(maps[0].iter().all(|(key, _)| key[0] != b'm'), "a hidden session is left");
                if !fired {
                    break;
                }
            }
            assert!(operation > 10, "{operation}");
        }
    }
}

/// Goal: the same where the drain has stored parts of a hidden session, and a later pass goes on with it.
#[test]
fn hidden_sessions_that_are_drained_in_part() {
    for fault in [Fault::Fail, Fault::Tear, Fault::Stop] {
        for crash in [Crash::Kill, Crash::Power] {
            for published in [false, true] {
                let mut operation = 0;
                loop {
                    operation += 1;
                    let medium = Medium::new(operation);
                    medium.plan(operation, fault);
                    let mut whole = false;
                    let script = |whole: &mut bool| -> sessionlog::Result<()> {
                        let store = medium.open(quiet())?;
                        let hidden = store.create_hidden(NewSession::with_id(id("s")))?;
                        for n in 0..3 {
                            hidden.append_batch([noise(n, 9_000).to_new(), chunk("c").to_new()])?;
                            if n < 2 {
                                store.drain()?;
                            }
                        }
                        match published {
                            true => {
                                let session = hidden.publish(LabelChange::new().title("T"))?;
                                *whole = true;
                                session.append(user("behind").to_new())?;
                                store.drain()?;
                            }
                            false => {
                                drop(hidden);
                                store.drain()?;
                                store.drain()?;
                            }
                        }
                        store.close()
                    };
                    let outcome = script(&mut whole);
                    let fired = medium.fired();
                    medium.restart(crash);
                    let store = medium.open(quiet()).unwrap();
                    sound(&store);
                    match store.session(&id("s")) {
                        Ok(session) => {
                            assert!(published);
                            assert!((6..=7).contains(&session.len()), "{}: {outcome:?}", session.len());
                            assert_eq!(session.title().as_deref(), Some("T"));
                            assert_eq!(read(session.read_from(Seq::ZERO)).len() as u64, session.len());
                        }
                        Err(_) => {
                            assert!(!whole, "it was published: {operation} {fault:?} {outcome:?}");
                            let maps = medium.image().maps;
                            assert!(maps[1].is_empty(), "blocks are left: {operation} {fault:?} {crash:?}");
                            assert!(
                                maps[0].iter().all(|(key, _)| !b"mshl".contains(&key[0])),
                                "records are left"
                            );
                            store.create(NewSession::with_id(id("s"))).unwrap();
                        }
                    }
                    if !fired {
                        break;
                    }
                }
                assert!(operation > 10, "{operation}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Goal: whatever sessions and forks hold, an export, imported and exported again, is the same, byte for byte,
    /// alone and among the others, and so is its surface.
    #[test]
    fn any_session_goes_out_and_in(
        seeds in proptest::collection::vec((any::<u64>(), 0usize..40, any::<u8>(), any::<bool>()), 1..6),
    ) {
        let here = memory();
        let mut sessions: Vec<Session> = Vec::new();
        for (seed, count, at, labelled) in seeds {
            let session = match sessions.get(usize::from(at) % (sessions.len() + 1)) {
                Some(parent) => parent.fork(Seq::new(seed % (parent.len() + 1))).unwrap(),
                None => here.create(NewSession::new().meta("seed", seed.to_string())).unwrap(),
            };
            session.append_batch((0..count as u64).map(|n| crate::support::events::any(seed.wrapping_add(n)).to_new())).unwrap();
            if labelled {
                session.label(LabelChange::new().title("\u{2028}\"\\").set("k", "é\n")).unwrap();
            }
            sessions.push(session);
        }
        let together = memory();
        for session in &sessions {
            let text = exported(session);
            let alone = memory();
            for store in [&alone, &together] {
                let again = imported(store, &text);
                prop_assert_eq!(exported(&again), text.clone());
                prop_assert_eq!(surface(&again), surface(session));
            }
            here.drain().unwrap();
        }
        together.drain().unwrap();
        sound(&together);
    }
}
