//! Flags that say where I/Os go, by the offsets that reached the disk.

use super::bench::{Bench, DISK_BYTES, Seen, within};
use std::collections::{BTreeMap, BTreeSet};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Number of requests at each offset.
fn visits(offsets: &[u64]) -> BTreeMap<u64, usize> {
    let mut visits = BTreeMap::new();
    offsets.iter().for_each(|offset| *visits.entry(*offset).or_default() += 1);
    visits
}

/// Asserts that offsets rise by `stride` from `start`, and begin again below it when `end` is reached.
#[track_caller]
fn assert_walk(offsets: &[u64], start: u64, stride: u64, block: u64, (base, end): (u64, u64)) {
    assert!(offsets.len() > 100, "only {} I/Os", offsets.len());
    assert_eq!(offsets[0], start);
    let mut wraps = 0;
    for pair in offsets.windows(2) {
        if pair[0] + stride + block <= end {
            assert_eq!(pair[1], pair[0] + stride, "after {}", pair[0]);
        } else {
            assert_eq!(pair[1], base + (start - base) % stride, "from the end to the beginning");
            wraps += 1;
        }
    }
    assert!(wraps > 0, "it never came to the end of {} I/Os", offsets.len());
}

#[test]
fn s_is_one_block_after_the_other_or_one_stride() {
    let Some(bench) = Bench::new() else { return };
    for (flags, block, stride) in
        [("-o1 -Su -b64K", 64 * KIB, 64 * KIB), ("-o1 -Su -b4K -s16b", 4 * KIB, 64 * KIB)]
    {
        let seen = bench.run(flags);
        assert_walk(&seen.offsets(), 0, stride, block, (0, DISK_BYTES));
        assert!(seen.ios().iter().all(|io| io.bytes == block && !io.write), "{flags}");
    }
}

#[test]
fn sequential_threads_overlap_unless_t_sets_them_apart() {
    let Some(bench) = Bench::new() else { return };
    for (flags, starts) in
        [("-o1 -Su -b64K -t3", [0, 0, 0]), ("-o1 -Su -b64K -t3 -T4M -B1M", [MIB, 5 * MIB, 9 * MIB])]
    {
        let threads = bench.run(flags).offsets_of_threads();
        assert_eq!(threads.len(), 3, "{flags}");
        let mut found: Vec<u64> = threads.iter().map(|offsets| offsets[0]).collect();
        found.sort_unstable();
        assert_eq!(found, starts, "{flags}");
        for offsets in &threads {
            assert_walk(offsets, offsets[0], 64 * KIB, 64 * KIB, (starts[0], DISK_BYTES));
        }
    }
}

#[test]
fn si_is_one_offset_for_all_threads() {
    let Some(bench) = Bench::new() else { return };
    let offsets = bench.run("-o1 -Su -b64K -t3 -si").offsets();
    let visits = visits(&offsets);
    assert_eq!(visits.len() as u64, DISK_BYTES / (64 * KIB), "all blocks");
    let (least, most) = (visits.values().min().unwrap(), visits.values().max().unwrap());
    assert!(*least > 1 && most - least <= 1, "each block as often as any other: {least} to {most} times");
}

#[test]
fn r_is_random_at_multiples_of_its_alignment() {
    let Some(bench) = Bench::new() else { return };
    for (flags, align) in
        [("-r -b16K -Su", 16 * KIB), ("-r64K -b16K -Su", 64 * KIB), ("-r4K -b16K -Su", 4 * KIB)]
    {
        let offsets = bench.run(flags).offsets();
        assert!(offsets.iter().all(|offset| offset.is_multiple_of(align) && offset + 16 * KIB <= DISK_BYTES));
        let places = (DISK_BYTES - 16 * KIB) / align + 1;
        // The expected number of places that are drawn at least once, for this number of draws and places.
        let expected = places as f64 * (1.0 - (-(offsets.len() as f64) / places as f64).exp());
        within(flags, visits(&offsets).len() as f64 / expected, 0.97..=1.03);
        let next = offsets.windows(2).filter(|pair| pair[1] == pair[0] + 16 * KIB).count();
        within(
            "followed by the next block, in percent",
            100.0 * next as f64 / offsets.len() as f64,
            0.0..=1.0,
        );
    }
}

