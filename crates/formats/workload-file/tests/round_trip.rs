//! A plan, written as a file and read again, is the same plan.

use proptest::prelude::*;
use std::time::Duration;
use workload::{
    Access, Arrival, Burst, Caching, Content, Distribution, Durability, Extent, Layout, Limit, Pattern,
    Phase, Placed, Plan, PlanLayout, PlanTarget, Pool, RunLength, Shape, SizeShare, SyncEvery, SyncKind,
    Verify, Walk, Workload, Zone,
};
use workload_file::{read, write};

fn name() -> impl Strategy<Value = String> {
    "[ -~äß\u{7}\"\\\\\t]{0,8}"
}

fn path() -> impl Strategy<Value = std::path::PathBuf> {
    "/[ -~ß\"\\\\]{1,12}".prop_map(Into::into)
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1_u64..10_000).prop_map(Duration::from_millis),
        (1_u64..1_000_000).prop_map(Duration::from_secs),
        (1_000_000_u64..1 << 40).prop_map(Duration::from_nanos),
    ]
}

fn block() -> impl Strategy<Value = u32> {
    (1_u32..=1 << 15).prop_map(|blocks| blocks * 512)
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![(1_u32..100_000).prop_map(f64::from), 0.001_f64..1e6]
}

fn shape() -> impl Strategy<Value = Shape> {
    let caching = prop_oneof![Just(Caching::Direct), Just(Caching::Buffered)];
    let durability =
        prop_oneof![Just(Durability::Cached), Just(Durability::WriteThrough), Just(Durability::Synced)];
    (block(), any::<bool>(), 0_u8..=100, caching, durability).prop_map(
        |(block_bytes, random, write_percent, caching, durability)| {
            let pattern = if random { Pattern::Random } else { Pattern::Sequential };
            Shape { block_bytes, pattern, write_percent, caching, durability }
        },
    )
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let zone =
        (0_u8..=30, prop_oneof![(0_u8..=30).prop_map(Extent::Percent), any::<u64>().prop_map(Extent::Bytes)]);
    prop_oneof![
        Just(Distribution::Uniform),
        (0.0_f64..3.0).prop_map(|theta| Distribution::Zipf { theta }),
        (0.01_f64..=0.5).prop_map(|h| Distribution::Pareto { h }),
        prop::collection::vec(zone, 1..4).prop_map(|zones| Distribution::Zones {
            zones: zones.into_iter().map(|(ios_percent, extent)| Zone { ios_percent, extent }).collect()
        }),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    let walk = prop_oneof![Just(Walk::OwnParts), Just(Walk::Shared), any::<u64>().prop_map(Walk::Apart)];
    let bytes = || prop::option::of(1_u64..u64::MAX);
    (
        any::<u64>(),
        bytes(),
        bytes(),
        bytes(),
        distribution(),
        walk,
        prop::option::of(0_u8..=100),
        any::<bool>(),
    )
        .prop_map(
            |(
                base_bytes,
                length_bytes,
                align_bytes,
                stride_bytes,
                distribution,
                walk,
                random_percent,
                same_offset,
            )| Access {
                base_bytes,
                length_bytes,
                align_bytes,
                stride_bytes,
                distribution,
                walk,
                random_percent,
                same_offset,
            },
        )
}

#[derive(Clone, Debug)]
struct Demand {
    arrival: Arrival,
    limit: Limit,
    burst: Option<Burst>,
    replay: Option<std::path::PathBuf>,
}

fn demand() -> impl Strategy<Value = Demand> {
    let closed =
        (prop::option::of(rate()), prop::option::of(rate()), prop::option::of((1_u32..9999, time())));
    let plain = |arrival, replay| Demand { arrival, limit: Limit::default(), burst: None, replay };
    prop_oneof![
        closed.prop_map(|(iops, bytes_per_s, burst)| Demand {
            arrival: Arrival::Closed,
            limit: Limit { iops, bytes_per_s },
            burst: burst.map(|(ios, pause)| Burst { ios, pause }),
            replay: None,
        }),
        rate().prop_map(move |iops| plain(Arrival::Constant { iops }, None)),
        rate().prop_map(move |iops| plain(Arrival::Poisson { iops }, None)),
        (rate(), path()).prop_map(move |(speed, trace)| plain(Arrival::Recorded { speed }, Some(trace))),
        path().prop_map(move |trace| plain(Arrival::Closed, Some(trace))),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (0_u8..=100, 0_u8..=100).prop_map(|(compressible_percent, duplicate_percent)| Content::Random {
            compressible_percent,
            duplicate_percent
        }),
        Just(Content::Fresh),
        Just(Content::Zeros),
        Just(Content::Counting),
        (1_u64 << 24..1 << 40, prop::option::of(path()))
            .prop_map(|(bytes, file)| Content::Buffer { bytes, file }),
    ]
}

fn placed(targets: usize) -> impl Strategy<Value = Placed> {
    let verify = prop_oneof![
        Just(None),
        Just(Some(Verify::Checksum)),
        Just(Some(Verify::Sequence)),
        Just(Some(Verify::Content))
    ];
    let sync = prop::option::of((1_u32..9999, any::<bool>()));
    let numbers = (1_u32..=16_384, 1_u32..=1024, any::<u64>(), 1_u32..100, 0..targets.max(1));
    let sizes = prop::collection::vec(block(), 0..4);
    (name(), shape(), numbers, access(), sizes, demand(), sync, content(), verify)
        .prop_map(
            |(
                name,
                shape,
                (outstanding, threads, seed, weight, target),
                access,
                sizes,
                demand,
                sync,
                content,
                verify,
            )| {
                let share = |at: usize| if at == 0 { 101 - sizes.len() as u8 } else { 1 };
                let sizes: Vec<SizeShare> = sizes
                    .iter()
                    .enumerate()
                    .map(|(at, block_bytes)| SizeShare { block_bytes: *block_bytes, percent: share(at) })
                    .collect();
                let largest = sizes.iter().map(|size| size.block_bytes).max().unwrap_or(shape.block_bytes);
                let workload = Workload {
                    name,
                    shape: Shape { block_bytes: largest, ..shape },
                    outstanding,
                    threads,
                    seed,
                    access,
                    sizes,
                    arrival: demand.arrival,
                    limit: demand.limit,
                    burst: demand.burst,
                    sync: sync.map(|(writes, data)| SyncEvery {
                        writes,
                        how: if data { SyncKind::Fdatasync } else { SyncKind::Fsync },
                    }),
                    content,
                    verify,
                };
                Placed { target, weight, workload, replay: demand.replay }
            },
        )
        .prop_filter("what can be run", |placed| placed.workload.validate().is_ok())
}

fn plan() -> impl Strategy<Value = Plan> {
    (0_usize..3).prop_flat_map(|targets| {
        let layout = prop_oneof![
            Just(Layout::Span),
            (1_u64..9999).prop_map(|sectors| Layout::Stripe { unit_bytes: sectors * 512 })
        ];
        let laid = (layout, prop::collection::vec(path(), 1..3));
        let laid = prop::option::of(laid.prop_map(|(layout, others)| PlanLayout { layout, others }));
        let target = (path(), prop::option::of(1_u64..u64::MAX), laid)
            .prop_map(|(path, create_bytes, laid)| PlanTarget { path, create_bytes, laid });
        let length = (time(), time(), prop::option::of(1_u64..u64::MAX), time()).prop_map(
            |(warm_up, duration, ios_max, cool_down)| RunLength { warm_up, duration, ios_max, cool_down },
        );
        let pool = prop::option::of((1_u32..99, prop::option::of(1_u32..99)));
        let phase = (name(), length, time(), pool, prop::collection::vec(placed(targets), 1..3)).prop_map(
            |(name, length, slice, pool, workloads)| Phase {
                name,
                length,
                slice,
                pool: pool.map(|(threads, outstanding)| Pool { threads, outstanding }),
                workloads,
            },
        );
        (prop::collection::vec(target, targets..=targets), prop::collection::vec(phase, 1..3))
            .prop_map(|(targets, phases)| Plan { targets, phases })
    })
}

proptest! {
    #[test]
    fn a_plan_written_as_a_file_reads_back_as_that_plan(plan in plan()) {
        let text = write(&plan);
        let again = read(&text);
        prop_assert_eq!(again.as_ref(), Ok(&plan), "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\[\\[phases\\]\\]\n|\\[targets\\]\n|\\[\\[phases\\.workloads\\]\\]\n|[a-z-]{1,8} = (\"[ -~]{0,8}\"|[0-9]{1,4}|\\{\\}|\\[\\])\n|.{0,6}){0,12}") {
        let _ = read(&text);
    }

    #[test]
    fn a_key_with_a_wrong_value_is_an_error_in_its_line(key in "block|writes|outstanding|limit|burst|zones", value in "[A-Z]{1,6}") {
        let text = format!("[[phases]]\n[[phases.workloads]]\n{key} = \"{value}\"\n");
        let error = read(&text).unwrap_err();
        prop_assert_eq!((error.line, error.key), (3, key));
        prop_assert!(!error.remedy.is_empty());
    }
}
