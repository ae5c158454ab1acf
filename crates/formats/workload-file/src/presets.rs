//! The presets: named workloads of databases, each a workload file in `presets/`.

/// A named workload of databases: a workload file without targets, whose comments give the reasons for its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// "oltp".
    pub name: &'static str,
    /// A description of half a line.
    pub about: &'static str,
    /// The file, comments included.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: [Preset; 6] = [
    Preset {
        name: "oltp",
        about: "8 KiB random, 70 % reads, 32 outstanding",
        text: include_str!("../presets/oltp.toml"),
    },
    Preset {
        name: "log",
        about: "4 KiB sequential durable writes, one at a time",
        text: include_str!("../presets/log.toml"),
    },
    Preset {
        name: "checkpoint",
        about: "bursts of 8 KiB random writes, then fsync",
        text: include_str!("../presets/checkpoint.toml"),
    },
    Preset {
        name: "scan",
        about: "512 KiB sequential reads, 8 outstanding",
        text: include_str!("../presets/scan.toml"),
    },
    Preset {
        name: "backup",
        about: "1 MiB sequential reads beside a light oltp",
        text: include_str!("../presets/backup.toml"),
    },
    Preset {
        name: "tempdb",
        about: "64 KiB sequential writes beside 8 KiB random 50/50",
        text: include_str!("../presets/tempdb.toml"),
    },
];

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
