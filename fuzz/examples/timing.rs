use sessionlog_fuzz::base::*;
use sessionlog_fuzz::image::*;
use sessionlog_fuzz::reads::*;
use std::time::Instant;
fn main() {
    let base = &CLOSED[0];
    for _ in 0..5 {
        let t = Instant::now();
        let seams = base.image.seams();
        let a = t.elapsed();
        let store = seams.open(quiet()).unwrap();
        let b = t.elapsed();
        let mut trust = Trust::Damaged(base.truth.clone());
        read_all(&store, base.truth.keys(), &trust, Depth::EveryWay);
        let c = t.elapsed();
        go_on(&store, base.truth.keys(), &mut trust);
        let d = t.elapsed();
        read_all(&store, base.truth.keys(), &trust, Depth::EveryWay);
        let e = t.elapsed();
        store.close().unwrap();
        let f = t.elapsed();
        println!(
            "seams {a:?} open {:?} read {:?} go_on {:?} read {:?} close {:?}",
            b - a,
            c - b,
            d - c,
            e - d,
            f - e
        );
    }
}
