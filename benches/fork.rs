//! Forks: flat in the parent's length and in the depth of the chain.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sessionlog::{Seq, Session};

use support::{Bench, Place};

fn fork_at(session: &Session, at: u64) {
    black_box(session.fork(Seq::new(at))).expect("a fork");
}

fn length(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fork/length");
    group.throughput(Throughput::Elements(1));
    for place in Place::BOTH {
        for len in [100, 10_000, 100_000] {
            let bench = Bench::new(place);
            let session = bench.session_of(len);
            bench.store.drain().expect("a drain");
            let len = session.len();
            for (at, seq) in [("end", len), ("middle", len / 2)] {
                group.bench_function(BenchmarkId::new(format!("{}/{at}", place.name()), len), |b| {
                    b.iter(|| fork_at(&session, seq));
                });
            }
        }
    }
    group.finish();
}

fn depth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fork/depth");
    group.throughput(Throughput::Elements(1));
    for place in Place::BOTH {
        for depth in [1, 100, 1_000] {
            let bench = Bench::new(place);
            let mut session = bench.session_of(100);
            for _ in 0..depth {
                session = session.fork(Seq::new(session.len())).expect("a fork");
            }
            bench.store.drain().expect("a drain");
            let len = session.len();
            group.bench_function(BenchmarkId::new(place.name(), depth), |b| {
                b.iter(|| fork_at(&session, len));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, length, depth);
criterion_main!(benches);
