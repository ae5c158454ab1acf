use crate::kernel_file::read_kernel_file;
use std::io;
use std::time::Duration;
use workload::CoreUse;

/// The only reader of it.
fn read_stat() -> io::Result<Vec<u8>> {
    read_kernel_file("/proc/stat")
}

/// Clock ticks of a line: user, nice, system, idle, iowait, irq, softirq, steal; further ones are parts of these.
fn ticks(words: &str) -> Option<[u64; 8]> {
    let ticks: Option<Vec<u64>> = words.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    ticks?.first_chunk().copied()
}

/// When this host booted, seconds since 1970; `None` without a readable /proc.
pub(crate) fn booted_unix_s() -> Option<f64> {
    let text = String::from_utf8(read_stat().ok()?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()
}

/// How long the processors of this host have worked since it booted, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTimes {
    busy_ticks: u64,
    /// In programs, outside of the kernel, but those of low priority.
    user_ticks: u64,
    /// In programs of low priority (nice above 0), outside of the kernel.
    low_priority_ticks: u64,
    /// In the kernel, for processes, for itself and in interrupts.
    kernel_ticks: u64,
    all_ticks: u64,
    count: u32,
}

impl ProcessorTimes {
    /// Reads them.
    ///
    /// # Errors
    /// If /proc/stat cannot be read or has another form.
    pub fn read() -> io::Result<ProcessorTimes> {
        let text = read_stat()?;
        ProcessorTimes::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat"))
    }

    /// ```text
    /// cpu  user nice system idle iowait irq softirq steal ...
    /// cpu0 ...       a line for each that is online
    /// ```
    fn parse(text: &[u8]) -> Option<ProcessorTimes> {
        let mut lines = text.strip_prefix(b"cpu ")?.split(|byte| *byte == b'\n');
        let line = std::str::from_utf8(lines.next()?).ok()?;
        let count = lines.take_while(|line| line.starts_with(b"cpu")).count();
        let [user, nice, system, idle, waiting, irq, softirq, steal] = ticks(line)?;
        let busy_ticks = [user, nice, system, irq, softirq, steal].into_iter().fold(0, u64::saturating_add);
        Some(ProcessorTimes {
            busy_ticks,
            user_ticks: user,
            low_priority_ticks: nice,
            kernel_ticks: [system, irq, softirq].into_iter().fold(0, u64::saturating_add),
            all_ticks: busy_ticks.saturating_add(idle).saturating_add(waiting),
            count: u32::try_from(count).ok()?,
        })
    }

    /// Number of processors that are online.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The share of the time since `earlier` in which they worked, 0 to 1; `None` if no time has passed.
    pub fn busy_since(&self, earlier: &ProcessorTimes) -> Option<f64> {
        self.share_since(earlier, self.busy_ticks.saturating_sub(earlier.busy_ticks))
    }

    /// Clock ticks outside of the kernel since `earlier`: of programs, and of those of low priority, which give way to others.
    pub fn user_ticks_since(&self, earlier: &ProcessorTimes) -> (u64, u64) {
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let low_priority = since(self.low_priority_ticks, earlier.low_priority_ticks);
        (since(self.user_ticks, earlier.user_ticks), low_priority)
    }

    /// Clock ticks in the kernel since `earlier`.
    pub fn kernel_ticks_since(&self, earlier: &ProcessorTimes) -> u64 {
        self.kernel_ticks.saturating_sub(earlier.kernel_ticks)
    }

    /// Share of these clock ticks in all processor time since `earlier`.
    pub fn share_since(&self, earlier: &ProcessorTimes, ticks: u64) -> Option<f64> {
        let all = self.all_ticks.checked_sub(earlier.all_ticks).filter(|all| *all > 0)?;
        Some((ticks as f64 / all as f64).min(1.0))
    }
}

/// How long each processor has worked since the host booted, as far as it is online.
#[derive(Clone, Debug, Default)]
pub struct CoreTimes(Vec<CoreTicks>);

/// The number of a core, and its clock ticks.
#[derive(Clone, Copy, Debug)]
struct CoreTicks {
    core: u32,
    user: u64,
    kernel: u64,
    idle: u64,
    /// By the hypervisor, for other machines.
    stolen: u64,
}

impl CoreTimes {
    /// Reads them; empty where /proc/stat cannot be read.
    pub fn now() -> CoreTimes {
        CoreTimes::parse(&read_stat().unwrap_or_default())
    }

