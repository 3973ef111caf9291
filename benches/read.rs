//! Reads: from the beginning, the middle and near the end, through forks, from blocks and from the tail.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod support;

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sessionlog::{Events, Seq, Session};

use support::{Bench, Place, append_trace};

/// The length of a session in blocks.
const DRAINED: usize = 50_000;
/// The length of one that stays in the tail: below the size at which a drain begins.
const TAIL: usize = 10_000;
/// How many events are read from a place in the middle.
const SOME: u64 = 1_000;

/// Decodes all of it.
fn count(events: Events) -> u64 {
    let mut read = 0;
    for event in events {
        black_box(event).expect("an event");
        read += 1;
    }
    read
}

/// The reads of one session.
fn reads(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, session: &Session) {
    let len = session.len();
    for (from, start) in [("start", 0), ("middle", len / 2), ("end", len - SOME)] {
        let range = Seq::new(start)..Seq::new(start + SOME);
        group.throughput(Throughput::Elements(SOME));
        group.bench_function(BenchmarkId::new(format!("{name}/{SOME}"), from), |b| {
            b.iter(|| {
                let read = count(session.read_range(range.clone()).expect("a read"));
                assert_eq!(read, SOME);
            });
        });
    }

    group.throughput(Throughput::Elements(len));
    group.bench_function(BenchmarkId::new(name, "all"), |b| {
        b.iter(|| {
            let read = count(session.read_from(Seq::ZERO).expect("a read"));
            assert_eq!(read, len);
        });
    });
    group.bench_function(BenchmarkId::new(name, "all without chunks"), |b| {
        b.iter(|| count(session.read_from(Seq::ZERO).expect("a read").without_chunks()));
    });
    group.bench_function(BenchmarkId::new(name, "all in reverse"), |b| {
        b.iter(|| {
            let read = count(session.read_reverse(Seq::ZERO..Seq::new(len)).expect("a read"));
            assert_eq!(read, len);
        });
    });

    group.throughput(Throughput::Elements(100));
    group.bench_function(BenchmarkId::new(name, "last 100"), |b| {
        b.iter(|| {
            let read = count(session.last(100).expect("a read"));
            assert_eq!(read, 100);
        });
    });
}

fn drained(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read/drained");
    for place in Place::BOTH {
        let bench = Bench::new(place);
        let session = bench.session_of(DRAINED);
        bench.store.drain().expect("a drain");
        reads(&mut group, place.name(), &session);
    }
    group.finish();
}

/// The tail is in memory wherever the store is.
fn tail(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read/tail");
    let bench = Bench::undrained(Place::Memory);
    let session = bench.session_of(TAIL);
    reads(&mut group, Place::Memory.name(), &session);
    group.finish();
}

/// A session that is the last of a chain of forks, with the same number of events in each.
fn forked(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read/forked");
    for place in Place::BOTH {
        for forks in [1, 10, 100] {
            let bench = Bench::new(place);
            let mut session = bench.session_of(DRAINED / (forks + 1));
            for _ in 0..forks {
                session = session.fork(Seq::new(session.len())).expect("a fork");
                append_trace(&session, DRAINED / (forks + 1));
            }
            bench.store.drain().expect("a drain");
            reads(&mut group, &format!("{}/{forks} deep", place.name()), &session);
        }
    }
    group.finish();
}

criterion_group!(benches, drained, tail, forked);
criterion_main!(benches);
