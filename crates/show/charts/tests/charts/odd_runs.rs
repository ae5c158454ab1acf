//! Runs with figures that no measurement gives.

use proptest::prelude::*;
use workload::{
    Arrival, Direction, Latencies, LatencyHistogram, Response, RunResult, Shape, Slice, Tally, Workload,
};

pub fn large() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..1_000_000_u64, any::<u64>()]
}

pub fn odd_run(whole: &[u64], floats: &[f64]) -> RunResult {
    let int = |at: usize| whole.get(at % whole.len().max(1)).copied().unwrap_or(0);
    let iops = floats.first().copied().unwrap_or(f64::NAN);
    let mut direction = Direction { count: int(0), bytes: int(1), ..Direction::default() };
    whole.iter().for_each(|ns| direction.latency.record_n(*ns, int(2) >> 32));
    // As another tool reports it.
    if int(9).is_multiple_of(2) {
        direction.latency = LatencyHistogram::new();
        direction.percentiles = floats.iter().copied().zip(whole.iter().copied()).collect();
        direction.mean_ns = floats.first().copied().filter(|mean| mean.is_finite());
    }
    let slice = |end_ns: &u64| Slice {
        end_ns: *end_ns,
        read: Tally { count: int(3), bytes: int(4), stall_ns: int(5), ns_max: int(6), ..Tally::default() },
        read_latencies: Latencies(vec![(int(1), int(2)), (int(3), int(4))]),
        ..Slice::default()
    };
    let workload = Workload {
        outstanding: int(7) as u32,
        threads: int(8) as u32,
        arrival: if int(0).is_multiple_of(3) { Arrival::Constant { iops } } else { Arrival::Closed },
        ..Shape { block_bytes: int(2) as u32, write_percent: int(3) as u8, ..Shape::random_read(0) }.into()
    };
    RunResult {
        started_unix_ns: int(1),
        elapsed_ns: int(4),
        read: direction.clone(),
        write: direction.clone(),
        response: Some(Response { read: direction.latency, ..Response::default() }),
        slice_ns: int(5),
        series: whole.iter().map(slice).collect(),
        ..RunResult::empty(workload, format!("/{}", int(6)))
    }
}
