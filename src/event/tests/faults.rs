//! What is refused, with which fault, and where.

use crate::error::EventFault;
use crate::event::{Content, Event, EventKind, JsonString, JsonText, NewEvent, SurfaceOp};
use crate::id::Seq;

/// The error of a line in which `^` (or the end) stands before the byte that is to blame.
#[track_caller]
fn refused(marked: &str, field: Option<&str>) -> EventFault {
    let column = marked.find('^').unwrap_or(marked.len()) + 1;
    let line = marked.replacen('^', "", 1);
    let error = NewEvent::from_json(line.as_bytes()).expect_err(&line);
    assert_eq!((error.column, error.field.as_deref()), (Some(column), field), "{error}: {line}");
    error.fault
}

#[track_caller]
fn accepted(line: &str) -> NewEvent {
    let event = NewEvent::from_json(line.as_bytes()).expect(line);
    event.validate().expect(line);
    event
}

/// Goal: faults of grammar name the byte.
#[test]
fn grammar() {
    let lines = [
        "",
        "{",
        "{\"",
        "{\"type",
        "{\"type\"",
        "{\"type\":",
        "{\"type\":\"x\"",
        "{\"type\":\"x\",",
        "{^,}",
        "{\"type\":\"x\"^]",
        "{\"type\":\"x\",^}",
        "{\"type\"^ \"x\"}".trim(),
        "{^type:1}",
        "{\"a\":^}",
        "{\"a\":0^1}",
        "{\"a\":-^x}",
        "{\"a\":1.^}",
        "{\"a\":1e^}",
        "{\"a\":^+1}",
        "{\"a\":^NaN}",
        "{\"a\":tru^}",
        "{\"a\":[1^}",
        "{\"a\":[1,^]}",
        "{\"a\":{\"b\"^}}",
        "{\"a\":{\"b\":1^]}",
        "{\"a\":{^1:1}}",
        "{\"type\":\"x\"}^x",
        "{\"type\":\"x\"} ^{}",
        "{\"a\":\"^\u{1}\"}",
        "{\"a\":\"^\n\"}",
        "{\"a\":\"\\^x\"}",
        "{\"a\":\"\\u12^g4\"}",
        "{\"a\":\"\\u12",
    ];
    for line in lines {
        // A space where the colon should be: the fault is behind it.
        let line = line.replace("^ \"x\"", " ^\"x\"");
        assert!(matches!(refused(&line, None), EventFault::NotJson { .. }), "{line}");
    }
    for line in ["^[1]", " ^3", "^\"x\"", "^null"] {
        assert_eq!(refused(line, None), EventFault::WrongType { expected: "an object" });
    }
}

