use super::*;
use crate::progress::Progress;
use workload::LatencyHistogram;

/// Bytes of each I/O of others.
const OTHERS_BYTES: u32 = 8192;

/// A disk that serves `width` I/Os at once, each in the same time, and others that use it without waiting for an answer.
struct Disk {
    latency_s: f64,
    width: f64,
    others_iops: f64,
    /// Bytes a second that it gives at most.
    bytes_per_s: f64,
}

impl Disk {
    fn iops_max(&self) -> f64 {
        self.width / self.latency_s
    }

    /// Rate and latency of the plan's own reads.
    fn own(&self, plan: &BurstPlan) -> (f64, f64) {
        let bytes_left = self.bytes_per_s - self.others_iops * f64::from(OTHERS_BYTES);
        let block = f64::from(plan.shape.block_bytes);
        let left = (self.iops_max() - self.others_iops).min(bytes_left / block);
        let latency_s = self.latency_s.max(f64::from(plan.outstanding) / left);
        let rate = f64::from(plan.outstanding) / latency_s;
        plan.iops_max.filter(|most| *most < rate).map_or((rate, latency_s), |most| (most, self.latency_s))
    }

    fn burst(&self, plan: &BurstPlan) -> BurstEnd {
        let (rate, latency_s) = self.own(plan);
        if plan.guard.read_ns.is_some_and(|guard| latency_s * 1e9 > guard) {
            return BurstEnd::Stopped;
        }
        let own_ios = (rate * plan.measured_s).round() as u64;
        let small = f64::from(OTHERS_BYTES) / f64::from(plan.shape.block_bytes);
        let others_per_s = self.others_iops * small.min(1.0);
        let mut latencies = LatencyHistogram::new();
        latencies.record_n((latency_s * 1e9) as u64, own_ios);
        BurstEnd::Measured(Box::new(Burst {
            seconds: plan.measured_s,
            own_ios,
            others_ios: others_per_s * plan.measured_s,
            rates: vec![rate + others_per_s; 3],
            by_operations: crate::progress::ByOperations {
                requests_each: 1,
                others_ios: self.others_iops * plan.measured_s,
                rates: vec![rate + self.others_iops; 3],
            },
            latencies,
            ..Burst::default()
        }))
    }

    fn others(&self) -> Others {
        let read_ns = (self.others_iops > 0.0).then_some(self.latency_s * 1e9);
        Others { iops: self.others_iops, read_ns, usual_read_ns: read_ns, write_ns: None }
    }
}

fn limits() -> Limits {
    Limits {
        time_share: 0.05,
        disturbed_share: 0.0025,
        iops_max: None,
        guard: Guard::default(),
        precision: 0.05,
        outstanding_max: 256,
    }
}

/// Record of a run.
#[derive(Debug, Default)]
struct Ran {
    elapsed_s: f64,
    load_s: f64,
    disturbed_s: f64,
    bursts: Vec<BurstPlan>,
    waits: Vec<Waiting>,
}

/// Runs until all is known, at most for a simulated day.
fn run(disk: &Disk, controller: &mut Controller, until: impl Fn(&Ran) -> bool) -> Ran {
    let (mut now_s, mut ran) = (controller.progress().elapsed_s, Ran::default());
    while now_s < 86_400.0 && !until(&ran) {
        match controller.next(now_s, Some(&disk.others())) {
            Next::Finished => break,
            Next::Wait { until_s, why } => {
                assert!(until_s > now_s);
                ran.waits.push(why);
                now_s = until_s;
            }
            Next::Burst(plan) => {
                let load_s = plan.ramp_s + plan.measured_s;
                now_s += load_s;
                ran.load_s += load_s;
                ran.disturbed_s += if disk.own(&plan).1 > disk.latency_s * 1.01 { load_s } else { 0.0 };
                ran.bursts.push(plan);
                controller.record(now_s, load_s, &disk.burst(&plan), Some(&disk.others()));
            }
        }
    }
    ran.elapsed_s = now_s;
    ran
}

fn start(limits: Limits) -> Controller {
    Controller::new(limits, Progress::new(&[Shape::random_read(8192)], 1))
}

