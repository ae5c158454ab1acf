use crate::model::{Impossible, Storage};
use crate::phase::Run;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use stream::{Window, used};
use workload::{Phase, RunResult, Trace, Workload};

/// What one disk of a layout did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Reads, parts of larger ones each for itself.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Most I/Os that are outstanding at once.
pub const OUTSTANDING_MAX: u64 = 1 << 22;

/// What runs tell as their tool.
pub const TOOL: &str = "headroom simulate";

/// A storage in virtual time, with what was done to it: phases follow each other on it.
#[derive(Debug)]
pub struct Machine {
    storage: Storage,
    store: Store,
    size_bytes: u64,
    now_ns: u64,
    done: u64,
}

/// A region of the storage that a workload runs on, and its recorded I/Os if it has some.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What is asked.
    pub workload: &'a Workload,
    /// For people.
    pub target: String,
    /// Where the region begins on the storage, bytes.
    pub offset: u64,
    /// How large it is.
    pub bytes: u64,
    /// Share in a pool.
    pub weight: u32,
    /// Asked in place of chosen I/Os.
    pub trace: Option<&'a Trace>,
}

impl Machine {
    /// Storage that nothing was done to.
    ///
    /// # Errors
    /// Where the model is out of range.
    pub fn new(storage: &Storage) -> Result<Machine, Impossible> {
        storage.validate()?;
        let store = Store::new(storage);
        let size_bytes = store.size_bytes();
        Ok(Machine { storage: storage.clone(), store, size_bytes, now_ns: 0, done: 0 })
    }

    /// The model.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Runs the jobs of a phase at once, as the load crate would; `watch` is told the share of its time that is done,
    /// and ends it by `false`.
    ///
    /// # Errors
    /// Where a workload cannot be run on this storage.
    pub fn run(
        &mut self,
        phase: &Phase,
        jobs: &[Job<'_>],
        watch: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<Vec<RunResult>, Impossible> {
        self.check(phase, jobs)?;
        let (start_ns, length) = (self.now_ns, &phase.length);
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = start_ns.saturating_add(ns(length.warm_up));
        let until_ns = from_ns.saturating_add(ns(length.duration));
        let end_ns = until_ns.saturating_add(ns(length.cool_down));
        let mut run = Run::new(&mut self.store, phase, jobs, Window { from_ns, until_ns }, end_ns);
        let interrupted = run.go(start_ns, watch);
        let (results, done) = run.finish(phase, jobs, start_ns, interrupted);
        self.done += done;
        self.now_ns = end_ns;
        self.store.forget_waiting();
        Ok(results)
    }

    fn check(&self, phase: &Phase, jobs: &[Job<'_>]) -> Result<(), Impossible> {
        let mut outstanding = 0_u64;
        for job in jobs {
            let workload = job.workload;
            workload
                .validate()
                .map_err(|invalid| Impossible::new(invalid.to_string(), "change the workload"))?;
            let threads = phase.pool.map_or(workload.threads, |pool| pool.threads);
            let each = phase.pool.and_then(|pool| pool.outstanding).unwrap_or(workload.outstanding);
            outstanding += u64::from(threads) * u64::from(each);
            if job.offset.checked_add(job.bytes).is_none_or(|end| end > self.size_bytes) {
                let what = format!("{} behind the storage's end, {} bytes", job.target, self.size_bytes);
                return Err(Impossible::new(what, "give a larger storage, or smaller targets"));
            }
            let (_, span) = used(workload, job.offset, job.bytes);
            if span < u64::from(workload.shape.block_bytes) {
                let what = format!("{span} bytes of {}", job.target);
                return Err(Impossible::new(what, "give a region that holds at least one block"));
            }
            if let Some(trace) = job.trace {
                let beyond = trace.ios.iter().find(|io| {
                    io.offset_bytes < job.offset
                        || io.offset_bytes.saturating_add(u64::from(io.bytes)) > job.offset + job.bytes
                });
                if let Some(io) = beyond {
                    let what = format!("a recorded I/O at {} of {}", io.offset_bytes, job.target);
                    return Err(Impossible::new(what, "give a larger storage"));
                }
            }
        }
        if outstanding > OUTSTANDING_MAX {
            return Err(Impossible::new(format!("{outstanding} outstanding I/Os"), "give at most 4194304"));
        }
        Ok(())
    }

    /// Bytes that a plan can use.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What each disk did by now.
    pub fn disks(&self) -> &[DiskUse] {
        &self.store.used
    }

    /// I/Os simulated by now.
    pub fn ios(&self) -> u64 {
        self.done
    }
}
