//! What a scan says in the end, and on its way.

use serde::Serialize;

use super::finding::{Finding, Severity};
use super::hash::HistoryHash;

/// Findings, and heads, that a report lists; the others are counted.
const LISTED: usize = 10_000;

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScanReport {
    /// Sessions looked at.
    pub sessions: u64,
    /// Events read and found sound by their checksums. Events that forks share count once.
    pub events: u64,
    /// Findings that mean that something cannot be read, or cannot be vouched for.
    pub errors: u64,
    /// The others.
    pub notices: u64,
    /// What was found, in the order of the scan: the first 10,000, errors before notices where not all fit.
    pub findings: Vec<Finding>,
    /// The sessions, with their running hashes: the first 10,000.
    pub heads: Vec<Head>,
}

/// A session as a scan found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Head {
    /// The session's id; its storage key where the id is not known.
    pub session: String,
    /// The number of its events, those of its prefix included.
    pub length: u64,
    /// The running hash after all of them; `None` where it cannot be computed.
    pub hash: Option<HistoryHash>,
}

/// How far a scan is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScanProgress<'a> {
    /// Sessions looked at.
    pub sessions: u64,
    /// Events read.
    pub events: u64,
    /// Findings that are errors.
    pub errors: u64,
    /// The session that was looked at last.
    pub head: Option<&'a Head>,
}

impl ScanReport {
    /// Whether every read of every session that was looked at works, and gives what was stored.
    pub fn is_clean(&self) -> bool {
        self.errors == 0
    }

    /// Returns how many findings are not listed.
    pub fn unlisted(&self) -> u64 {
        (self.errors + self.notices).saturating_sub(self.findings.len() as u64)
    }

    pub(super) fn add(&mut self, finding: Finding) {
        let is_error = finding.severity == Severity::Error;
        if is_error {
            self.errors += 1;
        } else {
            self.notices += 1;
        }
        if self.findings.len() < LISTED {
            self.findings.push(finding);
        } else if is_error
            && let Some(notice) = self.findings.iter().rposition(|listed| listed.severity == Severity::Notice)
        {
            self.findings.remove(notice);
            self.findings.push(finding);
        }
    }

    pub(super) fn add_head(&mut self, head: Head) {
        if self.heads.len() < LISTED {
            self.heads.push(head);
        }
    }
}
