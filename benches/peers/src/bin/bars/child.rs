//! What is measured in a process of its own, so that nothing done before counts: `bars child WHAT FOLDER NUMBER`.

use std::path::Path;
use std::process::Command;

use sessionlog::{Seq, Session, Store, StoreOptions};
use sessionlog_peers::Outcome;
use sessionlog_peers::measure::seconds;
use sessionlog_peers::ours;
use sessionlog_peers::process::{Memory, thread_seconds};
use sessionlog_peers::trace::Trace;

use crate::history::{ID, append_all};

/// Figures by name, in the order in which the child gave them.
#[derive(Debug)]
pub struct Answer(Vec<(String, Vec<f64>)>);

impl Answer {
    /// All figures of this name.
    pub fn all(&self, name: &str) -> &[f64] {
        self.0.iter().find(|(found, _)| found == name).map_or(&[], |(_, figures)| figures)
    }

    /// The figure of this name.
    pub fn one(&self, name: &str) -> Outcome<f64> {
        Ok(*self.all(name).first().ok_or_else(|| format!("the child did not say: {name}"))?)
    }

    fn parse(text: &str) -> Outcome<Self> {
        let mut answer = Self(Vec::new());
        for line in text.lines() {
            let (name, figure) = line.split_once('=').ok_or_else(|| format!("the child said: {line}"))?;
            let figure = figure.parse()?;
            match answer.0.iter_mut().find(|(found, _)| found == name) {
                Some((_, figures)) => figures.push(figure),
                None => answer.0.push((name.to_owned(), vec![figure])),
            }
        }
        Ok(answer)
    }
}

/// Runs a child and waits for its figures.
pub fn ask(what: &str, folder: &Path, number: usize) -> Outcome<Answer> {
    let output = Command::new(std::env::current_exe()?)
        .args(["child", what])
        .arg(folder)
        .arg(number.to_string())
        .output()?;
    if !output.status.success() {
        return Err(format!("child {what}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Answer::parse(std::str::from_utf8(&output.stdout)?)
}

/// The child's side.
pub fn run(mut words: impl Iterator<Item = String>) -> Outcome<()> {
    let mut word = || words.next().ok_or("child needs WHAT FOLDER NUMBER");
    let (what, folder, number) = (word()?, word()?, word()?.parse()?);
    let folder = Path::new(&folder);
    match what.as_str() {
        "read" => read(&StoreOptions::new().open(folder)?, number),
        "read-small-cache" => read(&StoreOptions::new().cache_bytes(4 << 20).open(folder)?, number),
        "write" => {
            let store = Store::open(folder)?;
            let session = ours::session(&store, ID)?;
            append(&store, &session, number)
        }
        "append" => {
            let store = Store::open(folder)?;
            let session = store.session(&ID.parse()?)?;
            append(&store, &session, number)
        }
        _ => Err(format!("no such child: {what}").into()),
    }
}

fn say(name: &str, figure: f64) {
    println!("{name}={figure}");
}

fn read(store: &Store, times: usize) -> Outcome<()> {
    let session = store.session(&ID.parse()?)?;
    let len = session.len();
    say("resident after open", Memory::now()?.resident as f64);
    for time in 0..times {
        let mut read = 0;
        let before = thread_seconds()?;
        let taken = seconds(|| {
            for event in session.read_from(Seq::ZERO)? {
                std::hint::black_box(event?);
                read += 1;
                if time == 0 && read == len / 4 {
                    say("resident after a quarter", Memory::now()?.resident as f64);
                }
            }
            Ok(())
        })?;
        if read != len {
            return Err(format!("read {read} events of {len}").into());
        }
        say("seconds", taken);
        say("thread's seconds", thread_seconds()? - before);
    }
    say("resident after the last read", Memory::now()?.resident as f64);
    say("events", len as f64);
    Ok(())
}

fn append(store: &Store, session: &Session, events: usize) -> Outcome<()> {
    append_all(session, Trace::new(11).take(events))?;
    let memory = Memory::now()?;
    say("resident", memory.resident as f64);
    store.close()?;
    say("peak", Memory::now()?.peak as f64);
    Ok(())
}
