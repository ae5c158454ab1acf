//! Workloads that run on the storages.

use crate::storages::Real;
use std::time::Duration;
use workload::{Arrival, Burst, Limit, Phase, RunLength, Shape, SizeShare, Workload};

/// Consecutive workloads on one storage; each of them is a row.
pub struct Case {
    pub tested: usize,
    pub phases: Vec<Phase>,
}

/// A curve, for its knee.
pub struct Sweep {
    pub tested: usize,
    pub shape: Shape,
    pub outstanding: &'static [u32],
}

const KIB: u32 = 1024;

fn read(bytes: u32, outstanding: u32) -> Workload {
    Workload::from(Shape::random_read(bytes)).with_outstanding(outstanding)
}

fn mixed(bytes: u32, writes: u8, outstanding: u32) -> Workload {
    Workload { shape: Shape::random_read(bytes).with_writes(writes), ..read(bytes, outstanding) }
}

fn poisson(workload: Workload, iops: f64) -> Workload {
    Workload { arrival: Arrival::Poisson { iops }, ..workload }
}

fn limited(workload: Workload, iops: f64) -> Workload {
    Workload { limit: Limit { iops: Some(iops), bytes_per_s: None }, ..workload }
}

/// All cases, each phase of them of that length.
pub fn all(real: &Real, duration: Duration) -> Vec<Case> {
    let length = RunLength { warm_up: Duration::from_millis(500), duration, ..RunLength::default() };
    let named =
        |name: &str, workload: Workload| Phase { name: name.to_owned(), ..Phase::single(workload, length) };
    let case = |storage: &str, phases: Vec<Phase>| Case { tested: real.named(storage), phases };
    let one = |storage: &str, name: &str, workload: Workload| case(storage, vec![named(name, workload)]);
    let sizes = vec![
        SizeShare { block_bytes: 4 * KIB, percent: 60 },
        SizeShare { block_bytes: 64 * KIB, percent: 40 },
    ];
    let mut first = read(64 * KIB, 24);
    first.access.length_bytes = Some(crate::storages::BYTES);
    let bursts = Burst { ios: 512, pause: Duration::from_millis(450) };
    let array = "20 ms, 16 wide";
    let striped = "stripe of three of 20 ms, 16 wide";
    let fitted = "stripe of three of 20 ms, 16 wide, fitted";
    vec![
        one("loop, 800 reads/s", "read 4K, 1 outstanding", read(4 * KIB, 1)),
        one("loop, 800 reads/s", "read 64K, 16 outstanding", read(64 * KIB, 16)),
        one(
            "loop, 800 reads/s",
            "read 64K, open, 1000/s",
            Workload { arrival: Arrival::Constant { iops: 1000.0 }, ..read(64 * KIB, 64) },
        ),
        one(
            "loop, 800 reads/s",
            "200 reads 4K, then 450 ms rest",
            Workload {
                burst: Some(Burst { ios: 200, pause: Duration::from_millis(450) }),
                ..read(4 * KIB, 200)
            },
        ),
        one("loop, 2000 reads/s, 500 writes/s", "30 % writes, 16 outstanding", mixed(4 * KIB, 30, 16)),
        one("loop, 2000 reads/s, 500 writes/s", "10 % writes 8K, 32 outst.", mixed(8 * KIB, 10, 32)),
        one(
            "loop, 40 MiB/s of reads",
            "read 4K and 64K, 16 outstanding",
            Workload { sizes, ..read(64 * KIB, 16) },
        ),
        one("loop, 40 MiB/s of reads", "read 256K, 8 outstanding", read(256 * KIB, 8)),
        one("stripe of three of 800 reads/s", "read 64K, 48 outstanding", read(64 * KIB, 48)),
        one("span of three of 800 reads/s", "read 64K, 48 outstanding", read(64 * KIB, 48)),
        one("span of three of 800 reads/s", "read 64K of the first, 24 outst.", first),
        one(array, "read 64K, 8 outstanding", read(64 * KIB, 8)),
        one(array, "30 % writes 4K, 2 x 16 outstanding", Workload { threads: 2, ..mixed(4 * KIB, 30, 16) }),
        one(array, "read 4K, open, 560/s", poisson(read(4 * KIB, 128), 560.0)),
        one("5 ms, 64 wide", "read 4K, 32 outstanding", read(4 * KIB, 32)),
        one("5 ms, 64 wide, 2000 reads/s", "read 4K, open, 1400/s", poisson(read(4 * KIB, 64), 1400.0)),
        case(
            "5 ms, 64 wide, 2000 reads/s",
            vec![
                named("first: read 4K, at most 1000/s", limited(read(4 * KIB, 16), 1000.0)),
                named("then: read 4K, 48 outstanding", read(4 * KIB, 48)),
            ],
        ),
        one("5 ms, 16 wide, stalls 50 ms of 500", "read 4K, 16 outstanding", read(4 * KIB, 16)),
        one(
            "5 ms, 16 wide, write cache of 1 MiB",
            "512 writes 4K, then 450 ms rest",
            Workload { burst: Some(bursts), ..mixed(4 * KIB, 100, 32) },
        ),
        one(striped, "read 64K, 24 outstanding", read(64 * KIB, 24)),
        one(fitted, "read 4K, 24 outstanding", read(4 * KIB, 24)),
        one(fitted, "read 4K, 96 outstanding", read(4 * KIB, 96)),
    ]
}

/// The curves whose knees are compared.
pub fn sweeps(real: &Real) -> Vec<Sweep> {
    let sweep = |storage, bytes, outstanding| Sweep {
        tested: real.named(storage),
        shape: Shape::random_read(bytes),
        outstanding,
    };
    vec![
        sweep("20 ms, 16 wide", 64 * KIB, &[2, 8, 24, 64]),
        sweep("stripe of three of 20 ms, 16 wide", 64 * KIB, &[4, 24, 96, 160]),
        sweep("stripe of three of 20 ms, 16 wide, fitted", 4 * KIB, &[4, 24, 96, 160]),
        sweep("5 ms, 64 wide, 2000 reads/s", 4 * KIB, &[2, 8, 24, 48]),
        sweep("loop, 40 MiB/s of reads", 64 * KIB, &[1, 4, 16, 32]),
    ]
}
