//! Tests of events: properties here, the scanner, single faults and handed cases in their files.

pub(crate) mod arbitrary;
mod faults;
mod handed;
mod scanner;

use proptest::prelude::*;

use self::arbitrary::{any_event, event, spacing};
use super::*;

proptest! {
    /// Nothing is lost: an event's line gives the event.
    #[test]
    fn a_line_gives_the_event_that_wrote_it(event in event()) {
        let line = event.to_json();
        prop_assert_eq!(&Event::from_json(line.as_bytes()).unwrap(), &event);
        let new = NewEvent::from_json(line.as_bytes()).unwrap();
        prop_assert_eq!(new.expected_seq, Some(event.seq));
        prop_assert_eq!(new.into_event(event.seq, Timestamp::MIN), event);
    }

    /// Checks mean what they say: they let an event through if and only if its line gives it back.
    #[test]
    fn validate_agrees_with_the_line(event in any_event()) {
        let comes_back = Event::from_json(event.to_json().as_bytes()).as_ref() == Ok(&event);
        let valid = NewEvent::from(event).validate();
        prop_assert_eq!(valid.is_ok(), comes_back, "{:?}", valid);
    }

    /// The size limit counts what is written.
    #[test]
    fn line_len_is_the_length_of_the_line(event in any_event()) {
        let mut line = b"before".to_vec();
        write_line(event.seq, &event.parts(), &mut line);
        prop_assert_eq!(line_len(event.seq, &event.parts()), line.len() as u64 - 6);
    }

    /// White space between tokens, and the order of known fields, change nothing.
    #[test]
    fn spaces_and_order_do_not_matter(event in event(), spaces in spacing(), known_last: bool) {
        let line = event.to_json();
        let mut spaced = spaces.inject(&line);
        if known_last {
            // `type` and `seq` to the end: the line begins with them.
            let mut fields: Vec<_> = arbitrary::members(&line);
            fields.rotate_left(2);
            spaced = spaces.inject(&format!("{{{}}}", fields.join(",")));
        }
        let read = Event::from_json(spaced.as_bytes()).unwrap();
        prop_assert_eq!(read.to_json(), line);
    }

    /// A line cut anywhere is refused, and the fault lies where it ends.
    #[test]
    fn every_truncation_is_refused(event in event()) {
        let line = event.to_json().into_bytes();
        for end in 0..line.len() {
            let error = Event::from_json(&line[..end]).unwrap_err();
            prop_assert!(error.column.is_some_and(|column| column <= end + 1));
            prop_assert!(NewEvent::from_json(&line[..end]).is_err());
        }
    }

    /// A changed byte gives an error or an event that comes back; never a panic.
    #[test]
    fn every_flipped_byte_is_survived(event in event(), mask in 1_u8..) {
        let mut line = event.to_json().into_bytes();
        for at in 0..line.len() {
            line[at] ^= mask;
            match Event::from_json(&line) {
                Ok(event) => prop_assert_eq!(Event::from_json(event.to_json().as_bytes()), Ok(event)),
                Err(error) => prop_assert!(error.column.is_some_and(|column| column <= line.len() + 1)),
            }
            line[at] ^= mask;
        }
    }
}

/// Goal: the order of design, on a line with every part.
#[test]
fn known_fields_come_first_in_their_order_and_unknown_ones_as_they_came() {
    let given = r#" {"timestamp":-5,"error":null,"zeta":1,"sourceEventSeqs":[3,1],"\u0069d":"c","alpha":2,
        "surfaceOp":{"end":2,"x":[ ],"op":"replace","start":1},"result":[1, 2],"seq":7,"\u0074ype":"tool\/result"} "#;
    let expected = concat!(
        r#"{"type":"tool/result","seq":7,"id":"c","result":[1,2],"error":null,"zeta":1,"alpha":2,"#,
        r#""surfaceOp":{"end":2,"x":[],"op":"replace","start":1},"sourceEventSeqs":[3,1],"timestamp":-5}"#,
    );
    let event = Event::from_json(given.as_bytes()).unwrap();
    assert_eq!(event.to_json(), expected);
    assert_eq!(event.to_string(), expected);
    assert_eq!(event.surface_op(), SurfaceOp::Replace { start: Seq::new(1), end: Seq::new(2) });
    assert_eq!(event.source_event_seqs(), [Seq::new(3), Seq::new(1)]);
}

