//! Limits that providers state for their volumes, as their documentation had them in the year beside each.
//!
//! | source | |
//! |---|---|
//! | AWS | "Amazon EBS volume types" in the Amazon EBS user guide, docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html; gp3 since September 2025: "Amazon EBS increases the maximum size and provisioned performance of General Purpose (gp3) volumes", aws.amazon.com/about-aws/whats-new/2025/09/amazon-ebs-size-provisioned-performance-gp3-volumes |
//! | Azure | "Azure managed disk types", learn.microsoft.com/azure/virtual-machines/disks-types |
//! | Google | "About Persistent Disk performance", "About Hyperdisk Balanced" and "About Hyperdisk Extreme", cloud.google.com/compute/docs/disks/performance, cloud.google.com/compute/docs/disks/hd-types; the limits of an instance of the size that reaches them |
//!
//! Limits are baselines. Rates that a volume reaches for a limited time on saved credits stand beside them. The instance that a
//! volume is attached to has limits of its own, which are not here.

use crate::{Binding, Burst, Declared};
use std::fmt;
use std::str::FromStr;

/// A kind of volume that a provider offers.
#[derive(Clone, Copy, Debug)]
pub struct VolumeType {
    /// Its name on the command line, the provider's own where it has one.
    pub name: &'static str,
    provider: &'static str,
    /// The year of the documentation.
    year: u16,
    /// Operations a second; of writes where they differ from those of reads.
    operations: Law,
    write_operations: Option<Law>,
    /// Throughput in units of `unit`.
    throughput: Law,
    write_throughput: Option<Law>,
    unit: f64,
    /// Time of a small I/O in milliseconds, or the bound that is stated; `None` where no number is.
    latency_ms: Option<f64>,
    bursts: Bursts,
}

/// The size of a volume, and what was bought for it beside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VolumeSize {
    /// GiB; 0 where it is not stated.
    pub gib: f64,
    /// Provisioned operations a second.
    pub iops: Option<f64>,
    /// Provisioned bytes a second.
    pub bytes_per_s: Option<f64>,
}

