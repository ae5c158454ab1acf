//! A region before a load and after it: whether other programs removed, replaced, cut or detached what it was opened from.

use crate::Region;
use host::{DeviceNumber, device_sequence, device_size_bytes, loop_is_detaching};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use workload::{TargetChange, TargetChangeKind};

/// The state of a region's files and devices when a load began.
#[derive(Debug)]
pub struct RegionState {
    members: Vec<MemberState>,
}

/// `None` is a member whose state is unknown: nothing is reported of it.
type MemberState = Option<Member>;

#[derive(Debug)]
struct Member {
    /// Whether its path named it: a file without a name cannot lose it.
    is_named: bool,
    bytes: u64,
    allocated_bytes: u64,
    device: Option<DeviceState>,
}

#[derive(Debug)]
struct DeviceState {
    number: DeviceNumber,
    sequence: Option<String>,
    is_detaching: bool,
}

/// Bytes of a block in `st_blocks`, whatever the file system's are.
const STAT_BLOCK_BYTES: u64 = 512;

impl Region {
    /// The state of its files and devices now.
    pub fn state(&self) -> RegionState {
        RegionState { members: self.members().iter().map(Member::read).collect() }
    }

    /// Changes by other programs since; of each member the gravest one. `writes` is whether the load wrote: that may change
    /// the blocks of a file.
    pub fn changes_since(&self, before: &RegionState, writes: bool) -> Vec<TargetChange> {
        let members = self.members().iter().zip(&before.members);
        let changed = members.filter_map(|(member, before)| {
            let change = before.as_ref()?.change(member, writes)?;
            Some(TargetChange { path: member.path.display().to_string(), change })
        });
        changed.collect()
    }
}

impl Member {
    fn read(region: &Region) -> MemberState {
        let opened = region.file.metadata().ok()?;
        let device = opened.file_type().is_block_device().then(|| DeviceState::read(&opened));
        let bytes = match &device {
            Some(device) => device_size_bytes(device.number).unwrap_or(0),
            None => opened.len(),
        };
        Some(Member {
            is_named: fs::metadata(&region.path).is_ok_and(|named| is_same(&opened, &named)),
            bytes,
            allocated_bytes: opened.blocks().saturating_mul(STAT_BLOCK_BYTES),
            device,
        })
    }

    fn change(&self, region: &Region, writes: bool) -> Option<TargetChangeKind> {
        let opened = region.file.metadata().ok()?;
        let of_content = match &self.device {
            Some(device) => device.change(self.bytes),
            None => self.change_of_file(region, &opened, writes),
        };
        of_content.or_else(|| self.change_of_name(region, &opened))
    }

    fn change_of_file(&self, region: &Region, opened: &Metadata, writes: bool) -> Option<TargetChangeKind> {
        let end = self.bytes.min(region.offset_bytes + region.bytes);
        if opened.len() < end {
            return Some(TargetChangeKind::Cut { was_bytes: self.bytes, is_bytes: opened.len() });
        }
        // Blocks that a file system had allocated beyond the end may go at any time.
        let (was_bytes, is_bytes) = (self.allocated_bytes, opened.blocks().saturating_mul(STAT_BLOCK_BYTES));
        let is_emptied = !writes && is_bytes < was_bytes.min(end);
        is_emptied.then_some(TargetChangeKind::Emptied { was_bytes, is_bytes })
    }

    fn change_of_name(&self, region: &Region, opened: &Metadata) -> Option<TargetChangeKind> {
        if !self.is_named {
            return None;
        }
        match fs::metadata(&region.path) {
            Ok(named) if is_same(opened, &named) => None,
            Ok(_) => Some(TargetChangeKind::Replaced),
            Err(error) if is_gone(&error) => Some(TargetChangeKind::Removed),
            // A directory that this user may no longer enter: the name may still be there.
            Err(_) => None,
        }
    }
}

impl DeviceState {
    fn read(opened: &Metadata) -> DeviceState {
        let number = DeviceNumber::from_dev(opened.rdev());
        DeviceState { number, sequence: device_sequence(number), is_detaching: loop_is_detaching(number) }
    }

