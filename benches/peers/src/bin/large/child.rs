//! What is measured in a process of its own: `large child WHAT STORE NUMBER…`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use sessionlog::{Append, List, NewEvent, NewSession, Seq, Session, Store};
use sessionlog_peers::Outcome;
use sessionlog_peers::measure::seconds;
use sessionlog_peers::ours;
use sessionlog_peers::process::{Memory, thread_seconds};
use sessionlog_peers::trace::{Trace, TraceEvent};

const BATCH: usize = 1_000;
/// What a cost is compared by.
const MILLION: usize = 1_000_000;
const PAGE: usize = 100;

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
}

fn command(what: &str, store: &Path, numbers: &[usize]) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["child", what]).arg(store).args(numbers.iter().map(ToString::to_string));
    Ok(command)
}

/// Runs a child and waits for its figures.
pub fn ask(what: &str, store: &Path, numbers: &[usize]) -> Outcome<Answer> {
    eprintln!("large: {what}");
    let output = command(what, store, numbers)?.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("child {what} failed").into());
    }
    let mut answer = Answer(Vec::new());
    for line in std::str::from_utf8(&output.stdout)?.lines() {
        let (name, figure) = line.split_once('=').ok_or_else(|| format!("the child said: {line}"))?;
        let figure = figure.parse()?;
        match answer.0.iter_mut().find(|(found, _)| found == name) {
            Some((_, figures)) => figures.push(figure),
            None => answer.0.push((name.to_owned(), vec![figure])),
        }
    }
    Ok(answer)
}

/// Lets a child fill the tail, and kills it. Returns what was in the tail.
pub fn killed(store: &Path, sessions: usize) -> Outcome<f64> {
    let mut child = command("fill", store, &[sessions])?.stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("no output")?;
    let told = BufReader::new(out).lines().next().ok_or("the child said nothing")??;
    child.kill()?;
    child.wait()?;
    Ok(told.parse()?)
}

/// The child's side.
pub fn run(mut words: impl Iterator<Item = String>) -> Outcome<()> {
    let (Some(what), Some(store)) = (words.next(), words.next()) else {
        return Err("child needs WHAT STORE".into());
    };
    let numbers: Vec<usize> = words.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let store = Path::new(&store);
    match (what.as_str(), numbers.as_slice()) {
        ("load", [events, sessions]) => load(store, *events, *sessions),
        ("open", []) => open(store),
        ("read", [events, sessions]) => read(store, *events, *sessions),
        ("append", [events, sessions]) => append(store, *events, *sessions),
        ("fill", [sessions]) => fill(store, *sessions),
        ("create", [sessions]) => create(store, *sessions),
        ("list", [sessions]) => list(store, *sessions),
        _ => Err(format!("no such child: {what}").into()),
    }
}

fn say(name: &str, figure: f64) {
    println!("{name}={figure}");
}

fn say_peak() -> Outcome<()> {
    say("peak", Memory::now()?.peak as f64);
    Ok(())
}

fn name(n: usize) -> String {
    format!("s{n}")
}

/// The seconds that all threads of this process, those that ended too, have run on processors.
fn processor_seconds() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("the system does not say how it is")?;
    let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    // The system counts in hundredths.
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

fn batch(seed: usize) -> Vec<TraceEvent> {
    Trace::new(seed as u64).take(BATCH).collect()
}

/// Batches go to the sessions in turn.
fn load(path: &Path, events: usize, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    let mut open = Vec::new();
    for n in 0..sessions {
        open.push(ours::session(&store, &name(n))?);
    }
    let mut at = 0;
    while at < events {
        let (mut wall, mut processor) = (0.0, processor_seconds()?);
        let mut made = 0.0;
        for _ in 0..MILLION.min(events - at) / BATCH {
            let before = thread_seconds()?;
            let batch = batch(at / BATCH);
            made += thread_seconds()? - before;
            wall += seconds(|| ours::append_batch(&open[at / BATCH % sessions], &batch))?;
            at += BATCH;
        }
        // Of all threads. The drain of the last ones falls into the next million, as that of the ones before did.
        processor = processor_seconds()? - processor - made;
        say("seconds", wall);
        say("processor", processor);
    }
    drop(open);
    store.close()?;
    say_peak()
}

fn open(path: &Path) -> Outcome<()> {
    let start = Instant::now();
    let store = Store::open(path)?;
    say("seconds", start.elapsed().as_secs_f64());
    say("replayed", store.open_report().replayed_events as f64);
    store.close()?;
    say_peak()
}

fn read(path: &Path, events: usize, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    let mut left = events;
    let taken = seconds(|| {
        for n in (0..sessions).cycle() {
            let session = store.session(&name(n).parse()?)?;
            for event in session.read_from(Seq::ZERO)? {
                std::hint::black_box(event?);
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    })?;
    say("seconds", taken);
    store.close()?;
    say_peak()
}

fn append(path: &Path, events: usize, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    let taken = seconds(|| {
        for n in 0..events / BATCH {
            let session = store.session(&name(n % sessions).parse()?)?;
            ours::append_batch(&session, &batch(n))?;
        }
        Ok(())
    })?;
    say("seconds", taken);
    store.close()?;
    say_peak()
}

/// Appends faster than the drain goes, until the tail is full, and waits to be killed.
fn fill(path: &Path, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    let text = "what a model says in a long answer, one word behind the other; ".repeat(8);
    let said = || vec![NewEvent::user_message(text.clone()); 64];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || -> Outcome<()> {
                for n in (thread..sessions).step_by(4).cycle() {
                    let session: Session = store.session(&name(n).parse()?)?;
                    session.append_with(Append::new().buffered(), said())?;
                }
                Ok(())
            });
        }
        loop {
            let tail = store.info()?.tail_bytes;
            if tail > 15 << 20 {
                println!("{tail}");
                std::thread::sleep(std::time::Duration::from_secs(600));
            }
        }
    })
}

fn create(path: &Path, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || -> Outcome<()> {
                    for n in (thread..sessions).step_by(8) {
                        let session = store.create(NewSession::with_id(name(n).parse()?))?;
                        session.append_with(Append::new().buffered(), [NewEvent::user_message("hello")])?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    store.close()?;
    say_peak()
}

fn list(path: &Path, sessions: usize) -> Outcome<()> {
    let store = Store::open(path)?;
    let mut cursor = None;
    say(
        "first page",
        seconds(|| {
            let mut list = store.list()?;
            check(
                list.by_ref().take(PAGE).collect::<sessionlog::Result<Vec<_>>>()?.len(),
                PAGE.min(sessions),
            )?;
            cursor = list.next_cursor()?;
            Ok(())
        })?,
    );
    let whole = seconds(|| {
        let mut list = store.list()?;
        for _ in 0..sessions / 2 {
            list.next().transpose()?;
        }
        cursor = list.next_cursor()?;
        check(list.count(), sessions - sessions / 2)
    })?;
    say("whole", whole);
    let after = cursor.ok_or("there is no middle")?;
    say(
        "page in the middle",
        seconds(|| {
            let mut list = store.list_with(List::new().after(after))?;
            check(
                list.by_ref().take(PAGE).collect::<sessionlog::Result<Vec<_>>>()?.len(),
                PAGE.min(sessions / 2),
            )
        })?,
    );
    store.close()?;
    say_peak()
}

fn check(found: usize, expected: usize) -> Outcome<()> {
    if found == expected { Ok(()) } else { Err(format!("{found} sessions, not {expected}").into()) }
}
