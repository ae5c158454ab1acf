use serde::Serialize;

/// Kinds of I/O with limits of their own: every commit waits for a log write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoClass {
    /// Reads of data.
    Read,
    /// Writes of data.
    Write,
    /// Writes and syncs of a log.
    LogWrite,
}

/// A named range of latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// Its name ("good").
    pub name: &'static str,
    /// How far down the scale: 0 is the best band.
    pub rank: usize,
    /// Where the next band begins, in nanoseconds; `None` for the last one.
    pub upper_ns: Option<u64>,
}

/// The bands of one class: each name with the latency (ns) at which the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandLimits {
    limits: &'static [(&'static str, u64)],
    last: &'static str,
}

/// A named scale of bands. Reads, writes and log writes may have scales of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name to choose it by.
    pub name: &'static str,
    /// Where the limits come from.
    pub origin: &'static str,
    read: BandLimits,
    write: BandLimits,
    log_write: BandLimits,
}

/// No profile has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no band profile is called '{}'; there are {}",
    .0,
    Profile::ALL.iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownProfile(pub String);

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

const RANDAL: BandLimits = BandLimits {
    limits: &[
        ("excellent", MS),
        ("very good", 5 * MS),
        ("good", 10 * MS),
        ("poor", 20 * MS),
        ("bad", 100 * MS),
        ("really bad", 500 * MS),
    ],
    last: "awful",
};
const MICROSOFT_CSS: BandLimits = BandLimits {
    limits: &[
        ("excellent", 2 * MS),
        ("very good", 6 * MS),
        ("good", 16 * MS),
        ("poor", 100 * MS),
        ("bad", 500 * MS),
    ],
    last: "deplorable",
};
const PAL: BandLimits = BandLimits {
    limits: &[("keeping up", 15 * MS), ("warning", 25 * MS), ("critical", 600 * MS)],
    last: "slower than a floppy drive",
};
const DBATOOLS: BandLimits = BandLimits {
    limits: &[("very good", 10 * MS), ("ok", 20 * MS), ("slow", 50 * MS)],
    last: "serious bottleneck",
};
const NVME: BandLimits = BandLimits {
    limits: &[
        ("excellent", 100 * US),
        ("very good", 250 * US),
        ("good", 500 * US),
        ("poor", MS),
        ("bad", 5 * MS),
        ("really bad", 20 * MS),
    ],
    last: "awful",
};

const CACHED_WRITES: BandLimits =
    BandLimits { limits: &[("excellent", MS), ("good", 2 * MS), ("fair", 4 * MS)], last: "poor" };
const GUIDANCE: BandLimits =
    BandLimits { limits: &[("ok", 20 * MS), ("above guidance", 100 * MS)], last: "slow" };

impl Profile {
    /// Grades all reads and writes by these bands.
    const fn alike(name: &'static str, origin: &'static str, limits: BandLimits) -> Profile {
        Profile { name, origin, read: limits, write: limits, log_write: limits }
    }

    /// All profiles; the first one is the default.
    pub const ALL: &'static [Profile] = &[
        Profile::alike("randal", "Paul Randal, SQLskills", RANDAL),
        Profile::alike(
            "microsoft-css",
            "Microsoft support, troubleshooting slow SQL Server I/O",
            MICROSOFT_CSS,
        ),
        Profile {
            name: "microsoft-2012",
            origin: "Microsoft engagement guidance of 2012: reads 8/12/20 ms, cached writes 1/2/4 ms",
            read: BandLimits {
                limits: &[("excellent", 8 * MS), ("good", 12 * MS), ("fair", 20 * MS)],
                last: "poor",
            },
            write: CACHED_WRITES,
            log_write: CACHED_WRITES,
        },
        Profile {
            name: "first-responder-kit",
            origin: "sp_BlitzFirst: data reads within 20 ms, log writes within 3 ms, slow from 100 ms",
            read: GUIDANCE,
            write: GUIDANCE,
            log_write: BandLimits { limits: &[("ok", 3 * MS), ("above guidance", 100 * MS)], last: "slow" },
        },
        Profile::alike("pal", "PAL, Avg. Disk sec/Read and /Write", PAL),
        Profile::alike("dbatools", "dbatools Test-DbaDiskSpeed", DBATOOLS),
        Profile::alike("nvme", "Headroom, for local flash where a millisecond is already long", NVME),
    ];

    /// The profile of that name.
    ///
    /// # Errors
    /// [`UnknownProfile`], whose text lists the names there are.
    pub fn named(name: &str) -> Result<Profile, UnknownProfile> {
        let found = Profile::ALL.iter().find(|profile| profile.name == name);
        found.copied().ok_or_else(|| UnknownProfile(name.into()))
    }

    /// The band that a latency lies in. A latency at a limit belongs to the worse band.
    pub fn band(&self, class: IoClass, latency_ns: f64) -> Band {
        let bands = self.bands(class);
        let last = bands.len() - 1;
        let at = bands.iter().position(|band| band.upper_ns.is_some_and(|upper| latency_ns < upper as f64));
        bands[at.unwrap_or(last)]
    }

    /// All bands of a class, best first.
    pub fn bands(&self, class: IoClass) -> Vec<Band> {
        let BandLimits { limits, last } = match class {
            IoClass::Read => self.read,
            IoClass::Write => self.write,
            IoClass::LogWrite => self.log_write,
        };
        limits
            .iter()
            .map(|(name, upper_ns)| (*name, Some(*upper_ns)))
            .chain([(last, None)])
            .enumerate()
            .map(|(rank, (name, upper_ns))| Band { name, rank, upper_ns })
            .collect()
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile::ALL[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_bands_are_those_of_the_product() {
        let name = |ms: f64| Profile::default().band(IoClass::Read, ms * 1e6).name;
        let at = [0.2, 1.0, 4.9, 5.0, 10.0, 20.0, 99.0, 100.0, 500.0];
        let bands =
            ["excellent", "very good", "very good", "good", "poor", "bad", "bad", "really bad", "awful"];
        assert_eq!(at.map(name), bands);
    }

    #[test]
    fn limits_rise_in_every_profile() {
        for profile in Profile::ALL {
            for class in [IoClass::Read, IoClass::Write, IoClass::LogWrite] {
                let bands = profile.bands(class);
                let uppers: Vec<u64> = bands.iter().filter_map(|band| band.upper_ns).collect();
                assert!(uppers.is_sorted(), "{}", profile.name);
                assert_eq!(uppers.len() + 1, bands.len(), "{}", profile.name);
            }
        }
    }

    #[test]
    fn log_writes_may_be_graded_apart() {
        let profile = Profile::named("first-responder-kit").unwrap();
        assert_eq!(profile.band(IoClass::Write, 5e6).name, "ok");
        assert_eq!(profile.band(IoClass::LogWrite, 5e6).name, "above guidance");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Profile::named("best").unwrap_err().to_string();
        assert!(error.contains("'best'") && error.contains("randal") && error.contains("pal"));
    }
}
