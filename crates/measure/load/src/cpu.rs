use rustix::time::{ClockId, clock_gettime};
use workload::CoreUse;

/// Jiffies of each core since boot: (core, user, kernel, idle, stolen by the hypervisor).
#[derive(Clone, Debug, Default)]
pub struct CoreTimes(Vec<(u32, u64, u64, u64, u64)>);

impl CoreTimes {
    /// Reads `/proc/stat`; empty where it cannot be read.
    pub fn now() -> CoreTimes {
        CoreTimes::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> CoreTimes {
        let cores = text.lines().filter_map(|line| {
            let (core, times) = line.strip_prefix("cpu")?.split_once(' ')?;
            // The line of all cores has no number: "cpu  1 2 ...".
            let core = core.parse().ok()?;
            let words = times.split_ascii_whitespace();
            let jiffies: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            // user nice system idle iowait irq softirq steal
            let [user, nice, system, idle, waiting, irq, softirq, ..] = jiffies[..] else { return None };
            let steal = jiffies.get(7).copied().unwrap_or(0);
            Some((core, user + nice, system + irq + softirq, idle + waiting, steal))
        });
        CoreTimes(cores.collect())
    }

    /// Use of each core between the two readings.
    pub fn since(&self, earlier: &CoreTimes) -> Vec<CoreUse> {
        let pairs =
            self.0.iter().filter_map(|now| Some((now, earlier.0.iter().find(|then| then.0 == now.0)?)));
        pairs
            .map(|(now, then)| {
                let (user, kernel, idle, stolen) = (
                    now.1.saturating_sub(then.1) as f64,
                    now.2.saturating_sub(then.2) as f64,
                    now.3.saturating_sub(then.3) as f64,
                    now.4.saturating_sub(then.4) as f64,
                );
                // Stolen time is in none of the three, which then do not add up to 100.
                let percent = |part: f64| match user + kernel + idle + stolen {
                    0.0 => 0.0,
                    all => 100.0 * part / all,
                };
                CoreUse {
                    core: now.0,
                    user_percent: percent(user),
                    kernel_percent: percent(kernel),
                    idle_percent: percent(idle),
                }
            })
            .collect()
    }
}

/// CPU time this thread has used, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// The monotonic clock, nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

#[inline]
fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_cores_is_not_a_core() {
        let then = CoreTimes::parse("cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 50 800 50 0 0 0 0 0\nintr 5\n");
        let now = CoreTimes::parse("cpu  9 9 9 9 9 9 9 9\ncpu0 130 0 60 850 60 0 0 0 0 0\nintr 5\n");
        let cores = now.since(&then);
        assert_eq!(cores.len(), 1);
        assert_eq!(
            (cores[0].user_percent, cores[0].kernel_percent, cores[0].idle_percent),
            (30.0, 10.0, 60.0)
        );
        assert!(CoreTimes::parse("cpu0 x\ncpu\n").0.is_empty());
    }

    #[test]
    fn the_time_that_a_hypervisor_steals_is_nobody_s() {
        let then = CoreTimes::parse("cpu0 100 0 50 800 50 0 0 1000 0 0\n");
        let now = CoreTimes::parse("cpu0 120 0 60 820 60 0 0 1040 0 0\n");
        let core = now.since(&then)[0];
        assert_eq!((core.user_percent, core.kernel_percent, core.idle_percent), (20.0, 10.0, 30.0));
    }
}