#[test]
fn rs_mixes_runs_of_geometric_length_all_reads_or_all_writes() {
    let Some(bench) = Bench::new() else { return };
    for percent in [20.0, 70.0] {
        let seen = bench.run(&format!("-rs{percent} -w40 -b4K -o1 -Su"));
        let follows = |pair: &[testbed::Issued]| pair[1].offset() == pair[0].offset() + 4 * KIB;
        let pairs: Vec<&[testbed::Issued]> = seen.ios().windows(2).collect();
        let jumps = pairs.iter().filter(|pair| !follows(pair)).count();
        within(
            "I/Os to a random place, in percent",
            100.0 * jumps as f64 / pairs.len() as f64,
            percent - 3.0..=percent + 3.0,
        );
        // A random place may by chance be the next one.
        let mixed = pairs.iter().filter(|pair| follows(pair) && pair[0].write != pair[1].write).count();
        within(
            "runs that change direction, in percent",
            100.0 * mixed as f64 / pairs.len() as f64,
            0.0..=0.5,
        );
        // Runs of one I/O: the next one jumps again.
        let after_a_jump = pairs.windows(2).filter(|two| !follows(two[0]));
        let (all, single) =
            after_a_jump.fold((0, 0), |(all, single), two| (all + 1, single + u32::from(!follows(two[1]))));
        within(
            "runs of a single I/O, in percent",
            100.0 * f64::from(single) / f64::from(all),
            percent - 4.0..=percent + 4.0,
        );
        within("writes, in percent", seen.percent(|io| io.write), 35.0..=45.0);
    }
}

#[test]
fn rd_gathers_ios_in_percent_or_bytes_of_the_target() {
    let Some(bench) = Bench::new() else { return };
    let below = |seen: &Seen, end: u64| seen.percent(|io| io.offset() < end);
    let tenth = DISK_BYTES / 10;
    let seen = bench.run("-r -b4K -Su -o4 -rdpct90/10");
    within("in the first tenth", below(&seen, tenth), 88.5..=91.5);
    let seen = bench.run("-r -b4K -Su -o4 -rdpct60/10:0/40:40/50");
    within("in the first tenth", below(&seen, tenth), 58.0..=62.0);
    within(
        "in the hole",
        below(&seen, DISK_BYTES / 2 - 64 * KIB) - below(&seen, tenth + 64 * KIB),
        0.0..=0.2,
    );
    let seen = bench.run("-r -b4K -Su -o4 -rdabs80/1M:15/3M");
    within("in the first MiB", below(&seen, MIB), 78.5..=81.5);
    within("in the first four", below(&seen, 4 * MIB), 94.0..=96.0);
    assert!(below(&seen, 4 * MIB) < 100.0, "the rest goes to the rest");
}

#[test]
fn b_and_f_bound_the_part_that_is_used() {
    let Some(bench) = Bench::new() else { return };
    for (flags, from, to) in [
        ("-r -B1M:2M", MIB, 3 * MIB),
        ("-o1 -B1M:2M", MIB, 3 * MIB),
        ("-o1 -B12M", 12 * MIB, DISK_BYTES),
        ("-r -f2M", 0, 2 * MIB),
        ("-o1 -B1M -f2M", MIB, 2 * MIB),
    ] {
        let visits = visits(&bench.run(&format!("-Su {flags}")).offsets());
        assert_eq!(visits.keys().next(), Some(&from), "{flags}");
        assert_eq!(visits.keys().next_back(), Some(&(to - 64 * KIB)), "{flags}");
        assert_eq!(visits.len() as u64, (to - from) / (64 * KIB), "{flags}: all of it");
    }
}

#[test]
fn p_starts_all_outstanding_ios_at_the_same_offset() {
    let Some(bench) = Bench::new() else { return };
    let offsets = bench.run("-p -o4 -b4K -Su").offsets();
    // Whichever of the four is ahead, over a while all have been there.
    let first: Vec<u64> = offsets.into_iter().take(2000).collect();
    assert_eq!(first[..4], [0; 4]);
    let visits = visits(&first);
    let four = visits.values().filter(|count| **count == 4).count();
    within("offsets asked four times, in percent", 100.0 * four as f64 / visits.len() as f64, 95.0..=100.0);
}

#[test]
fn z_draws_the_same_numbers_for_the_same_seed() {
    let Some(bench) = Bench::new() else { return };
    let drawn = |flags: &str| {
        let seen = bench.run(&format!("-r -w50 -b4K -Su {flags}"));
        seen.ios().iter().map(|io| (io.offset(), io.write)).take(2000).collect::<Vec<_>>()
    };
    // A slow second has fewer of the same.
    let same = |one: &[(u64, bool)], other: &[(u64, bool)]| {
        let count = one.len().min(other.len());
        assert!(count >= 20, "only {count} I/Os");
        one[..count] == other[..count]
    };
    let (seven, zero) = (drawn("-o1 -z7"), drawn("-o1 -z0"));
    assert!(same(&seven, &drawn("-o1 -z7")));
    assert!(!same(&seven, &zero));
    assert!(same(&zero, &drawn("-o1")), "0 unless told otherwise");
    assert!(!same(&zero, &drawn("-o1 -z")), "the clock's");
    let threads = bench.run("-r -b4K -Su -o1 -t2 -z7").offsets_of_threads();
    let first: BTreeSet<u64> = threads[0].iter().take(500).copied().collect();
    let common = threads[1].iter().take(500).filter(|offset| first.contains(offset)).count();
    assert!(common < 150, "each thread has a seed of its own: {common} offsets of 500 in common");
}
