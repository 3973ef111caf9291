//! Packs a session's events into full blocks.
//!
//! How well events compress is known only when they are compressed. The packer foretells it from what came before,
//! compresses as many as should fill a value to nearly its limit, and where that was wrong cuts or extends with the
//! ratio it found: once in fifty blocks, on traces of agents.

use super::block::{BLOCK_HEADER_LEN, BlockView, WriteNumber, WriteNumbers, put_sections_header};
use super::envelope::{Envelope, Kind};
use super::hash::Hash;
use super::key::block_key;
use super::large;
use super::run::Pending;
use super::section::{Compressor, Scratch};
use super::view::Sections;
use super::{FormatError, MAX_BLOCK_EVENTS, MAX_BLOCK_LEN, MAX_LARGE_LEN, MAX_VALUE_BYTES};
use crate::event::EventParts;
use crate::id::StorageKey;

/// The length a block is aimed at: blocks differ from each other by some percent.
const AIM_BYTES: usize = MAX_VALUE_BYTES * 975 / 1000;
/// The length from which a block is not worth another try.
const FILLED_BYTES: usize = MAX_VALUE_BYTES * 94 / 100;
/// The length from which a stored block counts as full, and is not continued.
const FULL_BYTES: usize = MAX_VALUE_BYTES * 9 / 10;
/// The foretold length at which a block is cut: enough beyond the limit that the cut seldom wants more events.
const CUT_BYTES: usize = MAX_VALUE_BYTES * 103 / 100;
/// Tries after which what fits is taken. Where nothing does, the number is halved from then on.
const MAX_TRIES: u32 = 4;
/// Decoded bytes of a block, with room for what costs are estimated too low.
const MAX_COST: usize = MAX_BLOCK_LEN - 16 * 1024;

const _: () = assert!(FULL_BYTES <= FILLED_BYTES && FILLED_BYTES < AIM_BYTES);
const _: () = assert!(AIM_BYTES < MAX_VALUE_BYTES && MAX_VALUE_BYTES < CUT_BYTES);
// What an event takes beyond its estimated cost: time, length, and the entry for chunks before it.
const _: () = assert!(MAX_COST + 12 * (MAX_BLOCK_EVENTS as usize) <= MAX_BLOCK_LEN);

/// The unit of ratios.
const ONE: usize = 1024;
/// How text of agents compresses, until it is known.
const FIRST_RATIO: usize = ONE * 36 / 100;

/// What all packers of a drain share: the zstd context, the write numbers, and what was learnt of compression.
#[derive(Debug)]
pub(crate) struct PackContext {
    compressor: Compressor,
    numbers: WriteNumbers,
    ratio: usize,
    /// Blocks written, and compressions that this took.
    figures: (u64, u64),
}

impl PackContext {
    pub(crate) fn new(numbers: WriteNumbers) -> Self {
        Self { compressor: Compressor::new(), numbers, ratio: FIRST_RATIO, figures: (0, 0) }
    }

    /// A number for a value that the caller writes: all come from one source.
    pub(crate) fn next_write_number(&mut self) -> WriteNumber {
        self.numbers.next()
    }

    /// Blocks written so far, and the compressions that this took.
    #[cfg(test)]
    pub(crate) fn figures(&self) -> (u64, u64) {
        self.figures
    }
}

/// Takes finished values: key and value.
pub(crate) type Sink<'a, E> = dyn FnMut(Vec<u8>, Vec<u8>) -> Result<(), E> + 'a;

const fn is_send<T: Send>() {}
const _: () = {
    is_send::<Packer>();
    is_send::<PackContext>();
    is_send::<Scratch>();
};

/// Whether a block has no room for more events that is worth writing it anew.
pub(crate) fn is_full(block: &BlockView<'_>) -> bool {
    let header = block.header();
    block.is_large().is_some()
        || block.value_len() >= FULL_BYTES
        || header.count >= MAX_BLOCK_EVENTS
        || header.main_len + header.chunks_len >= MAX_COST * 9 / 10
}

/// The least number of blocks that events can be expected to take, which are in several blocks now: by the bytes of
/// these, by their decoded bytes, and by their number.
pub(crate) fn least_blocks(stored: usize, decoded: usize, events: usize) -> usize {
    let by_bytes = stored.div_ceil(AIM_BYTES);
    by_bytes.max(decoded.div_ceil(MAX_COST)).max(events.div_ceil(MAX_BLOCK_EVENTS as usize))
}

/// Packs the events of one session.
#[derive(Debug)]
pub(crate) struct Packer {
    key: StorageKey,
    first_seq: u64,
    pending: Pending,
    /// The running hash after each pending event.
    hashes: Vec<Hash>,
    floor: Option<Floor>,
}

/// The old block that is continued.
#[derive(Clone, Copy, Debug)]
struct Floor {
    /// Events of it that the new one must hold at least.
    events: usize,
    /// Whether it holds more, which must go.
    cut: bool,
}

