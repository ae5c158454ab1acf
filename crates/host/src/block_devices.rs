use crate::mounts::{Mounts, Number};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use workload::{DeviceFacts, DeviceLayout, Layout, WriteCache};

/// Most devices of one chain: more is a cycle or a machine nobody has.
const CHAIN_DEVICES_MAX: usize = 64;

/// The device with that number ("254:0") and all it stands on, top first: a partition on its disk, a loop
/// device on what its file is on, device mapper and md on their members. Empty if the kernel shows none.
pub fn device_chain(number: &str) -> Vec<DeviceFacts> {
    Number::parse(number).map(|number| Sysfs::real().chain(number)).unwrap_or_default()
}

/// The kernel's description of block devices, `/sys/dev/block/MAJ:MIN`.
pub(crate) struct Sysfs {
    blocks: PathBuf,
    mounts: Option<Mounts>,
}

impl Sysfs {
    pub fn real() -> Sysfs {
        Sysfs { blocks: "/sys/dev/block".into(), mounts: Mounts::read().ok() }
    }

    /// Breadth first, each device once.
    pub fn chain(&self, top: Number) -> Vec<DeviceFacts> {
        let mut numbers = vec![top];
        let mut chain = Vec::new();
        while let Some(number) = numbers.get(chain.len()).copied() {
            let Some(facts) = self.facts(number) else {
                numbers.remove(chain.len());
                continue;
            };
            for below in self.below(number, &facts) {
                if !numbers.contains(&below) && numbers.len() < CHAIN_DEVICES_MAX {
                    numbers.push(below);
                }
            }
            chain.push(facts);
        }
        chain
    }

    fn directory(&self, number: Number) -> Option<PathBuf> {
        fs::canonicalize(self.blocks.join(number.to_string())).ok()
    }

    fn facts(&self, number: Number) -> Option<DeviceFacts> {
        let directory = self.directory(number)?;
        let partition = directory.join("partition").exists();
        // A partition has no queue of its own: its I/Os wait in the disk's.
        let disk = if partition { directory.parent()?.to_path_buf() } else { directory.clone() };
        let kind = match &directory {
            _ if partition => "partition",
            own if own.join("loop").is_dir() || name(own).starts_with("loop") => "loop",
            own if own.join("dm").is_dir() => "dm",
            own if own.join("md").is_dir() => "md",
            _ => "disk",
        };
        let queue = disk.join("queue");
        Some(DeviceFacts {
            name: name(&directory),
            number: number.to_string(),
            kind: kind.into(),
            model: read(&disk.join("device/model")).filter(|_| !partition),
            backing_file: read(&directory.join("loop/backing_file")),
            // The kernel counts in 512 bytes whatever the device's block size.
            size_bytes: read_number::<u64>(&directory.join("size"))?.checked_mul(512)?,
            rotational: read_number::<u8>(&queue.join("rotational")).map(|turns| turns != 0),
            scheduler: read(&queue.join("scheduler")).and_then(|text| scheduler_in_use(&text)),
            requests_max: read_number(&queue.join("nr_requests")),
            queues: fs::read_dir(disk.join("mq")).ok().and_then(|queues| u32::try_from(queues.count()).ok()),
            request_bytes_max: read_number::<u64>(&queue.join("max_sectors_kb"))
                .and_then(|kib| kib.checked_mul(1024)),
            logical_block_bytes: read_number(&queue.join("logical_block_size")),
            physical_block_bytes: read_number(&queue.join("physical_block_size")),
            write_cache: match read(&queue.join("write_cache")).as_deref() {
                Some("write back") => Some(WriteCache::WriteBack),
                Some("write through") => Some(WriteCache::WriteThrough),
                _ => None,
            },
            layout: layout(&directory, kind),
        })
    }

    /// What the device stands on.
    fn below(&self, number: Number, facts: &DeviceFacts) -> Vec<Number> {
        let Some(directory) = self.directory(number) else { return Vec::new() };
        match (facts.kind.as_str(), &facts.backing_file) {
            ("partition", _) => read_device_number(directory.parent()).into_iter().collect(),
            ("loop", Some(file)) => self.holding(Path::new(file)).into_iter().collect(),
            _ => {
                let members = fs::read_dir(directory.join("slaves")).into_iter().flatten().flatten();
                let mut numbers: Vec<Number> =
                    members.filter_map(|member| read_device_number(Some(&member.path()))).collect();
                numbers.sort_unstable();
                numbers
            }
        }
    }

    /// The block device that `path` is or lies on.
    pub fn holding(&self, path: &Path) -> Option<Number> {
        let metadata = fs::metadata(path).ok()?;
        if metadata.file_type().is_block_device() {
            return Some(Number::of(metadata.rdev()));
        }
        let dev = Number::of(metadata.dev());
        if dev.major != 0 {
            return Some(dev);
        }
        let path = fs::canonicalize(path).ok()?;
        self.mounts.as_ref()?.holding(&path, None, dev)?.block_device()
    }

