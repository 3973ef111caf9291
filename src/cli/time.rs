//! Times for people: RFC 3339, UTC, milliseconds. JSON output keeps the number.
//!
//! Thirty lines instead of a dependency: date libraries end at the year 9999, a [`Timestamp`] does not.

use sessionlog::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// `2025-01-31T12:34:56.789Z`. Years beyond four digits have a sign, as ISO 8601 writes them.
pub(crate) fn rfc3339(timestamp: Timestamp) -> String {
    let millis = timestamp.as_millis();
    let (days, in_day) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    let year = if (0..=9999).contains(&year) { format!("{year:04}") } else { format!("{year:+05}") };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The same with the offset of this system's time zone; in UTC where there is none, and beyond the calendar's years.
pub(crate) fn local(timestamp: Timestamp) -> String {
    let zoned = jiff::Timestamp::from_millisecond(timestamp.as_millis())
        .map(|instant| instant.to_zoned_datetime(jiff::tz::TimeZone::system()));
    match zoned {
        Ok(zoned) if !zoned.offset().is_zero() => zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
        _ => rfc3339(timestamp),
    }
}

/// The Gregorian date of a day counted from 1970-01-01 (Howard Hinnant's `civil_from_days`): years begin in March,
/// so that the leap day is the last one.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let days = days + 719_468;
    let (era, in_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use sessionlog::Timestamp;

    use super::rfc3339;

    /// Goal: right at the epoch, before it, on leap days and at both ends. Expected values: GNU `date -u -d @N`, and
    /// ECMAScript's `toISOString` for the negative years.
    #[test]
    fn known_dates() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_123, "2024-02-29T00:00:00.123Z"),
            (1_700_000_001_000, "2023-11-14T22:13:21.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
            (Timestamp::MAX.as_millis(), "+287396-10-12T08:59:00.991Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis).unwrap()), text);
        }
    }
}
