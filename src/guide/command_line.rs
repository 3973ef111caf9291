//! What the program `sessionlog` prints, and its exit codes. For scripts; `sessionlog COMMAND --help` is for people.
//!
//! # Outputs
//!
//! Data goes to standard output, and everything said about it to standard error. Events are printed as
//! [`Event::to_json`](crate::Event::to_json) gives them, one a line, in the order of seqs. Colours and progress are for
//! terminals: data never has colours, and `NO_COLOR`, `CLICOLOR=0` and `TERM=dumb` turn them off. Texts for people may
//! change; JSON only gets more fields.
//!
//! # Exit codes
//!
//! | code | |
//! | --- | --- |
//! | 0 | fine, also when the reader of the output went away |
//! | 1 | findings, not found, refused input or state, conflict, no match, a difference, an I/O error |
//! | 2 | wrong usage, bad session id, output exists |
//! | 3 | the store cannot be opened: none here, in use, newer format, damaged, no permission |
//! | 130 | stopped by Ctrl-C: the process dies of the signal, and a shell says 130. The store is sound |
//!
//! # Which session
//!
//! Commands that change a session take its full id. The others also take the beginning of an id, or a title, where that
//! names one session only, and say on standard error which one it is.
//!
//! # JSON
//!
//! Where the plain form is for people, `--json` prints this. Times are milliseconds since 1970, sizes bytes, ranges of
//! seqs half open (`start`, `end`). A field with `?` may be missing; `null` means unknown or none.
//!
//! | command | fields |
//! | --- | --- |
//! | `ls` | a line for each session: `id`, `length`, `createdAt`, `updatedAt`, `parent`?, `prefixLength`?, `meta`, `storedBytes`?, `title`, `labels` |
//! | `show ID` | as `ls`, and `durableLength`, `hash`?, `statistics`? (as `stats`) |
//! | `show` | `path`, `storeId`, `format`, `durability`, `engine`, `engineBytes`, `journalBytes`, `tailBytes`, `replayedCommits`, `replayedEvents`, `torn` |
//! | `tree` | a line for each session: `depth`, `id`, `prefixLength`?, `length`?, `updatedAt`?, `title`? |
//! | `prune` | a line for each session: `id`, `deleted`, `reason`, `protected`?, `length`, `updatedAt`, `storedBytes` |
//! | `diff` | first `common`, `a`, `b` (sides with `id` and `length`), then a line for each pair of events: `a`, `b` |
//! | `grep` | a line for each match: `session`, `field`, `match`, `event` |
//! | `stats` | `sessions`, `events`, `bytes`, `byType`, `otherTypes`, `firstAt`, `lastAt`, `clockSetBack`, `turns`, `openTurns`, `steps`, `messages`, `toolCalls`, `toolResults`, `toolErrors`, `toolOutcomesUnknown`, `openCalls`, `forgottenCalls`, `resultsWithoutCall`, `tools`, `otherTools`, `turnMs`, `stepMs`, `callMs`, `firstChunkMs`, `chunksPerSecond`, `streamedChunks`, `streamingMs`, `usage` |
//! | `inspect` | `id`, `length`, `turn`, `step`, `calls`, `text`, `closers` |
//! | `label` | `title`, `labels` |
//! | `scan` | `sessions`, `events`, `errors`, `notices`, `findings`, `heads` |
//! | `repair` | `remedies`, `more`, `copies` |
//! | `backup` | `path`, `scan` (as `scan`) |
//! | `compact` | `sessions`, `mergedSessions`, `blocksBefore`, `blocksAfter`, `bytesBefore`, `bytesAfter` |
//! | `compact --rewrite` | `sessions`, `events`, `engineBytesBefore`, `engineBytesAfter`, `removed` |
//! | `salvage` | `engine`, `values`, `copies`, `conflicts`, `damagedPlaces`, `unreadableBytes`, `newerValues`, `frames`, `drained`, `drainedAtClose`, `deleted`, `sessions` |
//!
//! Where `ls --limit` leaves some out, its last line is `{"after":CURSOR}`: how to go on.
//!
//! `append` answers `{"seq":N}` for each event; `create`, `fork` and `import` print ids, one a line; `messages` prints an
//! array; `read`, `replay` and `resume` print events; `export` a file in the form of [`transfer`](crate::transfer).