impl Packer {
    /// Begins a block with the next event: `first_seq`.
    pub(crate) fn new(key: StorageKey, first_seq: u64) -> Self {
        Self { key, first_seq, pending: Pending::default(), hashes: Vec::new(), floor: None }
    }

    /// Continues a session's last block, of which the first `keep` events count, after which the running hash is
    /// `hash`. `None` when it is full and to be kept whole: begin at its end.
    ///
    /// What begins behind them (blocks, heads, parts) was removed by the caller, who also says what counts.
    ///
    /// The first block that is written replaces the old one and holds at least those `keep` events. Should they not
    /// fit any more (another zstd), the old block is left alone and a new one begins behind it.
    pub(crate) fn resume(
        block: &BlockView<'_>,
        keep: u32,
        hash: Hash,
        scratch: &mut Scratch,
    ) -> Result<Option<Self>, FormatError> {
        let header = block.header();
        let keep = keep.min(header.count);
        let cut = keep < header.count;
        if is_full(block) && !cut {
            return Ok(None);
        }
        let mut packer = Self::new(header.key, header.first_seq);
        if keep > 0 {
            let mut events = Vec::new();
            block.decode(scratch, 0, keep, Sections::All, &mut events)?;
            events.iter().for_each(|event| packer.pending.push(&event.parts()));
            // No block ends before the last of them, so the hashes before it are never written.
            packer.hashes.resize(events.len(), hash);
            packer.floor = Some(Floor { events: events.len(), cut });
        }
        Ok(Some(packer))
    }

