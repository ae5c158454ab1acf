//! The names of counters files.

/// Counters files of one process: a file for each database that its engines have open. A program with more keeps the
/// counters of the others to itself.
pub(crate) const INSTANCES_MAX: u32 = 16;

const NAME_PREFIX: &str = "headroom-";
const NAME_SUFFIX: &str = ".counters";

/// The name of a process's counters file.
pub(crate) fn file_name(pid: u32, instance: u32) -> String {
    format!("{NAME_PREFIX}{pid}-{instance}{NAME_SUFFIX}")
}

/// The process and the instance that a file belongs to by its name; `None` for other names.
pub(crate) fn parse_name(name: &str) -> Option<(u32, u32)> {
    let (pid, instance) = name.strip_prefix(NAME_PREFIX)?.strip_suffix(NAME_SUFFIX)?.split_once('-')?;
    let (pid, instance) = (pid.parse().ok()?, instance.parse().ok()?);
    (name == file_name(pid, instance) && instance < INSTANCES_MAX).then_some((pid, instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_process_and_the_instance() {
        assert_eq!(parse_name(&file_name(4711, 3)), Some((4711, 3)));
        for name in
            ["headroom-1.counters", "headroom-01-0.counters", "headroom-1-16.counters", "headroom-1-0"]
        {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
