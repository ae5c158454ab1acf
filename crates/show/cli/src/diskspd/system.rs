//! The machine as diskspd's reports tell it, read from /proc and /sys.

use ::diskspd::report::{CpuFacts, SystemFacts};
use std::fs;
use std::path::Path;

/// Known facts of the machine whose /proc and /sys are below `root`.
pub fn facts(root: &Path) -> SystemFacts {
    let cpus = root.join("sys/devices/system/cpu");
    let online = word(&cpus.join("online")).map_or(Vec::new(), |list| numbers(&list));
    SystemFacts {
        computer_name: word(&root.join("proc/sys/kernel/hostname")).unwrap_or_default(),
        started_unix_ns: Some(host::unix_ns()),
        power_scheme: word(&cpus.join("cpu0/cpufreq/scaling_governor")),
        cpus: cpu_facts(&cpus, &online),
    }
}

/// The CPUs that this program may run on, where the kernel reports them.
pub fn allowed_cpus() -> Option<Vec<u32>> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(numbers(list.trim()))
}

fn cpu_facts(cpus: &Path, online: &[u32]) -> Vec<CpuFacts> {
    let told = |id: &u32| {
        let cpu = cpus.join(format!("cpu{id}"));
        let number = |file: &str| word(&cpu.join(file)).and_then(|text| text.parse::<u32>().ok());
        let socket = number("topology/physical_package_id").unwrap_or(0);
        // Cores are numbered within their socket and die.
        let place = (socket, number("topology/die_id"), number("topology/core_id").unwrap_or(*id));
        (*id, place, node(&cpu), number("cpu_capacity").unwrap_or(0))
    };
    let told: Vec<_> = online.iter().map(told).collect();
    let places = sorted(told.iter().map(|(_, place, ..)| *place));
    let capacities = sorted(told.iter().map(|(.., capacity)| *capacity));
    let facts = |(id, place, node, capacity)| CpuFacts {
        id,
        core: places.binary_search(&place).map_or(id, |at| at as u32),
        node,
        socket: place.0,
        efficiency_class: capacities.binary_search(&capacity).map_or(0, |at| at.min(255) as u8),
    };
    told.into_iter().map(facts).collect()
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Of the link `node0` in a CPU's directory; 0 on machines without nodes.
fn node(cpu: &Path) -> u32 {
    let entries = fs::read_dir(cpu).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_prefix("node")?.parse().ok()).next().unwrap_or(0)
}

fn word(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// "0-2,4" is 0, 1, 2, 4; what is no such list is left out.
fn numbers(list: &str) -> Vec<u32> {
    /// More than any kernel is built for.
    const CPUS_MAX: usize = 1 << 16;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    list.split(',').filter_map(range).flatten().take(CPUS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_two_sockets_is_told_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("proc/sys/kernel/hostname", "shop\n");
        put("sys/devices/system/cpu/online", "0-1,4\n");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        for (cpu, socket, core, capacity) in [(0, 0, 3, 512), (1, 0, 3, 512), (4, 1, 3, 1024)] {
            let cpu = format!("sys/devices/system/cpu/cpu{cpu}");
            put(&format!("{cpu}/topology/physical_package_id"), &socket.to_string());
            put(&format!("{cpu}/topology/core_id"), &core.to_string());
            put(&format!("{cpu}/cpu_capacity"), &capacity.to_string());
            put(&format!("{cpu}/node{socket}/meminfo"), "");
        }
        let facts = facts(root.path());
        assert_eq!(
            (facts.computer_name.as_str(), facts.power_scheme.as_deref()),
            ("shop", Some("performance"))
        );
        let cpu =
            |id, core, node, socket, efficiency_class| CpuFacts { id, core, node, socket, efficiency_class };
        assert_eq!(facts.cpus, [cpu(0, 0, 0, 0, 0), cpu(1, 0, 0, 0, 0), cpu(4, 1, 1, 1, 1)]);
    }

    #[test]
    fn lists_of_cpus_are_read_and_other_text_is_none() {
        assert_eq!(numbers("0-2,4"), [0, 1, 2, 4]);
        assert_eq!(numbers("x,3,9-,-"), [3]);
    }
}
