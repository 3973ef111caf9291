//! Writes the seed corpora: `cargo run --release --example seeds`, in the folder `fuzz`.
//!
//! For `event_json`, a line of each file in `tests/data/cases`; for `import`, those files and a fork; for `journal` and
//! `block`, inputs that do each kind of damage once, and what a journal looks like; for `salvage`, the same and raw
//! values; for `ops`, any bytes are a script.

use std::fs;
use std::io::Result;
use std::path::Path;

use sessionlog_fuzz::base::KILLED;

fn main() -> Result<()> {
    event_json()?;
    import()?;
    journal()?;
    block()?;
    salvage()?;
    ops()
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

fn event_json() -> Result<()> {
    for entry in fs::read_dir("../tests/data/cases")? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        if let Some(line) = bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()) {
            seed("event_json", &name, line)?;
        }
    }
    let full =
        br#"{ "type" : "user\/message", "seq": 0, "content": [{"type":"text","text":"\ud83d\ude00\u0000"}],
        "x": [-0, 1e400, {"a": {}, "a": []}], "surfaceOp": {"op":"replace","start":1,"end":2},
        "sourceEventSeqs": [1,2], "timestamp": -9007199254740991 }"#;
    seed("event_json", "every_field", full)?;
    let result = br#"{"type":"tool/result","id":"c","error":"no","result":null,"timestamp":1,"seq":18446744073709551615}"#;
    seed("event_json", "result_and_error", result)
}

fn import() -> Result<()> {
    for entry in fs::read_dir("../tests/data/cases")? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        seed("import", &name, &fs::read(&path)?)?;
    }
    let message = |seq, text| {
        format!("{{\"type\":\"user/message\",\"seq\":{seq},\"content\":\"{text}\",\"timestamp\":5}}\n")
    };
    let events = message(0, "a") + &message(1, "b") + &message(2, "x");
    for (name, prefix) in [("fork", 2), ("fork_of_more", 3), ("fork_of_nothing", 0)] {
        let header = format!(
            "{{\"type\":\"session\",\"version\":1,\"id\":\"s\",\"createdAt\":5,\"parent\":\"p\",\"prefixLength\":{prefix},\
             \"length\":3,\"title\":\"T\",\"labels\":{{\"k\":\"v\"}},\"meta\":{{\"a\":\"b\"}},\"x\":[1e400]}}\n"
        );
        seed("import", name, (header + &events).as_bytes())?;
    }
    Ok(())
}

fn journal() -> Result<()> {
    for kind in 0..10 {
        // Which base, checksums right in every other; then which file, which other one, what kind, and what it asks for.
        let flags = (kind % 3) | ((kind & 1) << 2);
        let input = [flags, 0, 1, kind, 0, 1, 0, 3, 7, 1, 1, 0, 9];
        seed("journal", &format!("damage_{kind}"), &input)?;
    }
    for (number, base) in KILLED.iter().enumerate() {
        for file in base.image.files.values() {
            seed("journal", &format!("raw_{number}_{}", file.len()), &[&[3 | 4], file.as_slice()].concat())?;
        }
    }
    Ok(())
}

fn block() -> Result<()> {
    for kind in 0..12 {
        let input = [kind % 4, kind / 4, 2, kind, 60, 1, 2, 3, 7, 1, 1, 0, 9];
        seed("block", &format!("damage_{kind}"), &input)?;
    }
    Ok(())
}

fn salvage() -> Result<()> {
    // Which base; gaps between its values; then what is done to which file.
    for kind in 0..10 {
        let gaps = [7 * kind; 40];
        let input =
            [&[(kind % 5) | ((kind & 1) << 3)][..], &gaps, &[kind % 3, kind, 0, 60, 1, 3, 7, 1, 9]].concat();
        seed("salvage", &format!("damage_{kind}"), &input)?;
    }
    let base = &KILLED[0];
    let values = base.image.sessions.values().chain(base.image.events.values());
    let raw: Vec<u8> = values.take(12).flatten().copied().collect();
    seed("salvage", "raw", &[&[5], raw.as_slice()].concat())?;
    let segment: Vec<u8> = base.image.files.values().flatten().copied().collect();
    let half: Vec<u8> = raw.iter().copied().chain(std::iter::repeat(0)).take(segment.len()).collect();
    seed("salvage", "raw_and_segment", &[&[5 | 8][..], &half, &segment].concat())
}

fn ops() -> Result<()> {
    let mut state = 1u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    for len in [40, 120, 360, 720] {
        let script: Vec<u8> = std::iter::repeat_with(&mut byte).take(len).collect();
        seed("ops", &format!("script_{len}"), &script)?;
    }
    Ok(())
}
