//! How often the comparison is right, counted on simulated runs whose truth is known: plain values, fixed seeds.

use compare::{Comparison, InterimSchedule, Rules, Side, Verdict, pairs, runs};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use workload::{RunResult, Shape, Slice, Workload};

/// A source of normally distributed numbers.
struct Noise(Xoshiro256PlusPlus);

impl Noise {
    fn seeded(seed: u64) -> Noise {
        Noise(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Box and Muller 1958.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A storage whose speed wanders from second to second, and from run to run.
#[derive(Clone, Copy)]
struct Storage {
    iops: f64,
    /// Standard deviation of a second's speed, as a share.
    noise: f64,
    /// Share of a second's deviation that the next one keeps.
    memory: f64,
    /// Standard deviation of a run's speed.
    between: f64,
}

const USUAL: Storage = Storage { iops: 10_000.0, noise: 0.05, memory: 0.5, between: 0.0 };

impl Storage {
    /// A run of reads: the speed of each second follows an autoregressive series, latencies are log-normal
    /// around what the speed allows.
    fn run(&self, seconds: u64, noise: &mut Noise) -> RunResult {
        let mut run = RunResult::empty(Workload::from(Shape::random_read(8192)), "t".into());
        let of_run = (self.between * noise.normal()).exp();
        let mut state = noise.normal();
        for second in 1..=seconds {
            let fresh = (1.0 - self.memory * self.memory).sqrt();
            state = self.memory * state + fresh * noise.normal();
            let speed = of_run * (1.0 + self.noise * state).max(0.05);
            let count = (self.iops * speed).round().max(1.0) as u64;
            let mut latencies = Vec::new();
            // The quantiles of the second's latencies, a fiftieth of its I/Os each; steps of 1 us as a histogram's.
            let typical = 8e9 / self.iops / speed;
            let mut slice = Slice { end_ns: second * 1_000_000_000, ..Slice::default() };
            for quantile in QUANTILES {
                let us = (typical * (0.4 * quantile + 0.02 * noise.normal()).exp() / 1e3).round();
                latencies.push((us.max(1.0) as u64 * 1000, count.div_ceil(QUANTILES.len() as u64)));
            }
            latencies.sort_unstable();
            for (ns, n) in &latencies {
                slice.read.record_n(*ns, 8192, *n);
                run.read.latency.record_n(*ns, *n);
            }
            for pair in latencies.chunk_by(|a, b| a.0 == b.0) {
                slice.read_latencies.0.push((pair[0].0, pair.iter().map(|(_, n)| n).sum()));
            }
            run.read.count += slice.read.count;
            run.read.bytes += slice.read.bytes;
            run.series.push(slice);
        }
        run.elapsed_ns = seconds * 1_000_000_000;
        run
    }
}

/// Of the standard normal distribution, with a long tail at the end: 2 % of the I/Os above it.
const QUANTILES: [f64; 50] = {
    let mut quantiles = [0.0; 50];
    let mut at = 0;
    while at < 50 {
        // Logistic rather than normal: only a shape is needed.
        let p = (at as f64 + 0.5) / 50.0;
        quantiles[at] = 4.0 * (p - 0.5) / (1.0 - (2.0 * p - 1.0) * (2.0 * p - 1.0) * 0.7);
        at += 1;
    }
    quantiles
};

fn side<'a>(runs: &'a [RunResult]) -> Side<'a> {
    Side { name: "A", runs }
}

/// Share of `times` simulations in which `is_so` holds.
fn share(times: u64, mut is_so: impl FnMut(&mut Noise) -> bool) -> f64 {
    let count = (0..times).filter(|seed| is_so(&mut Noise::seeded(*seed + 1))).count();
    count as f64 / times as f64
}

fn is_alarm(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Faster | Verdict::Slower | Verdict::Mixed)
}

const EXACT: Rules = Rules { margin: 0.0, looks: 1, comparisons: 1 };

#[test]
fn equal_runs_alarm_in_no_more_than_5_percent_however_long_their_memory() {
    for (seconds, memory) in [(10, 0.3), (20, 0.5), (30, 0.0), (60, 0.7), (120, 0.85)] {
        let storage = Storage { memory, ..USUAL };
        let alarms = share(300, |noise| {
            let (a, b) = (storage.run(seconds, noise), storage.run(seconds, noise));
            is_alarm(&runs(side(&[a]), side(&[b]), &EXACT))
        });
        assert!(alarms <= 0.06, "{seconds} s, memory {memory}: {:.1} % false alarms", 100.0 * alarms);
    }
}

#[test]
fn equal_repeats_alarm_in_no_more_than_5_percent() {
    let storage = Storage { between: 0.03, ..USUAL };
    for count in [2, 3, 8] {
        let alarms = share(300, |noise| {
            let mut group = || (0..count).map(|_| storage.run(5, noise)).collect::<Vec<_>>();
            let (a, b) = (group(), group());
            is_alarm(&runs(side(&a), side(&b), &EXACT))
        });
        assert!(alarms <= 0.06, "{count} runs: {:.1} % false alarms", 100.0 * alarms);
    }
}

/// Pairs done in turn up to eight rounds, looked at as `headroom compare --interleave` does.
fn interleaved(a: Storage, b: Storage, rules: Rules, noise: &mut Noise) -> (Comparison, u32) {
    let looks = InterimSchedule::for_rounds(8).unwrap();
    let rules = Rules { looks: looks.count(), ..rules };
    let (mut runs_a, mut runs_b) = (Vec::new(), Vec::new());
    for round in 1.. {
        for _ in 0..2 {
            // Speed that both runs of a pair share cancels out.
            let shared = (0.1 * noise.normal()).exp();
            runs_a.push(Storage { iops: a.iops * shared, ..a }.run(5, noise));
            runs_b.push(Storage { iops: b.iops * shared, ..b }.run(5, noise));
        }
        if looks.is_due(round) {
            let found = pairs(side(&runs_a), side(&runs_b), &rules);
            if found.verdict != Verdict::CannotTell || round == looks.rounds_max() {
                return (found, round);
            }
        }
    }
    unreachable!("the last round is looked at")
}