    /// Everything that holds the device or a part of it, as the kernel says: "dm-0", "md127".
    pub fn holders(&self, number: Number) -> Vec<String> {
        self.with_partitions(number)
            .iter()
            .filter_map(|number| self.directory(*number))
            .flat_map(|directory| fs::read_dir(directory.join("holders")).into_iter().flatten().flatten())
            .map(|holder| holder.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// The device and its partitions.
    pub fn with_partitions(&self, number: Number) -> Vec<Number> {
        let below = self.directory(number).and_then(|directory| fs::read_dir(directory).ok());
        let entries = below.into_iter().flatten().flatten().map(|entry| entry.path());
        let partitions = entries.filter(|path| path.join("partition").exists());
        std::iter::once(number).chain(partitions.filter_map(|path| read_device_number(Some(&path)))).collect()
    }
}

/// How a device is made of several others. The table of a device-mapper device is not in sysfs; a striped one is known
/// by its hints: the smallest good I/O is its unit, the best one its unit on every member (Documentation/ABI/stable/
/// sysfs-block).
fn layout(directory: &Path, kind: &str) -> Option<DeviceLayout> {
    let entries = fs::read_dir(directory.join("slaves")).ok()?.flatten();
    let mut slaves: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    slaves.sort();
    let members: Vec<String> = slaves.iter().map(|slave| name(slave)).collect();
    if members.len() < 2 {
        return None;
    }
    let stripe = |unit_bytes: u64| Layout::Stripe { unit_bytes }.to_string();
    let (made_by, how) = match kind {
        "md" => {
            let unit = read_number::<u64>(&directory.join("md/chunk_size")).filter(|bytes| *bytes > 0);
            let how = match (read(&directory.join("md/level"))?.as_str(), unit) {
                ("raid0", Some(unit)) => stripe(unit),
                ("linear", _) => Layout::Span.to_string(),
                (level, Some(unit)) if unit % 1024 == 0 => format!("{level}, unit {}K", unit / 1024),
                (level, _) => level.to_owned(),
            };
            ("md", how)
        }
        "dm" => {
            let hint = |hint: &str| read_number::<u64>(&directory.join("queue").join(hint)).unwrap_or(0);
            let (least, best) = (hint("minimum_io_size"), hint("optimal_io_size"));
            let sectors = |of: &Path| read_number::<u64>(&of.join("size")).unwrap_or(0);
            let largest = slaves.iter().map(|slave| sectors(slave)).max().unwrap_or(0);
            let how = if least > hint("physical_block_size") && best == least * members.len() as u64 {
                stripe(least)
            } else if sectors(directory) > largest {
                // More than any member holds, and not in turn.
                Layout::Span.to_string()
            } else {
                "not known".into()
            };
            let lvm = read(&directory.join("dm/uuid")).is_some_and(|uuid| uuid.starts_with("LVM-"));
            (if lvm { "LVM" } else { "device mapper" }, how)
        }
        _ => return None,
    };
    Some(DeviceLayout { made_by: made_by.into(), how, members })
}

fn name(directory: &Path) -> String {
    directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn read_number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read(path)?.parse().ok()
}

fn read_device_number(directory: Option<&Path>) -> Option<Number> {
    Number::parse(&read(&directory?.join("dev"))?)
}

/// "none [mq-deadline] kyber" is mq-deadline; a device without a choice says just "none".
fn scheduler_in_use(text: &str) -> Option<String> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(name, _)| name.to_string()),
        None => (!text.contains(' ')).then(|| text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs with a mirror (md0) of a partition (sda1) and a whole NVMe disk, as kernel 6.x shows one.
    fn mirror(directory: &Path) -> Sysfs {
        let write = |path: &str, text: &str| {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (device, number) in [("md0", "9:0"), ("sda", "8:0"), ("sda/sda1", "8:1"), ("nvme0n1", "259:0")] {
            write(&format!("devices/{device}/dev"), &format!("{number}\n"));
            write(&format!("devices/{device}/size"), "2048\n");
            write(&format!("devices/{device}/queue/write_cache"), "write back\n");
            fs::create_dir_all(directory.join("block")).unwrap();
            symlink(directory.join("devices").join(device), directory.join("block").join(number)).unwrap();
        }
        write("devices/md0/md/level", "raid1\n");
        write("devices/sda/sda1/partition", "1\n");
        write("devices/sda/device/model", "SAMSUNG MZ7LH960 \n");
        write("devices/sda/queue/rotational", "0\n");
        write("devices/sda/queue/scheduler", "none [mq-deadline] kyber bfq \n");
        fs::create_dir_all(directory.join("devices/nvme0n1/mq/0")).unwrap();
        fs::create_dir_all(directory.join("devices/nvme0n1/mq/1")).unwrap();
        for member in ["sda/sda1", "nvme0n1"] {
            let link = directory.join("devices/md0/slaves").join(member.rsplit('/').next().unwrap());
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(directory.join("devices").join(member), link).unwrap();
        }
        fs::create_dir_all(directory.join("devices/sda/sda1/holders/md0")).unwrap();
        Sysfs { blocks: directory.join("block"), mounts: None }
    }

    #[test]
    fn a_mirror_is_followed_to_its_members_and_their_disks() {
        let directory = tempfile::tempdir().unwrap();
        let sysfs = mirror(directory.path());
        let chain = sysfs.chain(Number { major: 9, minor: 0 });
        let seen: Vec<_> = chain.iter().map(|device| (device.name.as_str(), device.kind.as_str())).collect();
        assert_eq!(seen, [("md0", "md"), ("sda1", "partition"), ("nvme0n1", "disk"), ("sda", "disk")]);
        let partition = &chain[1];
        assert_eq!(partition.rotational, Some(false), "a partition shares its disk's queue");
        assert_eq!(partition.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(chain[2].queues, Some(2));
        assert_eq!(chain[3].model.as_deref(), Some("SAMSUNG MZ7LH960"));
        assert_eq!(chain[0].size_bytes, 1 << 20);
        assert_eq!(chain[0].requests_max, None, "what the kernel does not say is not made up");
    }

    #[test]
    fn a_cycle_ends_and_an_unknown_device_is_no_chain() {
        let directory = tempfile::tempdir().unwrap();
        let sysfs = mirror(directory.path());
        let back = directory.path().join("devices/nvme0n1/slaves");
        fs::create_dir_all(&back).unwrap();
        symlink(directory.path().join("devices/md0"), back.join("md0")).unwrap();
        assert_eq!(sysfs.chain(Number { major: 9, minor: 0 }).len(), 4);
        assert!(sysfs.chain(Number { major: 7, minor: 77 }).is_empty());
        assert!(device_chain("gibberish").is_empty());
    }

    #[test]
    fn the_holder_of_a_partition_holds_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let sysfs = mirror(directory.path());
        assert_eq!(sysfs.holders(Number { major: 8, minor: 0 }), ["md0"]);
        assert!(sysfs.holders(Number { major: 259, minor: 0 }).is_empty());
    }

    /// A device on two disks of 1 MiB, with those files of its own.
    fn made_of_two(directory: &Path, device: &str, files: &[(&str, &str)]) -> Option<DeviceLayout> {
        let write = |path: &str, text: &str| {
            let path = directory.join("devices").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), (device, "252:0")] {
            write(&format!("{name}/dev"), number);
            write(&format!("{name}/size"), "2048");
            fs::create_dir_all(directory.join("block")).unwrap();
            symlink(directory.join("devices").join(name), directory.join("block").join(number)).unwrap();
        }
        fs::create_dir_all(directory.join("devices").join(device).join("slaves")).unwrap();
        for member in ["sdb", "sda"] {
            let link = directory.join("devices").join(device).join("slaves").join(member);
            symlink(directory.join("devices").join(member), link).unwrap();
        }
        files.iter().for_each(|(path, text)| write(&format!("{device}/{path}"), text));
        let sysfs = Sysfs { blocks: directory.join("block"), mounts: None };
        sysfs.chain(Number { major: 252, minor: 0 })[0].layout.clone()
    }

    #[test]
    fn layouts_that_the_host_made_are_recognised() {
        let found = |device: &str, files: &[(&str, &str)]| {
            let directory = tempfile::tempdir().unwrap();
            let layout = made_of_two(directory.path(), device, files).unwrap();
            assert_eq!(layout.members, ["sda", "sdb"]);
            (layout.made_by, layout.how)
        };
        let told = |made_by: &str, how: &str| (made_by.to_owned(), how.to_owned());
        let hints = |least: &'static str, best: &'static str| {
            [
                ("queue/physical_block_size", "4096"),
                ("queue/minimum_io_size", least),
                ("queue/optimal_io_size", best),
            ]
        };
        let striped = [("dm/uuid", "LVM-x\n"), hints("65536", "131072")[0], hints("65536", "131072")[1]];
        let striped = [&striped[..], &hints("65536", "131072")[2..]].concat();
        assert_eq!(found("dm-0", &striped), told("LVM", "stripe:64K"));
        let spanned = [&[("dm/uuid", "mine\n"), ("size", "4000")][..], &hints("4096", "0")].concat();
        assert_eq!(found("dm-0", &spanned), told("device mapper", "span"));
        let mirrored = [&[("dm/uuid", "LVM-x\n")][..], &hints("4096", "0")].concat();
        assert_eq!(found("dm-0", &mirrored), told("LVM", "not known"));
        let md = |level: &'static str, unit: &'static str| [("md/level", level), ("md/chunk_size", unit)];
        assert_eq!(found("md0", &md("raid0\n", "524288\n")), told("md", "stripe:512K"));
        assert_eq!(found("md0", &md("linear\n", "0\n")), told("md", "span"));
        assert_eq!(found("md0", &md("raid5\n", "524288\n")), told("md", "raid5, unit 512K"));
        assert_eq!(found("md0", &md("raid1\n", "0\n")), told("md", "raid1"));
    }

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        assert_eq!(scheduler_in_use("none [bfq] kyber").as_deref(), Some("bfq"));
        assert_eq!(scheduler_in_use("none").as_deref(), Some("none"));
        assert_eq!(scheduler_in_use("none [broken"), None);
    }
}
