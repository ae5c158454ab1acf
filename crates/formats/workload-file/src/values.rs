//! Values as people write them, in a file and on the command line alike.

use std::time::Duration;
use workload::{
    Burst, Caching, Durability, Extent, Limit, Pattern, SizeShare, SyncKind, Verify, Walk, Zone, parse_bytes,
    parse_duration,
};

/// Text that is no such value, and what would be one: "'9Q' is not a size; give bytes, or …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct Wrong {
    /// Why not.
    pub reason: String,
    /// The text to write.
    pub remedy: String,
}

type Read<T> = Result<T, Wrong>;

impl Wrong {
    /// Both in words.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        Wrong { reason: reason.into(), remedy: remedy.into() }
    }

    /// "'9Q' is not a limit".
    fn is_not(text: &str, what: &str, remedy: &str) -> Wrong {
        Wrong::new(format!("'{text}' is not a {what}"), remedy)
    }
}

impl From<workload::BadQuantity> for Wrong {
    fn from(bad: workload::BadQuantity) -> Wrong {
        Wrong::new(bad.reason(), bad.remedy())
    }
}

/// Where I/Os go.
pub const PATTERNS: &[(&str, Pattern)] = &[("random", Pattern::Random), ("sequential", Pattern::Sequential)];
/// How the page cache takes part.
pub const CACHINGS: &[(&str, Caching)] =
    &[("direct", Caching::Direct), ("buffered", Caching::Buffered), ("mapped", Caching::Mapped)];
/// When a write counts as complete.
pub const DURABILITIES: &[(&str, Durability)] = &[
    ("cached", Durability::Cached),
    ("write-through", Durability::WriteThrough),
    ("synced", Durability::Synced),
];
/// The call between writes; "none" takes a preset's away.
pub const SYNCS: &[(&str, Option<SyncKind>)] =
    &[("fdatasync", Some(SyncKind::Fdatasync)), ("fsync", Some(SyncKind::Fsync)), ("none", None)];
/// Checks of the written data.
pub const VERIFIES: &[(&str, Verify)] =
    &[("checksum", Verify::Checksum), ("sequence", Verify::Sequence), ("content", Verify::Content)];

/// "true" or "false".
pub const YES: &[(&str, bool)] = &[("true", true), ("false", false)];

/// Reads one of a few words; the error names them all.
pub fn word<'a, T: Copy>(choices: &'a [(&'a str, T)]) -> impl Fn(&str) -> Read<T> + Clone + use<'a, T> {
    move |text| {
        let found = choices.iter().find(|(word, _)| *word == text.trim());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Wrong::new(format!("'{text}' is not known here"), format!("give one of {}", words.join(", ")))
        })
    }
}

