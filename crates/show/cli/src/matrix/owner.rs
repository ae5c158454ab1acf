//! Who works at a matrix: a name that no other process has, even after a restart of the machine.

/// "boot process start", each as the kernel says it.
pub fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), started(pid).unwrap_or_default())
}

/// Whether the process of that name is still there.
pub fn lives(name: &str) -> bool {
    let mut words = name.split(' ');
    let (Some(boot_then), Some(pid), Some(start)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let pid = pid.parse().ok();
    boot_then == boot() && pid.and_then(started).is_some_and(|started| started == start)
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The 22nd field; the second may hold blanks, but it ends at the last ")". A zombie does not live.
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_an_earlier_one_of_its_number_does_not() {
        let us = this_process();
        assert!(lives(&us), "{us}");
        assert!(!lives(&format!("{us}0")));
        assert!(!lives("another-boot 1 1"));
        assert!(!lives(""));
    }
}
