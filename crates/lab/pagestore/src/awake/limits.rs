//! Whether this machine's processor time can be spent freely.

use std::fs::read_to_string;
use std::path::Path;

/// Why it cannot be, as far as can be seen: a control group's quota, a battery. What it costs in money cannot be.
pub(super) fn found() -> bool {
    is_limited() || has_battery(Path::new("/sys/class/power_supply"))
}

/// The standard library takes a control group's quota for what may run at once (`cpu.max`, `cpu.cfs_quota_us`). With one
/// processor it would take any quota for one; and there it is hardly idle in a way that matters.
fn is_limited() -> bool {
    let own = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    own == 1 || at_once < own
}

/// One of the machine, not of a mouse.
fn has_battery(supplies: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(supplies) else { return false };
    entries.flatten().any(|entry| {
        let told = |what| read_to_string(entry.path().join(what)).unwrap_or_default();
        told("type").trim() == "Battery" && told("scope").trim() != "Device"
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
            let own = place.path().join(name);
            std::fs::create_dir(&own).unwrap();
            files.iter().for_each(|(file, text)| std::fs::write(own.join(file), text).unwrap());
        };
        supply("AC", &[("type", "Mains\n")]);
        supply("hidpp_battery_0", &[("type", "Battery\n"), ("scope", "Device\n")]);
        assert!(!has_battery(place.path()));
        supply("BAT0", &[("type", "Battery\n")]);
        assert!(has_battery(place.path()));
    }
}
