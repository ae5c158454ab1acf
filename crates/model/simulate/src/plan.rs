use crate::machine::{DiskUse, Job, Machine};
use crate::model::{Impossible, Storage};
use workload::{PhaseResult, Placed, Plan, Trace};

/// What a simulation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// As a real run would tell it.
    pub phases: Vec<PhaseResult>,
    /// What each disk did, over all phases and their warm-ups.
    pub disks: Vec<DiskUse>,
    /// I/Os that were simulated, warm-up included.
    pub ios: u64,
}

/// How far a simulation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Which phase, from 0.
    pub phase: usize,
    /// Share of its time, 0 to 1.
    pub share: f64,
    /// I/Os done by now.
    pub ios: u64,
}

/// Simulates a plan: phase after phase on one storage. Targets that say their size lie one behind the other on it,
/// the others are all of it. `traces` are those of the workloads that replay one, by phase and workload.
///
/// # Errors
/// Where storage or plan cannot be simulated.
pub fn simulate<'t>(
    plan: &Plan,
    storage: &Storage,
    traces: &dyn Fn(&Placed) -> Option<&'t Trace>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Simulated, Impossible> {
    let mut machine = Machine::new(storage)?;
    let size_bytes = machine.size_bytes();
    let mut next = 0_u64;
    let mut regions = Vec::new();
    for target in &plan.targets {
        regions.push(match target.create_bytes {
            Some(bytes) => (target.path.display().to_string(), next, bytes),
            None => (target.path.display().to_string(), 0, size_bytes),
        });
        next = next.saturating_add(target.create_bytes.unwrap_or(0));
    }
    if regions.is_empty() {
        regions.push(("simulated".to_owned(), 0, size_bytes));
    }
    let mut phases = Vec::new();
    for (at, phase) in plan.phases.iter().enumerate() {
        let jobs: Result<Vec<Job<'_>>, Impossible> = phase
            .workloads
            .iter()
            .map(|placed| {
                let region = regions.get(placed.target);
                let (target, offset, bytes) = region
                    .cloned()
                    .ok_or_else(|| Impossible::new("a target that is not there", "name it"))?;
                let trace = traces(placed);
                Ok(Job { workload: &placed.workload, target, offset, bytes, weight: placed.weight, trace })
            })
            .collect();
        let mut go_on = true;
        let before = machine.ios();
        let results = machine.run(phase, &jobs?, &mut |share, ios| {
            go_on = watch(Progress { phase: at, share, ios: before + ios });
            go_on
        })?;
        phases.push(PhaseResult { name: phase.name.clone(), results });
        if !go_on {
            break;
        }
    }
    Ok(Simulated { phases, disks: machine.disks().to_vec(), ios: machine.ios() })
}
