//! Reading a long session with several threads: blocks are taken apart ahead of the one who wants their events.
//!
//! Most of a read is decompression, and pieces of a session do not depend on each other.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::Session;
use crate::error::Result;
use crate::event::Event;

/// The events of one piece: some tens of blocks, so that the two that are cut at its ends are of no weight.
const PIECE: u64 = 4_096;
/// Below this a thread costs more than it saves.
const WORTH_THREADS: u64 = 8 * PIECE;
/// More threads than these wait for the one who takes the events.
const MOST_THREADS: usize = 4;

type Piece = Result<Vec<Event>>;

impl Session {
    /// Gives the events of `range`, without chunks, to `take`, in order.
    pub(super) fn each_without_chunks(&self, range: Range<u64>, mut take: impl FnMut(&Event)) -> Result<()> {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        if threads == 1 || range.end.saturating_sub(range.start) < WORTH_THREADS {
            for event in self.events(range, false)?.without_chunks() {
                take(&event?);
            }
            return Ok(());
        }
        let done = thread::scope(|scope| {
            let mut pieces = Vec::new();
            for first in 0..threads {
                // One piece waits while the next is made: memory stays bounded.
                let (give, piece) = sync_channel(1);
                let range = range.clone();
                let reader = thread::Builder::new().name("sessionlog-read".into());
                reader.spawn_scoped(scope, move || self.give_pieces(range, first, threads, &give)).ok()?;
                pieces.push(piece);
            }
            Some(take_pieces(range.clone(), &pieces, &mut take))
        });
        match done {
            Some(result) => result,
            // No thread could be made, and nothing was given.
            None => self.events(range, false)?.without_chunks().try_for_each(|event| {
                take(&event?);
                Ok(())
            }),
        }
    }

    /// Reads each `step`th piece from `first` on, until one fails or nobody wants more.
    fn give_pieces(&self, range: Range<u64>, first: usize, step: usize, give: &SyncSender<Piece>) {
        for piece in pieces(range).skip(first).step_by(step) {
            let events = self.events(piece, false).and_then(|events| events.without_chunks().collect());
            let failed = events.is_err();
            if give.send(events).is_err() || failed {
                break;
            }
        }
    }
}

fn take_pieces(range: Range<u64>, from: &[Receiver<Piece>], take: &mut impl FnMut(&Event)) -> Result<()> {
    for (_, piece) in pieces(range).zip(from.iter().cycle()) {
        // A reader ends early only after an error, which ended this first; a panic of one goes on at the scope's end.
        let Ok(events) = piece.recv() else { break };
        events?.iter().for_each(&mut *take);
    }
    Ok(())
}

fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    let starts = std::iter::successors(Some(range.start), |start| start.checked_add(PIECE));
    starts.take_while(move |start| *start < end).map(move |start| start..start.saturating_add(PIECE).min(end))
}
