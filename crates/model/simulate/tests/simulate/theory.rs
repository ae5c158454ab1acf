//! Simulated queues against what queueing theory says of them, within the simulation's own 95 % interval. The seeds are
//! fixed: what agrees today agrees tomorrow.

use simulate::{Disk, Interval, Job, Machine, Storage, Time, intervals};
use std::time::Duration;
use workload::{Arrival, Phase, RunLength, RunResult, Shape, Workload};

const SERVICE_NS: f64 = 1e6;

fn run(storage: &Storage, workload: &Workload, seconds: u64) -> RunResult {
    let length = RunLength {
        warm_up: Duration::from_secs(20),
        duration: Duration::from_secs(seconds),
        ..RunLength::default()
    };
    let phase = Phase { slice: Duration::from_secs(5), ..Phase::single(workload.clone(), length) };
    let bytes = storage.size_bytes();
    let job = Job { workload, target: "queue".into(), offset: 0, bytes, weight: 1, trace: None };
    Machine::new(storage).unwrap().run(&phase, &[job], &mut |_, _| true).unwrap().remove(0)
}

fn queue(units: u32, service: Time) -> Storage {
    Storage::single(Disk::flash(1 << 40, units, service, Time::default()))
}

/// Users at random times, as many outstanding as come.
fn arrivals(iops: f64) -> Workload {
    Workload { arrival: Arrival::Poisson { iops }, ..Shape::random_read(4096).into() }.with_outstanding(4096)
}

fn latency(result: &RunResult) -> Interval {
    intervals(result).expect("rows enough").1
}

#[track_caller]
fn agrees(found: Interval, theory: f64, precise: f64) {
    assert!(found.contains(theory), "{found:?}, theory {theory}");
    assert!(found.half_width < precise * theory, "a vague interval proves nothing: {found:?}");
}

/// Erlang's probability that all `k` servers are busy (1917), at an offered load of `a`.
fn erlang_c(k: u32, a: f64) -> f64 {
    // The recursion of Erlang B, then C of it.
    let b = (1..=k).fold(1.0, |b, k| a * b / (f64::from(k) + a * b));
    b / (1.0 - a / f64::from(k) * (1.0 - b))
}

#[test]
fn m_m_1() {
    for load in [0.3, 0.7, 0.9] {
        let storage = queue(1, Time::Exponential { mean_ns: SERVICE_NS });
        let found = run(&storage, &arrivals(load * 1e9 / SERVICE_NS), 1000);
        agrees(latency(&found), SERVICE_NS / (1.0 - load), 0.1);
    }
}

#[test]
fn m_m_k() {
    for (k, load) in [(4, 0.8), (16, 0.9)] {
        let storage = queue(k, Time::Exponential { mean_ns: SERVICE_NS });
        let servers = f64::from(k);
        let found = run(&storage, &arrivals(load * servers * 1e9 / SERVICE_NS), 400);
        let wait = erlang_c(k, load * servers) * SERVICE_NS / (servers * (1.0 - load));
        agrees(latency(&found), SERVICE_NS + wait, 0.05);
    }
}

#[test]
fn m_d_1() {
    for load in [0.5, 0.9] {
        let storage = queue(1, Time::Fixed { ns: SERVICE_NS as u64 });
        let found = run(&storage, &arrivals(load * 1e9 / SERVICE_NS), 1000);
        // Pollaczek and Khinchine.
        agrees(latency(&found), SERVICE_NS * (1.0 + load / (2.0 * (1.0 - load))), 0.1);
    }
}

#[test]
fn m_g_1_with_a_long_tail() {
    let sigma = 0.8_f64;
    let load = 0.6;
    let median_ns = SERVICE_NS / (sigma * sigma / 2.0).exp();
    let storage = queue(1, Time::Lognormal { median_ns, sigma });
    let found = run(&storage, &arrivals(load * 1e9 / SERVICE_NS), 1000);
    let squared_variation = (sigma * sigma).exp() - 1.0;
    agrees(
        latency(&found),
        SERVICE_NS * (1.0 + load * (1.0 + squared_variation) / (2.0 * (1.0 - load))),
        0.1,
    );
}

/// Machine repairman: N machines run for an exponential time (the delay), then wait for the one who repairs them.
#[test]
fn closed_machine_repairman() {
    for machines in [3_u32, 10] {
        let think_ns = 5e6;
        let mut storage = queue(1, Time::Exponential { mean_ns: SERVICE_NS });
        if let simulate::Mechanics::Flash(flash) = &mut storage.disks[0].mechanics {
            flash.read.delay = Time::Exponential { mean_ns: think_ns };
        }
        let workload = Workload::from(Shape::random_read(4096)).with_outstanding(machines);
        let found = run(&storage, &workload, 400);
        // Mean value analysis (Reiser and Lavenberg 1980).
        let (mut length, mut rate) = (0.0, 0.0);
        for n in 1..=machines {
            let wait_ns = SERVICE_NS * (1.0 + length);
            rate = f64::from(n) / (wait_ns + think_ns);
            length = rate * wait_ns;
        }
        let (rates, latencies) = intervals(&found).unwrap();
        agrees(rates, rate * 1e9, 0.02);
        agrees(latencies, f64::from(machines) / rate, 0.02);
    }
}
