//! The two sections of a block as they are stored: each compressed where that pays.

use std::fmt;

use zstd::zstd_safe::{CCtx, DCtx};

use super::run::Pending;

/// zstd's level. Measured on traces of agents, in 6 KiB values: 3 stores 4 % less than 2, which the engine's folder does
/// not show (40.6 against 41.6 B an event, mean of five loads), and loading 1,000,000 events takes 4 % longer; 4 stores
/// 1 % less than 3 in twice the time.
const LEVEL: i32 = 2;

/// Sections shorter than this are not worth a frame's header.
const MIN_COMPRESSED_LEN: usize = 48;

/// How a section is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Codec {
    Plain = 0,
    Zstd = 1,
    /// The chunks section, with the main section as dictionary: they speak of the same things.
    ZstdAfterMain = 2,
}

/// How both are: one byte, main in the low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Codecs {
    pub(super) main: Codec,
    pub(super) chunks: Codec,
}

impl Codecs {
    pub(super) fn to_byte(self) -> u8 {
        self.main as u8 | (self.chunks as u8) << 4
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        let main = match byte & 0xf {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            _ => return None,
        };
        let chunks = match byte >> 4 {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            2 => Codec::ZstdAfterMain,
            _ => return None,
        };
        Some(Self { main, chunks })
    }
}

/// What decoding reuses: a new zstd context for each block would cost as much again as the block.
#[derive(Default)]
pub(crate) struct Scratch {
    context: Option<DCtx<'static>>,
    main: Vec<u8>,
    chunks: Vec<u8>,
}

/// Buffers larger than this are given back after a large event.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

impl Scratch {
    /// Gives the decoded sections; the lengths were checked against the limit of the value's kind. Without
    /// `chunks`, that section is not touched. `None` where a section is not what it says.
    pub(super) fn decompress<'a>(
        &'a mut self,
        codecs: Codecs,
        main: Section<'a>,
        chunks: Option<Section<'a>>,
    ) -> Option<(&'a [u8], &'a [u8])> {
        let context = match &mut self.context {
            Some(context) => context,
            none => none.insert(DCtx::try_create()?),
        };
        let main = main.decompress(codecs.main, &[], context, &mut self.main)?;
        let chunks = match chunks {
            Some(chunks) => chunks.decompress(codecs.chunks, main, context, &mut self.chunks)?,
            None => &[],
        };
        Some((main, chunks))
    }

    /// As [`decompress`](Self::decompress), into buffers of the caller's.
    pub(super) fn unpack(
        &mut self,
        codecs: Codecs,
        main: Section<'_>,
        chunks: Option<Section<'_>>,
        out: &mut Unpacked,
    ) -> Option<()> {
        let context = match &mut self.context {
            Some(context) => context,
            none => none.insert(DCtx::try_create()?),
        };
        out.chunks.clear();
        main.unpack(codecs.main, &[], context, &mut out.main)?;
        match chunks {
            Some(chunks) => chunks.unpack(codecs.chunks, &out.main, context, &mut out.chunks),
            None => Some(()),
        }
    }

    /// Gives memory back that only a large event needed.
    pub(super) fn trim(&mut self) {
        for buffer in [&mut self.main, &mut self.chunks] {
            buffer.clear();
            buffer.shrink_to(MAX_KEPT_BYTES);
        }
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// The sections of a block as they were before they were compressed.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    pub(super) main: Vec<u8>,
    pub(super) chunks: Vec<u8>,
}

/// A section as it is stored, and its decoded length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'a> {
    pub(super) stored: &'a [u8],
    pub(super) len: usize,
}

impl<'a> Section<'a> {
    fn decompress(
        self,
        codec: Codec,
        dictionary: &[u8],
        context: &mut DCtx<'static>,
        buffer: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        buffer.clear();
        match codec {
            Codec::Plain => return (self.stored.len() == self.len).then_some(self.stored),
            Codec::Zstd => {
                buffer.reserve_exact(self.len);
                context.decompress(buffer, self.stored).ok()?;
            }
            Codec::ZstdAfterMain => {
                buffer.reserve_exact(self.len);
                context.decompress_using_dict(buffer, self.stored, dictionary).ok()?;
            }
        }
        (buffer.len() == self.len).then_some(buffer.as_slice())
    }

    /// As [`decompress`](Self::decompress), but `out` has it in any case.
    fn unpack(
        self,
        codec: Codec,
        dictionary: &[u8],
        context: &mut DCtx<'static>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if codec == Codec::Plain {
            out.clear();
            out.extend_from_slice(self.stored);
            return (out.len() == self.len).then_some(());
        }
        Section { stored: self.stored, len: self.len }.decompress(codec, dictionary, context, out).map(drop)
    }
}

/// What compressing reuses.
pub(super) struct Compressor {
    context: CCtx<'static>,
    main: Vec<u8>,
    chunks: Vec<u8>,
    main_out: Vec<u8>,
    chunks_out: Vec<u8>,
}

/// Both sections, ready to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    pub(super) codecs: Codecs,
    pub(super) main: Section<'a>,
    pub(super) chunks: Section<'a>,
}

impl Compressor {
    pub(super) fn new() -> Self {
        Self {
            context: CCtx::create(),
            main: Vec::new(),
            chunks: Vec::new(),
            main_out: Vec::new(),
            chunks_out: Vec::new(),
        }
    }

    /// Puts the first `events` into sections.
    pub(super) fn pack(&mut self, pending: &Pending, events: usize) -> Packed<'_> {
        self.main.clear();
        self.chunks.clear();
        pending.write_sections(events, &mut self.main, &mut self.chunks);
        let context = &mut self.context;
        let main = compress(context, &self.main, None, &mut self.main_out);
        // zstd takes a dictionary that starts with this number for a trained one.
        let dictionary =
            Some(self.main.as_slice()).filter(|main| !main.starts_with(&[0x37, 0xa4, 0x30, 0xec]));
        let chunks = compress(context, &self.chunks, dictionary, &mut self.chunks_out);
        Packed {
            codecs: Codecs { main: main.0, chunks: chunks.0 },
            main: Section { stored: main.1, len: self.main.len() },
            chunks: Section { stored: chunks.1, len: self.chunks.len() },
        }
    }

    /// Gives memory back that only a large event needed.
    pub(super) fn trim(&mut self) {
        for buffer in [&mut self.main, &mut self.chunks, &mut self.main_out, &mut self.chunks_out] {
            buffer.clear();
            buffer.shrink_to(MAX_KEPT_BYTES);
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// Compresses `input`, or gives it as it is where that is no longer.
fn compress<'a>(
    context: &mut CCtx<'static>,
    input: &'a [u8],
    dictionary: Option<&[u8]>,
    out: &'a mut Vec<u8>,
) -> (Codec, &'a [u8]) {
    out.clear();
    if input.len() < MIN_COMPRESSED_LEN {
        return (Codec::Plain, input);
    }
    // Room for less than the input: what does not fit does not pay, and zstd says so.
    out.reserve_exact(input.len());
    let (codec, done) = match dictionary {
        Some(dictionary) => {
            (Codec::ZstdAfterMain, context.compress_using_dict(out, input, dictionary, LEVEL))
        }
        None => (Codec::Zstd, context.compress(out, input, LEVEL)),
    };
    match done {
        Ok(len) if len < input.len() => (codec, out),
        _ => (Codec::Plain, input),
    }
}