/// The word of a value.
pub(crate) fn name_of<T: PartialEq>(value: &T, choices: &[(&'static str, T)]) -> &'static str {
    // Every value has its word in these lists; the test below goes through them.
    choices.iter().find(|(_, choice)| choice == value).map_or("", |(word, _)| word)
}

/// A size: "4K", "1G", "512".
///
/// # Errors
/// Says what a size looks like.
pub fn bytes(text: &str) -> Read<u64> {
    Ok(parse_bytes(text)?)
}

/// A size that is not 0.
///
/// # Errors
/// Says what a size looks like.
pub fn some_bytes(text: &str) -> Read<u64> {
    match bytes(text)? {
        0 => Err(Wrong::new("0 bytes are nothing", "give a size as in 4K or 1G")),
        size => Ok(size),
    }
}

/// The size of an I/O.
///
/// # Errors
/// Says what a size looks like.
pub fn block(text: &str) -> Read<u32> {
    let size = some_bytes(text)?;
    u32::try_from(size).map_err(|_| Wrong::new(format!("'{text}' is too large a block"), "give up to 16M"))
}

/// A time: "500ms", "15s", "2m"; a bare number is seconds.
///
/// # Errors
/// Says what a time looks like.
pub fn time(text: &str) -> Read<Duration> {
    Ok(parse_duration(text)?)
}

/// A time that is not 0.
///
/// # Errors
/// Says what a time looks like.
pub fn some_time(text: &str) -> Read<Duration> {
    match time(text)? {
        Duration::ZERO => Err(Wrong::new("in no time nothing happens", "give a time as in 20s or 2m")),
        time => Ok(time),
    }
}

/// A share in whole percent: "30%" or "30".
///
/// # Errors
/// Says what a share looks like.
pub fn percent(text: &str) -> Read<u8> {
    let digits = text.trim().trim_end_matches('%').trim_end();
    let wrong = || Wrong::is_not(text, "share", "give whole percent from 0 to 100, as in 30 or \"30%\"");
    digits.parse().ok().filter(|percent| *percent <= 100).ok_or_else(wrong)
}

/// A number of things, from 1 on.
///
/// # Errors
/// Says what is accepted.
pub fn count(text: &str) -> Read<u32> {
    let wrong = || Wrong::is_not(text, "number from 1 on", "give a whole number from 1 on");
    text.trim().parse().ok().filter(|count| *count > 0).ok_or_else(wrong)
}

/// A number of I/Os, from 1 on.
///
/// # Errors
/// Says what is accepted.
pub fn ios(text: &str) -> Read<u64> {
    let wrong = || Wrong::is_not(text, "number of I/Os", "give a whole number from 1 on");
    text.trim().parse().ok().filter(|count| *count > 0).ok_or_else(wrong)
}

/// A seed.
///
/// # Errors
/// Says what is accepted.
pub fn seed(text: &str) -> Read<u64> {
    text.trim().parse().map_err(|_| Wrong::is_not(text, "seed", "give a whole number from 0 on"))
}

/// A number with a fraction.
///
/// # Errors
/// Says what is accepted.
pub fn fraction(text: &str) -> Read<f64> {
    let wrong = || Wrong::is_not(text, "number", "give one as in 0.99");
    text.trim().parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(wrong)
}

/// I/Os a second: "1000/s" or "1000".
///
/// # Errors
/// Says what a rate looks like.
pub fn rate(text: &str) -> Read<f64> {
    let wrong = || Wrong::is_not(text, "rate of I/Os", "give I/Os a second above 0, as in \"1000/s\"");
    positive(text.trim().trim_end_matches("/s")).ok_or_else(wrong)
}

/// Bounds: "1000/s" of I/Os, "200M/s" of bytes, or both with a comma.
///
/// # Errors
/// Says what a limit looks like.
pub fn limit(text: &str) -> Read<Limit> {
    const FORM: &str =
        "give I/Os a second as in \"1000/s\", bytes a second as in \"200M/s\", or both with a comma";
    let wrong = || Wrong::is_not(text, "limit", FORM);
    let mut limit = Limit::default();
    for part in text.split(',') {
        let number = part.trim().trim_end_matches("/s");
        let taken = if number.ends_with(|c: char| c.is_ascii_alphabetic()) {
            // "1.5B/s" is a rate, though half a byte is no size.
            let bytes = number
                .strip_suffix('B')
                .and_then(positive)
                .or_else(|| bytes(number).ok().filter(|bytes| *bytes > 0).map(|bytes| bytes as f64));
            limit.bytes_per_s.replace(bytes.ok_or_else(wrong)?)
        } else {
            limit.iops.replace(positive(number).ok_or_else(wrong)?)
        };
        if taken.is_some() {
            return Err(wrong());
        }
    }
    Ok(limit)
}

/// Sizes with their shares: "8K:70%, 64K:30%".
///
/// # Errors
/// Says what is accepted.
pub fn sizes(text: &str) -> Read<Vec<SizeShare>> {
    const FORM: &str = "give each size with its share, as in \"8K:70%, 64K:30%\"";
    let wrong = || Wrong::is_not(text, "mix of sizes", FORM);
    let share = |part: &str| {
        let (size, share) = part.split_once(':').ok_or_else(wrong)?;
        Ok(SizeShare { block_bytes: block(size.trim())?, percent: percent(share)? })
    };
    text.split(',').map(share).collect()
}

/// Zones from the start on, each its share of the I/Os and its size: "80%:20%, 10%:1G".
///
/// # Errors
/// Says what is accepted.
pub fn zones(text: &str) -> Read<Vec<Zone>> {
    const FORM: &str = "give each zone's share of the I/Os and its size, as in \"80%:20%, 10%:1G\"";
    let wrong = || Wrong::new(format!("'{text}' are no zones"), FORM);
    let zone = |part: &str| {
        let (ios, size) = part.split_once(':').ok_or_else(wrong)?;
        let extent = match size.trim() {
            share if share.ends_with('%') => Extent::Percent(percent(share)?),
            size => Extent::Bytes(bytes(size)?),
        };
        Ok(Zone { ios_percent: percent(ios)?, extent })
    };
    text.split(',').map(zone).collect()
}

/// How threads share a sequential walk: "own-parts", "shared", or "apart:1M".
///
/// # Errors
/// Says what is accepted.
pub fn walk(text: &str) -> Read<Walk> {
    const FORM: &str = "give \"own-parts\", \"shared\", or a distance of the threads as in \"apart:1M\"";
    match text.trim().split_once(':') {
        Some(("apart", by)) => Ok(Walk::Apart(bytes(by.trim())?)),
        None if text.trim() == "own-parts" => Ok(Walk::OwnParts),
        None if text.trim() == "shared" => Ok(Walk::Shared),
        _ => Err(Wrong::is_not(text, "pattern", FORM)),
    }
}

/// I/Os of each thread and the rest after them: "1024:1s".
///
/// # Errors
/// Says what is accepted.
pub fn burst(text: &str) -> Read<Burst> {
    let wrong = || Wrong::is_not(text, "burst", "give I/Os and the rest after them, as in \"1024:1s\"");
    let (ios, pause) = text.split_once(':').ok_or_else(wrong)?;
    Ok(Burst { ios: count(ios).map_err(|_| wrong())?, pause: time(pause.trim()).map_err(|_| wrong())? })
}

/// Speed of a trace: twice as fast is 2; "max" is `None`, without pauses.
///
/// # Errors
/// Says what is accepted.
pub fn speed(text: &str) -> Read<Option<f64>> {
    if text.trim() == "max" {
        return Ok(None);
    }
    const FORM: &str = "give 1 for as recorded, 2 for twice as fast, or \"max\"";
    positive(text.trim()).map(Some).ok_or_else(|| Wrong::is_not(text, "speed", FORM))
}

/// Plain digits: what Rust reads besides ("inf", "1e9") is no way to write a rate.
fn positive(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = plain.then(|| text.parse().ok())??;
    (number.is_finite() && number > 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!(percent("30%"), Ok(30));
        assert_eq!(percent("30 %"), Ok(30));
        assert_eq!(rate("1000/s"), Ok(1000.0));
        assert_eq!(limit("1000/s"), Ok(Limit { iops: Some(1000.0), bytes_per_s: None }));
        let both = Limit { iops: Some(10.5), bytes_per_s: Some(200.0 * 1_048_576.0) };
        assert_eq!(limit("10.5/s, 200M/s"), Ok(both));
        assert_eq!(sizes("8K:70%,64K:30").unwrap()[1], SizeShare { block_bytes: 65_536, percent: 30 });
        assert_eq!(zones("80%:20%, 10%:1G").unwrap()[1].extent, Extent::Bytes(1 << 30));
        assert_eq!(walk("apart:1M"), Ok(Walk::Apart(1 << 20)));
        assert_eq!(burst("1024:1s"), Ok(Burst { ios: 1024, pause: Duration::from_secs(1) }));
        assert_eq!((speed("max"), speed("2")), (Ok(None), Ok(Some(2.0))));
    }

    #[test]
    fn what_is_none_says_what_would_be_one() {
        assert_eq!(
            word(PATTERNS)("randm").unwrap_err().to_string(),
            "'randm' is not known here; give one of random, sequential"
        );
        for wrong in ["0/s", "-1/s", "fast", "1e9/s", "", "inf/s"] {
            assert!(rate(wrong).unwrap_err().remedy.contains("1000/s"), "{wrong}");
        }
        for wrong in ["0/s", "5/s,6/s", "5Q/s", "0M/s", ","] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
        for wrong in ["101", "-1", "3.5%", "%", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
        assert!(block("5G").unwrap_err().reason.contains("too large"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "[0-9a-zA-Z:,%/. -]{0,16}|.{0,8}") {
            let _ = (percent(&text), rate(&text), limit(&text), sizes(&text), zones(&text), walk(&text));
            let _ = (burst(&text), speed(&text), block(&text), count(&text), fraction(&text), some_time(&text));
        }
    }
}