    fn parse(text: &[u8]) -> CoreTimes {
        let cores = text.split(|byte| *byte == b'\n').filter_map(|line| {
            let (core, words) = std::str::from_utf8(line).ok()?.strip_prefix("cpu")?.split_once(' ')?;
            // The line of all cores has no number: "cpu  1 2 ...".
            let core = core.parse().ok()?;
            let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks(words)?;
            Some(CoreTicks {
                core,
                user: user + nice,
                kernel: system + irq + softirq,
                idle: idle + waiting,
                stolen,
            })
        });
        CoreTimes(cores.collect())
    }

    /// Use of each core between the two readings.
    pub fn since(&self, earlier: &CoreTimes) -> Vec<CoreUse> {
        let pairs =
            self.0.iter().filter_map(|now| Some((now, earlier.0.iter().find(|then| then.core == now.core)?)));
        pairs
            .map(|(now, then)| {
                let since = |ticks: fn(&CoreTicks) -> u64| ticks(now).saturating_sub(ticks(then)) as f64;
                let (user, kernel, idle) =
                    (since(|core| core.user), since(|core| core.kernel), since(|core| core.idle));
                // Stolen time is in none of the three, which then do not add up to 100.
                let percent = |part: f64| match user + kernel + idle + since(|core| core.stolen) {
                    0.0 => 0.0,
                    all => 100.0 * part / all,
                };
                CoreUse {
                    core: now.core,
                    user_percent: percent(user),
                    kernel_percent: percent(kernel),
                    idle_percent: percent(idle),
                }
            })
            .collect()
    }
}

/// The clock ticks in such a time, as the kernel counts processor time in them.
pub fn clock_ticks(time: Duration) -> u64 {
    (time.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_time_in_which_processors_worked_is_that_of_all_but_idle_and_waiting() {
        let at = |text: &str| ProcessorTimes::parse(text.as_bytes()).unwrap();
        let before = at("cpu  100 10 50 800 40 1 2 0 0 0\ncpu0 1 2 3 4\n");
        let after = at("cpu  140 30 70 900 50 1 2 10 0 0\n");
        assert!((after.busy_since(&before).unwrap() - 90.0 / 200.0).abs() < 1e-9);
        assert_eq!(after.user_ticks_since(&before), (40, 20));
        assert_eq!(after.kernel_ticks_since(&before), 20);
        assert_eq!((before.count(), after.count()), (1, 0));
        assert_eq!(before.busy_since(&before), None);
        assert_eq!(before.busy_since(&after), None);
    }

    #[test]
    fn the_line_of_all_cores_is_not_a_core() {
        let then = CoreTimes::parse(b"cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 50 800 50 0 0 0 0 0\nintr 5\n");
        let now = CoreTimes::parse(b"cpu  9 9 9 9 9 9 9 9\ncpu0 130 0 60 850 60 0 0 0 0 0\nintr 5\n");
        let cores = now.since(&then);
        assert_eq!(cores.len(), 1);
        assert_eq!(
            (cores[0].user_percent, cores[0].kernel_percent, cores[0].idle_percent),
            (30.0, 10.0, 60.0)
        );
        assert!(CoreTimes::parse(b"cpu0 x\ncpu\n").0.is_empty());
    }

    #[test]
    fn the_time_that_a_hypervisor_steals_is_in_no_share() {
        let then = CoreTimes::parse(b"cpu0 100 0 50 800 50 0 0 1000 0 0\n");
        let now = CoreTimes::parse(b"cpu0 120 0 60 820 60 0 0 1040 0 0\n");
        let core = now.since(&then)[0];
        assert_eq!((core.user_percent, core.kernel_percent, core.idle_percent), (20.0, 10.0, 30.0));
    }

    #[test]
    fn another_form_is_refused() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(ProcessorTimes::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn this_host_has_processors_that_work() {
        let earlier = ProcessorTimes {
            busy_ticks: 0,
            user_ticks: 0,
            low_priority_ticks: 0,
            kernel_ticks: 0,
            all_ticks: 0,
            count: 0,
        };
        let busy = ProcessorTimes::read().unwrap().busy_since(&earlier).unwrap();
        assert!(busy > 0.0 && busy <= 1.0, "{busy}");
    }
}
