//! The answer in words: "random 8 KiB reads: 18 % fewer IOPS than on 3 March, beyond noise (95 %: 15
//! to 21 % fewer)".

use crate::comparison::{Comparison, Method, Row, Verdict};
use crate::evidence::More;
use crate::figure::FigureUnit;
use workload::{Caching, Durability, Shape, Workload, format_bytes};

/// "random 8 KiB reads", "4 KiB appends, each synced", "random 8 KiB, 70 % reads, 30 % writes".
pub(crate) fn workload(workload: &Workload) -> String {
    let operations = shape(&workload.shape);
    if workload.name.is_empty() { operations } else { format!("{} ({operations})", workload.name) }
}

pub(crate) fn shape(shape: &Shape) -> String {
    let size = format_bytes(u64::from(shape.block_bytes));
    if *shape == Shape::log_append(shape.block_bytes) {
        return format!("{size} appends, each synced");
    }
    let pattern = shape.pattern;
    let operations = match shape.write_percent {
        0 => format!("{pattern} {size} reads"),
        100 => format!("{pattern} {size} writes"),
        writes => {
            format!("{pattern} {size}, {} % reads, {writes} % writes", 100_u8.saturating_sub(writes))
        }
    };
    let durability = match shape.durability {
        Durability::Cached => "",
        Durability::WriteThrough => ", written through",
        Durability::Synced => ", each synced",
    };
    let caching = match shape.caching {
        Caching::Direct => "",
        Caching::Buffered => ", through the page cache",
        Caching::Mapped => ", mapped",
    };
    format!("{operations}{durability}{caching}")
}

/// The comparison with its answer in a sentence.
pub(crate) fn with_summary(mut comparison: Comparison) -> Comparison {
    let what = if comparison.what.is_empty() { String::new() } else { format!("{}: ", comparison.what) };
    comparison.summary = what + &answer(&comparison);
    comparison
}

fn answer(comparison: &Comparison) -> String {
    let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.headline).collect();
    let of = |verdict: Verdict| rows.iter().copied().filter(move |row| row.verdict == verdict);
    match comparison.verdict {
        Verdict::CannotTell => {
            let open: Vec<String> = of(Verdict::CannotTell).map(open).collect();
            let same: Vec<&str> = of(Verdict::NoDifference).map(|row| row.figure.as_str()).collect();
            let same = if same.is_empty() {
                String::new()
            } else {
                format!("; no difference in {} that matters", same.join(" and "))
            };
            format!("cannot tell {}: {}{same}", data_at_hand(comparison), open.join("; "))
        }
        Verdict::NoDifference => {
            let figures: Vec<&str> = rows.iter().map(|row| row.figure.as_str()).collect();
            let intervals: Vec<String> = rows
                .iter()
                .map(|row| format!("{}, within {}", interval(row), percent(100.0 * row.margin)))
                .collect();
            format!(
                "no difference in {} that matters (95 %: {})",
                figures.join(" and "),
                intervals.join("; ")
            )
        }
        Verdict::Faster | Verdict::Slower | Verdict::Mixed => {
            let order = if comparison.verdict == Verdict::Faster {
                [Verdict::Faster, Verdict::Slower]
            } else {
                [Verdict::Slower, Verdict::Faster]
            };
            let decided: Vec<&Row> = order.into_iter().flat_map(of).collect();
            let sentence = |(at, row): (usize, &&Row)| {
                let than =
                    if at == 0 { format!(" than {}, beyond noise", comparison.a) } else { String::new() };
                format!("{}{than} (95 %: {})", change(row), interval(row))
            };
            decided.iter().enumerate().map(sentence).collect::<Vec<_>>().join("; ")
        }
    }
}

fn data_at_hand(comparison: &Comparison) -> String {
    let (a, b) = (comparison.runs_a, comparison.runs_b);
    let have = match comparison.method {
        Method::Curves => "from one measurement each".into(),
        Method::WithinRuns => "from runs of this length".into(),
        Method::Pairs => format!("with {b} pairs of runs"),
        Method::Groups if a == 0 => format!("with {b} runs"),
        Method::Groups => format!("with {a} and {b} runs"),
    };
    match comparison.more {
        None => have,
        Some(more) => format!("{have}, {}", self::more(more)),
    }
}

/// "4 more pairs needed".
pub(crate) fn more(more: More) -> String {
    match more {
        More::Pairs(1) => "1 more pair needed".into(),
        More::Pairs(count) => format!("about {count} more pairs needed"),
        More::Runs(1) => "1 more of each needed".into(),
        More::Runs(count) => format!("about {count} more of each needed"),
        More::Seconds(seconds) => format!("runs of about {} needed", length(seconds)),
    }
}

/// "+4 pairs": the same for a column of a table.
pub fn more_short(more: More) -> String {
    match more {
        More::Pairs(count) => format!("+{count} pairs"),
        More::Runs(count) => format!("+{count} runs each"),
        More::Seconds(seconds) => format!("{} runs", length(seconds)),
    }
}

fn length(seconds: f64) -> String {
    if seconds < 180.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", (seconds / 60.0).ceil()) }
}

fn open(row: &Row) -> String {
    match (&row.not_compared, row.difference) {
        (Some(why), _) => format!("{}{}: {why}", subject(row), row.figure),
        (None, Some(_)) => format!("{} (95 %: {})", change(row), interval(row)),
        (None, None) => format!("{}{}: nothing to compare", subject(row), row.figure),
    }
}

fn subject(row: &Row) -> String {
    row.subject.as_ref().map_or(String::new(), |subject| format!("{subject}: "))
}