/// Goal: every constructor gives the line that the table of types promises.
#[test]
fn constructors_write_the_documented_lines() {
    let parts = Content::parts(JsonText::parse(r#"[{"type":"text","text":"x"}]"#).unwrap()).unwrap();
    let events = [
        (NewEvent::turn_start("t"), r#""type":"turn/start","seq":9,"turnId":"t""#),
        (NewEvent::turn_end("t"), r#""type":"turn/end","seq":9,"turnId":"t""#),
        (
            NewEvent::turn_end("t").reason("completed"),
            r#""type":"turn/end","seq":9,"turnId":"t","reason":"completed""#,
        ),
        (NewEvent::step_start("s", "t"), r#""type":"step/start","seq":9,"stepId":"s","turnId":"t""#),
        (NewEvent::step_end("s"), r#""type":"step/end","seq":9,"stepId":"s""#),
        (NewEvent::step_end("s").turn("t"), r#""type":"step/end","seq":9,"stepId":"s","turnId":"t""#),
        (NewEvent::user_message("a\"b"), r#""type":"user/message","seq":9,"content":"a\"b""#),
        (
            NewEvent::user_message(parts),
            r#""type":"user/message","seq":9,"content":[{"type":"text","text":"x"}]"#,
        ),
        (
            NewEvent::assistant_message(Content::null()),
            r#""type":"assistant/message","seq":9,"content":null"#,
        ),
        (
            NewEvent::assistant_message("x").usage(serde_json::json!({"n": 1})),
            r#""type":"assistant/message","seq":9,"content":"x","usage":{"n":1}"#,
        ),
        (
            NewEvent::assistant_chunk("\u{1f600}"),
            "\"type\":\"assistant/chunk\",\"seq\":9,\"delta\":\"\u{1f600}\"",
        ),
        (
            NewEvent::tool_call("c", "run", serde_json::json!({"cmd": "ls"})),
            r#""type":"tool/call","seq":9,"id":"c","name":"run","args":{"cmd":"ls"}"#,
        ),
        (NewEvent::tool_result("c", ""), r#""type":"tool/result","seq":9,"id":"c","result":"""#),
        (NewEvent::tool_error("c", "no"), r#""type":"tool/result","seq":9,"id":"c","error":"no""#),
        (
            NewEvent::custom("x/y").field("a", "b").usage("u").reason("r").turn("t"),
            r#""type":"x/y","seq":9,"a":"b","usage":"u","reason":"r","turnId":"t""#,
        ),
        (
            NewEvent::user_message("s").replace(Seq::ZERO, Seq::new(3)).sources([Seq::ZERO, Seq::new(1)]),
            concat!(
                r#""type":"user/message","seq":9,"content":"s","#,
                r#""surfaceOp":{"op":"replace","start":0,"end":3},"sourceEventSeqs":[0,1]"#
            ),
        ),
    ];
    for (event, expected) in events {
        event.validate().unwrap();
        let name = event.event_type().into_owned();
        let event = event.into_event(Seq::new(9), Timestamp::from_millis(1).unwrap());
        assert_eq!(event.to_json(), format!("{{{expected},\"timestamp\":1}}"));
        assert!(expected.starts_with(&format!("\"type\":\"{name}\"")));
        assert_eq!(event.event_type(), name);
        assert_eq!(Event::from_json(event.to_json().as_bytes()), Ok(event));
    }
}

/// Goal: what the caller said stands, the clock is asked for the rest only.
#[test]
fn given_times_and_expectations_are_kept() {
    let time = Timestamp::from_millis(5).unwrap();
    let event = NewEvent::turn_start("t").timestamp(time).expect_seq(Seq::new(4));
    assert_eq!(event.expected_seq, Some(Seq::new(4)));
    assert_eq!(event.parts(Timestamp::MAX).timestamp, time);
    assert_eq!(NewEvent::turn_start("t").parts(Timestamp::MAX).timestamp, Timestamp::MAX);
    let again = NewEvent::from(event.into_event(Seq::new(4), Timestamp::MAX));
    assert_eq!((again.expected_seq, again.timestamp), (None, Some(time)));
}

/// Goal: extremes of seq and timestamp are written and read.
#[test]
fn the_ends_of_the_ranges_come_back() {
    for (seq, timestamp) in [(Seq::ZERO, Timestamp::MIN), (Seq::new(u64::MAX), Timestamp::MAX)] {
        let event = NewEvent::turn_start("").into_event(seq, timestamp);
        assert_eq!(Event::from_json(event.to_json().as_bytes()), Ok(event));
    }
}
