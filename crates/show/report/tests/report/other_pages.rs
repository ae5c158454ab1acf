//! The pages of a trace, of simulation and of an incident that the browser looks at.

use crate::sample;
use capability::Curve;
use filestats::{IoFlags, TracedIo, TracedOp};
use incidents::{Incident, Readings};
use report::{Estimate, NumberedIncident, TraceSummary, html};
use serde_json::json;
use simulate::{Disk, Fit, HeldOutPoint, Prediction, Storage, Time};
use std::rc::Rc;
use workload::Shape;

const VERSION: &str = "0.2.0";
const MS: u64 = 1_000_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// Page names and pages.
pub fn pages() -> Vec<(&'static str, String)> {
    vec![
        (
            "trace.html",
            html::trace(&traced(), "headroom trace --source process:812 --html trace.html", VERSION),
        ),
        ("simulate.html", html::estimate(&estimate(), VERSION)),
        ("incident.html", incident()),
    ]
}

/// Random reads of three files and syncs of a log, with a stall after a third.
fn traced() -> TraceSummary {
    let mut all = TraceSummary::new("pid 812 (postgres)".into());
    all.elapsed_ns = 9_000 * MS;
    let files = [
        "/var/lib/postgresql/17/main/base/16384/24576",
        "/srv/data/orders_2026_11.ibd",
        "/srv/wal/000000010000000A00000042",
    ];
    for at in 0_u64..3_000 {
        let file = (at % 3) as usize;
        let is_log = file == 2;
        let slow = if (1_000..1_060).contains(&at) { 40 } else { 1 };
        all.add(&TracedIo {
            at_ns: at * 3 * MS,
            latency_ns: (180_000 + at * 7_919 % 260_000) * slow * if is_log { 3 } else { 1 },
            pid: 812,
            tid: 812 + (at % 4) as u32,
            comm: "postgres".into(),
            op: if is_log { TracedOp::Sync } else { TracedOp::Read },
            file: Rc::from(files[file]),
            offset_bytes: Some(if is_log { at * 4096 } else { at * 104_729 % 65_536 * 8192 }),
            bytes: if is_log { 0 } else { 8192 },
            flags: IoFlags::default(),
            served: None,
            n: 1 + (at % 4) as u32,
        });
    }
    all.notes.push("this kernel does not report which I/Os the page cache served".into());
    all
}

/// The storage of the other samples, three times as wide.
fn estimate() -> Estimate {
    let of = |shape: Shape, wide: f64, ns: f64| -> (Curve, Curve) {
        (sample::curve(shape, wide, ns), sample::curve(shape, 3.0 * wide, ns))
    };
    let prediction = |shape, wide: f64, ns: f64, demand_iops: f64| {
        let (before, after) = of(shape, wide, ns);
        let now = wide / ns * 1e9 / demand_iops;
        let headroom = (now, 2.9 * now);
        Prediction {
            before,
            after,
            outstanding: (16, 16),
            demand_iops,
            headroom,
            rows_per_s: Some((470.0, 470.0)),
        }
    };
    let disk = Disk::flash(64 << 30, 16, Time::Fixed { ns: MS }, Time::Fixed { ns: MS });
    Estimate {
        of: "/data".into(),
        changes: Some("3 disks striped".into()),
        fit: Fit {
            storage: Storage::single(disk),
            error: Some(0.073),
            held_out: vec![HeldOutPoint {
                workload: Shape::random_read(16_384),
                outstanding: 16,
                measured_iops: 11_000.0,
                simulated_iops: 11_803.0,
            }],
            trained: 20,
            not_covered: vec!["log writes".into()],
            commit: None,
        },
        cost_model: sample::capability().cost_model,
        predictions: vec![
            prediction(Shape::random_read(8192), 14.0, 1.1e6, 13_900.0),
            prediction(Shape::random_read(8192).with_writes(30), 12.0, 1.15e6, 6_200.0),
        ],
    }
}

/// A burst that came three times.
fn incident() -> String {
    let began = 1_795_251_600_000_000_000_u64;
    let evidence = |what: &str, value: f64, unit: &str, expected: Option<f64>| {
        let expected =
            expected.map(|value| json!({"value": value, "source": "measured capability", "at": began}));
        json!({"what": what, "value": value, "unit": unit, "source": "the database's file statistics", "at": began, "expected": expected})
    };
    let detail = json!({
        "at_unix_ns": began + MINUTE_NS, "cause": null, "confidence": "high",
        "summary": "the workload uses 97 % of what this storage gives, bound by read operations",
        "readings": {"utilisation": 0.97, "outstanding": 31.0, "latency_ns": 4.2e6, "expected_ns": 3.1e6},
        "evidence": [
            evidence("latency of reads from storage", 4.2e6, "ns", Some(3.1e6)),
            evidence("utilisation", 0.97, "share", None),
        ],
        "next_step": "ask for less, or give more read operations: faster or striped storage",
        "files": [{"path": "/srv/postgresql/17/main/base/16384/24576", "operations_per_s": 11_800.0, "bytes_per_s": 96.7e6, "outstanding": 27.4}],
        "processes": [{"pid": 4711, "command": "pg_dump", "share": 0.31}],
        "waits": [{"event": "DataFileRead", "sessions": 26.1}],
    });
    let incident: Incident = serde_json::from_value(json!({
        "mount": "/srv/postgresql", "database": "postgres:", "verdict": "demand-exceeds-capability",
        "started_unix_ns": began, "ended_unix_ns": began + 12 * MINUTE_NS, "ending": "recovered",
        "opened_unix_ns": began + MINUTE_NS / 2, "last_bad_unix_ns": began + 12 * MINUTE_NS,
        "utilisation_max": 0.97, "utilisation_mean": 0.92, "utilisation_count": 144,
        "held": [{"verdict": "demand-exceeds-capability", "held_ns": 12 * MINUTE_NS, "worst": detail}],
        "recurrence": {"repeated": 2, "starts_unix_ns": [began - 120 * MINUTE_NS, began - 60 * MINUTE_NS, began]},
    }))
    .unwrap();
    let minute = |at: u64| {
        let bad = (8..20).contains(&at);
        let readings = Readings {
            utilisation: Some(if bad { 0.93 + 0.004 * (at % 10) as f64 } else { 0.41 }),
            outstanding: Some(if bad { 29.0 } else { 3.0 }),
            latency_ns: Some(if bad { 4.0e6 + 1e5 * (at % 3) as f64 } else { 1.3e6 }),
            expected_ns: Some(if bad { 3.1e6 } else { 1.2e6 }),
            ..Readings::default()
        };
        (began - 8 * MINUTE_NS + at * MINUTE_NS, readings)
    };
    let minutes: Vec<(u64, Readings)> = (0..28).map(minute).collect();
    html::incident(&NumberedIncident { id: 3, incident }, &minutes, VERSION)
}
