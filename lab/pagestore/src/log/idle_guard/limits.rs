//! Whether processor time is scarce on this machine.

use std::fs::read_to_string;
use std::path::Path;

/// Whether spinning would use up something limited, as far as that is visible: a control group's quota, or a
/// battery. The price of processor time is not visible.
pub(super) fn is_cpu_time_scarce() -> bool {
    is_limited() || has_battery(Path::new("/sys/class/power_supply"))
}

/// `available_parallelism` takes the quota of a control group (`cpu.max`, `cpu.cfs_quota_us`) into account, but
/// never returns less than 1. So with one processor a quota cannot be seen; but there the processor is rarely idle
/// in a way that matters.
fn is_limited() -> bool {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    allowed == 1 || available < allowed
}

/// A battery of the machine, not of a peripheral such as a mouse.
fn has_battery(supplies: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(supplies) else { return false };
    entries.flatten().any(|entry| {
        let read = |what| read_to_string(entry.path().join(what)).unwrap_or_default();
        read("type").trim() == "Battery" && read("scope").trim() != "Device"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_battery_of_the_machine_counts_and_none_of_a_device() {
        let place = tempfile::tempdir().unwrap();
        assert!(!has_battery(&place.path().join("none")), "no such folder, as in a virtual machine");
        let supply = |name: &str, files: &[(&str, &str)]| {
            let directory = place.path().join(name);
            std::fs::create_dir(&directory).unwrap();
            files.iter().for_each(|(file, text)| std::fs::write(directory.join(file), text).unwrap());
        };
        supply("AC", &[("type", "Mains\n")]);
        supply("hidpp_battery_0", &[("type", "Battery\n"), ("scope", "Device\n")]);
        assert!(!has_battery(place.path()));
        supply("BAT0", &[("type", "Battery\n")]);
        assert!(has_battery(place.path()));
    }
}
