use sessionlog::*;
use std::ops::Bound::*;
#[test]
fn hazard() {
    let dir = tempfile::tempdir().unwrap();
    let s = SledStorage::open(&dir.path().join("e"), 1 << 20).unwrap();
    let mut all = vec![];
    for a in 0..4u8 {
        for n in 0..255u8 {
            all.push(vec![a, 0xff, 0xff, 0xff, 0xff, n]);
            all.push(vec![a, n]);
        }
    }
    all.sort();
    for k in &all {
        s.insert(Map::Events, k, &[0; 500]).unwrap();
    }
    let mut bad = 0;
    for (i, k) in all.iter().enumerate() {
        let t = std::time::Instant::now();
        let r = s.range_reverse(Map::Events, Unbounded, Excluded(k)).next();
        match r {
            Some(Ok((f, _))) => assert_eq!(f, all[i - 1]),
            None => assert_eq!(i, 0),
            Some(Err(e)) => {
                bad += 1;
                println!("{k:?} {e} {:?}", t.elapsed());
            }
        }
    }
    println!("bad {bad}");
}
