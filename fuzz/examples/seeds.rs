//! Writes the seed corpora: `cargo run --release --example seeds`, in the folder `fuzz`.
//!
//! For `event_json`, the lines of `tests/data/cases`; for the others, inputs that do each kind of damage once, and what a
//! journal looks like.

use std::fs;
use std::io::Result;
use std::path::Path;

use sessionlog_fuzz::base::KILLED;

fn main() -> Result<()> {
    event_json()?;
    journal()?;
    block()
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

fn event_json() -> Result<()> {
    let cases = Path::new("../tests/data/cases");
    for entry in fs::read_dir(cases)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (number, line) in (1..).zip(lines) {
            seed("event_json", &format!("{name}-{number}"), line)?;
        }
    }
    let full =
        br#"{ "type" : "user\/message", "seq": 0, "content": [{"type":"text","text":"\ud83d\ude00\u0000"}],
        "x": [-0, 1e400, {"a": {}, "a": []}], "surfaceOp": {"op":"replace","start":1,"end":2},
        "sourceEventSeqs": [1,2], "timestamp": -9007199254740991 }"#;
    seed("event_json", "every-field", full)?;
    let result = br#"{"type":"tool/result","id":"c","error":"no","result":null,"timestamp":1,"seq":18446744073709551615}"#;
    seed("event_json", "result-and-error", result)
}

fn journal() -> Result<()> {
    for base in 0..3 {
        for fixed in [0, 4] {
            for kind in 0..10 {
                // Which file, which other one, the kind, then what it wants to know.
                let input = [base | fixed, 0, 1, kind, 0, 1, 0, 3, 7, 1, 1, 0, 9];
                seed("journal", &format!("damage-{base}-{kind}-{fixed}"), &input)?;
            }
        }
        let base = &KILLED[usize::from(base)];
        for (name, file) in &base.image.files {
            let used = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 64);
            if used > 64 && used < 20_000 {
                let input = [&[3 | 4 | 16], &file[..used]].concat();
                seed("journal", &format!("raw-{name}-{used}"), &input)?;
            }
        }
    }
    Ok(())
}

fn block() -> Result<()> {
    for flags in 0..4 {
        for map in 0..2 {
            for kind in 0..12 {
                let input = [flags, map, 2, kind, 60, 1, 2, 3, 7, 1, 1, 0, 9];
                seed("block", &format!("damage-{flags}-{map}-{kind}"), &input)?;
            }
        }
    }
    Ok(())
}
