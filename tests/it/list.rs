//! Lists: pages by cursor, filters, what a page costs; while the store changes, and after crashes.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sessionlog::storage::{Entries, Map, MemoryJournalFiles, MemoryStorage, Storage};
use sessionlog::{Error, LabelChange, List, ListCursor, NewSession, Seq, SessionInfo, Store, Timestamp};

use crate::support::dice::Dice;
use crate::support::events::{NOON, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet};

/// Whether a session is one of those that a list is for.
type Wanted = fn(&SessionInfo) -> bool;

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn name(info: &SessionInfo) -> String {
    info.header.id.to_string()
}

fn create(store: &Store, name: &str, updated: i64) {
    let session = store.create(NewSession::with_id(id(name))).unwrap();
    session.append(user("x").at(updated).to_new()).unwrap();
}

/// One page, and where the next begins.
fn page(store: &Store, list: &List, count: usize) -> (Vec<SessionInfo>, Option<ListCursor>) {
    let mut sessions = store.list_with(list.clone()).unwrap();
    let page = sessions.by_ref().take(count).map(Result::unwrap).collect();
    (page, sessions.next_cursor().unwrap())
}

/// All pages, with something done before each but the first.
fn pages(
    store: &mut Store,
    list: &List,
    mut count: impl FnMut() -> usize,
    mut between: impl FnMut(&mut Store),
) -> Vec<SessionInfo> {
    let mut all = Vec::new();
    let mut list = list.clone();
    loop {
        let (page, next) = page(store, &list, count());
        all.extend(page);
        let Some(next) = next else { return all };
        list = list.after(next.to_string().parse().unwrap());
        between(store);
    }
}

/// What happens to the sessions that change.
fn change(store: &mut Store, medium: &Medium, dice: &mut Dice) {
    for _ in 0..dice.below(4) {
        let changing = format!("changing {}", dice.below(6));
        match dice.below(9) {
            0..=2 => match store.session(&id(&changing)) {
                Ok(session) => {
                    session.append(user("y").at(NOON + dice.below(60) as i64).to_new()).unwrap();
                }
                Err(_) => create(store, &changing, NOON + dice.below(60) as i64),
            },
            3 => drop(store.delete(&id(&changing))),
            4 => {
                if let Ok(session) = store.session(&id(&changing)) {
                    session.label(LabelChange::new().set("k", dice.below(3).to_string())).unwrap();
                }
            }
            5 => {
                let parent = store.session(&id("still 0")).unwrap();
                drop(store.fork(parent.id(), Seq::new(1), NewSession::with_id(id(&changing))));
            }
            6 | 7 => store.drain().unwrap(),
            _ => {
                store.flush().unwrap();
                let crash = if dice.chance(1, 2) { Crash::Kill } else { Crash::Power };
                medium.stop();
                *store = Store::in_memory().unwrap();
                medium.restart(crash);
                *store = medium.open(quiet()).unwrap();
            }
        }
    }
}

/// Pages of any size together are the list, whatever happens to other sessions in between: each session that did not
/// change is on exactly one of them, in its place, with appends, drains, deletions, labels, forks, kills and power cuts
/// between the pages. The same with a filter of each kind.
#[test]
fn pages_together_are_the_list() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let medium = Medium::new(seed);
        let mut store = medium.open(quiet()).unwrap();
        let count = 1 + dice.below(25) as i64;
        for n in 0..count {
            let still = format!("still {n}");
            create(&store, &still, NOON + dice.below(30) as i64);
            let session = store.session(&id(&still)).unwrap();
            if n % 3 == 0 {
                session.label(LabelChange::new().title(format!("title {n}")).set("k", "0")).unwrap();
            }
            if dice.chance(1, 4) {
                change(&mut store, &medium, &mut dice);
            }
            if dice.chance(1, 3) {
                // Storage may know another place of it.
                let moved = store.session(&id(&format!("still {}", dice.below(n as u64 + 1)))).unwrap();
                moved.append(user("y").at(NOON + dice.below(30) as i64).to_new()).unwrap();
            }
        }
        let still = |found: &SessionInfo| name(found).starts_with("still");
        let expected: Vec<SessionInfo> =
            store.list().unwrap().map(Result::unwrap).filter(|info| still(info)).collect();
        assert_eq!(expected.len(), count as usize, "seed {seed}");
        let (since, until) = (time(NOON + 5), time(NOON + 20));
        let lists: [(List, Wanted); 5] = [
            (List::new(), |_| true),
            (List::new().label("k", "0"), |info| {
                info.labels.labels.get("k").is_some_and(|value| value == "0")
            }),
            (List::new().title("itle 1").label("k", "0"), |info| {
                info.labels.title.as_ref().is_some_and(|title| title.contains("itle 1"))
            }),
            (List::new().since(since).until(until), |info| {
                (5..20).contains(&(info.updated_at.as_millis() - NOON))
            }),
            (List::new().parent(id("still 0")), |info| info.header.parent.is_some()),
        ];
        for (list, wanted) in lists {
            let mut sizes = Dice::new(seed + 1);
            let found = pages(
                &mut store,
                &list,
                || sizes.below(5) as usize,
                |store| change(store, &medium, &mut dice),
            );
            for info in &found {
                assert!(wanted(info) || !still(info), "seed {seed}: {info:?} is not in {list:?}");
            }
            let found: Vec<_> = found.into_iter().filter(still).collect();
            let expected: Vec<_> = expected.iter().filter(|info| wanted(info)).cloned().collect();
            assert_eq!(found, expected, "seed {seed}, {list:?}");
        }
    }
}

