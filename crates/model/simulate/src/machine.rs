use crate::disk_array::{DiskArray, DiskUse};
use crate::job::Job;
use crate::model::{SimulationError, Storage};
use crate::phase::PhaseRun;
use stream::{MeasuredWindow, used_range};
use workload::{Phase, RunResult};

/// Most outstanding I/Os.
pub const OUTSTANDING_MAX: u64 = 1 << 22;

/// A storage in virtual time. Consecutive phases run on it; each finds the state that the last has left.
#[derive(Debug)]
pub struct Machine {
    disks: DiskArray,
    size_bytes: u64,
    now_ns: u64,
    ios: u64,
}

impl Machine {
    /// An idle storage with empty caches.
    ///
    /// # Errors
    /// Where the model is out of range.
    pub fn new(storage: &Storage) -> Result<Machine, SimulationError> {
        storage.validate()?;
        let disks = DiskArray::new(storage);
        let size_bytes = disks.size_bytes();
        Ok(Machine { disks, size_bytes, now_ns: 0, ios: 0 })
    }

    /// Runs the jobs of a phase at once, as the load crate would. `watch` is called with the share of its time that has
    /// passed and the number of I/Os, and ends the phase by `false`.
    ///
    /// # Errors
    /// Where a workload cannot be run on this storage.
    pub fn run(
        &mut self,
        phase: &Phase,
        jobs: &[Job<'_>],
        watch: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<Vec<RunResult>, SimulationError> {
        self.check(phase, jobs)?;
        let (start_ns, length) = (self.now_ns, &phase.length);
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = start_ns.saturating_add(ns(length.warm_up));
        let until_ns = from_ns.saturating_add(ns(length.duration));
        let end_ns = until_ns.saturating_add(ns(length.cool_down));
        let window = MeasuredWindow { from_ns, until_ns };
        let mut run = PhaseRun::new(&mut self.disks, phase, jobs, window, end_ns);
        let interrupted = run.process_events(start_ns, watch);
        let (results, ios) = run.into_results(phase, jobs, start_ns, interrupted);
        self.ios += ios;
        self.now_ns = end_ns;
        self.disks.clear_waiting();
        Ok(results)
    }

    fn check(&self, phase: &Phase, jobs: &[Job<'_>]) -> Result<(), SimulationError> {
        let mut outstanding = 0_u64;
        for job in jobs {
            let workload = job.workload;
            workload
                .validate()
                .map_err(|invalid| SimulationError::new(invalid.to_string(), "change the workload"))?;
            let threads = phase.pool.map_or(workload.threads, |pool| pool.threads);
            let each = phase.pool.and_then(|pool| pool.outstanding).unwrap_or(workload.outstanding);
            outstanding += u64::from(threads) * u64::from(each);
            if job.offset.checked_add(job.bytes).is_none_or(|end| end > self.size_bytes) {
                let what = format!("{} behind the storage's end, {} bytes", job.target, self.size_bytes);
                return Err(SimulationError::new(what, "give a larger storage, or smaller targets"));
            }
            let (_, span) = used_range(workload, job.offset, job.bytes);
            if span < u64::from(workload.shape.block_bytes) {
                let what = format!("{span} bytes of {}", job.target);
                return Err(SimulationError::new(what, "give a region that holds at least one block"));
            }
            if let Some(trace) = job.trace {
                let beyond = trace.ios.iter().find(|io| {
                    io.offset_bytes < job.offset
                        || io.offset_bytes.saturating_add(u64::from(io.bytes)) > job.offset + job.bytes
                });
                if let Some(io) = beyond {
                    let what = format!("a recorded I/O at {} of {}", io.offset_bytes, job.target);
                    return Err(SimulationError::new(what, "give a larger storage"));
                }
            }
        }
        if outstanding > OUTSTANDING_MAX {
            return Err(SimulationError::new(
                format!("{outstanding} outstanding I/Os"),
                "give at most 4194304",
            ));
        }
        Ok(())
    }

    /// Usable bytes of the storage.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// I/Os of each disk so far.
    pub fn disk_use(&self) -> &[DiskUse] {
        &self.disks.used
    }

    /// I/Os simulated so far.
    pub fn ios(&self) -> u64 {
        self.ios
    }
}