    /// The seq of the next event.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.first_seq + self.pending.len() as u64
    }

    /// Appends an event: it has the seq [`end`](Self::end). Values that are full go to `sink`.
    pub(crate) fn push<E>(
        &mut self,
        parts: &EventParts<'_>,
        hash_after: Hash,
        context: &mut PackContext,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        self.pending.push(parts);
        self.hashes.push(hash_after);
        while self.is_due(context) {
            if !self.cut(false, context, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish<E>(mut self, context: &mut PackContext, sink: &mut Sink<'_, E>) -> Result<(), E> {
        let unchanged = |floor: Floor| !floor.cut && floor.events == self.pending.len();
        if self.floor.is_some_and(unchanged) {
            return Ok(());
        }
        while self.pending.len() > 0 {
            self.cut(true, context, sink)?;
        }
        Ok(())
    }

    /// Whether what is pending should fill a block.
    fn is_due(&self, context: &PackContext) -> bool {
        let cost = self.pending.bytes();
        BLOCK_HEADER_LEN + cost * context.ratio / ONE >= CUT_BYTES
            || cost > MAX_COST
            || self.pending.len() >= MAX_BLOCK_EVENTS as usize
    }

    /// Writes one block, or one large event; `false` when more events would fit and, as these are not the `last`
    /// ones, may come.
    fn cut<E>(&mut self, last: bool, context: &mut PackContext, sink: &mut Sink<'_, E>) -> Result<bool, E> {
        let least = self.floor.map_or(0, |floor| floor.events);
        let available = self.pending.fitting(MAX_COST).0.min(MAX_BLOCK_EVENTS as usize).max(least);
        if available == 0 {
            return self.write_large(context, sink).map(|()| true);
        }
        let bounded = available < self.pending.len() || available == MAX_BLOCK_EVENTS as usize;
        match self.fill(available, context) {
            Some((events, value)) => {
                let wants_more = events == self.pending.len() && value.len() < FILLED_BYTES;
                if wants_more && !last && !bounded {
                    // The ratio as it is: a mean could ask again at each event.
                    context.ratio = ratio(&value, self.pending.cost(events));
                    return Ok(false);
                }
                context.figures.0 += 1;
                sink(block_key(self.key, self.first_seq).to_vec(), value)?;
                self.drop_first(events);
            }
            None => match self.floor {
                Some(floor) => self.drop_first(floor.events),
                None => self.write_large(context, sink)?,
            },
        }
        Ok(true)
    }

    /// Finds how many of the `available` events fill a block; `None` when not even the least number fits.
    fn fill(&self, available: usize, context: &mut PackContext) -> Option<(usize, Vec<u8>)> {
        let least = self.floor.map_or(1, |floor| floor.events);
        let mut best: Option<(usize, Vec<u8>)> = None;
        let mut ratio = context.ratio;
        // The number of events that is known to be too many.
        let mut too_many = available + 1;
        for tries in 1.. {
            let foretold = self.pending.fitting((AIM_BYTES - BLOCK_HEADER_LEN) * ONE / ratio).0;
            let events = match &best {
                Some((fitting, _)) if foretold <= *fitting || tries > MAX_TRIES => break,
                Some(_) => foretold,
                None if tries > MAX_TRIES => least.midpoint(too_many - 1),
                None => foretold.max(least),
            };
            let events = events.min(too_many - 1);
            if events < least || best.as_ref().is_some_and(|(fitting, _)| events <= *fitting) {
                break;
            }
            let value = self.block(events, context);
            ratio = self::ratio(&value, self.pending.cost(events));
            if tries == 1 {
                context.ratio = (context.ratio * 3 + ratio) / 4;
            }
            let must_cut = events == least && self.floor.is_some_and(|floor| floor.cut);
            if value.len() > MAX_VALUE_BYTES && !must_cut {
                too_many = events;
                continue;
            }
            let filled = value.len() >= FILLED_BYTES;
            best = Some((events, value));
            if filled || events == available {
                break;
            }
        }
        best
    }

    /// A block of the first `events`.
    fn block(&self, events: usize, context: &mut PackContext) -> Vec<u8> {
        context.figures.1 += 1;
        let packed = context.compressor.pack(&self.pending, events);
        let hash_after = self.hashes.get(events - 1).copied().unwrap_or(Hash::START);
        let mut payload = Vec::with_capacity(MAX_VALUE_BYTES);
        put_sections_header(&packed, hash_after, 1, &mut payload);
        payload.extend_from_slice(packed.main.stored);
        payload.extend_from_slice(packed.chunks.stored);
        let envelope = Envelope {
            kind: Kind::Block,
            codec: packed.codecs.to_byte(),
            key: self.key,
            seq: self.first_seq,
            count: u32::try_from(events).unwrap_or(u32::MAX),
            write_number: context.numbers.next(),
            payload: &payload,
        };
        envelope.to_value()
    }

    fn write_large<E>(&mut self, context: &mut PackContext, sink: &mut Sink<'_, E>) -> Result<(), E> {
        let write_number = context.numbers.next();
        let packed = context.compressor.pack(&self.pending, 1);
        assert!(
            packed.main.len + packed.chunks.len <= MAX_LARGE_LEN,
            "an event that no reader would take was let in by append"
        );
        let hash_after = self.hashes.first().copied().unwrap_or(Hash::START);
        let seq = self.first_seq;
        // Before it is written: such an event stands in memory often enough.
        self.drop_first(1);
        large::write(self.key, seq, &packed, hash_after, write_number, sink)?;
        context.compressor.trim();
        Ok(())
    }

    fn drop_first(&mut self, events: usize) {
        self.pending.drop_first(events);
        self.hashes.drain(..events);
        self.first_seq += events as u64;
        self.floor = None;
    }
}

/// How well events of this cost compressed.
fn ratio(value: &[u8], cost: usize) -> usize {
    ((value.len() - BLOCK_HEADER_LEN) * ONE / cost.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, JsonString};
    use crate::format::{open_block, parse_event_key};
    use crate::id::Timestamp;

    const KEY: StorageKey = StorageKey([4; 16]);

    /// Packs three events that do not fit a block together, the first two of them from an old one that is said to
    /// have held them; gives seq and count of the blocks that were written.
    fn blocks_behind(floor: Floor) -> Vec<(u64, u32)> {
        let mut number = 1u64;
        let mut noise = || {
            let text: String = (0..4000)
                .map(|_| {
                    number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    char::from(b'!' + u8::try_from((number >> 40) % 90).unwrap())
                })
                .collect();
            EventKind::AssistantChunk { delta: JsonString::from_checked(&text) }
        };
        let mut packer = Packer::new(KEY, 0);
        for _ in 0..3 {
            let kind = noise();
            let timestamp = Timestamp::MAX;
            let parts =
                EventParts { timestamp, kind: &kind, extra: &[], surface_op: None, source_event_seqs: None };
            packer.pending.push(&parts);
            packer.hashes.push(Hash::START);
        }
        packer.floor = Some(floor);
        let mut context = PackContext::new(WriteNumbers::new(1));
        let mut blocks = Vec::new();
        let mut sink = |key: Vec<u8>, value: Vec<u8>| {
            let key = parse_event_key(&key).unwrap();
            let block = open_block(key.key, key.seq, &value).unwrap();
            blocks.push((key.seq, block.header().count));
            Ok::<_, ()>(())
        };
        packer.finish(&mut context, &mut sink).unwrap();
        blocks
    }

    /// Goal: no block replaces one that holds more: where the old events do not fit any more it is left alone.
    #[test]
    fn an_old_block_that_does_not_fit_is_left_alone() {
        assert_eq!(blocks_behind(Floor { events: 2, cut: false }), [(2, 1)]);
    }

    /// Goal: an old block that holds events which do not count is replaced at any price.
    #[test]
    fn an_old_block_that_must_be_cut_is_replaced() {
        assert_eq!(blocks_behind(Floor { events: 2, cut: true }), [(0, 2), (2, 1)]);
    }
}
