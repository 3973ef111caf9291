//! Times for people: how long ago, or RFC 3339, UTC, milliseconds; and the other way. JSON output keeps the number.
//!
//! Some lines instead of a dependency: date libraries end at the year 9999, a [`Timestamp`] does not.

use std::time::{SystemTime, UNIX_EPOCH};

use sessionlog::Timestamp;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// What is older than that is told by its date.
const AGO_MS: i64 = 31 * DAY_MS;

/// The system's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).ok().and_then(Timestamp::from_millis).unwrap_or(Timestamp::MAX)
}

/// `5 min ago`; the date of what is long ago or still to come.
pub(crate) fn ago(timestamp: Timestamp, now: Timestamp) -> String {
    let passed = now.as_millis() - timestamp.as_millis();
    if !(0..AGO_MS).contains(&passed) {
        let date = local(timestamp);
        return date.split('T').next().unwrap_or(&date).to_owned();
    }
    let units = [(DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min")];
    let (unit_ms, unit) = units.into_iter().find(|(ms, _)| passed >= *ms).unwrap_or((SECOND_MS, "s"));
    format!("{} {unit} ago", passed / unit_ms)
}

/// The time that a text says: `30d`, `12h`, `5m`, `45s` or `2w` ago; `2026-12-01`, `2026-12-01T10:25:42Z` (UTC);
/// milliseconds since 1970.
pub(crate) fn when(text: &str) -> Result<Timestamp, String> {
    at(text, now()).ok_or_else(|| {
        "not a time: write how long ago (30d, 12h, 5m, 45s, 2w), a date or time in UTC (2026-12-01, \
         2026-12-01T10:25:42Z), or milliseconds since 1970"
            .into()
    })
}

fn at(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(millis) = text.parse() {
        return Timestamp::from_millis(millis);
    }
    let unit_ms = match text.chars().last()? {
        's' => SECOND_MS,
        'm' => MINUTE_MS,
        'h' => HOUR_MS,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        _ => return date(text),
    };
    let number: u32 = text.get(..text.len() - 1)?.parse().ok()?;
    Timestamp::from_millis(now.as_millis().saturating_sub(i64::from(number).saturating_mul(unit_ms)))
}

/// RFC 3339 in UTC, as [`rfc3339`] writes it; the time of day, or its fraction, may be missing.
fn date(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let numbers = |text: &str, separator| -> Option<Vec<i64>> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        text.split(separator).map(|part| part.parse().ok().filter(|_| is_number(part))).collect()
    };
    let &[year, month, day] = numbers(date, '-')?.as_slice() else { return None };
    let (time, fraction) = time.strip_suffix('Z')?.split_once('.').unwrap_or((time.strip_suffix('Z')?, "0"));
    let &[hour, minute, second] = numbers(time, ':')?.as_slice() else { return None };
    let fraction: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let days = days(year, month, day).filter(|days| civil(*days) == (year, month, day))?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let in_day = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + fraction;
    Timestamp::from_millis(days * DAY_MS + in_day)
}

/// The day of a Gregorian date, counted from 1970-01-01: the reverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    const ERA_DAYS: i64 = 146_097;
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    Some(era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

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

    use super::{ago, at, date, rfc3339};

    fn time(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    /// Goal: what is written is read again; what is no date is none.
    #[test]
    fn dates_are_read_as_they_are_written() {
        for millis in [0, -1, 951_782_400_000, 1_709_164_800_123, 253_402_300_799_999, -62_167_219_200_000] {
            assert_eq!(date(&rfc3339(time(millis))), Some(time(millis)));
        }
        assert_eq!(date("1970-01-02"), Some(time(86_400_000)));
        assert_eq!(date("1970-01-01T00:00:01Z"), Some(time(1_000)));
        for bad in
            ["", "1970", "1970-02-30", "1970-13-01", "1970-01-01T24:00:00Z", "1970-01-01T00:00:00", "a-b-c"]
        {
            assert_eq!(date(bad), None, "{bad}");
        }
    }

    /// Goal: each unit, and what is no time.
    #[test]
    fn times_before_now() {
        let now = time(1_000_000_000_000);
        for (text, before) in [
            ("45s", 45_000),
            ("5m", 300_000),
            ("12h", 43_200_000),
            ("30d", 2_592_000_000),
            ("2w", 1_209_600_000),
        ] {
            assert_eq!(at(text, now), Some(time(1_000_000_000_000 - before)));
        }
        assert_eq!(at("17", now), Some(time(17)));
        for bad in ["", "d", "-3d", "3 d", "3y", "9007199254740992", "x"] {
            assert_eq!(at(bad, now), None, "{bad}");
        }
    }

    /// Goal: the greatest unit of which there is one; dates of what is far.
    #[test]
    fn how_long_ago() {
        let now = time(1_700_000_000_000);
        for (millis, text) in [
            (0, "0 s ago"),
            (59_999, "59 s ago"),
            (60_000, "1 min ago"),
            (7_200_000, "2 h ago"),
            (30 * 86_400_000, "30 d ago"),
            (31 * 86_400_000, "2023-10-14"),
            (-86_400_000, "2023-11-15"),
        ] {
            assert_eq!(ago(time(now.as_millis() - millis), now), text);
        }
    }

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
