//! The facts of the machine and of the history that the interpretation of a result needs.

use findings::RunConditions;
use history::History;
use workload::{RunResult, TargetFacts};

/// The conditions of a run. Without the facts of its target only those of the machine are known.
pub fn run_conditions(result: &RunResult, facts: Option<&TargetFacts>, history: &History) -> RunConditions {
    let device = facts.and_then(|facts| facts.devices.first());
    let capability = facts.and_then(|facts| history.latest_capability(facts).ok().flatten());
    let knee = capability.and_then(|(_, capability)| {
        let same = capability.curves.into_iter().find(|curve| curve.workload == result.workload.shape);
        same?.knee
    });
    RunConditions {
        memory_bytes: memory_bytes(),
        device_cache_bytes: None,
        sector_bytes: device.and_then(|device| device.physical_block_bytes),
        cores: std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()),
        rotational: device.and_then(|device| device.rotational),
        knee,
        ..RunConditions::default()
    }
}

/// From `/proc/meminfo`: "MemTotal:  24000000 kB".
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
