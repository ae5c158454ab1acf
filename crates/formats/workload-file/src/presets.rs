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

impl Preset {
    const fn new(name: &'static str, about: &'static str, text: &'static str) -> Preset {
        Preset { name, about, text }
    }
}

/// All presets.
pub const PRESETS: [Preset; 6] = [
    Preset::new("oltp", "8 KiB random, 70 % reads, 32 outstanding", include_str!("../presets/oltp.toml")),
    Preset::new("log", "4 KiB sequential durable writes, one at a time", include_str!("../presets/log.toml")),
    Preset::new(
        "checkpoint",
        "bursts of 8 KiB random writes, then fsync",
        include_str!("../presets/checkpoint.toml"),
    ),
    Preset::new("scan", "512 KiB sequential reads, 8 outstanding", include_str!("../presets/scan.toml")),
    Preset::new(
        "backup",
        "1 MiB sequential reads beside a light oltp",
        include_str!("../presets/backup.toml"),
    ),
    Preset::new(
        "tempdb",
        "64 KiB sequential writes beside 8 KiB random 50/50",
        include_str!("../presets/tempdb.toml"),
    ),
];

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
