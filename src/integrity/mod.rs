//! Whether a store is sound, and what can be done when it is not.
//!
//! Everything here reads storage and the journal's files through `format`, never the log's caches: a scanner must not
//! trust what it checks.

mod backup;
mod carve;
mod copies;
mod finding;

mod journal;
mod overlay;
mod quarantine;
mod records;
pub(crate) mod repair;
mod report;
mod rewrite;
mod salvage;
mod scan;
mod session;
mod unfinished;
mod view;
mod walk;
mod work;

pub use self::backup::BackupReport;
pub(crate) use self::backup::backup;
pub use self::finding::{Finding, FindingKind, Severity};
pub use self::quarantine::{Quarantine, QuarantinedItem};
pub use self::repair::Repair;
pub use self::report::{Head, ScanProgress, ScanReport};
pub use self::rewrite::RewriteReport;
pub(crate) use self::rewrite::rewrite;
pub use self::salvage::{
    EngineOutcome, Salvage, SalvageProgress, SalvageReport, SalvageStep, SalvagedSession,
};
pub use self::scan::Scan;
pub use self::work::{Remedy, RemedyKind, RepairReport};
