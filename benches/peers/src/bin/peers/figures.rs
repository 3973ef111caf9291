//! What was measured: for each row of the table and each store a figure a round.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sessionlog_peers::Outcome;
use sessionlog_peers::measure::{Ratio, median};

use crate::work::{OURS, Row, Work};

/// Rows by key, stores by name. Of every figure less is better.
#[derive(Debug, Default)]
pub struct Figures(BTreeMap<String, BTreeMap<String, Vec<f64>>>);

impl Figures {
    /// Those of an earlier part of the run, if there was one.
    pub fn read(path: &Path) -> Outcome<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        Ok(Self(serde_json::from_slice(&fs::read(path)?)?))
    }

    /// Keeps them for the next part.
    pub fn write(&self, path: &Path) -> Outcome<()> {
        Ok(fs::write(path, serde_json::to_vec(&self.0)?)?)
    }

    /// Takes what a work had before it is measured again.
    pub fn forget(&mut self, work: &Work, peer: &str) {
        for row in work.rows {
            if let Some(peers) = self.0.get_mut(row.key) {
                peers.remove(peer);
            }
        }
    }

    pub fn add(&mut self, row: &Row, peer: &str, figure: f64) {
        self.0.entry(row.key.to_owned()).or_default().entry(peer.to_owned()).or_default().push(figure);
    }

    fn all(&self, row: &Row, peer: &str) -> &[f64] {
        self.0.get(row.key).and_then(|peers| peers.get(peer)).map_or(&[], Vec::as_slice)
    }

    /// The middle of a store's figures.
    pub fn median(&self, row: &Row, peer: &str) -> Option<f64> {
        let figures = self.all(row, peer);
        (!figures.is_empty()).then(|| median(figures))
    }

    /// How many times our figures another store's are, round by round.
    pub fn ratio(&self, row: &Row, peer: &str) -> Option<Ratio> {
        let (theirs, ours) = (self.all(row, peer), self.all(row, OURS));
        (!theirs.is_empty() && !ours.is_empty()).then(|| Ratio::of(theirs, ours))
    }
}
