//! JSON Lines, a file a session, as careful harnesses write it: one `write` and one `fdatasync` an acknowledgement,
//! the folder synced when a file is made; serde_json reads it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Peer, Writer, nth};
use crate::Outcome;
use crate::trace::TraceEvent;
use crate::typed::{Event, Listed, Message, parse};

/// A folder of files.
#[derive(Debug)]
pub struct Jsonl(PathBuf);

struct One {
    file: File,
    next: u64,
    lines: Vec<u8>,
}

/// A streamed delta begins like this, since this program wrote it.
const CHUNK: &[u8] = br#"{"type":"assistant/chunk""#;

impl Jsonl {
    fn path(&self, session: &str) -> PathBuf {
        self.0.join(format!("{session}.jsonl"))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn append_to(&self, session: &str, next: u64) -> Outcome<One> {
        let file = OpenOptions::new().append(true).create(true).open(self.path(session))?;
        Ok(One { file, next, lines: Vec::new() })
    }

    /// Calls `take` with each line of the reader, without its end, until that says no.
    fn lines(mut reader: impl BufRead, mut take: impl FnMut(&[u8]) -> Outcome<bool>) -> Outcome<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 || !take(line.trim_ascii_end())? {
                return Ok(());
            }
        }
    }
}

/// The beginning of the first line at or behind `offset`, and its seq; `None` when there is none.
fn line_behind(file: &File, mut offset: u64, end: u64) -> Outcome<Option<(u64, u64)>> {
    let mut buffer = [0; 4096];
    // Any line that ends before `offset` ends at the byte before it at the latest.
    if offset > 0 {
        offset -= 1;
        loop {
            let read = file.read_at(&mut buffer, offset)?;
            if read == 0 {
                return Ok(None);
            }
            match buffer[..read].iter().position(|byte| *byte == b'\n') {
                Some(at) => break offset += at as u64 + 1,
                None => offset += read as u64,
            }
        }
    }
    if offset >= end {
        return Ok(None);
    }
    let read = file.read_at(&mut buffer, offset)?;
    let text = std::str::from_utf8(&buffer[..read.min(100)]).unwrap_or_default();
    let digits = text.split_once(r#""seq":"#).map_or("", |(_, behind)| behind);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    Ok(Some((offset, digits.parse()?)))
}

/// Where the line of `seq` begins: lines are in order, so halving finds it.
fn offset_of(file: &File, seq: u64) -> Outcome<u64> {
    let end = file.metadata()?.len();
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        match line_behind(file, middle, end)? {
            Some((_, found)) if found < seq => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(line_behind(file, low, end)?.map_or(end, |(offset, _)| offset))
}

impl Peer for Jsonl {
    fn open(folder: &Path) -> Outcome<Self> {
        let sessions = folder.join("sessions");
        fs::create_dir_all(&sessions)?;
        Ok(Self(sessions))
    }

    fn writer(&self, session: &str) -> Outcome<impl Writer> {
        let writer = self.append_to(session, 0)?;
        self.sync_folder()?;
        Ok(writer)
    }

    /// By the seq of the last line.
    fn length(&self, session: &str) -> Outcome<u64> {
        let file = File::open(self.path(session))?;
        let end = file.metadata()?.len();
        let mut back = 4096;
        loop {
            let mut last = None;
            let mut at = end.saturating_sub(back);
            while let Some((offset, seq)) = line_behind(&file, at, end)? {
                last = Some(seq + 1);
                at = offset + 1;
            }
            if last.is_some() || back >= end {
                return Ok(last.unwrap_or(0));
            }
            back *= 2;
        }
    }

    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        let mut file = File::open(self.path(session))?;
        if range.start > 0 {
            let offset = offset_of(&file, range.start)?;
            file.seek(SeekFrom::Start(offset))?;
        }
        let mut left = range.end - range.start;
        let mut count = 0;
        // A short range needs no large read.
        let buffer = if left > 1_000 { 1 << 17 } else { 1 << 14 };
        Self::lines(BufReader::with_capacity(buffer, file), |line| {
            if left == 0 {
                return Ok(false);
            }
            std::hint::black_box(parse(line)?);
            left -= 1;
            count += 1;
            Ok(left > 0)
        })?;
        Ok(count)
    }

    fn last(&self, session: &str, count: usize) -> Outcome<u64> {
        let file = File::open(self.path(session))?;
        let end = file.metadata()?.len();
        let mut text = vec![0; (64 << 10).min(usize::try_from(end)?)];
        loop {
            let from = end - text.len() as u64;
            file.read_exact_at(&mut text, from)?;
            let mut lines: Vec<&[u8]> =
                text.trim_ascii_end().rsplit(|byte| *byte == b'\n').take(count + 1).collect();
            // The first one may be cut: it only shows that those behind it are whole.
            if lines.len() > count || text.len() as u64 == end {
                lines.truncate(count);
                lines.reverse();
                let events = lines.iter().map(|line| parse(line)).collect::<Outcome<Vec<Event>>>()?;
                return Ok(std::hint::black_box(events).len() as u64);
            }
            let more = (2 * text.len()).min(usize::try_from(end)?);
            text.resize(more, 0);
        }
    }

    /// The file's copy, which the system makes (`copy_file_range`).
    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        let next = self.length(parent)?;
        fs::copy(self.path(parent), self.path(new))?;
        let mut fork = self.append_to(new, next)?;
        fork.file.sync_all()?;
        self.sync_folder()?;
        fork.append(event)
    }

    fn messages(&self, session: &str) -> Outcome<usize> {
        let mut messages = Vec::new();
        let file = File::open(self.path(session))?;
        Self::lines(BufReader::with_capacity(1 << 17, file), |line| {
            if !line.starts_with(CHUNK) {
                messages.extend(Message::of(parse(line)?));
            }
            Ok(true)
        })?;
        Ok(messages.len())
    }

    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()> {
        for n in 0..sessions {
            let mut one = self.append_to(&nth(n), 0)?;
            one.write(std::slice::from_ref(event))?;
        }
        self.sync_folder()?;
        Ok(())
    }

    /// The folder says when each file was changed; how long a session is only its lines say.
    fn list(&self, most: usize) -> Outcome<usize> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let changed = entry.metadata()?.modified()?.duration_since(UNIX_EPOCH)?;
            found.push((changed, entry.file_name()));
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(most);
        let mut text = Vec::new();
        for (changed, name) in &found {
            text.clear();
            File::open(self.0.join(name))?.read_to_end(&mut text)?;
            let listed = Listed {
                id: name.to_string_lossy().trim_end_matches(".jsonl").to_owned(),
                updated: i64::try_from(changed.as_millis())?,
                length: text.iter().filter(|byte| **byte == b'\n').count() as u64,
            };
            std::hint::black_box(listed);
        }
        Ok(found.len())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl One {
    fn write(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        self.lines.clear();
        for event in events {
            event.write_json(self.next, &mut self.lines);
            self.lines.push(b'\n');
            self.next += 1;
        }
        self.file.write_all(&self.lines)?;
        Ok(())
    }
}

impl Writer for One {
    fn append(&mut self, event: &TraceEvent) -> Outcome<()> {
        self.append_batch(std::slice::from_ref(event))
    }

    /// All or none only as long as nothing is torn: a reader would have to tell.
    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        self.write(events)?;
        self.file.sync_data()?;
        Ok(())
    }
}
