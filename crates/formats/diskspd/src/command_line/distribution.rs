use super::number::{leading, leading_size};
use crate::profile::{Distribution, Range, SpanUnit};

/// `pct90/10:0/10`, `abs90/10G:0/10G`: percent of the I/Os / part of the target, one range behind the other.
pub fn parse(text: &str, block_bytes: u64) -> Result<Distribution, String> {
    let (unit, list) = if let Some(list) = text.strip_prefix("pct") {
        (SpanUnit::Percent, list)
    } else if let Some(list) = text.strip_prefix("abs") {
        (SpanUnit::Bytes, list)
    } else {
        return Err("a distribution begins with pct or abs".into());
    };
    let mut ranges = Vec::new();
    for item in list.split(':') {
        let range = range(item, unit, block_bytes).map_err(|why| format!("'{item}': {why}"))?;
        ranges.push(range);
        super::super::rules::ranges_fit(unit, &ranges).map_err(|why| format!("'{item}': {why}"))?;
    }
    Ok(Distribution::new(unit, ranges))
}

fn range(item: &str, unit: SpanUnit, block_bytes: u64) -> Result<Range, String> {
    let (ios, rest) = leading(item)?;
    let ios_percent =
        u8::try_from(ios).ok().filter(|ios| *ios <= 100).ok_or("the share of I/Os is above 100 %")?;
    let span = rest.strip_prefix('/').ok_or("a / stands between I/Os and target")?;
    let (span, rest) = match unit {
        SpanUnit::Percent => leading(span)?,
        SpanUnit::Bytes => leading_size(span, block_bytes)?,
    };
    match (rest, span) {
        ("", 0) => Err("a range of nothing".into()),
        ("", span) => Ok(Range { ios_percent, span }),
        (rest, _) => Err(format!("'{rest}' stands after the range")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Vec<(u8, u64)> {
        let distribution = parse(text, 4096).unwrap_or_else(|why| panic!("{text}: {why}"));
        distribution.ranges.iter().map(|range| (range.ios_percent, range.span)).collect()
    }

    #[test]
    fn ranges_follow_each_other_and_the_rest_goes_to_the_rest() {
        assert_eq!(ranges("pct90/10:0/10:5/20"), [(90, 10), (0, 10), (5, 20), (5, 60)]);
        assert_eq!(ranges("abs90/10G:0/10G"), [(90, 10 << 30), (0, 10 << 30), (10, 0)]);
        assert_eq!(ranges("abs100/8b"), [(100, 32768)]);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for wrong in [
            "",
            "foo",
            "foo10/1G",
            "pct",
            "pct10",
            "pct10/",
            "pct10/0",
            "pct10/10:",
            "pct10/10:BAD",
            "pct10/10[",
            "pct10/50:10/60",
            "pct10/BAD",
            "pct101/10",
            "pct10[",
            "pct60/10:10/0",
            "pct60/10:60/10",
            "pct/10",
            "pct10/10K",
            "abs10",
            "abs10/",
            "abs10/0",
            "abs10/10g:",
            "abs10/10g:BAD",
            "abs10/10g[",
            "abs101/10g",
            "abs10/16777216T",
            "pct300/10",
        ] {
            assert!(parse(wrong, 4096).is_err(), "{wrong}");
        }
    }
}