/// How a limit follows from the size of a volume and from what was bought.
#[derive(Clone, Copy, Debug)]
enum Law {
    /// `base + per_gib x GiB`, at least `least`, at most `most`.
    Linear { base: f64, per_gib: f64, least: f64, most: f64 },
    /// The value of the first step that is at least as large: (GiB, value).
    Steps(&'static [(f64, f64)]),
    /// The provisioned or included rate; `None` where it must be stated. At most `per_gib x GiB` and `most`.
    Bought { included: Option<f64>, per_gib: f64, most: f64 },
    /// The provisioned or included rate, at most `per_operation` for each operation a second and `most`.
    BoughtPerOperation { included: f64, per_operation: f64, most: f64 },
    /// `each` for each operation a second up to `most`, or `beyond` for each where that is more.
    PerOperation { each: f64, most: f64, beyond: f64 },
}

/// Rates that a volume reaches for a limited time on credits that it saved.
#[derive(Clone, Copy, Debug)]
enum Bursts {
    None,
    /// Operations a second, and the most that can be saved; none from the size on at which the baseline is as high.
    Operations {
        per_second: f64,
        saved_max: f64,
    },
    /// MiB a second for each TiB, at most `most`; 1 TiB for each TiB can be saved.
    Throughput {
        per_tib: f64,
        most: f64,
    },
    /// Operations and MB a second for half an hour, up to this size in GiB.
    HalfHour {
        operations: f64,
        mb: f64,
        gib_max: f64,
    },
}

/// Why a limit is not known.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VolumeError {
    /// Performance depends on the size.
    #[error("what {0} gives depends on its size, which is not declared")]
    NoSize(&'static str),
    /// The operations were chosen when the volume was made.
    #[error("what {0} gives was chosen when it was made: declare its operations a second")]
    NoOperations(&'static str),
    /// More than there is.
    #[error("{name} of this size gives at most {most:.0} {what}")]
    TooMuch {
        /// The volume type.
        name: &'static str,
        /// The most.
        most: f64,
        /// Its unit: "operations a second".
        what: &'static str,
    },
}

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1e6;
const TIB: f64 = 1024.0;
const ANY: f64 = f64::INFINITY;

const fn linear(base: f64, per_gib: f64, least: f64, most: f64) -> Law {
    Law::Linear { base, per_gib, least, most }
}

const fn bought(included: Option<f64>, per_gib: f64, most: f64) -> Law {
    Law::Bought { included, per_gib, most }
}

const fn with_operations(included: f64, per_operation: f64, most: f64) -> Law {
    Law::BoughtPerOperation { included, per_operation, most }
}

const fn per_operation(each: f64, most: f64, beyond: f64) -> Law {
    Law::PerOperation { each, most, beyond }
}

const fn volume(
    provider: &'static str,
    name: &'static str,
    operations: Law,
    throughput: Law,
    latency_ms: Option<f64>,
) -> VolumeType {
    let unit = if matches!(provider.as_bytes(), b"Azure") { MB } else { MIB };
    VolumeType {
        name,
        provider,
        year: 2025,
        operations,
        write_operations: None,
        throughput,
        write_throughput: None,
        unit,
        latency_ms,
        bursts: Bursts::None,
    }
}

const fn bursting(volume: VolumeType, bursts: Bursts) -> VolumeType {
    VolumeType { bursts, ..volume }
}

/// P1 to P80 and E1 to E80: a disk counts as the next larger size.
const PREMIUM_OPERATIONS: &[(f64, f64)] = &[
    (32.0, 120.0),
    (64.0, 240.0),
    (128.0, 500.0),
    (256.0, 1_100.0),
    (512.0, 2_300.0),
    (1_024.0, 5_000.0),
    (4_096.0, 7_500.0),
    (8_192.0, 16_000.0),
    (16_384.0, 18_000.0),
    (ANY, 20_000.0),
];
const PREMIUM_MB: &[(f64, f64)] = &[
    (32.0, 25.0),
    (64.0, 50.0),
    (128.0, 100.0),
    (256.0, 125.0),
    (512.0, 150.0),
    (1_024.0, 200.0),
    (4_096.0, 250.0),
    (8_192.0, 500.0),
    (16_384.0, 750.0),
    (ANY, 900.0),
];
const STANDARD_OPERATIONS: &[(f64, f64)] =
    &[(4_096.0, 500.0), (8_192.0, 2_000.0), (16_384.0, 4_000.0), (ANY, 6_000.0)];
const STANDARD_MB: &[(f64, f64)] = &[(4_096.0, 100.0), (8_192.0, 400.0), (16_384.0, 600.0), (ANY, 750.0)];

/// All that are known.
const TYPES: [VolumeType; 15] = [
    bursting(
        volume(
            "AWS",
            "gp2",
            linear(0.0, 3.0, 100.0, 16e3),
            Law::Steps(&[(333.0, 128.0), (ANY, 250.0)]),
            None,
        ),
        Bursts::Operations { per_second: 3e3, saved_max: 5.4e6 },
    ),
    volume("AWS", "gp3", bought(Some(3e3), 500.0, 80e3), with_operations(125.0, 0.25, 2e3), None),
    volume("AWS", "io1", bought(None, 50.0, 64e3), per_operation(0.25, 500.0, 1.0 / 64.0), None),
    volume("AWS", "io2", bought(None, 1e3, 256e3), per_operation(0.25, 4e3, 0.0), Some(0.5)),
    bursting(
        volume("AWS", "st1", linear(0.0, 40.0 / TIB, 0.0, 500.0), linear(0.0, 40.0 / TIB, 0.0, 500.0), None),
        Bursts::Throughput { per_tib: 250.0, most: 500.0 },
    ),
    bursting(
        volume("AWS", "sc1", linear(0.0, 12.0 / TIB, 0.0, 192.0), linear(0.0, 12.0 / TIB, 0.0, 192.0), None),
        Bursts::Throughput { per_tib: 80.0, most: 250.0 },
    ),
    bursting(
        volume("Azure", "premium-ssd", Law::Steps(PREMIUM_OPERATIONS), Law::Steps(PREMIUM_MB), None),
        Bursts::HalfHour { operations: 3_500.0, mb: 170.0, gib_max: 512.0 },
    ),
    volume(
        "Azure",
        "premium-ssd-v2",
        bought(Some(3e3), 500.0, 80e3),
        with_operations(125.0, 0.25, 1_200.0),
        Some(1.0),
    ),
    bursting(
        volume("Azure", "standard-ssd", Law::Steps(STANDARD_OPERATIONS), Law::Steps(STANDARD_MB), None),
        Bursts::HalfHour { operations: 600.0, mb: 150.0, gib_max: 1_024.0 },
    ),
    volume("Azure", "ultra", bought(None, 1e3, 400e3), with_operations(1.0, 0.25, 10e3), Some(1.0)),
    volume(
        "Google",
        "pd-balanced",
        linear(3e3, 6.0, 0.0, 80e3),
        linear(140.0, 0.28, 0.0, 1_200.0),
        Some(1.0),
    ),
    volume("Google", "pd-ssd", linear(6e3, 30.0, 0.0, 100e3), linear(240.0, 0.48, 0.0, 1_200.0), Some(1.0)),
    VolumeType {
        write_operations: Some(linear(0.0, 1.5, 0.0, 15e3)),
        write_throughput: Some(linear(0.0, 0.12, 0.0, 400.0)),
        ..volume(
            "Google",
            "pd-standard",
            linear(0.0, 0.75, 0.0, 7_500.0),
            linear(0.0, 0.12, 0.0, 1_200.0),
            None,
        )
    },
    volume(
        "Google",
        "hyperdisk-balanced",
        bought(Some(3e3), 500.0, 160e3),
        with_operations(140.0, 0.25, 2_400.0),
        Some(1.0),
    ),
    volume(
        "Google",
        "hyperdisk-extreme",
        bought(None, 1_200.0, 350e3),
        per_operation(0.25, 5e3, 0.0),
        Some(1.0),
    ),
];

impl Law {
    /// The limit; `bought` in the unit of the law.
    fn limit(
        self,
        volume: &VolumeType,
        gib: f64,
        what: &'static str,
        bought: Option<f64>,
        operations: f64,
    ) -> Result<f64, VolumeError> {
        let sized = || (gib > 0.0).then_some(gib).ok_or(VolumeError::NoSize(volume.name));
        let chosen = |most: f64, chosen: f64| match chosen {
            _ if bought.is_some_and(|bought| bought > most) => {
                Err(VolumeError::TooMuch { name: volume.name, most, what })
            }
            chosen => Ok(chosen),
        };
        match self {
            Law::Linear { base, per_gib, least, most } => {
                Ok((base + per_gib * sized()?).max(least).min(most))
            }
            Law::Steps(steps) => {
                let gib = sized()?;
                let step = steps.iter().find(|(up_to, _)| gib <= *up_to);
                Ok(step.map_or(0.0, |(_, value)| *value))
            }
            Law::Bought { included, per_gib, most } => {
                let of_size = if gib > 0.0 { (per_gib * gib).max(included.unwrap_or(0.0)) } else { most };
                let value = bought.or(included).ok_or(VolumeError::NoOperations(volume.name))?;
                chosen(of_size.min(most), value)
            }
            Law::BoughtPerOperation { included, per_operation, most } => {
                chosen((per_operation * operations).max(included).min(most), bought.unwrap_or(included))
            }
            Law::PerOperation { each, most, beyond } => {
                Ok((each * operations).min(most).max(beyond * operations))
            }
        }
    }
}

impl VolumeType {
    /// All types by name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|volume| volume.name)
    }

    /// Returns the limits that the provider states for a volume of this size.
    ///
    /// # Errors
    /// Where the size, or the provisioned rate, is needed and not stated, or is more than there is.
    pub fn declared(&self, size: &VolumeSize) -> Result<Declared, VolumeError> {
        let operations = self.operations.limit(self, size.gib, "operations a second", size.iops, 0.0)?;
        let bought = size.bytes_per_s.map(|bytes| bytes / self.unit);
        let what = if self.unit == MB { "MB a second" } else { "MiB a second" };
        let throughput = self.throughput.limit(self, size.gib, what, bought, operations)?;
        let mut declared = Declared {
            latency_ns: self.latency_ms.map(|ms| ms * 1e6),
            remarks: vec![format!("{self}: baseline, without the instance's own limits")],
            ..Declared::default()
        };
        match (self.write_operations, self.write_throughput) {
            (Some(writes), Some(written)) => {
                let writes = writes.limit(self, size.gib, "writes a second", None, 0.0)?;
                let written = written.limit(self, size.gib, what, None, 0.0)?;
                declared.set(Binding::ReadOperations, operations);
                declared.set(Binding::WriteOperations, writes);
                declared.set(Binding::ReadBandwidth, throughput * self.unit);
                declared.set(Binding::WriteBandwidth, written * self.unit);
            }
            _ => {
                declared.set(Binding::Operations, operations);
                declared.set(Binding::Bandwidth, throughput * self.unit);
            }
        }
        self.add_bursts(size.gib, operations, throughput, &mut declared);
        Ok(declared)
    }

    fn add_bursts(&self, gib: f64, operations: f64, throughput: f64, declared: &mut Declared) {
        const HALF_HOUR_S: f64 = 1_800.0;
        let mut set = |of, baseline: f64, per_second: f64, saved_max: f64| {
            if per_second > baseline {
                declared.set_burst(of, Burst { per_second, saved_max });
            }
        };
        match self.bursts {
            Bursts::None => {}
            Bursts::Operations { per_second, saved_max } => {
                set(Binding::Operations, operations, per_second, saved_max);
            }
            Bursts::Throughput { per_tib, most } => {
                let rate = (per_tib * gib / TIB).min(most) * self.unit;
                set(Binding::Bandwidth, throughput * self.unit, rate, gib * 1024.0 * MIB);
            }
            Bursts::HalfHour { operations: more, mb, gib_max } if gib <= gib_max => {
                let saved = |rate: f64, baseline: f64| (rate - baseline) * HALF_HOUR_S;
                set(Binding::Operations, operations, more, saved(more, operations));
                let (rate, baseline) = (mb * self.unit, throughput * self.unit);
                set(Binding::Bandwidth, baseline, rate, saved(rate, baseline));
            }
            Bursts::HalfHour { .. } => {}
        }
    }
}

impl fmt::Display for VolumeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} as documented in {}", self.provider, self.name, self.year)
    }
}

