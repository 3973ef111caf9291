use super::*;
use crate::event::Event;

fn surface(lines: &[&str]) -> Surface {
    let mut surface = Surface::default();
    for (seq, line) in lines.iter().enumerate() {
        let line = format!(r#"{{"seq":{seq},"timestamp":0,"type":{line}}}"#);
        surface.push(&Event::from_json(line.as_bytes()).unwrap());
    }
    surface
}

fn contents(surface: &mut Surface) -> Vec<String> {
    surface.messages().iter().map(|message| message.content().json().to_string()).collect()
}

fn result(value: &str, options: SurfaceOptions) -> String {
    let mut surface = surface(&[r#""tool/call","id":"c","name":"n","args":{}"#]);
    surface.options = options;
    let line = format!(r#"{{"type":"tool/result","seq":1,"id":"c",{value},"timestamp":0}}"#);
    surface.push(&Event::from_json(line.as_bytes()).unwrap());
    contents(&mut surface)[1].clone()
}

/// Goal: a result is shown as text: a string and text parts as they are, all else as JSON; the option gives JSON always.
#[test]
fn what_a_result_shows() {
    let text_part = r#"[{"type":"text","text":"a","cache":1}]"#;
    for (value, plain, json) in [
        (r#""result":"a\u0041""#, r#""a\u0041""#, r#""\"a\\u0041\"""#),
        (r#""result":"""#, r#""""#, r#""\"\"""#),
        (r#""result":null"#, r#""null""#, r#""null""#),
        (r#""result":[]"#, r#""[]""#, r#""[]""#),
        (r#""result":{"a":1e400}"#, r#""{\"a\":1e400}""#, r#""{\"a\":1e400}""#),
        (r#""result":[{"type":"text","text":1}]"#, r#""[{\"type\":\"text\",\"text\":1}]""#, ""),
        (r#""result":[{"type":"image"}]"#, r#""[{\"type\":\"image\"}]""#, ""),
        (r#""result":["a"]"#, r#""[\"a\"]""#, ""),
        (&format!(r#""result":{text_part}"#), text_part, ""),
        (r#""result":[{"type":"text","text":""}]"#, r#""""#, ""),
        // Who reads the first of two names, and who reads the last, must both find nothing to drop it.
        (
            r#""result":[{"type":"text","text":"","text":"b"}]"#,
            r#"[{"type":"text","text":"","text":"b"}]"#,
            "",
        ),
        (r#""result":1,"error":"e""#, r#""e""#, r#""e""#),
        (r#""result":1,"error":null"#, r#""1""#, r#""1""#),
        (r#""error":"""#, r#""""#, r#""""#),
    ] {
        assert_eq!(result(value, SurfaceOptions::new()), plain, "{value}");
        if !json.is_empty() {
            assert_eq!(result(value, SurfaceOptions::new().results_as_json(true)), json, "{value}");
        }
    }
}

/// Goal: of messages nothing empty is left that a provider refuses, and nothing else is touched.
#[test]
fn empty_content() {
    let image = r#"{"type":"image_url","image_url":{"url":"u"}}"#;
    let mut surface = surface(&[
        r#""user/message","content":"""#,
        r#""user/message","content":[{"type":"text","text":""}]"#,
        &format!(r#""user/message","content":[{{"type":"text","text":""}},{image}]"#),
        r#""assistant/message","content":"""#,
        r#""assistant/message","content":null"#,
        r#""assistant/message","content":[]"#,
        r#""assistant/message","content":[{"text":"","type":"text"}]"#,
        r#""assistant/message","content":[{"type":"refusal","refusal":""}]"#,
    ]);
    let image = format!("[{image}]");
    let expected = [r#""""#, r#""""#, &image, r#"[{"type":"refusal","refusal":""}]"#];
    assert_eq!(contents(&mut surface), expected);
    assert!(surface.report().is_empty());
    assert_eq!(surface.plain_messages().len(), 8);
}

/// Goal: a step or turn, a result or a user's message ends an assistant message; a chunk or a custom event does not.
#[test]
fn what_calls_join() {
    let call = r#""tool/call","id":"c","name":"n","args":{}"#;
    let said = r#""assistant/message","content":"a""#;
    for (between, joins) in [
        (r#""assistant/chunk","delta":"x""#, true),
        (r#""x-vendor/note","k":1"#, true),
        (r#""tool/call","id":"d","name":"n","args":{}"#, true),
        (r#""step/end","stepId":"s""#, false),
        (r#""turn/start","turnId":"t""#, false),
        (r#""user/message","content":"u""#, false),
        // Also one that is left out.
        (r#""tool/result","id":"none","result":1"#, false),
    ] {
        let mut surface = surface(&[said, between, call]);
        assert_eq!(surface.messages()[0].tool_calls().is_empty(), !joins, "{between}");
    }
}

/// Goal: after a replace it is by position that calls join: what took the last place stands behind steps that ended
/// before it; what took another place leaves the border where it was.
#[test]
fn what_calls_join_after_a_replace() {
    let said = r#""assistant/message","content":"a""#;
    let step = r#""step/end","stepId":"s""#;
    let replace = |at: u64| {
        format!(r#""assistant/message","content":"b","surfaceOp":{{"op":"replace","start":{at},"end":{at}}}"#)
    };
    let call = r#""tool/call","id":"c","name":"n","args":{}"#;
    let mut last = surface(&[said, step, &replace(0), call]);
    assert_eq!(last.messages().len(), 2);
    let mut other = surface(&[said, said, step, &replace(0), call]);
    assert_eq!(other.messages().len(), 4);
    let mut after = surface(&[said, call, &replace(0)]);
    assert_eq!((after.messages().len(), after.messages()[0].tool_calls().len()), (2, 1));
    let mut step_first = surface(&[said, step, said, &replace(2), call]);
    assert_eq!((step_first.messages().len(), step_first.messages()[1].tool_calls().len()), (3, 1));
}

/// Goal: a snapshot that no surface gives is refused, not believed.
#[test]
fn snapshots_are_not_believed() {
    let surface = surface(&[
        r#""user/message","content":"u""#,
        r#""tool/call","id":"c","name":"n","args":{}"#,
        r#""tool/result","id":"c","result":1"#,
        r#""user/message","content":"v","surfaceOp":{"op":"replace","start":0,"end":0}"#,
    ]);
    let good = serde_json::to_string(&surface.to_snapshot()).unwrap();
    let load =
        |json: &str| Surface::from_snapshot(serde_json::from_str(json).unwrap(), SurfaceOptions::new());
    assert_eq!(load(&good).as_ref(), Ok(&surface));
    for (from, to) in [
        (r#""version":1"#, r#""version":2"#),
        (r#""next":4"#, r#""next":3"#),
        (r#""seq":1,"order":1"#, r#""seq":1,"order":0"#),
        (r#""answer":2"#, r#""answer":1"#),
        (r#""answer":2"#, r#""answer":null"#),
        (r#""call":1"#, r#""call":null"#),
        (r#""call":1"#, r#""call":9"#),
        (r#""content":"\"v\"""#, r#""content":"\"v""#),
        (r#""content":"\"v\"""#, r#""content":"3""#),
        (r#""content":"\"v\"""#, r#""content":"null""#),
        (r#""id":"c""#, r#""id":"\"""#),
        (r#""text":"1","is_error":false"#, r#""text":"1","is_error":true"#),
        (r#""by":3"#, r#""by":4"#),
    ] {
        assert!(good.contains(from), "{from} is not in {good}");
        assert!(load(&good.replacen(from, to, 1)).is_err(), "{from} as {to}");
    }
}

/// Goal: what was replaced is let go: a surface and its snapshot are as large as what stands, whatever was there.
#[test]
fn what_was_replaced_takes_no_room() {
    let mut surface = Surface::default();
    let mut seq = 0;
    let mut push = |surface: &mut Surface, fields: String| {
        let line = format!(r#"{{"type":"user/message","seq":{seq},"timestamp":0,{fields}}}"#);
        surface.push(&Event::from_json(line.as_bytes()).unwrap());
        seq += 1;
        seq - 1
    };
    let text = "x".repeat(100);
    let mut summary = None;
    for _ in 0..50 {
        let first = push(&mut surface, format!(r#""content":"{text}""#));
        let last = (0..999).map(|_| push(&mut surface, format!(r#""content":"{text}""#))).last().unwrap();
        let start = summary.unwrap_or(first);
        let op = format!(r#""content":"S","surfaceOp":{{"op":"replace","start":{start},"end":{last}}}"#);
        summary = Some(push(&mut surface, op));
    }
    assert_eq!(surface.messages().len(), 1);
    assert!(surface.bytes() < 200 && surface.entries.len() < 200, "{} bytes", surface.bytes());
    let snapshot = serde_json::to_string(&surface.to_snapshot()).unwrap();
    assert!(snapshot.len() < 6_000, "{} bytes", snapshot.len());
    assert_eq!(surface.replacements(Seq::new(0)).len(), 50);
}

/// Goal: many replaces of little in a long surface cost what they replace, not what stands (this would take minutes).
#[test]
fn many_small_replaces() {
    let mut surface = Surface::default();
    let push = |surface: &mut Surface, seq: u64, rest: &str| {
        let line = format!(r#"{{"type":"user/message","seq":{seq},"content":"x"{rest},"timestamp":0}}"#);
        surface.push(&Event::from_json(line.as_bytes()).unwrap());
    };
    let count = 40_000;
    for seq in 0..count {
        push(&mut surface, seq, "");
    }
    for pair in 0..count / 2 {
        let (start, end) = (pair * 2, pair * 2 + 1);
        let op = format!(r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}}"#);
        push(&mut surface, count + pair, &op);
    }
    assert_eq!(surface.messages().len() as u64, count / 2);
    assert_eq!(surface.replaced_by(Seq::new(count - 1)), Some(Seq::new(count + count / 2 - 1)));
}

const fn is_send_and_sync<T: Send + Sync>() {}
const _: () = is_send_and_sync::<Surface>();