/// Goal: half a surrogate pair is found in values, nested keys and names, and whole pairs are not.
#[test]
fn surrogates() {
    for half in
        [r"^\ud83d", r"^\uDE00", r"^\ud83d\n", r"^\ud83dx", r"^\ud83d\ud83d\ude00", r"\ud83d\ude00^\ude00"]
    {
        for line in [
            r#"{"type":"user/message","content":"a@b"}"#,
            r#"{"type":"x","a":{"b":[{"@":1}]}}"#,
            r#"{"type":"x","@":1}"#,
            r#"{"type":"@"}"#,
        ] {
            assert_eq!(refused(&line.replace('@', half), None), EventFault::LoneSurrogate);
        }
    }
    accepted(r#"{"type":"x","\ud83d\ude00":"\uD83D\uDE00\u0000"}"#);
}

/// Goal: the first bad byte counts, and an earlier fault of another sort comes first.
#[test]
fn utf8() {
    let cases: [(&[u8], &[u8], &str); 5] = [
        (b"{\"type\":\"x\",\"a\":\"b", b"\xff\"}", "not UTF-8"),
        (b"{\"type\":\"x\",\"a\":\"", b"\xed\xa0\x80\"}", "not UTF-8"),
        (b"{\"type\":\"x\"}", b"\xff", "not UTF-8"),
        (b"{\"type\":\"x\",\"a\":\"", b"\\ud800,\xff\"}", "half of a surrogate pair"),
        (b"{\"type\" ", b"\"\xff\"}", "not JSON: `:` expected"),
    ];
    for (before, from_fault, message) in cases {
        let error = NewEvent::from_json(&[before, from_fault].concat()).unwrap_err();
        assert_eq!((error.column, error.fault.to_string().as_str()), (Some(before.len() + 1), message));
    }
}

/// Goal: a top-level name stands once, however it is spelled; deeper, names are the caller's.
#[test]
fn duplicates() {
    for line in [r#"{"type":"x",^"type":"x"}"#, r#"{"type":"x",^"\u0074ype":"x"}"#] {
        assert_eq!(refused(line, Some("type")), EventFault::DuplicateField);
    }
    assert_eq!(refused(r#"{"type":"x","a":1,"b":2,^"a":1}"#, Some("a")), EventFault::DuplicateField);
    assert_eq!(refused(r#"{"type":"x","\u0061":1,^"a":1}"#, Some("a")), EventFault::DuplicateField);
    assert_eq!(refused(r#"{"usage":1,"type":"x",^"usage":1}"#, Some("usage")), EventFault::DuplicateField);
    accepted(r#"{"type":"x","a":{"b":1,"b":1}}"#);
}

/// Goal: many unknown fields take time in proportion, and the last one is still compared with the first.
#[test]
fn duplicates_among_very_many() {
    let fields: String = (0..200_000).map(|n| format!(",\"f{n}\":{n}")).collect();
    let line = format!("{{\"type\":\"x\"{fields}");
    accepted(&format!("{line}}}"));
    for again in ["f0", "f15", "f16", "f199999"] {
        refused(&format!("{line},^\"{again}\":0}}"), Some(again));
    }
}

/// Goal: each type's own fields must be there and be what the table says.
#[test]
fn own_fields() {
    let missing = [
        (r#"{"seq":0^}"#, "type"),
        (r#"{"type":"turn/start"^}"#, "turnId"),
        (r#"{"type":"turn/end","reason":"x"^}"#, "turnId"),
        (r#"{"type":"step/start","turnId":"t"^}"#, "stepId"),
        (r#"{"type":"step/start","stepId":"s" ^} "#, "turnId"),
        (r#"{"type":"step/end","turnId":"t"^}"#, "stepId"),
        (r#"{"type":"user/message"^}"#, "content"),
        (r#"{"type":"assistant/message"^}"#, "content"),
        (r#"{"type":"assistant/chunk"^}"#, "delta"),
        (r#"{"type":"tool/call","name":"n","args":1^}"#, "id"),
        (r#"{"type":"tool/call","id":"i","args":1^}"#, "name"),
        (r#"{"type":"tool/call","id":"i","name":"n"^}"#, "args"),
        (r#"{"type":"tool/result","result":1^}"#, "id"),
        (r#"{"type":"tool/result","id":"i"^}"#, "result"),
        (r#"{"type":"tool/result","id":"i","error":null^}"#, "result"),
    ];
    for (line, field) in missing {
        assert_eq!(refused(line, Some(field)), EventFault::MissingField);
    }
    let wrong = [
        (r#"{"type":^1}"#, "type"),
        (r#"{"type":^null}"#, "type"),
        (r#"{"type":"turn/start","turnId":^1}"#, "turnId"),
        (r#"{"type":"turn/start","turnId":^null}"#, "turnId"),
        (r#"{"type":"step/end","stepId":"s","turnId":^["t"]}"#, "turnId"),
        (r#"{"type":"user/message","content":^null}"#, "content"),
        (r#"{"type":"user/message","content":^{}}"#, "content"),
        (r#"{"type":"user/message","content":[{}, ^"x"]}"#, "content"),
        (r#"{"type":"assistant/message","content":^true}"#, "content"),
        (r#"{"type":"assistant/message","content":"","usage":^[]}"#, "usage"),
        (r#"{"type":"assistant/chunk","delta":^{}}"#, "delta"),
        (r#"{"type":"tool/call","id":^3,"name":"n","args":1}"#, "id"),
        (r#"{"type":"tool/result","id":"i","result":1,"error":^{"code":1}}"#, "error"),
    ];
    for (line, field) in wrong {
        assert!(matches!(refused(line, Some(field)), EventFault::WrongType { .. }), "{line}");
    }
    for line in [r#"{"type":^"session","version":1}"#, r#"{"type":^""}"#, r#"{"type":^"\u0073ession"}"#] {
        assert!(matches!(refused(line, Some("type")), EventFault::Invalid { .. }), "{line}");
    }
}

/// Goal: null counts as absent where a field is optional, and comes back.
#[test]
fn optional_nulls_come_back() {
    let lines = [
        r#"{"type":"turn/end","seq":0,"turnId":"t","reason":null,"timestamp":0}"#,
        r#"{"type":"step/end","seq":0,"stepId":"s","turnId":null,"timestamp":0}"#,
        r#"{"type":"assistant/message","seq":0,"content":null,"usage":null,"surfaceOp":null,"sourceEventSeqs":null,"timestamp":0}"#,
        r#"{"type":"tool/result","seq":0,"id":"c","result":null,"error":null,"timestamp":0}"#,
    ];
    for line in lines {
        assert_eq!(Event::from_json(line.as_bytes()).unwrap().to_json(), line);
        assert_eq!(accepted(line).surface_op(), SurfaceOp::Append);
    }
    let event = accepted(r#"{"type":"x","seq":null,"timestamp":null}"#);
    assert_eq!((event.expected_seq, event.timestamp), (None, None));
}

/// Goal: seq and timestamp are integers in their ranges, nothing is coerced.
#[test]
fn integers() {
    for field in ["seq", "timestamp"] {
        for value in ["1.0", "1e3", "-0", "\"1\"", "true", "[]"] {
            let line = format!(r#"{{"type":"x","{field}":^{value}}}"#);
            assert!(matches!(refused(&line, Some(field)), EventFault::WrongType { .. }), "{line}");
        }
        let line = format!(r#"{{"type":"x","{field}":^18446744073709551616}}"#);
        assert!(matches!(refused(&line, Some(field)), EventFault::OutOfRange { .. }), "{line}");
    }
    for line in [
        r#"{"type":"x","seq":^-1}"#,
        r#"{"type":"x","timestamp":^9007199254740992}"#,
        r#"{"type":"x","timestamp":^-9007199254740992}"#,
    ] {
        let field = if line.contains("seq") { "seq" } else { "timestamp" };
        assert!(matches!(refused(line, Some(field)), EventFault::OutOfRange { .. }));
    }
    assert_eq!(accepted(r#"{"type":"x","seq":18446744073709551615}"#).expected_seq, Some(Seq::new(u64::MAX)));
    accepted(r#"{"type":"x","timestamp":-9007199254740991}"#);
}

/// Goal: a stored or imported event has a seq and a timestamp.
#[test]
fn stored_events_need_seq_and_timestamp() {
    for (line, field, column) in [
        (r#"{"type":"x","timestamp":0}"#, "seq", 26),
        (r#"{"type":"x","seq":0}"#, "timestamp", 20),
        (r#"{"type":"x","seq":null,"timestamp":0}"#, "seq", 19),
    ] {
        let error = Event::from_json(line.as_bytes()).unwrap_err();
        assert_eq!((error.field.as_deref(), error.column), (Some(field), Some(column)));
    }
}

/// Goal: surface fields are checked where they mean something, and are like any other elsewhere.
#[test]
fn surface_fields() {
    let message = |fields: &str| format!(r#"{{"type":"user/message","content":"",{fields}}}"#);
    for op in [
        r#"^"replace""#,
        "^3",
        "^[]",
        "^true",
        r#"^{}"#,
        r#"^{"start":0,"end":1}"#,
        r#"{"op":^"append"}"#,
        r#"{"op":^"delete","start":0,"end":1}"#,
        r#"{"op":^3,"start":0,"end":1}"#,
        r#"^{"op":"replace","start":0}"#,
        r#"{"op":"replace","start":^-1,"end":1}"#,
        r#"{"op":"replace","start":0,"end":^1.0}"#,
        r#"{ "op" : "replace" , "start" : 0 , "end" : ^"1" }"#,
        r#"{"op":"replace","start":0,"end":1,^"\u0065nd":1}"#,
        r#"{"op":"replace","start":0,"end":1,^"op":"replace"}"#,
    ] {
        refused(&message(&format!(r#""surfaceOp":{op}"#)), Some("surfaceOp"));
    }
    for sources in [
        "^3",
        "^{}",
        "[^-1]",
        "[0, ^\"1\"]",
        "[1,0,^1]",
        "[0,^0]",
        "[5,^5,5]",
        "[3,2,^3,2]",
        "[^18446744073709551616]",
    ] {
        refused(&message(&format!(r#""sourceEventSeqs":{sources}"#)), Some("sourceEventSeqs"));
    }
    let event = accepted(&message(
        r#""surfaceOp":{"op":"replace","end":1,"start":4,"why":[{}]},"sourceEventSeqs":[4,2]"#,
    ));
    assert_eq!(event.surface_op(), SurfaceOp::Replace { start: Seq::new(4), end: Seq::new(1) });
    assert_eq!(event.source_event_seqs(), [Seq::new(4), Seq::new(2)]);
    let event = accepted(r#"{"type":"turn/start","turnId":"t","surfaceOp":3,"sourceEventSeqs":"x"}"#);
    assert_eq!((event.surface_op, event.extra.len()), (None, 2));
}

/// Goal: what public fields let slip is found, with its field and no column.
#[test]
fn validate_finds_what_fields_let_slip() {
    let text = |json| Some(JsonText::parse(json).unwrap());
    let with = |change: fn(&mut NewEvent)| {
        let mut event = NewEvent::turn_start("t");
        change(&mut event);
        event
    };
    let kind = NewEvent::new;
    let bad = [
        (NewEvent::custom(""), "type"),
        (NewEvent::custom("session"), "type"),
        (NewEvent::custom("turn/start"), "type"),
        (NewEvent::user_message(Content::null()), "content"),
        (NewEvent::assistant_message("").usage("3"), "usage"),
        (kind(EventKind::StepEnd { step_id: "s".into(), turn_id: text("1") }), "turnId"),
        (kind(EventKind::ToolResult { id: "c".into(), result: None, error: None }), "result"),
        (kind(EventKind::ToolResult { id: "c".into(), result: None, error: text("null") }), "result"),
        (kind(EventKind::ToolResult { id: "c".into(), result: text("1"), error: text("1") }), "error"),
        (NewEvent::turn_end("t").field("reason", "x"), "reason"),
        (NewEvent::turn_end("t").field("type", "x"), "type"),
        (NewEvent::custom("x").field("seq", "x"), "seq"),
        (NewEvent::custom("x").field("timestamp", "x"), "timestamp"),
        (NewEvent::custom("x").field("a", "x").field("a", "y"), "a"),
        (NewEvent::custom("x").field(JsonString::from_checked("\\u0061"), "x").field("a", "y"), "a"),
        (NewEvent::user_message("").field("surfaceOp", "append"), "surfaceOp"),
        (NewEvent::user_message("").sources([Seq::ZERO, Seq::ZERO]), "sourceEventSeqs"),
        (with(|event| event.surface_op = Some("append".into())), "surfaceOp"),
        (NewEvent::tool_call("c", "n", "").sources([]), "sourceEventSeqs"),
    ];
    for (event, field) in bad {
        let error = event.validate().unwrap_err();
        assert_eq!((error.field.as_deref(), error.column), (Some(field), None), "{event:?}");
    }
    let parts = Content::parts(JsonText::parse("[1]").unwrap()).unwrap_err();
    assert_eq!((parts.field.as_deref(), parts.column), (Some("content"), None));
}

/// Goal: messages say where and what, and stay short whatever the name.
#[test]
fn messages_read_well() {
    let error = |line: &str| NewEvent::from_json(line.as_bytes()).unwrap_err().to_string();
    assert_eq!(error(r#"{"type":"turn/start"}"#), "column 21: field `turnId`: the field is missing");
    assert_eq!(error(r#"{"type":"#), "column 9: not JSON: the text ends too early");
    assert_eq!(
        error(r#"{"type":"x","seq":1.0}"#),
        "column 19: field `seq`: an integer in plain digits expected"
    );
    let long = "é".repeat(5000);
    let twice = error(&format!(r#"{{"type":"x","{long}":1,"{long}":2}}"#));
    assert!(twice.len() < 300 && twice.ends_with("…`: the field stands twice"), "{twice}");
}
