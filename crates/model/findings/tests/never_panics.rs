//! Whatever a result holds, its findings come out: text in every sentence, finite numbers in every fact.

use capability::{Knee, KneeReason};
use findings::{RunConditions, Weight, findings, is_valid, steady};
use proptest::prelude::*;
use workload::{
    Access, Arrival, Backend, Caching, CoreUse, Direction, Durability, Latencies, LatencyHistogram, Limit,
    Pattern, Response, RunResult, Shape, SizeShare, Slice, SyncEvery, SyncKind, Tally, ThreadShare,
    Verification, Verify, Workload,
};

fn large() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..1_000_u64, 0..10_000_000_000_u64, any::<u64>()]
}

fn odd() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), 0.0..1e6_f64]
}

/// Every number of a result from the two lists, in turn.
struct Numbers<'a> {
    whole: &'a [u64],
    floats: &'a [f64],
    at: usize,
}

impl Numbers<'_> {
    fn int(&mut self) -> u64 {
        self.at += 1;
        self.whole[self.at % self.whole.len()]
    }

    fn small(&mut self) -> u64 {
        self.int() % 5_000
    }

    fn float(&mut self) -> f64 {
        self.at += 1;
        self.floats[self.at % self.floats.len()]
    }

    fn flag(&mut self) -> bool {
        self.int() % 2 == 1
    }

    fn histogram(&mut self) -> LatencyHistogram {
        let mut latencies = LatencyHistogram::new();
        for _ in 0..self.int() % 6 {
            let (ns, n) = (self.int(), self.small());
            latencies.record_n(ns, n);
        }
        latencies
    }

    fn direction(&mut self) -> Direction {
        let latency = self.histogram();
        let count = if self.flag() { latency.count() } else { self.int() };
        let mut direction = Direction { count, bytes: self.int(), latency, ..Direction::default() };
        if self.flag() {
            direction.errors.extend([(5, self.int()), (-7, self.int())]);
        }
        direction
    }

    fn tally(&mut self) -> Tally {
        Tally {
            count: self.int(),
            bytes: self.int(),
            stall_ns: self.int(),
            squares_ns2: self.float(),
            ns_min: self.int(),
            ns_max: self.int(),
        }
    }

    fn workload(&mut self) -> Workload {
        let shape = Shape {
            block_bytes: self.int() as u32,
            pattern: if self.flag() { Pattern::Random } else { Pattern::Sequential },
            write_percent: self.int() as u8,
            caching: [Caching::Direct, Caching::Buffered, Caching::Mapped][self.small() as usize % 3],
            durability: [Durability::Cached, Durability::Synced][self.small() as usize % 2],
        };
        let (outstanding, threads) = (self.int() as u32, self.int() as u32);
        let arrivals = [
            Arrival::Closed,
            Arrival::Constant { iops: self.float() },
            Arrival::Poisson { iops: self.float() },
            Arrival::Recorded { speed: self.float() },
        ];
        Workload {
            outstanding,
            threads,
            access: Access {
                base_bytes: self.int(),
                length_bytes: self.flag().then(|| self.int()),
                align_bytes: self.flag().then(|| self.int()),
                random_percent: self.flag().then(|| self.int() as u8),
                ..Access::default()
            },
            sizes: (0..self.small() % 3)
                .map(|_| SizeShare { block_bytes: self.int() as u32, percent: self.int() as u8 })
                .collect(),
            arrival: arrivals[self.small() as usize % 4],
            limit: Limit { iops: self.flag().then(|| self.float()), bytes_per_s: None },
            sync: self.flag().then_some(SyncEvery { writes: 0, how: SyncKind::Fsync }),
            verify: self.flag().then_some(Verify::Checksum),
            ..Workload::from(shape)
        }
    }

    fn run(&mut self, rows: usize) -> RunResult {
        let workload = self.workload();
        let even = self.flag();
        let series = (1..=rows as u64).map(|row| {
            let read_latencies = Latencies(vec![(self.int(), self.small())]);
            let end_ns = if even { row * 1_000_000_000 } else { self.int() };
            Slice { end_ns, read: self.tally(), write: self.tally(), read_latencies, ..Slice::default() }
        });
        let series = series.collect();
        RunResult {
            backend: Backend::Foreign,
            elapsed_ns: self.int(),
            interrupted: self.flag(),
            read: self.direction(),
            write: self.direction(),
            sync: self.direction(),
            response: self.flag().then(|| Response {
                read: self.histogram(),
                write: self.histogram(),
                waiting: self.int(),
                waiting_ns_max: self.int(),
                late_ns_max: self.int(),
            }),
            verification: self.flag().then(|| Verification {
                blocks: self.int(),
                bad: self.int(),
                first_bad: Vec::new(),
            }),
            target_bytes: self.int(),
            slice_ns: self.int(),
            series,
            cores: (0..self.small() % 4)
                .map(|core| CoreUse {
                    core: core as u32,
                    user_percent: self.float(),
                    kernel_percent: self.float(),
                    idle_percent: self.float(),
                })
                .collect(),
            threads: (0..self.small() % 4)
                .map(|_| ThreadShare {
                    read: self.tally(),
                    write: self.tally(),
                    cpu_ns: self.int(),
                    series: Vec::new(),
                })
                .collect(),
            ..RunResult::empty(workload, String::new())
        }
    }

    fn conditions(&mut self) -> RunConditions {
        RunConditions {
            memory_bytes: self.flag().then(|| self.int()),
            device_cache_bytes: self.flag().then(|| self.int()),
            sector_bytes: self.flag().then(|| self.int() as u32),
            cores: self.flag().then(|| self.int() as u32),
            rotational: self.flag().then(|| self.flag()),
            knee: self.flag().then(|| Knee {
                outstanding: self.float(),
                iops: self.float(),
                low: self.float(),
                high: self.float(),
                iops_interval: (self.float(), self.float()),
                latency_ns_floor: self.float(),
                outstanding_full: self.int() as u32,
                above_bounds: self.float(),
                reason: KneeReason::Device,
                why: String::new(),
            }),
            ..RunConditions::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_result_has_findings_that_can_be_read(
        whole in prop::collection::vec(large(), 1..40),
        floats in prop::collection::vec(odd(), 1..9),
        rows in 0..60_usize,
    ) {
        let mut numbers = Numbers { whole: &whole, floats: &floats, at: 0 };
        let (run, conditions) = (numbers.run(rows), numbers.conditions());
        let found = findings(&run, &conditions);
        prop_assert!(found.windows(2).all(|pair| pair[0].weight >= pair[1].weight), "worst first");
        let mut kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        prop_assert_eq!(kinds.len(), found.len(), "one finding a rule");
        for finding in &found {
            prop_assert!(finding.text.ends_with('.') && finding.text.len() > 10, "{}", finding.text);
            prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf "), "{}", finding.text);
            prop_assert!(finding.facts.iter().all(|fact| fact.value.is_finite()), "{:?}", finding);
        }
        let text = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<findings::Finding>>(&text).unwrap().len(), found.len());
        if run.ios() == 0 {
            prop_assert!(!is_valid(&found));
        }
        if let Some(window) = steady::steadiness(&run).window() {
            prop_assert!(window.first <= window.last && window.last < run.series.len());
        }
    }
}

#[test]
fn an_empty_result_says_that_nothing_was_measured() {
    let empty = RunResult::empty(Shape::random_read(8192).into(), "/data".into());
    let found = findings(&empty, &RunConditions::default());
    assert_eq!(found[0].text, "No I/O completed in 0 ns.");
    assert_eq!(found[0].weight, Weight::Warning);
}
