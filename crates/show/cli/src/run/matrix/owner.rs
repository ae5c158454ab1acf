//! The process that runs a matrix: a name that no other process has, even after a restart of the machine.

/// "boot pid start", each as the kernel reports it.
pub fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), start(pid).unwrap_or_default())
}

/// Whether the process of that name still runs.
pub fn is_alive(name: &str) -> bool {
    let mut words = name.split(' ');
    let (Some(boot_then), Some(pid), Some(start_then)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let pid = pid.parse().ok();
    boot_then == boot() && pid.and_then(start).is_some_and(|start| start == start_then)
}

fn boot() -> String {
    host::boot_id().unwrap_or_default()
}

fn start(pid: u32) -> Option<String> {
    host::start_ticks(pid).map(|ticks| ticks.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_an_earlier_one_with_its_pid_is_not() {
        let own = this_process();
        assert!(is_alive(&own), "{own}");
        assert!(!is_alive(&format!("{own}0")));
        assert!(!is_alive("another-boot 1 1"));
        assert!(!is_alive(""));
    }
}
