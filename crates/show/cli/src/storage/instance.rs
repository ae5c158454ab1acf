//! The volume type of a disk, where the instance's own files tell it: no question over the network.
//!
//! cloud-init keeps what Azure's metadata service says in /run/cloud-init/instance-data-sensitive.json, for root alone: below
//! `ds.meta_data.imds.compute.storageProfile` each disk with its LUN, size and type. Azure's udev rules (66-azure-storage.rules)
//! tell data disks from that of the system by the controller they are on. AWS and Google keep no volume types on the instance.

use capability::VolumeType;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use workload::TargetFacts;

/// Facts of a volume in an instance's own files.
#[derive(Debug, PartialEq)]
pub struct InstanceVolume {
    /// The name of its type, as of `--volume-type`.
    pub volume_type: &'static str,
    /// GiB.
    pub gib: f64,
    /// The bought I/Os a second, where that is stated.
    pub iops: Option<f64>,
    /// The bought bytes a second, where that is stated.
    pub bytes_per_s: Option<f64>,
    /// The file that says it.
    pub file: &'static str,
}

/// A disk of an instance by Azure's controllers.
#[derive(Debug, PartialEq)]
enum AzureDisk {
    System,
    Data { lun: u32 },
}

const FILE: &str = "/run/cloud-init/instance-data-sensitive.json";
/// Such a file has some tens of KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The beginnings of the controllers' identities.
const SYSTEM_CONTROLLER: &str = "f8b3781a-";
const DATA_CONTROLLER: &str = "f8b3781b-";

/// The volume below a target; `None` where no file of the instance says it.
pub fn find(facts: &TargetFacts) -> Option<InstanceVolume> {
    let lowest = facts.devices.last()?;
    let directory = host::attribute_directory(host::DeviceNumber::parse(&lowest.number)?)?;
    let disk = azure_disk(&directory)?;
    let mut text = String::new();
    File::open(FILE).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    volume(&text, &disk)
}

/// The disk that a device of sysfs is: ".../f8b3781b-1e82-.../host1/target1:0:0/1:0:0:3/block/sdc".
fn azure_disk(directory: &Path) -> Option<AzureDisk> {
    let parts: Vec<&str> = directory.iter().filter_map(|part| part.to_str()).collect();
    let address = parts.iter().rev().find(|part| part.split(':').count() == 4)?;
    let lun = address.rsplit(':').next()?.parse().ok()?;
    let is_on = |controller: &str| parts.iter().any(|part| part.starts_with(controller));
    match lun {
        lun if is_on(DATA_CONTROLLER) => Some(AzureDisk::Data { lun }),
        0 if is_on(SYSTEM_CONTROLLER) => Some(AzureDisk::System),
        _ => None,
    }
}

/// The volume of a disk in the text of the file.
fn volume(text: &str, disk: &AzureDisk) -> Option<InstanceVolume> {
    let data: Value = serde_json::from_str(text).ok()?;
    let profile = data.pointer("/ds/meta_data/imds/compute/storageProfile")?;
    let found = match disk {
        AzureDisk::System => profile.get("osDisk")?,
        AzureDisk::Data { lun } => {
            let disks = profile.get("dataDisks")?.as_array()?;
            disks.iter().find(|disk| number(&disk["lun"]) == Some(f64::from(*lun)))?
        }
    };
    let kind = found.pointer("/managedDisk/storageAccountType")?.as_str()?;
    let volume_type = match kind.split_once('_').map_or(kind, |(name, _)| name) {
        "Premium" => "premium-ssd",
        "PremiumV2" => "premium-ssd-v2",
        "StandardSSD" => "standard-ssd",
        "UltraSSD" => "ultra",
        _ => return None,
    };
    debug_assert!(volume_type.parse::<VolumeType>().is_ok());
    let is_bought = matches!(volume_type, "premium-ssd-v2" | "ultra");
    let bought = |key: &str| number(&found[key]).filter(|figure| is_bought && *figure > 0.0);
    Some(InstanceVolume {
        volume_type,
        gib: number(&found["diskSizeGB"])?,
        iops: bought("opsPerSecondThrottle"),
        bytes_per_s: bought("bytesPerSecondThrottle"),
        file: FILE,
    })
}

/// Azure's metadata service writes numbers as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"ds": {"meta_data": {"imds": {"compute": {"storageProfile": {
        "osDisk": {"diskSizeGB": "30", "managedDisk": {"storageAccountType": "Premium_LRS"}},
        "dataDisks": [
            {"lun": "0", "diskSizeGB": "1024", "managedDisk": {"storageAccountType": "UltraSSD_LRS"},
             "opsPerSecondThrottle": "65280", "bytesPerSecondThrottle": "979202048"},
            {"lun": "3", "diskSizeGB": "512", "managedDisk": {"storageAccountType": "StandardSSD_ZRS"},
             "opsPerSecondThrottle": "0"},
            {"lun": "4", "diskSizeGB": "512", "managedDisk": {"storageAccountType": "Standard_LRS"}}
        ]}}}}}}"#;
    const BUS: &str = "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00";

    fn disk(controller: &str, address: &str) -> Option<AzureDisk> {
        let controller = format!("{controller}-1e82-4818-a1c3-63d806ec15bb");
        azure_disk(Path::new(&format!("{BUS}/{controller}/host1/target1:0:0/{address}/block/sdc/sdc1")))
    }

    #[test]
    fn a_disk_is_found_by_its_controller_and_lun() {
        assert_eq!(disk("f8b3781b", "1:0:0:3"), Some(AzureDisk::Data { lun: 3 }));
        assert_eq!(disk("f8b3781a", "0:0:0:0"), Some(AzureDisk::System));
        assert_eq!(disk("f8b3781a", "0:0:0:1"), None, "the temporary disk");
        assert_eq!(disk("12345678", "0:0:0:0"), None);
        assert_eq!(azure_disk(Path::new("/sys/devices/virtual/block/loop3")), None);
    }

    #[test]
    fn what_the_metadata_says_of_a_disk_is_its_volume_type_and_what_was_bought() {
        let system = volume(TEXT, &AzureDisk::System).unwrap();
        assert_eq!((system.volume_type, system.gib, system.iops), ("premium-ssd", 30.0, None));
        let ultra = volume(TEXT, &AzureDisk::Data { lun: 0 }).unwrap();
        assert_eq!((ultra.volume_type, ultra.gib), ("ultra", 1_024.0));
        assert_eq!((ultra.iops, ultra.bytes_per_s), (Some(65_280.0), Some(979_202_048.0)));
        let standard = volume(TEXT, &AzureDisk::Data { lun: 3 }).unwrap();
        assert_eq!((standard.volume_type, standard.iops), ("standard-ssd", None));
        assert_eq!(volume(TEXT, &AzureDisk::Data { lun: 4 }), None, "no formula of hard disks");
        assert_eq!(volume(TEXT, &AzureDisk::Data { lun: 9 }), None);
        for odd in ["", "{}", "[1]", r#"{"ds": {"meta_data": {"imds": 7}}}"#] {
            assert_eq!(volume(odd, &AzureDisk::System), None, "{odd}");
        }
    }
}
