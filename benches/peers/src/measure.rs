//! Clocks, medians, pairs, and what the machine is.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Returns how long `work` takes, in seconds.
pub fn seconds(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Something to be measured: its clock is its own, so that it can prepare its work outside of it.
pub type Side<'a> = &'a mut dyn FnMut(usize) -> Outcome<f64>;

/// Measures the sides in turn, `rounds` times after one that does not count: A B A B. What comes back has a list of
/// figures for each side. Each round is told on standard error: noise shows there.
pub fn interleave(rounds: usize, sides: &mut [Side<'_>]) -> Outcome<Vec<Vec<f64>>> {
    let mut figures = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..=rounds {
        let mut told = format!("  round {round}:");
        for (side, figures) in sides.iter_mut().zip(&mut figures) {
            let figure = side(round)?;
            told += &format!(" {figure:.0}");
            if round > 0 {
                figures.push(figure);
            }
            // What one side leaves to the disk's own queue is not the other's time.
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{told}");
    }
    Ok(figures)
}

/// The middle of the figures.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (1, Some(figure)) => *figure,
        (0, Some(figure)) => (sorted[middle - 1] + figure) / 2.0,
        _ => f64::NAN,
    }
}

/// How many times greater the figures of `a` are than those of `b`, pair by pair.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub pairs: usize,
}

impl Ratio {
    /// Compares pair by pair.
    pub fn of(a: &[f64], b: &[f64]) -> Self {
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        Self {
            median: median(&ratios),
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            most: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            pairs: ratios.len(),
        }
    }
}

/// Returns the bytes of all files in a folder and below.
pub fn folder_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Returns the bytes that all files in a folder and below take on the disk: holes take none.
pub fn used_bytes(folder: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { used_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
