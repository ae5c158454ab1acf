//! try
use measure::*;
use std::os::unix::fs::OpenOptionsExt;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let effort = match std::env::args().nth(2).as_deref() {
        Some("quick") => Effort::Quick,
        Some("thorough") => Effort::Thorough,
        _ => Effort::Default,
    };
    let file = std::fs::OpenOptions::new().read(true).write(true).custom_flags(0o40000).open(&path).unwrap();
    let bytes = file.metadata().unwrap().len();
    let region = storage::Region {
        file,
        offset_bytes: 0,
        bytes,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: path.clone().into(),
    };
    let facts = workload::TargetFacts {
        path,
        kind: workload::TargetKind::File,
        filesystem: None,
        mount: None,
        free_bytes: 0,
        devices: vec![],
        direct_align_bytes: Some(4096),
        memory_align_bytes: 4096,
        caps: vec![],
    };
    let c = measure(&region, &facts, &Plan::new(effort), Circumstances::default(), &mut |_| Go::On).unwrap();
    for k in &c.curves {
        println!("== {}", k.workload);
        for p in &k.points {
            println!(
                "  {:4} {:9.0} ±{:5.1}% {:8.1} MiB/s mean {:>9} p50 {:>9} busy {:.2} {} {:.2}s N={:.1} {:?}",
                p.outstanding,
                p.iops,
                100.0 * p.iops_half_width / p.iops,
                p.mib_per_s,
                workload::format_ns(p.latency_ns),
                workload::format_ns(p.latency_ns_p50 as f64),
                p.client_busy,
                if p.steady { "steady" } else { "UNSTEADY" },
                p.seconds,
                p.outstanding_measured,
                p.humps.map(|h| h.slow_share)
            );
        }
        if let Some(k) = &k.knee {
            println!(
                "  knee {:.1} ({:.1}..{:.1}) {:.0} iops R0 {} full {} {:?} {}",
                k.outstanding,
                k.low,
                k.high,
                k.iops,
                workload::format_ns(k.latency_ns_floor),
                k.outstanding_full,
                k.reason,
                k.why
            );
        }
    }
    println!("{:#?}", c.cost_model);
    println!("took {}", c.conditions.took_s);
}
