//! Was it the client that was measured: CPU per core and thread, other load, fairness of the threads.

use crate::case::Case;
use crate::limits::{CHANCE_DEVIATIONS, CORE_BUSY, OTHERS_SHARE, STOLEN_SHARE, THREADS_SPREAD};
use crate::{Finding, FindingKind, Weight, words};
use capability::THREAD_BUSY_MIN;
use workload::{CoreUse, Unit, format_count};

impl Case<'_> {
    /// The busiest load thread and its share of a core; `None` where their CPU time is not known.
    fn busiest_thread(&self) -> Option<(usize, f64)> {
        let threads = self.result.threads.iter().enumerate();
        let (at, thread) = threads.max_by_key(|(_, thread)| thread.cpu_ns)?;
        let known = thread.cpu_ns > 0 && self.result.elapsed_ns > 0;
        known.then(|| (at, thread.cpu_ns as f64 / self.result.elapsed_ns as f64))
    }

    fn busiest_core(&self) -> Option<(&CoreUse, f64)> {
        let cores = self.result.cores.iter().map(|core| (core, busy(core)));
        cores.filter(|(_, busy)| busy.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The load threads themselves limit the rate.
    pub fn is_cpu_bound(&self) -> bool {
        self.busiest_thread().is_some_and(|(_, busy)| busy >= THREAD_BUSY_MIN)
    }
}

/// Share of its time that a core was busy.
fn busy(core: &CoreUse) -> f64 {
    (core.user_percent + core.kernel_percent) / 100.0
}

/// How busy the load threads and the cores were.
struct CpuUse<'a> {
    /// The busiest load thread and its share of a core.
    thread: Option<(usize, f64)>,
    /// The busiest core and its share of busy time.
    core: Option<(&'a CoreUse, f64)>,
    /// Mean share of busy time of all cores; NaN without any.
    mean: f64,
}

impl CpuUse<'_> {
    fn finding(&self, weight: Weight, text: String) -> Finding {
        let mut finding = Finding::new(FindingKind::Cpu, weight, text);
        if let Some((at, busy)) = self.thread {
            finding = finding.facts([
                ("busiest thread", at as f64, Unit::Number),
                ("busiest thread's use of a core", busy, Unit::Share),
            ]);
        }
        if let Some((core, busy)) = self.core {
            finding = finding
                .fact("busiest core", f64::from(core.core), Unit::Number)
                .fact("busiest core's use", busy, Unit::Share)
                .fact("mean use of the cores", self.mean, Unit::Share);
        }
        finding
    }
}

/// Whether the client's CPU was the limit.
pub fn cpu(case: &Case) -> Option<Finding> {
    let cores = &case.result.cores;
    let used = CpuUse {
        thread: case.busiest_thread(),
        core: case.busiest_core(),
        mean: cores.iter().map(busy).sum::<f64>() / cores.len() as f64,
    };
    if let Some((at, busy)) = used.thread.filter(|(_, busy)| *busy >= THREAD_BUSY_MIN) {
        return Some(busy_thread(case, &used, at, busy));
    }
    if used.mean >= CORE_BUSY {
        let cores = if cores.len() == 1 { "core".into() } else { format!("{} cores", cores.len()) };
        let text =
            format!("The whole machine was busy: its {cores} {} of their time.", words::share(used.mean));
        let finding = used.finding(Weight::Warning, text);
        return Some(finding.remedy("end what else runs, or load from a machine with more cores"));
    }
    if let Some((core, busy)) = used.core.filter(|(_, busy)| *busy >= CORE_BUSY) {
        let text = format!(
            "Core {} was busy {} of the time ({} in the kernel), though no load thread was: interrupts of the \
             device, or another program.",
            core.core,
            words::share(busy),
            words::share(core.kernel_percent / 100.0)
        );
        let finding = used.finding(Weight::Warning, text);
        return Some(
            finding.remedy("spread the device's interrupts over the cores, or move the program away"),
        );
    }
    not_cpu_bound(case, &used)
}

