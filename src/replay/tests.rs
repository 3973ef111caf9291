use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Clock, Pace, Replay, StopReplay};
use crate::event::NewEvent;
use crate::id::{Seq, Timestamp};
use crate::options::NewSession;
use crate::session::Session;
use crate::store::Store;

/// A time that passes when it is waited for, or when a test says so.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Times>>);

#[derive(Debug, Default)]
struct Times {
    now: Duration,
    waits: Vec<u64>,
    /// Stops the replay in the wait of this number.
    stop_at: Option<usize>,
}

impl Told {
    fn waits(&self) -> Vec<u64> {
        self.0.lock().unwrap().waits.clone()
    }
}

impl Clock for Told {
    fn elapsed(&mut self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn wait(&mut self, pause: Duration, stop: &StopReplay) -> bool {
        let mut times = self.0.lock().unwrap();
        if times.stop_at == Some(times.waits.len()) {
            stop.stop();
            return false;
        }
        times.now = times.now.saturating_add(pause);
        times.waits.push(pause.as_millis().try_into().unwrap());
        true
    }
}

/// A session with a message at each of these times.
fn session(millis: &[i64]) -> Session {
    let session = Store::in_memory().unwrap().create(NewSession::new()).unwrap();
    let events = millis.iter().map(|millis| {
        NewEvent::user_message("x").timestamp(Timestamp::from_millis(1_700_000_000_000 + millis).unwrap())
    });
    session.append_batch(events).unwrap();
    session
}

fn replay(session: &Session, pace: Pace) -> (Replay, Told) {
    let clock = Told::default();
    let events = session.read_from(Seq::ZERO).unwrap();
    (Replay::with_clock(Seq::ZERO, events, pace, Box::new(clock.clone())), clock)
}

fn waits(millis: &[i64], pace: Pace) -> Vec<u64> {
    let session = session(millis);
    let (replay, clock) = replay(&session, pace);
    let seqs: Vec<u64> = replay.map(|event| event.unwrap().seq.get()).collect();
    assert_eq!(seqs, (0..millis.len() as u64).collect::<Vec<_>>());
    clock.waits()
}

/// Goal: pauses as recorded, scaled, cut, and none at all.
#[test]
fn pauses_follow_the_timestamps() {
    let times = [0, 10, 10, 1_010, 1_015];
    assert_eq!(waits(&times, Pace::fastest()), [0; 0]);
    assert_eq!(waits(&times, Pace::recorded()), [10, 1_000, 5]);
    assert_eq!(waits(&times, Pace::scaled(5.0).unwrap()), [2, 200, 1]);
    assert_eq!(waits(&times, Pace::scaled(0.5).unwrap()), [20, 2_000, 10]);
    assert_eq!(waits(&times, Pace::recorded().longest_pause(Duration::from_millis(7))), [7, 7, 5]);
    assert_eq!(waits(&times, Pace::recorded().longest_pause(Duration::ZERO)), [0; 0]);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Pace::scaled(bad), None);
    }
}

/// Goal: H13: a clock that was set back gives no pause, and order is that of seqs.
#[test]
fn h13_a_clock_set_back_gives_no_pause() {
    assert_eq!(waits(&[9_000, 1_000, 5_000, -86_400_000], Pace::recorded()), [4_000]);
}

/// Goal: the greatest pause that timestamps can make, as slow as can be, is no overflow.
#[test]
fn pauses_beyond_all_bounds() {
    let pause = |speed| Pace::scaled(speed).unwrap().pause(Timestamp::MIN, Timestamp::MAX);
    assert_eq!(pause(f64::MIN_POSITIVE), Duration::MAX);
    assert_eq!(pause(f64::MAX), Duration::ZERO);
    let ages = session(&[]);
    let ends = [Timestamp::MIN, Timestamp::MAX, Timestamp::MIN, Timestamp::MAX];
    ages.append_batch(ends.map(|at| NewEvent::user_message("x").timestamp(at))).unwrap();
    let (replay, clock) = replay(&ages, Pace::scaled(1e-300).unwrap());
    clock.0.lock().unwrap().stop_at = Some(0);
    assert_eq!(replay.count(), 1);
}

/// Goal: time that the taker of events spends counts: the replay catches up and does not drift.
#[test]
fn a_slow_taker_is_not_held_up_further() {
    let session = session(&[0, 100, 200, 300]);
    let (mut replay, clock) = replay(&session, Pace::recorded());
    replay.next();
    clock.0.lock().unwrap().now += Duration::from_millis(250);
    assert_eq!(replay.count(), 3);
    assert_eq!(clock.waits(), [50]);
}

/// Goal: stopped in a pause it ends there, knows where, and goes on from there when asked again.
#[test]
fn stopped_in_a_pause() {
    let session = session(&[0, 100, 200, 300]);
    let (mut replay, clock) = replay(&session, Pace::recorded());
    clock.0.lock().unwrap().stop_at = Some(1);
    assert_eq!(replay.by_ref().count(), 2);
    assert!(replay.stopper().is_stopped());
    assert_eq!((replay.next_seq(), replay.next().is_none()), (Seq::new(2), true));
    let rest = session.replay(replay.next_seq()..Seq::new(4), Pace::fastest()).unwrap();
    assert_eq!(rest.count(), 2);
}

/// Goal: one that waits on the real clock is woken at once: its pause is a year.
#[test]
fn a_waiting_replay_is_woken() {
    let session = session(&[0, 31_536_000_000]);
    let mut replay = session.replay(Seq::ZERO..Seq::new(2), Pace::recorded()).unwrap();
    let stop = replay.stopper();
    let waiting = std::thread::spawn(move || (replay.by_ref().count(), replay.next_seq()));
    stop.stop();
    let (given, next) = waiting.join().unwrap();
    assert_eq!(given as u64, next.get());
    assert!(given <= 1);
}
