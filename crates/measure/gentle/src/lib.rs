//! Measures storage that is in use: short bursts of reads from files that are there, within a budget and below a guard.
//!
//! ```text
//! measure(place, controller, learner, watch)
//!   controller.next      wait (budget, credit, guard, others busy)  |  a burst  |  finished
//!   burst::run           load::run_jobs of reads at the lowest I/O priority, every 20 ms:
//!                          guard      latency of own reads and of the device over the guard: stop
//!                          counted    own completions and others', by the device's counters
//!   controller.record    -> Progress: what is known, kept by the caller, so that the next run goes on
//!   others               while nothing of its own is in flight: what the database does, for `seen`
//! -> capability(progress)  curves of reads over the I/Os of all; writes are not measured
//! ```
//!
//! The rate of a point is that of all I/Os, the load's and others', and its outstanding I/Os follow from that and the
//! latency (Little 1961): a database that uses half of the disk leaves half of it to the load.
//!
//! Pure: `controller`, `guard`, `progress`, `result`. It opens nothing and never writes.

mod burst;
mod controller;
mod device;
mod guard;
mod progress;
mod result;

pub use burst::{RanBurst, run as run_burst};
pub use controller::{BurstEnd, BurstPlan, Controller, Limits, Next, Others, Waiting};
pub use guard::{DeviceTotals, Guard, GuardWatch, Reading, Tripped};
pub use progress::{Burst, ByOperations, CurveEnd, Progress, ShapeProgress, Step};
pub use result::{Measured, capability, shapes};

pub use device::Device;

use device::OthersWatch;
use load::LoadError;
use seen::Learner;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Backend, Shape, TargetFacts};

/// Current activity.
#[derive(Clone, Copy, Debug)]
pub enum Doing<'a> {
    /// Reads of this kind run, with this many outstanding.
    Reading(&'a Shape, u32),
    /// Nothing runs for about that long.
    Waiting(Waiting, Duration),
}

/// Callbacks by which the caller watches and decides, about every 20 ms, and after each burst.
pub struct Watch<'a> {
    /// Current activity; a break ends the measurement.
    pub doing: &'a mut dyn FnMut(Doing<'_>, &Progress) -> ControlFlow<()>,
    /// Something more is known: what is kept of it outlives a kill.
    pub learned: &'a mut dyn FnMut(&Progress),
    /// The guard stopped a burst.
    pub stopped: &'a mut dyn FnMut(&Tripped),
}

/// Where it reads.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The region of existing files.
    pub region: &'a Region,
    /// The facts of the storage.
    pub facts: &'a TargetFacts,
}

/// Time between two calls of the caller's callback while nothing runs.
const POLL: Duration = Duration::from_millis(100);

/// Reads until all is known or the caller ends it; what is known is with the controller. Returns how I/Os were handed over,
/// where any were.
///
/// # Errors
/// The load cannot run.
pub fn measure(
    place: Place<'_>,
    controller: &mut Controller,
    learner: &mut Learner,
    watch: &mut Watch<'_>,
) -> Result<Option<Backend>, LoadError> {
    let device = Device::for_target(place.facts);
    let (began, before_s) = (Instant::now(), controller.progress().elapsed_s);
    let now_s = || before_s + began.elapsed().as_secs_f64();
    let mut others = OthersWatch::default();
    // A new seed: caches may hold the offsets of an earlier run.
    let (mut backend, mut seed) =
        (None, controller.progress().began_unix_ns.wrapping_add((before_s * 1e3) as u64));
    loop {
        if let Some(second) = device.as_ref().and_then(|device| others.sample(device)) {
            learner.observe(&second);
        }
        let is_judged = device.is_none() || others.newest().is_some();
        let next = match is_judged {
            true => controller.next(now_s(), others.newest()),
            false => Next::Wait { until_s: now_s() + 1.0, why: Waiting::Others },
        };
        match next {
            Next::Finished => return Ok(backend),
            Next::Wait { until_s, why } => {
                let left = Duration::from_secs_f64((until_s - now_s()).max(0.0));
                if (watch.doing)(Doing::Waiting(why, left), controller.progress()).is_break() {
                    return Ok(backend);
                }
                std::thread::sleep(left.min(POLL));
            }
            Next::Burst(plan) => {
                seed = seed.wrapping_add(1);
                let progress = controller.progress().clone();
                let mut doing = || (watch.doing)(Doing::Reading(&plan.shape, plan.outstanding), &progress);
                let ran = burst::run(place.region, device.as_ref(), &plan, seed, &mut doing)?;
                backend = Some(ran.backend);
                ran.tripped.iter().for_each(|tripped| (watch.stopped)(tripped));
                let Some(end) = ran.end else { return Ok(backend) };
                controller.record(now_s(), ran.load_s, &end, others.newest());
                (watch.learned)(controller.progress());
                others.restart();
            }
        }
    }
}
