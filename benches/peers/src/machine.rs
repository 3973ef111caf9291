//! What the figures were measured on, and when.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Outcome;

/// Date, processor, cores, memory, kernel and file system, in one line; no names of hosts or folders.
pub fn describe(dir: &Path) -> Outcome<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel: String = kernel.trim().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    let gib = kib.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / f64::from(1 << 20);
    let (date, cpu, file_system) = (today()?, cpu()?, file_system(dir)?);
    Ok(format!("{date}; {cpu} x {cores}; {gib:.0} GiB of memory; Linux {kernel}; {file_system}"))
}

/// Refuses a folder that is in memory: nothing is durable there.
pub fn refuse_memory(dir: &Path) -> Outcome<()> {
    match file_system(dir)?.as_str() {
        "tmpfs" | "ramfs" => {
            Err(format!("{} is in memory; give a folder on a disk with --dir", dir.display()).into())
        }
        _ => Ok(()),
    }
}

fn cpu() -> Outcome<String> {
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(model.map_or("unknown processor", |(_, model)| model.trim()).to_owned())
}

/// The type of the file system that holds `dir`: that of the longest mount point above it.
fn file_system(dir: &Path) -> Outcome<String> {
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
