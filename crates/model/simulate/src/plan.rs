use crate::disk_array::DiskUse;
use crate::job::Job;
use crate::machine::Machine;
use crate::model::{SimulationError, Storage};
use workload::{PhaseResult, Placed, Plan, Trace};

/// The results of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// As of a real run.
    pub phases: Vec<PhaseResult>,
    /// I/Os of each disk, over all phases and their warm-ups.
    pub disks: Vec<DiskUse>,
    /// I/Os that were simulated, warm-up included.
    pub ios: u64,
}

/// Progress of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationProgress {
    /// Index of the phase.
    pub phase: usize,
    /// Share of its time, 0 to 1.
    pub share: f64,
    /// I/Os completed so far.
    pub ios: u64,
}

/// Simulates the phases of a plan in their order on one storage. Targets with a size are laid out on it one behind the
/// other; a target without a size is all of it. `traces` gives the trace of a workload that replays one.
///
/// # Errors
/// Where storage or plan cannot be simulated.
pub fn simulate<'t>(
    plan: &Plan,
    storage: &Storage,
    traces: &dyn Fn(&Placed) -> Option<&'t Trace>,
    watch: &mut dyn FnMut(SimulationProgress) -> bool,
) -> Result<Simulated, SimulationError> {
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
        let jobs: Result<Vec<Job<'_>>, SimulationError> = phase
            .workloads
            .iter()
            .map(|placed| {
                let region = regions.get(placed.target);
                let (target, offset, bytes) = region
                    .cloned()
                    .ok_or_else(|| SimulationError::new("a target that is not there", "name it"))?;
                let trace = traces(placed);
                Ok(Job { workload: &placed.workload, target, offset, bytes, weight: placed.weight, trace })
            })
            .collect();
        let mut go_on = true;
        let before = machine.ios();
        let results = machine.run(phase, &jobs?, &mut |share, ios| {
            go_on = watch(SimulationProgress { phase: at, share, ios: before + ios });
            go_on
        })?;
        phases.push(PhaseResult { name: phase.name.clone(), results });
        if !go_on {
            break;
        }
    }
    Ok(Simulated { phases, disks: machine.disk_use().to_vec(), ios: machine.ios() })
}
