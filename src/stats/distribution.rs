//! A histogram of fixed size, for percentiles in one pass.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Buckets for each doubling of the value: the stated error is its inverse.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// How whole numbers (milliseconds, chunks a second) are distributed.
///
/// Count, total, least and greatest are exact. Percentiles come from a histogram of at most 1,920 buckets: exact up to
/// 63, beyond that never too small and at most 1/32 (3.2 %) too great.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// # use sessionlog::{NewEvent, NewSession, Store, Timestamp};
/// # let session = Store::in_memory()?.create(NewSession::new())?;
/// # for millis in [0, 40] {
/// #     let at = Timestamp::from_millis(1_700_000_000_000 + millis).unwrap();
/// #     let event = if millis == 0 { NewEvent::turn_start("t") } else { NewEvent::turn_end("t") };
/// #     session.append(event.timestamp(at))?;
/// # }
/// let turns = session.statistics()?.turn_ms;
/// assert_eq!((turns.count(), turns.percentile(50)), (1, Some(40)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
    /// As long as the greatest value needs.
    buckets: Vec<u64>,
}

impl Distribution {
    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns their sum.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the least one.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the greatest one.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns their mean, rounded down.
    pub fn mean(&self) -> Option<u64> {
        self.total.checked_div(self.count)
    }

    /// Returns the least value that is not exceeded by `percent` per cent of all: never too small, at most 1/32 too
    /// great. Above 100 counts as 100.
    pub fn percentile(&self, percent: u8) -> Option<u64> {
        let share = u128::from(self.count) * u128::from(percent.min(100));
        let rank = share.div_ceil(100).max(1);
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Some(greatest_of(bucket).clamp(self.min, self.max));
            }
        }
        None
    }

    pub(crate) fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.total = self.total.saturating_add(value);
        let bucket = bucket_of(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// Values below twice [`STEPS`] have a bucket each; then each doubling has [`STEPS`].
fn bucket_of(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let bucket = u64::from(shift) * STEPS + (value >> shift);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The greatest value that falls into a bucket.
fn greatest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let step = u128::from(bucket - shift * STEPS);
    u64::try_from(((step + 1) << shift) - 1).unwrap_or(u64::MAX)
}

/// Count, total, and, when there is any value, the rest.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Distribution", 8)?;
        fields.serialize_field("count", &self.count)?;
        fields.serialize_field("total", &self.total)?;
        fields.serialize_field("min", &self.min())?;
        fields.serialize_field("max", &self.max())?;
        fields.serialize_field("mean", &self.mean())?;
        fields.serialize_field("p50", &self.percentile(50))?;
        fields.serialize_field("p90", &self.percentile(90))?;
        fields.serialize_field("p99", &self.percentile(99))?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Distribution, bucket_of, greatest_of};

    fn of(values: &[u64]) -> Distribution {
        let mut found = Distribution::default();
        values.iter().for_each(|value| found.record(*value));
        found
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        vec(prop_oneof![0..70_u64, 0..100_000_u64, any::<u64>()], 0..60)
    }

    /// Goal: buckets follow each other without a gap, up to the greatest value there is.
    #[test]
    fn buckets_are_contiguous() {
        let last = bucket_of(u64::MAX);
        assert_eq!((last, greatest_of(last)), (1_919, u64::MAX));
        for bucket in 0..last {
            let greatest = greatest_of(bucket);
            assert_eq!((bucket_of(greatest), bucket_of(greatest + 1)), (bucket, bucket + 1), "{bucket}");
        }
    }

    proptest! {
        /// Goal: against sorting all of them: percentiles within the stated error, the rest exact.
        #[test]
        fn percentiles_keep_the_stated_error(values in values(), percent in 0..=100_u8) {
            let found = of(&values);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = (sorted.len() * usize::from(percent)).div_ceil(100).max(1);
            let exact = sorted.get(rank - 1).copied();
            prop_assert_eq!(found.percentile(percent).is_some(), exact.is_some());
            if let (Some(found), Some(exact)) = (found.percentile(percent), exact) {
                prop_assert!(found >= exact && found - exact <= exact / 32, "{} for {}", found, exact);
                prop_assert!(exact >= 64 || found == exact);
            }
            prop_assert_eq!(found.min(), sorted.first().copied());
            prop_assert_eq!(found.max(), sorted.last().copied());
            prop_assert_eq!(found.count(), sorted.len() as u64);
            prop_assert_eq!(found.total(), sorted.iter().fold(0, |sum: u64, v| sum.saturating_add(*v)));
        }

        /// Goal: merged parts are the whole.
        #[test]
        fn merged_parts_are_the_whole(mut values in values(), cut in any::<proptest::sample::Index>()) {
            let whole = of(&values);
            let rest = values.split_off(cut.index(values.len() + 1));
            let mut merged = of(&values);
            merged.merge(&of(&rest));
            prop_assert_eq!(merged, whole);
        }
    }
}
