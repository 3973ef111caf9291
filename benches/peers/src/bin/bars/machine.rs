//! What the figures were measured on, and when.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sessionlog_peers::Outcome;

use crate::Setup;

/// The paragraph above the table.
pub fn describe(file_system: &str, setup: &Setup) -> Outcome<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel: String = kernel.trim().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let kind = if setup.quick { ", quick: figures mean nothing" } else { "" };
    Ok(format!(
        "{}; {} x {cores}; Linux {kernel}; {file_system}; medians of {} interleaved rounds{kind}",
        today()?,
        cpu()?,
        setup.rounds,
    ))
}

fn cpu() -> Outcome<String> {
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(model.map_or("unknown processor", |(_, model)| model.trim()).to_owned())
}

/// The type of the file system that holds `dir`: that of the longest mount point above it.
pub fn file_system(dir: &Path) -> Outcome<String> {
    let dir = dir.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let found = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let point = Path::new(words.next()?);
            let kind = words.next()?;
            dir.starts_with(point).then(|| (point.components().count(), kind))
        })
        // The last of several on one point hides the others.
        .max_by_key(|(depth, _)| *depth);
    Ok(found.map_or("unknown file system", |(_, kind)| kind).to_owned())
}

/// Today in UTC, as year-month-day.
fn today() -> Outcome<String> {
    let days = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400;
    // Howard Hinnant's civil_from_days, for days after 1970: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    Ok(format!("{year}-{month:02}-{day:02}"))
}
