//! The headroom of reads that are issued before a session wants them.

use crate::builder::*;
use crate::caps::capped;
use crate::headroom::range;
use filestats::{Cache, FileKind, Interval, Ops};
use verdict::{Moment, Neighbour, Observation};
use workload::CapKind;

/// Reads that each take 4 ms, of which the database and the device count what `changed` says.
fn scans(changed: impl Fn(&mut Ops, FileKind)) -> Observation {
    let mut observation = steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() });
    let change = |moment: &mut Moment| {
        let files = moment.files.iter_mut().chain(&mut moment.device);
        for file in files {
            file.meaning.cache =
                if file.file.kind == FileKind::Device { Cache::Below } else { Cache::Missed };
            let Interval::Known(delta) = &mut file.interval else { continue };
            changed(&mut delta.counters.read, file.file.kind);
        }
    };
    observation.moments.iter_mut().for_each(change);
    observation
}

fn is_read_ahead(observation: &Observation) -> bool {
    let verdict = verdict(observation);
    let (low, plan, high) = range(&verdict);
    let has_reason = verdict.headroom_reason.is_some_and(|reason| reason.contains("read ahead"));
    assert_eq!(has_reason, high > plan * 1.3 && low < plan / 1.15, "{low} {plan} {high}");
    has_reason
}

#[test]
fn the_range_is_wider_where_sessions_wait_for_less_than_half_of_the_read_time() {
    let waited_for = |ns: u64| {
        scans(|read, kind| {
            if kind == FileKind::Data {
                *read = Ops::timed(read.count, read.bytes, read.count * ns);
            }
        })
    };
    assert!(is_read_ahead(&waited_for(1_900 * US)));
    assert!(!is_read_ahead(&waited_for(2_100 * US)));
    // Fast reads that the page cache may have answered say nothing.
    let mut cached = waited_for(MS);
    for file in cached.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        file.meaning.cache = Cache::Included;
    }
    assert!(!is_read_ahead(&cached));
}

#[test]
fn the_range_is_wider_where_the_storage_reads_more_at_once_than_the_database_requests() {
    let larger = |times: u64| {
        scans(|read, kind| {
            if kind == FileKind::Device {
                read.bytes *= times;
            }
        })
    };
    assert!(is_read_ahead(&larger(4)));
    assert!(!is_read_ahead(&larger(3)));
    let neighbour = Neighbour {
        pid: 812,
        command: "fio".into(),
        device: None,
        bytes: 1 << 30,
        share: 0.7,
        operations: None,
        operations_share: None,
    };
    let beside_backup = Observation { neighbours: vec![neighbour], ..larger(8) };
    assert!(!is_read_ahead(&beside_backup), "the large reads may be another program's");
}

#[test]
fn small_reads_that_a_page_cache_serves_by_pages_are_not_read_ahead() {
    let headers = scans(|read, kind| {
        let bytes = if kind == FileKind::Device { 4096 } else { 16 };
        *read = Ops::timed(read.count, read.count * bytes, read.stall_ns.known().unwrap_or(0));
    });
    assert!(!is_read_ahead(&headers));
}

#[test]
fn below_a_new_cap_of_reads_the_range_is_wider_too_and_below_one_of_writes_it_is_not() {
    let larger = || {
        scans(|read, kind| {
            if kind == FileKind::Device {
                read.bytes *= 8;
            }
        })
    };
    let (low, plan, high) = range(&verdict(&capped(CapKind::ReadIops, 800, 400, larger())));
    assert_eq!((low, plan, high), (2.0 / 1.2, 2.0, 2.0 * 1.4));
    let (_, plan, high) = range(&verdict(&capped(CapKind::WriteIops, 800, 400, larger())));
    assert_eq!((plan, high), (2.0, 2.0 * 1.1));
}

#[test]
fn few_reads_ahead_beside_many_writes_leave_the_range() {
    let mut observation = scans(|read, kind| {
        if kind == FileKind::Device {
            read.bytes *= 8;
        }
    });
    for device in observation.moments.iter_mut().filter_map(|moment| moment.device.as_mut()) {
        let Interval::Known(delta) = &mut device.interval else { continue };
        delta.counters.write = Ops::timed(500, 500 * 8192, 500 * MS);
    }
    assert!(!is_read_ahead(&observation));
}