fn busy_thread(case: &Case, used: &CpuUse<'_>, at: usize, busy: f64) -> Finding {
    let text = format!(
        "CPU-bound: load thread {at} used {} of a core, so the client was the limit and the storage may give more.",
        words::share(busy)
    );
    let threads = case.result.threads.len();
    let more_cores = case.conditions.cores.is_none_or(|cores| (cores as usize) > threads);
    used.finding(Weight::Warning, text).remedy(if case.is_cached() {
        "use direct I/O for the storage itself: copies from and to the page cache are the work here"
    } else if more_cores {
        "use more threads with fewer outstanding I/Os each"
    } else {
        "use larger blocks, or a machine with more cores than load threads"
    })
}

/// `None` where neither threads nor cores are known.
fn not_cpu_bound(case: &Case, used: &CpuUse<'_>) -> Option<Finding> {
    let text = match (used.thread, used.core) {
        (Some((_, busy)), core) => {
            let threads = match case.result.threads.len() {
                1 => "the load thread".into(),
                threads => format!("the busiest of {threads} load threads"),
            };
            let machine = core.map_or(String::new(), |(core, busy)| {
                format!(", the busiest core ({}) {}", core.core, words::share(busy))
            });
            format!("Not CPU-bound: {threads} used {} of a core{machine}.", words::share(busy))
        }
        (None, Some((core, busy))) => format!(
            "Not CPU-bound: the busiest core ({}) was busy {} of the time.",
            core.core,
            words::share(busy)
        ),
        (None, None) => return None,
    };
    Some(used.finding(Weight::Good, text))
}

pub fn other_load(case: &Case) -> Option<Finding> {
    let cores = &case.result.cores;
    let stolen = |core: &CoreUse| 1.0 - busy(core) - core.idle_percent / 100.0;
    let worst = cores.iter().map(|core| (core.core, stolen(core))).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((core, stolen)) = worst.filter(|(_, stolen)| *stolen >= STOLEN_SHARE) {
        let text = format!(
            "{} of core {core}'s time is in no account: a hypervisor gave it to other machines.",
            words::share(stolen)
        );
        return Some(
            Finding::new(FindingKind::OtherLoad, Weight::Warning, text)
                .fact("time taken from a core", stolen, Unit::Share)
                .remedy("measure where the cores are your own, and repeat: such runs differ"),
        );
    }
    case.busiest_thread()?;
    let used: f64 = cores.iter().map(busy).sum();
    let ours = case.result.threads.iter().map(|thread| thread.cpu_ns as f64).sum::<f64>()
        / case.result.elapsed_ns as f64;
    let others = used - ours;
    if others.is_nan() || others < OTHERS_SHARE * cores.len() as f64 || cores.is_empty() {
        return None;
    }
    let text = format!(
        "Others used {} of {} cores: programs, or kernel threads that serve the I/O.",
        words::rate(others),
        cores.len()
    );
    Some(
        Finding::new(FindingKind::OtherLoad, Weight::Note, text)
            .fact("cores used by others", others, Unit::Cores)
            .fact("cores used by the load", ours, Unit::Cores)
            .remedy("repeat it on a quiet machine where the last percent counts"),
    )
}

pub fn threads(case: &Case) -> Option<Finding> {
    let totals: Vec<_> = case.result.threads.iter().map(workload::ThreadShare::total).collect();
    let (count, ios) = (totals.len(), totals.iter().map(|total| total.count as f64).sum::<f64>());
    if count < 2 || ios == 0.0 {
        return None;
    }
    let counts: Vec<f64> = totals.iter().map(|total| total.count as f64).collect();
    let means: Vec<f64> =
        totals.iter().filter_map(workload::Tally::mean_ns).filter(|mean| *mean > 0.0).collect();
    let (least, most, ios_spread) = spread(&counts)?;
    let limit = THREADS_SPREAD.max(CHANCE_DEVIATIONS / (ios / count as f64).sqrt());
    let latency = spread(&means);
    let agree = ios_spread <= limit && latency.is_none_or(|(_, _, spread)| spread <= limit);
    let with_facts = |finding: Finding| {
        finding
            .fact("spread of I/Os", ios_spread, Unit::Share)
            .fact("spread of mean latency", latency.map_or(f64::NAN, |(_, _, spread)| spread), Unit::Share)
            .fact("allowed", limit, Unit::Share)
    };
    if agree {
        let latencies = latency.map_or(String::new(), |(_, _, spread)| {
            format!(" and their mean latencies {}", words::within(spread))
        });
        let text = format!("The {count} threads agree: their I/Os {}{latencies}.", words::within(ios_spread));
        return Some(with_facts(Finding::new(FindingKind::Threads, Weight::Good, text)));
    }
    let latencies = latency.map_or(String::new(), |(low, high, _)| {
        format!(", at {} to {} on average", words::time(low), words::time(high))
    });
    let text = format!(
        "The {count} threads do not agree: {} to {} I/Os each ({} of their mean){latencies}.",
        format_count(least as u64),
        format_count(most as u64),
        words::share(ios_spread)
    );
    Some(with_facts(Finding::new(FindingKind::Threads, Weight::Warning, text)).remedy(
        "look for what differs between them: their parts of the target, their cores, the queues of the device",
    ))
}

