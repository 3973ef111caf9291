//! Whether a store is sound, and what can be done when it is not.
//!
//! Everything here reads storage and the journal's files through `format`, never the log's caches: a scanner must not
//! trust what it checks.

mod carve;
mod finding;
mod ground;
mod hash;
mod journal;
mod records;
mod report;
mod salvage;
mod scan;
mod session;
mod walk;

pub use self::finding::{Finding, FindingKind, Severity};
pub use self::hash::{BadHash, HistoryHash};
pub use self::report::{Head, ScanProgress, ScanReport};
pub use self::salvage::{
    EngineOutcome, Salvage, SalvageProgress, SalvageReport, SalvageStep, SalvagedSession,
};
pub use self::scan::Scan;
