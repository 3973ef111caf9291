//! Appends: payload, batch, durability and threads.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sessionlog::{Append, NewEvent, Session};

use support::events::new_event;
use support::trace::{Messages, TraceEvent};
use support::{Bench, Place};

fn durabilities() -> [(&'static str, Append); 2] {
    [("sync", Append::new().sync()), ("buffered", Append::new().buffered())]
}

/// Enough different events that no two in a row are alike.
fn messages(bytes: usize) -> Vec<TraceEvent> {
    Messages::new(bytes, 7).take(256).collect()
}

/// Appends as long as criterion asks, and counts making the events as a user has to.
fn append_all(session: &Session, how: Append, batch: usize, messages: &[TraceEvent], times: u64) -> Duration {
    let mut next = messages.iter().cycle();
    let start = Instant::now();
    for _ in 0..times {
        let events: Vec<NewEvent> = next.by_ref().take(batch).map(new_event).collect();
        black_box(session.append_with(how, events)).expect("an append");
    }
    start.elapsed()
}

fn payload(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append/payload");
    for place in Place::BOTH {
        for (durability, how) in durabilities() {
            for bytes in [200, 2_000, 20_000] {
                let messages = messages(bytes);
                let bench = Bench::new(place);
                let session = bench.session();
                group.throughput(Throughput::Bytes(bytes as u64));
                let id = BenchmarkId::new(format!("{}/{durability}", place.name()), bytes);
                group.bench_function(id, |b| {
                    b.iter_custom(|times| append_all(&session, how, 1, &messages, times));
                });
            }
        }
    }
    group.finish();
}

fn batch(criterion: &mut Criterion) {
    let messages = messages(200);
    let mut group = criterion.benchmark_group("append/batch");
    for place in Place::BOTH {
        for (durability, how) in durabilities() {
            for batch in [1, 10, 100, 1000] {
                let bench = Bench::new(place);
                let session = bench.session();
                group.throughput(Throughput::Elements(batch as u64));
                let id = BenchmarkId::new(format!("{}/{durability}", place.name()), batch);
                group.bench_function(id, |b| {
                    b.iter_custom(|times| append_all(&session, how, batch, &messages, times));
                });
            }
        }
    }
    group.finish();
}

/// Each thread appends to a session of its own; an iteration is one append of each.
fn threads(criterion: &mut Criterion) {
    let messages = messages(200);
    let mut group = criterion.benchmark_group("append/threads");
    for place in Place::BOTH {
        for (durability, how) in durabilities() {
            for threads in [1, 2, 4, 8] {
                let bench = Bench::new(place);
                let sessions: Vec<Session> = (0..threads).map(|_| bench.session()).collect();
                group.throughput(Throughput::Elements(threads));
                let id = BenchmarkId::new(format!("{}/{durability}", place.name()), threads);
                group.bench_function(id, |b| {
                    b.iter_custom(|times| {
                        let start = Instant::now();
                        std::thread::scope(|scope| {
                            for session in &sessions {
                                scope.spawn(|| append_all(session, how, 1, &messages, times));
                            }
                        });
                        start.elapsed()
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, payload, batch, threads);
criterion_main!(benches);
