use crate::sample::{BEGIN_NS, capability};
use capability::{Capability, Declared, VolumeSize, VolumeType};

/// A storage that was measured, and of which more than that was seen.
pub fn known_storage() -> report::KnownStorage {
    let mut learner = seen::Learner::default();
    let side = |ios: f64| seen::Side { ios, bytes: ios * 8192.0, served_s: ios / 1e4, waited_s: 0.0 };
    for at in 0..60 {
        learner.observe(&seen::Second {
            ended_unix_ns: BEGIN_NS + at * 1_000_000_000,
            elapsed_s: 1.0,
            reads: side(if at < 30 { 9_000.0 } else { 20_000.0 }),
            writes: side(500.0),
            ..seen::Second::default()
        });
    }
    report::KnownStorage {
        target: "/data".into(),
        now_unix_ns: BEGIN_NS + 3_600_000_000_000,
        capabilities: vec![capability(), declared()],
        seen: Some(learner.seen().clone()),
        caps: Some(vec![workload::Cap {
            kind: workload::CapKind::ReadIops,
            per_second: 2_000,
            device: "254:0".into(),
            origin: "/sys/fs/cgroup/db.slice/io.max".into(),
        }]),
    }
}

/// A volume that saves burst credits, of which the agent saw none saved yet.
fn declared() -> Capability {
    let volume: VolumeType = "gp2".parse().unwrap();
    let size = VolumeSize { gib: 500.0, ..VolumeSize::default() };
    let declared = Declared { latency_ns: Some(1e6), ..volume.declared(&size).unwrap() };
    declared.capability(capability().target, BEGIN_NS, "0.1.0").unwrap()
}