#[test]
fn looking_again_and_again_does_not_raise_the_false_alarms() {
    let storage = Storage { between: 0.02, ..USUAL };
    let alarms = share(300, |noise| is_alarm(&interleaved(storage, storage, EXACT, noise).0));
    assert!(alarms <= 0.06, "{:.1} % false alarms", 100.0 * alarms);
}

#[test]
fn a_shift_of_5_percent_is_found_with_enough_runs() {
    let a = Storage { between: 0.01, ..USUAL };
    let b = Storage { iops: 0.95 * a.iops, ..a };
    let found = share(100, |noise| interleaved(a, b, Rules::default(), noise).0.verdict == Verdict::Slower);
    assert!(found >= 0.8, "interleaved: found in {:.0} %", 100.0 * found);

    let within = Storage { noise: 0.03, memory: 0.3, ..USUAL };
    let slower = Storage { iops: 0.95 * within.iops, ..within };
    let found = share(100, |noise| {
        let (a, b) = (within.run(120, noise), slower.run(120, noise));
        runs(side(&[a]), side(&[b]), &Rules::default()).verdict == Verdict::Slower
    });
    assert!(found >= 0.8, "two runs of two minutes: found in {:.0} %", 100.0 * found);
}

#[test]
fn a_shift_of_20_percent_ends_the_series_at_the_first_look() {
    let a = Storage { between: 0.01, ..USUAL };
    let b = Storage { iops: 0.8 * a.iops, ..a };
    let early = share(60, |noise| {
        let (found, rounds) = interleaved(a, b, Rules::default(), noise);
        found.verdict == Verdict::Slower && rounds <= 4
    });
    assert!(early >= 0.9, "decided after at most four rounds in {:.0} %", 100.0 * early);
}

#[test]
fn intervals_hold_the_true_difference() {
    let a = Storage { memory: 0.6, ..USUAL };
    let b = Storage { iops: 0.9 * a.iops, ..a };
    let figures = ["IOPS", "mean of reads", "p50 of reads", "p99 of reads"];
    let (mut covered, mut bounded, count) = ([0; 4], [0; 4], 300);
    for seed in 0..count {
        let noise = &mut Noise::seeded(seed + 1);
        let (a, b) = (a.run(60, noise), b.run(60, noise));
        let comparison = runs(side(&[a]), side(&[b]), &Rules::default());
        for (at, figure) in figures.iter().enumerate() {
            let true_percent = if *figure == "IOPS" { -10.0 } else { 100.0 / 0.9 - 100.0 };
            let row = comparison.rows.iter().find(|row| row.figure == *figure).unwrap();
            let found = row.difference.unwrap();
            bounded[at] += u32::from(found.percent_high.is_some());
            let high = found.percent_high.unwrap_or(f64::INFINITY);
            let holds = found.percent_low.unwrap() <= true_percent && true_percent <= high;
            covered[at] += u32::from(holds);
        }
    }
    for (at, figure) in figures.iter().enumerate() {
        assert!(covered[at] >= 279, "{figure}: covered in {} of {count}", covered[at]);
        assert!(bounded[at] >= 240, "{figure}: bounded in {} of {count}", bounded[at]);
    }
}

#[test]
fn too_little_is_never_significant() {
    let noise = &mut Noise::seeded(7);
    let b = Storage { iops: 5_000.0, ..USUAL };
    let short = runs(side(&[USUAL.run(5, noise)]), side(&[b.run(5, noise)]), &Rules::default());
    assert_eq!(short.verdict, Verdict::CannotTell);
    assert!(short.summary.contains("10 are needed"), "{}", short.summary);
    let mut bare = USUAL.run(30, noise);
    bare.series.clear();
    let imported = runs(side(&[bare.clone()]), side(&[bare]), &Rules::default());
    assert_eq!(imported.verdict, Verdict::CannotTell);
    assert!(imported.rows.iter().all(|row| row.difference.is_none() && row.not_compared.is_some()));
}

#[test]
fn what_is_missing_is_about_enough() {
    // Six pairs with a noise of 4 % do not tell a difference of 3 %; what they ask for does in most cases.
    let a = Storage { between: 0.03, ..USUAL };
    let b = Storage { iops: 0.97 * a.iops, ..a };
    let rules = Rules { margin: 0.005, ..Rules::default() };
    let (mut asked, mut told) = (0, 0);
    for seed in 0..60 {
        let noise = &mut Noise::seeded(seed + 100);
        let mut group = |of: Storage, count: usize| (0..count).map(|_| of.run(5, noise)).collect::<Vec<_>>();
        let (runs_a, runs_b) = (group(a, 6), group(b, 6));
        let found = pairs(side(&runs_a), side(&runs_b), &rules);
        let Some(compare::More::Pairs(more)) = found.more else { continue };
        let count = (6 + more as usize).min(compare::RUNS_MAX);
        let (runs_a, runs_b) = (group(a, count), group(b, count));
        asked += 1;
        told += u32::from(pairs(side(&runs_a), side(&runs_b), &rules).verdict == Verdict::Slower);
    }
    assert!(asked >= 20 && 10 * told >= 5 * asked, "{told} of {asked}");
}