/// The same while threads append, drain and delete.
#[test]
fn pages_while_the_store_is_in_use() {
    let mut store = Medium::new(1).open(quiet()).unwrap();
    let still: BTreeSet<String> = (0..40).map(|n| format!("still {n}")).collect();
    for (n, name) in still.iter().enumerate() {
        create(&store, name, NOON + (n as i64 * 7) % 40);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = store.clone();
        let done = &done;
        scope.spawn(move || {
            for n in 0..200_i64 {
                let name = format!("changing {}", n % 5);
                match other.session(&id(&name)) {
                    Ok(session) => drop(session.append(user("y").at(NOON + (n * 37) % 40).to_new()).unwrap()),
                    Err(_) => create(&other, &name, NOON),
                }
                if n % 3 == 0 {
                    other.drain().unwrap();
                }
                if n % 7 == 0 {
                    other.delete(&id(&name)).unwrap();
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            let found = pages(&mut store, &List::new(), || 7, |_| {});
            let mut found: Vec<_> = found.iter().map(name).filter(|name| name.starts_with("still")).collect();
            let before = found.len();
            found.sort();
            found.dedup();
            assert_eq!(found.len(), before, "a session is on two pages");
            assert!(found.iter().eq(&still), "{found:?}");
        }
    });
}

/// A parent that is not there is told; a session that was forked from a fork is not the parent's.
#[test]
fn forks_of_one_session() {
    let store = Store::in_memory().unwrap();
    create(&store, "a", NOON);
    for (parent, child) in [("a", "b"), ("b", "c"), ("a", "d")] {
        store.fork(&id(parent), Seq::new(1), NewSession::with_id(id(child))).unwrap();
    }
    for _ in 0..2 {
        let found = store.list_with(List::new().parent(id("a"))).unwrap();
        let found: BTreeSet<String> = found.map(|info| name(&info.unwrap())).collect();
        assert_eq!(found, BTreeSet::from(["b".to_string(), "d".to_string()]));
        store.drain().unwrap();
    }
    let refused = store.list_with(List::new().parent(id("x"))).unwrap_err();
    assert!(matches!(refused, Error::SessionNotFound { .. }), "{refused:?}");
}

/// Storage that counts what is read.
#[derive(Debug)]
struct Counting {
    inner: MemoryStorage,
    reads: Arc<AtomicUsize>,
}

impl Storage for Counting {
    fn get(&self, map: Map, key: &[u8]) -> sessionlog::Result<Option<Vec<u8>>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.get(map, key)
    }
    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        let reads = Arc::clone(&self.reads);
        Box::new(self.inner.range(map, from, to).inspect(move |_| {
            reads.fetch_add(1, Ordering::SeqCst);
        }))
    }
    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        let reads = Arc::clone(&self.reads);
        let entries = self.inner.range_reverse(map, from, to);
        Box::new(entries.inspect(move |_| {
            reads.fetch_add(1, Ordering::SeqCst);
        }))
    }
    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> sessionlog::Result<()> {
        self.inner.insert(map, key, value)
    }
    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> sessionlog::Result<()> {
        self.inner.apply(map, changes)
    }
    fn flush(&self) -> sessionlog::Result<()> {
        self.inner.flush()
    }
    fn size_on_disk(&self) -> sessionlog::Result<u64> {
        self.inner.size_on_disk()
    }
    fn close(&self) -> sessionlog::Result<()> {
        self.inner.close()
    }
}

/// A page costs what is on it, wherever it begins and however many sessions there are; times leave sessions out without
/// a read, labels and parents with one.
#[test]
fn a_page_costs_what_is_on_it() {
    let reads = Arc::new(AtomicUsize::new(0));
    let storage = Counting { inner: MemoryStorage::new(), reads: Arc::clone(&reads) };
    let store = quiet().open_on(Arc::new(storage), Arc::new(MemoryJournalFiles::new())).unwrap();
    const SESSIONS: usize = 2_000;
    for n in 0..SESSIONS {
        create(&store, &format!("s{n}"), NOON + n as i64);
    }
    store.session(&id("s7")).unwrap().label(LabelChange::new().set("k", "v")).unwrap();
    store.drain().unwrap();
    let counted = |list: &List, count: usize| {
        let before = reads.load(Ordering::SeqCst);
        let (page, next) = page(&store, list, count);
        (reads.load(Ordering::SeqCst) - before, page, next)
    };
    let mut list = List::new();
    for _ in 0..50 {
        let (cost, page, next) = counted(&list, 10);
        assert_eq!(page.len(), 10);
        assert!(cost <= 11 * 6 + 2, "{cost} reads for ten sessions");
        list = List::new().after(next.unwrap());
    }
    let (cost, page, _) = counted(&List::new().since(time(NOON + 3)).until(time(NOON + 5)), 10);
    assert_eq!(page.len(), 2);
    assert!(cost <= 2 * 6 + 2, "{cost} reads for two sessions of a range of times");
    for (list, count) in [(List::new().label("k", "v"), 1), (List::new().parent(id("s7")), 0)] {
        let (cost, page, _) = counted(&list, 10);
        assert_eq!(page.len(), count);
        assert!(cost <= 2 * SESSIONS + 12, "{cost} reads for a filter, {list:?}");
    }
}