    fn change(&self, was_bytes: u64) -> Option<TargetChangeKind> {
        if was_bytes == 0 {
            // The kernel showed no such device before either.
            return None;
        }
        let is_bytes = device_size_bytes(self.number).unwrap_or(0);
        let is_other = self.sequence.is_some() && device_sequence(self.number) != self.sequence;
        let is_detaching = !self.is_detaching && loop_is_detaching(self.number);
        if is_bytes == 0 || is_other || is_detaching {
            return Some(TargetChangeKind::Detached);
        }
        (is_bytes < was_bytes).then_some(TargetChangeKind::Cut { was_bytes, is_bytes })
    }
}

/// Whether both are one file, or one device by any of its nodes.
fn is_same(opened: &Metadata, named: &Metadata) -> bool {
    match opened.file_type().is_block_device() {
        true => named.file_type().is_block_device() && named.rdev() == opened.rdev(),
        false => (named.dev(), named.ino()) == (opened.dev(), opened.ino()),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    const BYTES: u64 = 1 << 20;

    fn region(path: &Path) -> Region {
        fs::write(path, vec![7; BYTES as usize]).unwrap();
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        let path = path.to_owned();
        Region {
            file,
            offset_bytes: 0,
            bytes: BYTES,
            direct: false,
            align_bytes: 1,
            memory_align_bytes: 1,
            path,
            volume: None,
        }
    }

    /// Changes of the file that are visible after a load that only read.
    fn seen(change: impl FnOnce(&Path)) -> Option<TargetChangeKind> {
        let place = tempfile::tempdir_in(".").unwrap();
        let path = place.path().join("below/file");
        fs::create_dir(place.path().join("below")).unwrap();
        let region = region(&path);
        let before = region.state();
        change(&path);
        let mut changes = region.changes_since(&before, false);
        assert!(changes.len() <= 1);
        changes.pop().map(|one| one.change)
    }

    #[test]
    fn what_loses_its_name_or_its_bytes_is_reported_and_what_grows_is_not() {
        let write = |path: &Path| OpenOptions::new().write(true).open(path).unwrap();
        assert_eq!(seen(|_| ()), None);
        assert_eq!(seen(|path| write(path).write_all_at(&[1; 4096], BYTES).unwrap()), None);
        assert_eq!(seen(|path| fs::remove_file(path).unwrap()), Some(TargetChangeKind::Removed));
        assert_eq!(
            seen(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap()),
            Some(TargetChangeKind::Removed)
        );
        let renamed = seen(|path| fs::rename(path, path.with_file_name("other")).unwrap());
        assert_eq!(renamed, Some(TargetChangeKind::Removed));
        let replaced = |path: &Path| {
            let other = path.with_file_name("other");
            fs::copy(path, &other).unwrap();
            fs::rename(other, path).unwrap();
        };
        assert_eq!(seen(replaced), Some(TargetChangeKind::Replaced));
        let cut = Some(TargetChangeKind::Cut { was_bytes: BYTES, is_bytes: 4096 });
        assert_eq!(seen(|path| write(path).set_len(4096).unwrap()), cut);
        let cut_and_removed = |path: &Path| {
            write(path).set_len(4096).unwrap();
            fs::remove_file(path).unwrap();
        };
        assert_eq!(seen(cut_and_removed), cut, "the gravest");
        let emptied = seen(|path| {
            write(path).set_len(0).unwrap();
            write(path).set_len(BYTES).unwrap();
        });
        assert!(matches!(emptied, Some(TargetChangeKind::Emptied { is_bytes: 0, .. })), "{emptied:?}");
    }

    #[test]
    fn a_log_that_a_load_appends_to_and_a_file_without_a_name_are_unchanged() {
        let place = tempfile::tempdir_in(".").unwrap();
        let mut log = region(&place.path().join("log"));
        log.file = OpenOptions::new().write(true).open(&log.path).unwrap();
        log.file.set_len(0).unwrap();
        let before = log.state();
        log.file.write_all_at(&[1; 8192], 0).unwrap();
        assert_eq!(log.changes_since(&before, true), []);
        fs::remove_file(&log.path).unwrap();
        let nameless = log.state();
        assert_eq!(log.changes_since(&nameless, true), []);
    }
}
