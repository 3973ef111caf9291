//! Which work is measured, on which stores, and what it gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sessionlog_peers::Outcome;
use sessionlog_peers::measure::used_bytes;

use crate::figures::Figures;

/// The name of the store that all others are compared with.
pub const OURS: &str = "sessionlog";

/// The stores, and how the table names them.
pub const PEERS: [(&str, &str); 5] =
    [(OURS, "sessionlog"), ("sqlite", "SQLite"), ("jsonl", "JSONL"), ("fjall", "fjall"), ("redb", "redb")];

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Bytes,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// What the child calls it.
    pub key: &'static str,
    pub text: &'static str,
    pub unit: Unit,
}

const fn seconds(key: &'static str, text: &'static str) -> Row {
    Row { key, text, unit: Unit::Seconds }
}

const fn bytes(key: &'static str, text: &'static str) -> Row {
    Row { key, text, unit: Unit::Bytes }
}

/// On which store a child works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// An empty folder.
    New,
    /// The history of one long session. The work that makes it leaves it to those that come behind.
    Loaded,
    /// A copy of that.
    Copy,
    /// Many short sessions.
    Many,
}

/// One kind of child, and the rows that it gives.
#[derive(Debug)]
pub struct Work {
    pub name: &'static str,
    pub rows: &'static [Row],
    ground: Ground,
    /// At most so many rounds: it takes long.
    rounds: usize,
}

pub const WORKS: &[Work] = &[
    Work {
        name: "append",
        rows: &[seconds("append", "append one event of 200 bytes, durable; 1 writer")],
        ground: Ground::New,
        rounds: 9,
    },
    Work {
        name: "append-8",
        rows: &[seconds("append-8", "the same; 8 writers, 8 sessions")],
        ground: Ground::New,
        rounds: 9,
    },
    Work {
        name: "batch",
        rows: &[seconds("batch", "append a batch of 100 such events, durable")],
        ground: Ground::New,
        rounds: 9,
    },
    Work {
        name: "load",
        rows: &[
            seconds("load", "bulk load, durable batches of 1,000, until closed; an event"),
            bytes("load-disk", "disk after it; an event"),
            bytes("load-memory", "memory for it, at the peak"),
        ],
        ground: Ground::Loaded,
        rounds: 3,
    },
    Work {
        name: "read",
        rows: &[
            seconds("open", "open, and know the session's length"),
            seconds("read", "read whole, decoded; an event"),
            bytes("read-memory", "memory for it, at the peak"),
            seconds("last", "last 100 events"),
            seconds("middle", "100 events from the middle"),
        ],
        ground: Ground::Loaded,
        rounds: 9,
    },
    Work {
        name: "messages",
        rows: &[seconds("messages", "resume: all messages, store opened before")],
        ground: Ground::Loaded,
        rounds: 9,
    },
    Work {
        name: "fork",
        rows: &[
            seconds("fork", "fork of the whole session, and its first append"),
            bytes("fork-disk", "disk for it; engine alone where there is one"),
        ],
        ground: Ground::Copy,
        rounds: 3,
    },
    Work {
        name: "list",
        rows: &[
            seconds("list", "list 100,000 sessions, latest first"),
            seconds("list-page", "the first 50 of them"),
        ],
        ground: Ground::Many,
        rounds: 5,
    },
];

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    WORKS.iter().flat_map(|work| work.rows)
}

/// The row of this key.
pub fn row(key: &str) -> Option<&'static Row> {
    rows().find(|row| row.key == key)
}

/// What the measurements need to know.
#[derive(Debug)]
pub struct Setup {
    /// Where stores are.
    pub dir: PathBuf,
    pub quick: bool,
    pub rounds: usize,
}

impl Setup {
    /// Events of the long session.
    pub fn events(&self) -> usize {
        if self.quick { 20_000 } else { 1_000_000 }
    }

    fn folder(&self, ground: &str, peer: &str) -> PathBuf {
        self.dir.join(format!("{ground}-{peer}"))
    }

    /// An empty folder, when the disk has nothing left of what was done before.
    fn fresh(&self, folder: &Path) -> Outcome<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        self.settle();
        Ok(())
    }

    fn settle(&self) {
        rustix::fs::sync();
        if !self.quick {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// Runs a child, and gives what it measured by key.
    fn ask(&self, peer: &str, work: &str, folder: &Path) -> Outcome<BTreeMap<String, f64>> {
        let output = Command::new(std::env::current_exe()?)
            .args(["child", peer, work])
            .arg(folder)
            .arg(if self.quick { "quick" } else { "full" })
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{work} on {peer}: {said}").into());
        }
        let mut answer = BTreeMap::new();
        for line in std::str::from_utf8(&output.stdout)?.lines() {
            let (key, figure) = line.split_once('=').ok_or_else(|| format!("{peer} said: {line}"))?;
            answer.insert(key.to_owned(), figure.parse()?);
        }
        Ok(answer)
    }

    /// The long session of a store, made when it is not there.
    fn loaded(&self, peer: &str) -> Outcome<PathBuf> {
        self.made("loaded", "load", peer)
    }

    fn made(&self, ground: &str, work: &str, peer: &str) -> Outcome<PathBuf> {
        let folder = self.folder(ground, peer);
        if !folder.exists() {
            self.fresh(&folder)?;
            self.ask(peer, work, &folder)?;
            self.settle();
        }
        Ok(folder)
    }
}

impl Work {
    /// Measures all stores, round by round. A round that does not count comes first, but in what takes long.
    pub fn measure(&self, setup: &Setup, figures: &mut Figures) -> Outcome<()> {
        let warm = usize::from(!setup.quick && self.rounds > 3);
        for round in 0..setup.rounds.min(self.rounds) + warm {
            let mut told = format!("  round {round}:");
            for (peer, _) in PEERS {
                let answer = self.once(setup, peer)?;
                for row in self.rows {
                    let figure =
                        *answer.get(row.key).ok_or_else(|| format!("{peer} did not say {}", row.key))?;
                    told += &format!(" {figure:.3e}");
                    if round >= warm {
                        figures.add(row, peer, figure);
                    }
                }
                told += ";";
            }
            eprintln!("{told}");
        }
        Ok(())
    }

    fn once(&self, setup: &Setup, peer: &str) -> Outcome<BTreeMap<String, f64>> {
        match self.ground {
            Ground::New => {
                let folder = setup.folder("new", peer);
                setup.fresh(&folder)?;
                let answer = setup.ask(peer, self.name, &folder);
                fs::remove_dir_all(&folder)?;
                answer
            }
            Ground::Loaded if self.name == "load" => {
                let folder = setup.folder("loaded", peer);
                setup.fresh(&folder)?;
                let mut answer = setup.ask(peer, self.name, &folder)?;
                setup.settle();
                let bytes = used_bytes(&folder)? as f64;
                answer.insert("load-disk".to_owned(), bytes / setup.events() as f64);
                Ok(answer)
            }
            Ground::Loaded => setup.ask(peer, self.name, &setup.loaded(peer)?),
            Ground::Copy => {
                let loaded = setup.loaded(peer)?;
                let folder = setup.folder("copy", peer);
                setup.fresh(&folder)?;
                let copied = Command::new("cp").arg("-r").arg(loaded.join(".")).arg(&folder).status()?;
                if !copied.success() {
                    return Err("the store could not be copied".into());
                }
                setup.settle();
                let answer = setup.ask(peer, self.name, &folder);
                fs::remove_dir_all(&folder)?;
                answer
            }
            Ground::Many => setup.ask(peer, self.name, &setup.made("many", "fill", peer)?),
        }
    }
}
