/// The host and the program that the page is about.
#[derive(Clone, Debug)]
pub struct About {
    /// The host's name.
    pub host: String,
    /// Version of Headroom.
    pub version: String,
    /// When the agent was started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Length of the judged window, which ends now.
    pub window_ns: u64,
    /// Between two judgements.
    pub every_ns: u64,
    /// An agent; else a history that nothing is added to.
    pub live: bool,
}

/// The command that measures the storage at a mount point, for a shell.
pub(crate) fn measure_command(mount: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%".contains(character);
    if !mount.is_empty() && mount.chars().all(is_plain) && !mount.starts_with('-') {
        return format!("headroom measure {mount}");
    }
    format!("headroom measure -- '{}'", mount.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_quoted_where_a_shell_would_read_it_otherwise() {
        assert_eq!(measure_command("/var/lib/postgresql"), "headroom measure /var/lib/postgresql");
        assert_eq!(measure_command("/data/it's $x"), r"headroom measure -- '/data/it'\''s $x'");
    }
}
