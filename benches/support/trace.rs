//! Events as an agent's trace has them: deterministic, of any length, one turn in memory at a time.
//!
//! Plain data, which every engine that is measured turns into its own form within the measured time.

use std::collections::VecDeque;
use std::io::Write as _;

/// What the texts are made of; one word in ten is a number instead, so that they compress as such texts do.
const WORDS: [&str; 42] = [
    "the", "tool", "function", "result", "of", "in", "let", "mut", "self", "session", "event", "error",
    "path", "src", "main", "test", "return", "value", "compile", "fn", "struct", "impl", "because", "which",
    "should", "open", "read", "write", "file", "line", "number", "check", "again", "build", "now", "first",
    "then", "list", "found", "missing", "module", "user",
];
/// When every trace begins, in milliseconds.
const FIRST_TIMESTAMP: i64 = 1_786_073_817_152;

/// An event before it has a seq.
#[derive(Clone, Debug)]
pub struct TraceEvent {
    pub timestamp: i64,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    TurnStart { turn: String },
    StepStart { step: String, turn: String },
    UserMessage { content: String },
    Chunk { delta: String },
    AssistantMessage { content: String },
    ToolCall { id: String, command: String, timeout: u64 },
    ToolResult { id: String, result: String },
    StepEnd { step: String, turn: String },
    TurnEnd { turn: String },
}

impl TraceEvent {
    /// The event's type in its JSON form.
    pub fn event_type(&self) -> &'static str {
        match &self.what {
            What::TurnStart { .. } => "turn/start",
            What::StepStart { .. } => "step/start",
            What::UserMessage { .. } => "user/message",
            What::Chunk { .. } => "assistant/chunk",
            What::AssistantMessage { .. } => "assistant/message",
            What::ToolCall { .. } => "tool/call",
            What::ToolResult { .. } => "tool/result",
            What::StepEnd { .. } => "step/end",
            What::TurnEnd { .. } => "turn/end",
        }
    }

    /// Adds the JSON form, without a line feed.
    pub fn write_json(&self, seq: u64, out: &mut Vec<u8>) {
        write!(out, r#"{{"type":"{}","seq":{seq}"#, self.event_type()).expect("memory takes all");
        match &self.what {
            What::TurnStart { turn } => field(out, "turnId", turn),
            What::StepStart { step, turn } | What::StepEnd { step, turn } => {
                field(out, "stepId", step);
                field(out, "turnId", turn);
            }
            What::UserMessage { content } | What::AssistantMessage { content } => {
                field(out, "content", content)
            }
            What::Chunk { delta } => field(out, "delta", delta),
            What::ToolCall { id, command, timeout } => {
                field(out, "id", id);
                field(out, "name", "bash");
                out.extend_from_slice(br#","args":"#);
                write_args(command, *timeout, out);
            }
            What::ToolResult { id, result } => {
                field(out, "id", id);
                field(out, "result", result);
            }
            What::TurnEnd { turn } => {
                field(out, "turnId", turn);
                field(out, "reason", "completed");
            }
        }
        write!(out, r#","timestamp":{}}}"#, self.timestamp).expect("memory takes all");
    }
}

/// Adds the arguments of a tool call as JSON.
pub fn write_args(command: &str, timeout: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"command":"#);
    string(out, command);
    write!(out, r#","timeout":{timeout}}}"#).expect("memory takes all");
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    write!(out, r#","{name}":"#).expect("memory takes all");
    string(out, value);
}

fn string(out: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(out, value).expect("memory takes all");
}

/// An endless trace: turns with some 50 chunks, messages, a tool call and its result of 1.5 KB.
#[derive(Debug)]
pub struct Trace {
    random: Random,
    timestamp: i64,
    turns: u64,
    turn: VecDeque<TraceEvent>,
}

impl Trace {
    /// The trace of this seed: always the same.
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), timestamp: FIRST_TIMESTAMP, turns: 0, turn: VecDeque::new() }
    }

    fn write_turn(&mut self) {
        self.turns += 1;
        let turn = format!("turn-{}", self.turns);
        let step = format!("step-{}", self.turns);
        let id = format!("call-{}", self.turns);

        self.push(What::TurnStart { turn: turn.clone() });
        self.push(What::StepStart { step: step.clone(), turn: turn.clone() });
        let content = self.random.text(300);
        self.push(What::UserMessage { content });
        for _ in 0..self.random.between(35, 65) {
            let mut delta = self.random.text(10);
            delta.push(' ');
            self.push(What::Chunk { delta });
        }
        let content = self.random.text(600);
        self.push(What::AssistantMessage { content });
        let command = self.random.text(80);
        let timeout = self.random.below(1000);
        self.push(What::ToolCall { id: id.clone(), command, timeout });
        let result = self.random.text(1500);
        self.push(What::ToolResult { id, result });
        self.push(What::StepEnd { step, turn: turn.clone() });
        self.push(What::TurnEnd { turn });
    }

    fn push(&mut self, what: What) {
        self.timestamp += self.random.milliseconds();
        self.turn.push_back(TraceEvent { timestamp: self.timestamp, what });
    }
}

impl Iterator for Trace {
    type Item = TraceEvent;

    fn next(&mut self) -> Option<TraceEvent> {
        if self.turn.is_empty() {
            self.write_turn();
        }
        self.turn.pop_front()
    }
}

/// Endless messages of a user, each of which has the same length as a line of JSON.
#[derive(Debug)]
pub struct Messages {
    random: Random,
    timestamp: i64,
    content_bytes: usize,
}

impl Messages {
    /// Messages whose line, with its line feed and a seq of five digits, has `line_bytes`.
    pub fn new(line_bytes: usize, seed: u64) -> Self {
        let empty =
            TraceEvent { timestamp: FIRST_TIMESTAMP, what: What::UserMessage { content: String::new() } };
        let mut line = Vec::new();
        empty.write_json(10_000, &mut line);
        line.push(b'\n');
        Self {
            random: Random(seed),
            timestamp: FIRST_TIMESTAMP,
            content_bytes: line_bytes.saturating_sub(line.len()),
        }
    }
}

impl Iterator for Messages {
    type Item = TraceEvent;

    fn next(&mut self) -> Option<TraceEvent> {
        let mut content = self.random.text(self.content_bytes);
        content.truncate(self.content_bytes);
        self.timestamp += self.random.milliseconds();
        Some(TraceEvent { timestamp: self.timestamp, what: What::UserMessage { content } })
    }
}

/// SplitMix64: small, good enough for texts, and the same on every machine.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, from: u64, end: u64) -> u64 {
        from + self.below(end - from)
    }

    /// The time between two events.
    fn milliseconds(&mut self) -> i64 {
        i64::try_from(self.between(1, 60)).expect("fits")
    }

    /// Words and spaces, at least `length` bytes of them (the last space counted but not written).
    fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 16);
        let mut counted = 0;
        while counted < length {
            if !text.is_empty() {
                text.push(' ');
            }
            let before = text.len();
            if self.below(10) < 9 {
                text.push_str(self.word());
            } else {
                text.push_str(&self.below(1_000_000).to_string());
            }
            counted += text.len() - before + 1;
        }
        text
    }

    fn word(&mut self) -> &'static str {
        let at = usize::try_from(self.below(WORDS.len() as u64)).expect("fits");
        WORDS.get(at).expect("below the number of words")
    }
}
