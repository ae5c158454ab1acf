//! No history of counters, however damaged, makes its reader panic; what is read stays whole: each capture once, in
//! the order of its time, and in intervals that are never negative.

use filestats::{Interval, Rules, intervals};
use import::{Kept, Points, counters, decode};
use proptest::prelude::*;

fn samples() -> Vec<Vec<u8>> {
    ["file_stats", "blitz_first", "dba_dash", "perfmon"]
        .map(|name| format!("{}/tests/samples/counters_{name}.csv", env!("CARGO_MANIFEST_DIR")))
        .map(|path| std::fs::read(path).unwrap())
        .to_vec()
}

fn read_whole(bytes: &[u8]) {
    let Ok((text, _)) = decode(bytes) else { return };
    let log = match counters(&text, None) {
        Ok(log) => log,
        Err(error) => {
            assert!(!error.reason.is_empty());
            return;
        }
    };
    for series in log.series {
        let points = match &series.points {
            Points::Cumulative(captures) => captures.len(),
            Points::Increments(rows) => rows.len(),
        };
        assert!(points > 0);
        let chain = series.clone().captures(&Kept::new(), None);
        let times = || chain.captures.iter().map(|capture| capture.snapshot.taken_unix_ns);
        assert!(times().is_sorted());
        for pair in chain.captures.windows(2) {
            for row in intervals(&pair[0].snapshot, &pair[1].snapshot, Rules::default()) {
                if let Interval::Known(delta) = row.interval {
                    assert!(delta.elapsed_ns > 0 && delta.iops() >= 0.0);
                }
            }
        }
        let kept: Kept = chain
            .captures
            .iter()
            .map(|capture| (capture.snapshot.taken_unix_ns, capture.snapshot.samples.len() as u64))
            .collect();
        let last = chain.captures.last().map(|capture| &capture.snapshot);
        assert!(series.captures(&kept, last).captures.is_empty(), "nothing twice");
    }
    for disk in log.disks.iter().flat_map(|log| &log.disks) {
        let totals = disk.totals();
        assert_eq!(totals.intervals + totals.unknown_intervals, disk.intervals.len());
        assert!(totals.outstanding.known().is_none_or(|n| n >= 0.0));
    }
}

#[test]
fn every_sample_cut_at_every_13th_byte() {
    for bytes in samples() {
        (0..bytes.len()).step_by(13).for_each(|end| read_whole(&bytes[..end]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn samples_with_changed_parts(
        which in 0_usize..4,
        at in 0.0_f64..1.0,
        length in 0_usize..60,
        with in prop_oneof![
            Just(String::new()), Just("18446744073709551615".into()), Just("-1".into()), Just("1e308".into()),
            Just("\"".into()), Just(",".into()), Just("\n".into()), Just("NULL".into()), Just("0".into()),
            Just("9999-12-31 23:59:59".into()), Just("1970-01-01 00:00:00 -14:00".into()), ".{0,9}",
        ],
    ) {
        let bytes = &samples()[which];
        let start = (at * bytes.len() as f64) as usize;
        let end = (start + length).min(bytes.len());
        let mut damaged = bytes[..start].to_vec();
        damaged.extend_from_slice(with.as_bytes());
        damaged.extend_from_slice(&bytes[end..]);
        read_whole(&damaged);
    }

    #[test]
    fn any_numbers_in_a_sample(which in 0_usize..4, seed in any::<u64>(), numbers in prop::collection::vec(
        prop_oneof![Just(0_u64), Just(u64::MAX), Just(u64::MAX / 1_000_000), Just(1 << 31), any::<u64>()], 1..4,
    )) {
        let bytes = &samples()[which];
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::new();
        let mut state = seed;
        // Now and then a cell that is a number becomes another.
        for part in text.split_inclusive([',', ';', '"', '\n']) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let digits = part.trim_end_matches([',', ';', '"', '\n', '\r']);
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && state >> 60 == 0 {
                out.push_str(&numbers[(state as usize >> 8) % numbers.len()].to_string());
                out.push_str(&part[digits.len()..]);
            } else {
                out.push_str(part);
            }
        }
        read_whole(out.as_bytes());
    }

    #[test]
    fn rows_in_any_order_and_any_number(which in 0_usize..4, order in prop::collection::vec(0_usize..40, 0..40)) {
        let bytes = &samples()[which];
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        let rows = order.iter().map(|at| lines[1 + at % (lines.len() - 1)]);
        let text: Vec<&str> = std::iter::once(lines[0]).chain(rows).collect();
        read_whole(text.join("\r\n").as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_whole(&bytes);
        let mut headed = samples()[0][..480].to_vec();
        headed.extend(bytes);
        read_whole(&headed);
    }
}
