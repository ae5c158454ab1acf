use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::OnceLock;

/// Identifies this boot of the machine.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Identifier of this boot of the machine: a random UUID.
///
/// # Errors
/// If /proc is not readable.
pub fn boot_id() -> io::Result<String> {
    static KNOWN: OnceLock<String> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known.clone());
    }
    let read = fs::read_to_string(BOOT_ID)?.trim().to_owned();
    Ok(KNOWN.get_or_init(|| read).clone())
}

/// The name of this machine (uname(2)); empty without /proc.
pub fn hostname() -> String {
    setting("hostname")
}

/// The names of this host that are known without a network: its host name, and the names beside it in /etc/hosts, of which one
/// is usually the fully qualified one.
pub fn host_names() -> Vec<String> {
    names_of_host(&hostname(), &fs::read_to_string("/etc/hosts").unwrap_or_default())
}

fn names_of_host(hostname: &str, hosts: &str) -> Vec<String> {
    if hostname.is_empty() {
        return Vec::new();
    }
    // "127.0.1.1 db1.example.com db1 # a comment"
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names = lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<&str>>());
    let of_this_host = names.filter(|names| names.contains(&hostname)).flatten();
    std::iter::once(hostname).chain(of_this_host).map(str::to_owned).collect()
}

/// The kernel's release, "6.1.0-18-amd64"; empty without /proc.
pub fn release() -> String {
    setting("osrelease")
}

fn setting(name: &str) -> String {
    let text = fs::read(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// The figures of /proc/meminfo by their names, "MemTotal": bytes of memory and numbers of huge pages. Without /proc there
/// are none.
pub fn memory_figures() -> HashMap<String, u64> {
    parse_memory_figures(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// Bytes that this process can take without swapping and without a kill by the limit of its control group; `None` where the
/// kernel reports neither.
pub fn available_memory_bytes() -> Option<u64> {
    let of_machine = memory_figures().get("MemAvailable").copied();
    of_machine.into_iter().chain(crate::cgroups::memory_left()).min()
}

fn parse_memory_figures(text: &str) -> HashMap<String, u64> {
    let figure = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_ascii_whitespace();
        let number = words.next()?.parse::<u64>().ok()?;
        let unit = if words.next() == Some("kB") { 1024 } else { 1 };
        Some((name.to_owned(), number.checked_mul(unit)?))
    };
    text.lines().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_beside_the_host_name_are_of_this_host() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1\tdb1.example.com db1 # of db1 only\n#192.0.2.1 db1 old\n192.0.2.2 db2\n";
        assert_eq!(names_of_host("db1", hosts), ["db1", "db1.example.com", "db1"]);
        assert_eq!(names_of_host("db3", hosts), ["db3"]);
        assert!(names_of_host("", hosts).is_empty());
    }

    #[test]
    fn memory_is_in_bytes_and_huge_pages_are_counted() {
        let text = "MemTotal:       24000000 kB\nHugePages_Total:      16\nMemFree: no number kB\nShmem\n";
        let expected = [("MemTotal".to_owned(), 24_576_000_000), ("HugePages_Total".to_owned(), 16)];
        assert_eq!(parse_memory_figures(text), HashMap::from(expected));
        assert!(memory_figures()["MemTotal"] > 0);
    }
}