#[test]
fn beside_a_database_at_half_of_the_disk_the_curve_is_right_and_the_budgets_are_kept() {
    let disk = Disk { latency_s: 0.008, width: 8.0, others_iops: 500.0, bytes_per_s: f64::INFINITY };
    let mut controller = start(limits());
    let ran = run(&disk, &mut controller, |_| false);
    let shape = &controller.progress().shapes[0];
    assert_eq!(shape.ended, Some(CurveEnd::Flat));
    assert!(ran.load_s <= 0.05 * ran.elapsed_s, "{ran:?}");
    assert!(ran.disturbed_s > 0.0 && ran.disturbed_s <= 0.0025 * ran.elapsed_s, "{ran:?}");
    assert!(ran.elapsed_s < 3_600.0, "{} s", ran.elapsed_s);
    let points = shape.points();
    let best = points.iter().map(|point| point.iops).fold(0.0, f64::max);
    assert!((best / 1_000.0 - 1.0).abs() < 0.02, "{best}");
    // One outstanding of the load's and the four of the others'.
    assert_eq!((points[0].outstanding, points[0].latency_ns as u64), (5, 8_000_000));
}

#[test]
fn alone_on_the_disk_no_credit_is_needed() {
    let disk = Disk { latency_s: 0.001, width: 4.0, others_iops: 0.0, bytes_per_s: f64::INFINITY };
    let mut controller = start(limits());
    let ran = run(&disk, &mut controller, |_| false);
    assert!(!ran.waits.contains(&Waiting::Credit), "{ran:?}");
    assert!(ran.load_s <= 0.05 * ran.elapsed_s + 0.4 && ran.elapsed_s < 120.0, "{} s", ran.elapsed_s);
}

#[test]
fn reads_rise_step_by_step_and_end_where_throughput_does() {
    let disk = Disk { latency_s: 0.001, width: 4.0, others_iops: 0.0, bytes_per_s: f64::INFINITY };
    let ran = run(&disk, &mut start(limits()), |_| false);
    assert!(ran.bursts[0].iops_max == Some(FIRST_IOPS), "a few reads first");
    assert!(ran.bursts.windows(2).all(|two| two[1].outstanding <= 2 * two[0].outstanding));
    assert_eq!(ran.bursts.last().unwrap().outstanding, 16, "two doublings after the disk is full");
}

#[test]
fn a_guard_that_is_hit_three_times_in_a_row_ends_the_curve_after_rising_pauses() {
    let disk = Disk { latency_s: 0.008, width: 8.0, others_iops: 0.0, bytes_per_s: f64::INFINITY };
    let guard = Guard { read_ns: Some(10e6), write_ns: None };
    let mut controller = start(Limits { guard, ..limits() });
    let ran = run(&disk, &mut controller, |_| false);
    let shape = &controller.progress().shapes[0];
    assert_eq!((shape.ended, controller.progress().stops), (Some(CurveEnd::Guard), 3));
    assert_eq!(shape.steps.last().unwrap().outstanding, 8, "16 outstanding take 16 ms");
    assert!(ran.waits.iter().filter(|why| **why == Waiting::Guard).count() >= 2);
    // Too busy from the beginning on: it waits longer and longer, and does not end without a figure.
    let slow = Disk { latency_s: 0.02, ..disk };
    let mut controller = start(Limits { guard, ..limits() });
    let ran = run(&slow, &mut controller, |_| false);
    assert!(ran.elapsed_s >= 86_400.0 && ran.bursts.len() < 200, "{} bursts", ran.bursts.len());
    assert_eq!(controller.progress().shapes[0].ended, None);
}

#[test]
fn no_more_reads_a_second_than_permitted() {
    let disk = Disk { latency_s: 0.001, width: 4.0, others_iops: 100.0, bytes_per_s: f64::INFINITY };
    let mut controller = start(Limits { iops_max: Some(500.0), ..limits() });
    let ran = run(&disk, &mut controller, |_| false);
    assert!(ran.bursts.iter().all(|plan| plan.iops_max.is_some_and(|most| most <= 500.0)));
    assert_eq!(controller.progress().shapes[0].ended, Some(CurveEnd::Rate));
}

#[test]
fn nothing_is_read_while_others_are_busy() {
    let disk = Disk { latency_s: 0.008, width: 8.0, others_iops: 500.0, bytes_per_s: f64::INFINITY };
    let mut controller = start(limits());
    run(&disk, &mut controller, |ran| ran.bursts.last().is_some_and(|plan| plan.outstanding == 8));
    let now_s = controller.progress().elapsed_s + 1_000.0;
    let usual_read_ns = Some(8e6);
    let others = |iops, read_ms: f64| {
        let read_ns = Some(read_ms * 1e6);
        Others { iops, read_ns, usual_read_ns, write_ns: None }
    };
    let mut waits = |others: Others| {
        matches!(controller.next(now_s, Some(&others)), Next::Wait { why: Waiting::Others, .. })
    };
    assert!(!waits(others(700.0, 8.0)));
    assert!(waits(others(480.0, 17.0)), "their reads take twice as long as usual");
    assert!(waits(others(800.0, 8.0)), "three quarters of what the disk gave until now");
    let guard = Guard { read_ns: None, write_ns: Some(5e6) };
    let mut guarded = start(Limits { guard, ..limits() });
    let slow_writes = Others { iops: 10.0, write_ns: Some(6e6), ..Others::default() };
    assert!(matches!(guarded.next(1.0, Some(&slow_writes)), Next::Wait { why: Waiting::Others, .. }));
}