impl FromStr for VolumeType {
    type Err = String;

    fn from_str(name: &str) -> Result<VolumeType, String> {
        let found = TYPES.iter().find(|volume| volume.name == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = VolumeType::names().collect();
            format!("no such volume type; known are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations and MiB or MB a second of a volume.
    fn stated(name: &str, gib: f64, iops: Option<f64>, bytes_per_s: Option<f64>) -> (f64, f64) {
        let volume: VolumeType = name.parse().unwrap();
        let declared = volume.declared(&VolumeSize { gib, iops, bytes_per_s }).unwrap();
        let limit = |of| declared.limits.iter().find(|limit| limit.of == of).unwrap().per_second;
        (limit(Binding::Operations), (limit(Binding::Bandwidth) / volume.unit * 100.0).round() / 100.0)
    }

    #[test]
    fn volumes_give_what_their_documentation_says() {
        assert_eq!(stated("gp2", 20.0, None, None), (100.0, 128.0));
        assert_eq!(stated("gp2", 1_000.0, None, None), (3_000.0, 250.0));
        assert_eq!(stated("gp2", 10_000.0, None, None), (16_000.0, 250.0));
        assert_eq!(stated("gp3", 0.0, None, None), (3_000.0, 125.0));
        assert_eq!(stated("gp3", 500.0, Some(16e3), Some(1_000.0 * MIB)), (16_000.0, 1_000.0));
        assert_eq!(stated("gp3", 500.0, Some(80e3), Some(2_000.0 * MIB)), (80_000.0, 2_000.0));
        assert_eq!(stated("io1", 1_000.0, Some(10e3), None), (10_000.0, 500.0));
        assert_eq!(stated("io1", 2_000.0, Some(64e3), None), (64_000.0, 1_000.0));
        assert_eq!(stated("io2", 1_000.0, Some(64e3), None), (64_000.0, 4_000.0));
        assert_eq!(stated("st1", 2_048.0, None, None), (80.0, 80.0));
        assert_eq!(stated("sc1", 16_384.0, None, None), (192.0, 192.0));
        assert_eq!(stated("premium-ssd", 1_000.0, None, None), (5_000.0, 200.0));
        assert_eq!(stated("premium-ssd", 32_767.0, None, None), (20_000.0, 900.0));
        assert_eq!(stated("standard-ssd", 512.0, None, None), (500.0, 100.0));
        assert_eq!(stated("premium-ssd-v2", 100.0, Some(20e3), Some(600.0 * MB)), (20_000.0, 600.0));
        assert_eq!(stated("ultra", 100.0, Some(50e3), Some(2_000.0 * MB)), (50_000.0, 2_000.0));
        assert_eq!(stated("pd-balanced", 500.0, None, None), (6_000.0, 280.0));
        assert_eq!(stated("pd-ssd", 500.0, None, None), (21_000.0, 480.0));
        assert_eq!(stated("hyperdisk-balanced", 100.0, Some(10e3), Some(400.0 * MIB)), (10_000.0, 400.0));
        assert_eq!(stated("hyperdisk-extreme", 500.0, Some(100e3), None), (100_000.0, 5_000.0));
        assert_eq!(stated("hyperdisk-extreme", 100.0, Some(120e3), None), (120_000.0, 5_000.0));
    }

    #[test]
    fn reads_and_writes_with_limits_of_their_own_have_four() {
        let volume: VolumeType = "pd-standard".parse().unwrap();
        let declared = volume.declared(&VolumeSize { gib: 1_000.0, ..VolumeSize::default() }).unwrap();
        let limit = |of| declared.limits.iter().find(|limit| limit.of == of).unwrap().per_second;
        assert_eq!((limit(Binding::ReadOperations), limit(Binding::WriteOperations)), (750.0, 1_500.0));
        assert_eq!(limit(Binding::WriteBandwidth), 120.0 * MIB);
    }

    #[test]
    fn volumes_that_save_credits_say_how_much_they_give_and_for_how_long() {
        let burst = |name: &str, gib: f64, of: Binding| {
            let volume: VolumeType = name.parse().unwrap();
            let declared = volume.declared(&VolumeSize { gib, ..VolumeSize::default() }).unwrap();
            declared.limits.iter().find(|limit| limit.of == of).unwrap().burst
        };
        let gp2 = burst("gp2", 100.0, Binding::Operations);
        assert_eq!(gp2, Some(Burst { per_second: 3_000.0, saved_max: 5.4e6 }));
        assert_eq!(burst("gp2", 1_000.0, Binding::Operations), None, "its baseline is as high");
        let st1 = burst("st1", 1_024.0, Binding::Bandwidth).unwrap();
        assert_eq!((st1.per_second / MIB, st1.saved_max / MIB), (250.0, 1_048_576.0));
        let premium = burst("premium-ssd", 128.0, Binding::Operations).unwrap();
        assert_eq!((premium.per_second, premium.saved_max), (3_500.0, 3_000.0 * 1_800.0));
        assert_eq!(burst("premium-ssd", 1_024.0, Binding::Operations), None);
        assert_eq!(burst("pd-ssd", 100.0, Binding::Operations), None);
    }

    #[test]
    fn what_is_needed_and_not_stated_is_an_error() {
        let error = |name: &str, size| name.parse::<VolumeType>().unwrap().declared(&size).unwrap_err();
        assert_eq!(error("gp2", VolumeSize::default()), VolumeError::NoSize("gp2"));
        assert_eq!(error("io2", VolumeSize::default()), VolumeError::NoOperations("io2"));
        let size = VolumeSize { gib: 10.0, iops: Some(9e3), bytes_per_s: None };
        let text = error("gp3", size).to_string();
        assert_eq!(text, "gp3 of this size gives at most 5000 operations a second");
        assert!("gp9".parse::<VolumeType>().unwrap_err().contains("hyperdisk-extreme"));
    }
}