/// Least, most, and their distance as a share of the mean.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp)?;
    let mean = statistics::mean(values);
    (mean > 0.0).then(|| (least, most, (most - least) / mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{finding, plain, weight};
    use workload::{RunResult, Tally, ThreadShare};

    fn with_cpu(cpu_ns: u64) -> RunResult {
        let mut run = plain();
        run.threads[1].cpu_ns = cpu_ns;
        run
    }

    #[test]
    fn a_thread_near_a_whole_core_is_cpu_bound() {
        assert_eq!(weight(&with_cpu(9_190_000_000), FindingKind::Cpu), Some(Weight::Good));
        let found = finding(&with_cpu(9_210_000_000), FindingKind::Cpu).unwrap();
        assert_eq!(found.weight, Weight::Warning);
        assert!(found.text.contains("load thread 1 used 92 % of a core"), "{}", found.text);
    }

    #[test]
    fn a_core_without_idle_time_is_reported_though_no_thread_is_busy() {
        let with = |kernel_percent: f64| {
            let mut run = plain();
            run.cores[1] =
                CoreUse { core: 1, user_percent: 1.0, kernel_percent, idle_percent: 99.0 - kernel_percent };
            finding(&run, FindingKind::Cpu).unwrap()
        };
        assert_eq!(with(93.0).weight, Weight::Good);
        assert_eq!(with(95.0).weight, Weight::Warning);
        assert!(with(95.0).text.contains("Core 1 was busy 96 %"), "{}", with(95.0).text);
    }

    #[test]
    fn the_load_of_others_and_stolen_time_are_reported() {
        let with = |user_percent: f64, idle_percent: f64| {
            let mut run = plain();
            run.cores[0] = CoreUse { core: 0, user_percent, kernel_percent: 12.0, idle_percent };
            weight(&run, FindingKind::OtherLoad)
        };
        // The load threads use 0.3 cores, core 1 is busy by 0.17.
        assert_eq!(with(48.0, 40.0), None);
        assert_eq!(with(55.0, 33.0), Some(Weight::Note));
        assert_eq!(with(5.0, 80.0), Some(Weight::Warning));
    }

    #[test]
    fn threads_agree_within_a_tenth_or_within_chance() {
        let with = |counts: [u64; 2]| {
            let share = |count| ThreadShare {
                read: Tally { count, stall_ns: count * 200_000, ..Tally::default() },
                ..ThreadShare::default()
            };
            weight(&RunResult { threads: counts.map(share).into(), ..plain() }, FindingKind::Threads)
        };
        assert_eq!(with([100_000, 109_000]), Some(Weight::Good));
        assert_eq!(with([100_000, 112_000]), Some(Weight::Warning));
        assert_eq!(with([90, 110]), Some(Weight::Good), "chance alone");
        assert_eq!(with([0, 100_000]), Some(Weight::Warning));
    }

    #[test]
    fn equal_ios_of_unequal_latency_do_not_agree() {
        let mut run = plain();
        run.threads[0].read.stall_ns *= 2;
        assert_eq!(weight(&run, FindingKind::Threads), Some(Weight::Warning));
    }

    #[test]
    fn unknown_cpu_times_give_no_finding() {
        let run = RunResult { cores: Vec::new(), threads: vec![ThreadShare::default()], ..plain() };
        assert_eq!(finding(&run, FindingKind::Cpu), None);
        assert_eq!(finding(&run, FindingKind::Threads), None);
    }
}