#[test]
fn what_is_known_is_kept_and_the_next_run_goes_on() {
    let disk = Disk { latency_s: 0.008, width: 8.0, others_iops: 500.0, bytes_per_s: f64::INFINITY };
    let mut first = start(limits());
    run(&disk, &mut first, |ran| ran.bursts.len() == 6);
    let text = serde_json::to_string(first.progress()).unwrap();
    let kept: Progress = serde_json::from_str(&text).unwrap();
    assert_eq!((kept.points(), kept.shapes[0].steps.len()), (3, 3));
    let mut second = Controller::new(limits(), kept.clone());
    let ran = run(&disk, &mut second, |_| false);
    assert!(second.progress().is_complete());
    assert!(ran.bursts[0].outstanding >= kept.shapes[0].steps.last().unwrap().outstanding);
    let whole = run(&disk, &mut start(limits()), |_| false);
    assert_eq!(whole.bursts.len(), 6 + ran.bursts.len(), "no burst is repeated");
    assert!(second.progress().disturbed_s <= 0.0025 * second.progress().elapsed_s);
}

#[test]
fn after_a_quiet_night_others_are_disturbed_no_more_than_before() {
    let disk = Disk { latency_s: 0.008, width: 8.0, others_iops: 500.0, bytes_per_s: f64::INFINITY };
    let mut controller = start(limits());
    run(&disk, &mut controller, |ran| ran.bursts.last().is_some_and(|plan| plan.outstanding == 8));
    let mut now_s = controller.progress().elapsed_s + 30_000.0;
    let began_s = now_s;
    let mut disturbed_s = 0.0;
    while now_s < began_s + 400.0 {
        match controller.next(now_s, Some(&disk.others())) {
            Next::Burst(plan) => {
                now_s += plan.ramp_s + plan.measured_s;
                disturbed_s += plan.ramp_s + plan.measured_s;
                controller.record(now_s, 0.4, &disk.burst(&plan), Some(&disk.others()));
            }
            Next::Wait { until_s, .. } => now_s = until_s,
            Next::Finished => break,
        }
    }
    assert!(disturbed_s <= 0.8 + 0.0025 * 400.0 + 0.4, "{disturbed_s}");
}

#[test]
fn large_reads_beside_small_ones_of_others_end_with_operations_or_with_bytes() {
    let shapes = [Shape::random_read(8192), Shape::sequential_read(524_288)];
    let large_end = |others_iops: f64, bytes_per_s: f64| {
        let disk = Disk { latency_s: 0.004, width: 8.0, others_iops, bytes_per_s };
        let mut controller = Controller::new(limits(), Progress::new(&shapes, 1));
        run(&disk, &mut controller, |_| false);
        assert!(controller.progress().is_complete());
        let large = &controller.progress().shapes[1];
        let iops = large.points().iter().map(|point| point.iops).fold(0.0, f64::max);
        (large.counts_operations, iops)
    };
    let (counts_operations, iops) = large_end(1_000.0, f64::INFINITY);
    assert!(counts_operations && (iops / 2_000.0 - 1.0).abs() < 0.02, "{iops} of 2,000");
    for others_iops in [0.0, 500.0, 1_400.0] {
        let (counts_operations, iops) = large_end(others_iops, 400.0 * 524_288.0);
        assert!(
            !counts_operations && (iops / 400.0 - 1.0).abs() < 0.02,
            "{iops} of 400 beside {others_iops}"
        );
    }
}

#[test]
fn as_many_operations_in_one_of_several_bursts_do_not_decide() {
    let mut shape = Progress::new(&[Shape::sequential_read(524_288)], 1).shapes.remove(0);
    let burst = |others_iops: f64| Burst {
        seconds: 0.3,
        own_ios: 60,
        others_ios: 10.0,
        rates: vec![230.0; 3],
        by_operations: crate::progress::ByOperations {
            requests_each: 2,
            others_ios: others_iops * 0.3 / 2.0,
            rates: vec![500.0; 3],
        },
        ..Burst::default()
    };
    for (outstanding, others_iops, expected) in [(8, 1_600.0, true), (16, 700.0, false)] {
        shape.steps.push(Step { disturbs: Some(true), ..Step::new(outstanding) });
        shape.steps.last_mut().unwrap().add(&burst(others_iops));
        shape.compare_with_small_reads(2_000.0);
        assert_eq!(shape.counts_operations, expected, "{outstanding} outstanding");
    }
}
