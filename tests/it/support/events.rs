//! Events, each with the line it must come back as. The lines are put together here by hand: the library's own
//! writer would agree with itself.

use std::fmt::Write as _;

use sessionlog::{Events, NewEvent, Result};

use super::dice::Dice;

/// A moment of the past; events count milliseconds from it.
pub(crate) const NOON: i64 = 1_700_000_000_000;

/// An event to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    event_type: &'static str,
    /// Its own fields as JSON members, each led by a comma.
    fields: String,
    timestamp: i64,
}

impl Said {
    fn new(event_type: &'static str, fields: String) -> Self {
        Self { event_type, fields, timestamp: NOON }
    }

    pub(crate) fn at(mut self, timestamp: i64) -> Self {
        self.timestamp = timestamp;
        self
    }

    pub(crate) fn is_chunk(&self) -> bool {
        self.event_type == "assistant/chunk"
    }

    /// The line that every reader must give for it.
    pub(crate) fn line(&self, seq: u64) -> String {
        let Self { event_type, fields, timestamp } = self;
        format!(r#"{{"type":"{event_type}","seq":{seq}{fields},"timestamp":{timestamp}}}"#)
    }

    /// What is given to the library.
    pub(crate) fn to_new(&self) -> NewEvent {
        let Self { event_type, fields, timestamp } = self;
        let json = format!(r#"{{"type":"{event_type}"{fields},"timestamp":{timestamp}}}"#);
        NewEvent::from_json(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"))
    }
}

/// The lines that events get when they are appended to a session of `len` events.
pub(crate) fn lines(said: &[Said], len: usize) -> Vec<String> {
    said.iter().zip(len as u64..).map(|(said, seq)| said.line(seq)).collect()
}

pub(crate) fn user(text: &str) -> Said {
    Said::new("user/message", format!(r#","content":"{text}""#))
}

pub(crate) fn assistant(text: &str) -> Said {
    Said::new("assistant/message", format!(r#","content":"{text}","usage":{{"total_tokens":17}}"#))
}

pub(crate) fn chunk(text: &str) -> Said {
    Said::new("assistant/chunk", format!(r#","delta":"{text}""#))
}

pub(crate) fn turn_start(id: &str) -> Said {
    Said::new("turn/start", format!(r#","turnId":"{id}""#))
}

pub(crate) fn step_start(id: &str, turn: &str) -> Said {
    Said::new("step/start", format!(r#","stepId":"{id}","turnId":"{turn}""#))
}

pub(crate) fn call(id: &str, args: &str) -> Said {
    Said::new("tool/call", format!(r#","id":"{id}","name":"calc","args":{args}"#))
}

pub(crate) fn result(id: &str, result: &str) -> Said {
    Said::new("tool/result", format!(r#","id":"{id}","result":{result}"#))
}

pub(crate) fn custom(fields: &str) -> Said {
    Said::new("x-test/note", fields.to_string())
}

/// A user's message of `bytes` letters that hardly compress: a large event in several parts, or a full segment soon.
pub(crate) fn noise(seed: u64, bytes: usize) -> Said {
    user(&letters(seed, bytes))
}

/// `bytes` letters that compress no better than 3 to 4.
pub(crate) fn letters(seed: u64, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut dice = Dice::new(seed);
    let mut text = String::with_capacity(bytes + 10);
    while text.len() < bytes {
        let word = dice.next();
        text.extend((0..10).map(|n| char::from(LETTERS[(word >> (6 * n)) as usize & 63])));
    }
    text.truncate(bytes);
    text
}

/// One of many small and some large events, of every sort.
pub(crate) fn any(seed: u64) -> Said {
    let mut dice = Dice::new(seed);
    let n = dice.next() % 1_000_000;
    let said = match dice.below(40) {
        0..=9 => chunk(&format!("piece {n}")),
        10..=19 => user(&format!("message {n}")),
        20..=23 => assistant(&format!("answer {n} \\u00e9 \\\" \u{2028}")),
        24..=26 => call(&format!("c{n}"), r#"{"n":1e400,"deep":[[[-0]],{"z":1,"a":9007199254740993}]}"#),
        27..=29 => result(&format!("c{n}"), &format!("[{n},\"{}\"]", letters(n, 300))),
        30..=31 => turn_start(&format!("t{n}")),
        32..=33 => step_start(&format!("s{n}"), "t"),
        34..=35 => custom(&format!(r#","unknown":null,"n":{n}"#)),
        36 => chunk(&letters(n, 2_000)),
        37 => noise(n, 9_000),
        38 => noise(n, 20_000 + n as usize % 60_000),
        _ => chunk(&letters(n, 12_000)),
    };
    // Clocks go backwards.
    said.at(NOON + (n % 5_000) as i64 - 2_000)
}

/// Lines of an iterator; any error is a failed test.
pub(crate) fn read(events: Result<Events>) -> Vec<String> {
    events.unwrap().map(|event| event.unwrap().to_string()).collect()
}

/// Lines up to the first error, and the error.
pub(crate) fn read_some(events: Events) -> (Vec<String>, Option<sessionlog::Error>) {
    let mut lines = Vec::new();
    for event in events {
        match event {
            Ok(event) => lines.push(event.to_string()),
            Err(error) => return (lines, Some(error)),
        }
    }
    (lines, None)
}

/// The first place where two lists of lines differ, cut to a bearable length; `None` when they are equal.
pub(crate) fn difference(found: &[String], expected: &[String]) -> Option<String> {
    if found == expected {
        return None;
    }
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let mut text =
        format!("{} lines found, {} expected, different from {at} on", found.len(), expected.len());
    for (what, line) in [("found", found.get(at)), ("expected", expected.get(at))] {
        let line: String = line.map_or("nothing".into(), |line| line.chars().take(160).collect());
        write!(text, "\n  {what}: {line}").unwrap();
    }
    Some(text)
}