/// "18 % fewer IOPS", "12 % longer p99 of reads".
pub(crate) fn change(row: &Row) -> String {
    let Some(by) = row.difference.map(|difference| difference.percent) else { return row.figure.clone() };
    if by.abs() < 0.05 {
        return format!("{}the same {}", subject(row), row.figure);
    }
    format!("{}{} {} {}", subject(row), amount(by), direction(row, by), row.figure)
}

fn direction(row: &Row, by: f64) -> &'static str {
    match (row.unit, by < 0.0) {
        (FigureUnit::PerSecond | FigureUnit::Outstanding, true) => "fewer",
        (FigureUnit::MibPerSecond, true) => "less",
        (FigureUnit::PerSecond | FigureUnit::Outstanding | FigureUnit::MibPerSecond, false) => "more",
        (FigureUnit::Ns, true) => "shorter",
        (FigureUnit::Ns, false) => "longer",
    }
}

/// "15 to 21 % fewer", "3 % fewer to 2 % more", "at least 5 % longer".
pub fn interval(row: &Row) -> String {
    let Some(difference) = row.difference else { return "not known".into() };
    let low = difference.percent_low.filter(|low| *low > -100.0);
    let one = |by: f64| format!("{} {}", amount(by), direction(row, by));
    match (low, difference.percent_high) {
        (None, None) => "anything".into(),
        (Some(low), None) => format!("{} to any amount more", one(low)),
        (None, Some(high)) => format!("any amount less to {}", one(high)),
        (Some(low), Some(high)) if (low < 0.0) == (high < 0.0) => {
            let (near, far) = if low.abs() < high.abs() { (low, high) } else { (high, low) };
            let (near_text, far_text) = (amount(near), amount(far));
            if near_text == far_text {
                return one(far);
            }
            let near_text = near_text.strip_suffix(" %").unwrap_or(&near_text);
            format!("{near_text} to {far_text} {}", direction(row, far))
        }
        (Some(low), Some(high)) => format!("{} to {}", one(low), one(high)),
    }
}

/// "18 %", "0.4 %".
fn amount(by: f64) -> String {
    percent(by.abs())
}

fn percent(percent: f64) -> String {
    match percent {
        p if p < 0.05 => "0 %".into(),
        p if p < 9.95 => {
            let text = format!("{p:.1}");
            format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
        }
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Difference;

    fn row(unit: FigureUnit, percent: f64, low: f64, high: f64) -> Row {
        Row {
            subject: None,
            figure: if unit == FigureUnit::Ns { "p99 of reads".into() } else { "IOPS".into() },
            unit,
            headline: true,
            higher_is_faster: unit != FigureUnit::Ns,
            margin: 0.02,
            a: None,
            b: None,
            percent: Some(percent),
            difference: Some(Difference {
                percent,
                percent_low: Some(low),
                percent_high: Some(high),
                p: 0.001,
                p_corrected: 0.001,
            }),
            not_compared: None,
            verdict: if (percent > 0.0) == (unit != FigureUnit::Ns) {
                Verdict::Faster
            } else {
                Verdict::Slower
            },
            more: None,
        }
    }

    fn sentence(rows: Vec<Row>, verdict: Verdict, more: Option<More>) -> String {
        let comparison = Comparison {
            what: shape(&Shape::random_read(8192)),
            a: "on 3 March".into(),
            b: "run 12".into(),
            runs_a: 1,
            runs_b: 1,
            method: Method::WithinRuns,
            rules: crate::Rules::default(),
            rows,
            mismatches: Vec::new(),
            doubts: Vec::new(),
            verdict,
            more,
            summary: String::new(),
        };
        with_summary(comparison).summary
    }

    #[test]
    fn the_answer_reads_as_people_say_it() {
        let rows =
            vec![row(FigureUnit::PerSecond, -18.0, -21.0, -15.0), row(FigureUnit::Ns, 25.0, 20.0, 31.0)];
        assert_eq!(
            sentence(rows, Verdict::Slower, None),
            "random 8 KiB reads: 18 % fewer IOPS than on 3 March, beyond noise (95 %: 15 to 21 % fewer); \
             25 % longer p99 of reads (95 %: 20 to 31 % longer)"
        );
    }

    #[test]
    fn what_is_open_says_what_would_close_it() {
        let mut undecided = row(FigureUnit::PerSecond, -1.0, -6.0, 4.0);
        undecided.verdict = Verdict::CannotTell;
        assert_eq!(
            sentence(vec![undecided], Verdict::CannotTell, Some(More::Seconds(240.0))),
            "random 8 KiB reads: cannot tell from runs of this length, runs of about 4 min needed: \
             1 % fewer IOPS (95 %: 6 % fewer to 4 % more)"
        );
    }

    #[test]
    fn what_does_not_matter_says_within_what() {
        let mut same = row(FigureUnit::Ns, 0.3, -0.5, 1.1);
        same.verdict = Verdict::NoDifference;
        assert_eq!(
            sentence(vec![same], Verdict::NoDifference, None),
            "random 8 KiB reads: no difference in p99 of reads that matters (95 %: 0.5 % shorter to 1.1 % \
             longer, within 2 %)"
        );
    }

    #[test]
    fn workloads_are_said_in_the_plural() {
        assert_eq!(shape(&Shape::log_append(4096)), "4 KiB appends, each synced");
        assert_eq!(shape(&Shape::random_read(8192).with_writes(30)), "random 8 KiB, 70 % reads, 30 % writes");
    }
}
