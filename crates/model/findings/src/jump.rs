//! Where the percentiles jump, and between which two.
//!
//! Of reads and of writes, not of both together: two directions of different speed are no jump. Rows that
//! stand on ten I/Os come first; minimum and maximum, each a single I/O, are looked at only where no other
//! pair jumps.

use crate::case::Case;
use crate::ladder::LADDER;
use crate::limits::JUMP;
use crate::{Finding, FindingKind, Weight, words};
use capability::humps;
use statistics::IOS_MIN;
use workload::{Durability, LatencyFigures, Unit};

/// Two neighbouring rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    below: (&'static str, f64, u64),
    above: (&'static str, f64, u64),
}

impl Step {
    fn ratio(&self) -> f64 {
        self.above.2 as f64 / self.below.2.max(1) as f64
    }
}

/// The pair that is farthest apart.
fn largest_step(latencies: &LatencyFigures) -> Option<Step> {
    let standing = LADDER.iter().filter(|rung| rung.stands(latencies.count()));
    let mut rows: Vec<(&'static str, f64, u64)> = Vec::new();
    rows.push(("min", 0.0, latencies.min_ns()?));
    rows.extend(
        standing.filter_map(|rung| Some((rung.name, rung.percent, latencies.percentile_ns(rung.percent)?))),
    );
    rows.push(("max", 100.0, latencies.max_ns()?));
    let steps: Vec<Step> = rows.windows(2).map(|pair| Step { below: pair[0], above: pair[1] }).collect();
    let largest = |steps: &[Step]| steps.iter().copied().max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let inner = steps.get(1..steps.len().saturating_sub(1)).and_then(largest);
    inner.filter(|step| step.ratio() >= JUMP).or_else(|| largest(&steps))
}

pub fn percentile_jump(case: &Case) -> Option<Finding> {
    if case.result.ios() < IOS_MIN {
        return None;
    }
    let steps = case.latencies().filter_map(|(name, latency)| {
        (latency.count() >= IOS_MIN && latency.has_percentiles()).then_some(())?;
        let step = largest_step(&latency)?;
        Some((name, latency, step))
    });
    let (name, latency, step) = steps.max_by(|a, b| a.2.ratio().total_cmp(&b.2.ratio()))?;
    let Step { below: (below, percent, below_ns), above: (above, _, above_ns) } = step;
    let max_ns = latency.max_ns()?;
    let beyond = latency.count() as f64 * (1.0 - percent / 100.0);
    let label = |name: &str| match name {
        "min" => "the minimum".into(),
        "max" => "the maximum".into(),
        name => format!("{name} %"),
    };
    let between = format!(
        "from {} at {} to {} at {}",
        words::time(below_ns as f64),
        label(below),
        words::time(above_ns as f64),
        label(above)
    );
    let new = |weight, text: String| {
        Finding::new(FindingKind::PercentileJump, weight, text)
            .fact("ratio", step.ratio(), Unit::Times)
            .fact("below the jump", below_ns as f64, Unit::Ns)
            .fact("above the jump", above_ns as f64, Unit::Ns)
            .fact("percentile below the jump", percent, Unit::Percent)
            .fact("longest", max_ns as f64, Unit::Ns)
    };
    let times = words::rate(step.ratio());
    if step.ratio() < JUMP {
        let text =
            format!("Latencies of {name}s rise without a jump: the largest step is {times} x, {between}.");
        return Some(new(Weight::Good, text));
    }
    let longest = if above == "max" || max_ns < above_ns.saturating_mul(2) {
        String::new()
    } else {
        format!(", the longest {}", words::time(max_ns as f64))
    };
    let text = format!(
        "Latencies of {name}s jump {times} x, {between}{longest} ({} beyond): {}.",
        words::counted(beyond.ceil() as u64, name),
        cause(case, name, &latency, above)
    );
    Some(new(Weight::Note, text))
}

/// Usual cause of such a jump; a guess, and worded as one.
fn cause(case: &Case, name: &str, latencies: &LatencyFigures, above: &str) -> &'static str {
    let durable = case.result.workload.shape.durability != Durability::Cached || case.result.sync.count > 0;
    if above == "max" || above == "25" {
        return "single I/Os, of which one run proves nothing";
    }
    if case.is_cpu_bound() {
        return "likely waits for the load threads' own CPU";
    }
    if latencies.histogram().and_then(humps).is_some() {
        return if case.is_cached() {
            "two groups with nothing between, likely the page cache and the storage behind it"
        } else {
            "two groups with nothing between, likely a cap, or a cache and what is behind it"
        };
    }
    match (name, case.conditions.rotational) {
        ("read", _) if case.is_cached() => "likely those that missed the page cache",
        ("read", Some(true)) => "likely queues at the heads, or sectors read twice",
        ("read", _) if case.result.write.count > 0 => {
            "likely reads that met writes, or the flash's clean-up after them"
        }
        ("read", _) => "likely a cache miss, a slower tier, or others' I/O",
        (_, Some(true)) => "likely a write cache that must be emptied",
        _ if durable => "likely commits of the file system's journal, or the flash's clean-up",
        _ => "likely a write cache that must be emptied, or the flash's clean-up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, finding, plain};
    use workload::RunResult;

    /// The study's disk: 4.8 ms at 99 %, 38.7 ms at 99.9 %, 207 ms at 99.99 %.
    fn study() -> RunResult {
        let mut read = direction(989_000, 3_000_000, 4_790_000);
        for (count, ns) in [
            (2_000, 4_800_000),
            (7_990, 20_000_000),
            (900, 38_700_000),
            (100, 207_000_000),
            (10, 250_000_000),
        ] {
            read.merge(&direction(count, ns, ns));
        }
        RunResult { read, ..plain() }
    }

    #[test]
    fn the_pair_with_the_largest_ratio_is_named_with_both_values() {
        let found = finding(&study(), FindingKind::PercentileJump).unwrap();
        assert_eq!(found.weight, Weight::Note);
        assert!(found.text.contains("jump 8.0"), "{}", found.text);
        assert!(found.text.contains("from 4.80 ms at 99 % to 38.7 ms at 99.9 %"), "{}", found.text);
    }

    #[test]
    fn three_times_is_a_jump_and_less_is_not() {
        let with = |ns: u64| {
            let mut read = direction(98_000, 100_000, 100_000);
            read.merge(&direction(2_000, ns, ns));
            finding(&RunResult { read, ..plain() }, FindingKind::PercentileJump).unwrap()
        };
        assert_eq!(with(290_000).weight, Weight::Good);
        assert_eq!(with(310_000).weight, Weight::Note);
        assert!(with(310_000).text.contains("at 95 % to"), "{}", with(310_000).text);
    }

    #[test]
    fn single_ios_count_only_where_nothing_else_jumps() {
        let mut read = direction(100_000, 100_000, 150_000);
        read.merge(&direction(1, 2_000_000_000, 2_000_000_000));
        let found = finding(&RunResult { read, ..plain() }, FindingKind::PercentileJump).unwrap();
        assert!(
            found.text.contains("at the maximum") && found.text.contains("single I/Os"),
            "{}",
            found.text
        );
        let mut both = study();
        both.read.merge(&direction(1, 3_000_000_000, 3_000_000_000));
        let found = finding(&both, FindingKind::PercentileJump).unwrap();
        assert!(found.text.contains("at 99.9 %, the longest 3.00 s"), "{}", found.text);
    }

    #[test]
    fn two_directions_of_different_speed_are_no_jump() {
        let run = RunResult { write: direction(200_000, 9_000_000, 12_000_000), ..plain() };
        assert_eq!(finding(&run, FindingKind::PercentileJump).unwrap().weight, Weight::Good);
    }
}
