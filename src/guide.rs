//! The user guide: how things hang together, page by page, with examples that run. There is no code in here.
//!
//! What a single call does in detail (order, durability, cost, errors) is said at the call. The pages:
//!
//! 1. [`concepts`]: stores, sessions, events, seqs, batches.
//! 2. [`durability`]: what survives what, and what to do after a failure.
//! 3. [`forks`]: another way from some point.
//! 4. [`surface`]: from events to the messages of the next request, and compaction.
//! 5. [`recovery`]: an agent that died in the middle of a turn.
//! 6. [`operations`]: backup, scan, repair, salvage, space, moving in and out.
//! 7. [`asynchronous`]: callers that must not block.
//! 8. [`command_line`]: what the program prints, and its exit codes.

pub mod asynchronous;
pub mod command_line;
pub mod concepts;
pub mod durability;
pub mod forks;
pub mod operations;
pub mod recovery;
pub mod surface;
