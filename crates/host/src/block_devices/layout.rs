use super::mapper_table::{self, MapperTarget};
use super::{entries, name, read, read_number};
use std::path::{Path, PathBuf};
use workload::{DeviceLayout, Layout};

/// How a device is made of others; `None` of a disk, and of a device whose table is hidden and that has one member.
pub(super) fn layout(
    directory: &Path,
    table: impl FnOnce() -> Option<Vec<MapperTarget>>,
) -> Option<DeviceLayout> {
    let mut members = entries(&directory.join("slaves"));
    members.sort();
    let (made_by, how) = if directory.join("md").is_dir() {
        ("md", md_layout(directory)?)
    } else if directory.join("dm").is_dir() {
        let uuid = read(&directory.join("dm/uuid")).unwrap_or_default();
        let made_by = match uuid {
            uuid if uuid.starts_with("LVM-") => "LVM",
            uuid if uuid.starts_with("CRYPT-LUKS") => "LUKS",
            _ => "device mapper",
        };
        let named = table().and_then(|table| mapper_table::layout(&table));
        (made_by, named.or_else(|| (members.len() > 1).then(|| guessed(directory, &members)))?)
    } else {
        return None;
    };
    Some(DeviceLayout {
        made_by: made_by.into(),
        how,
        members: members.iter().map(|member| name(member)).collect(),
    })
}

fn md_layout(directory: &Path) -> Option<String> {
    let unit_bytes = read_number::<u64>(&directory.join("md/chunk_size")).filter(|bytes| *bytes > 0);
    Some(match (read(&directory.join("md/level"))?.as_str(), unit_bytes) {
        ("raid0", Some(unit_bytes)) => Layout::Stripe { unit_bytes }.to_string(),
        ("linear", _) => Layout::Span.to_string(),
        (level, Some(unit)) if unit % 1024 == 0 => format!("{level}, unit {}K", unit / 1024),
        (level, _) => level.to_owned(),
    })
}

/// Without permission to read its table, a striped device is known by its hints: the smallest good I/O is its unit, the best
/// one its unit on every member (Documentation/ABI/stable/sysfs-block).
fn guessed(directory: &Path, members: &[PathBuf]) -> String {
    let hint = |hint: &str| read_number::<u64>(&directory.join("queue").join(hint)).unwrap_or(0);
    let sectors = |device: &Path| read_number::<u64>(&device.join("size")).unwrap_or(0);
    let (smallest, best) = (hint("minimum_io_size"), hint("optimal_io_size"));
    let largest_member = members.iter().map(|member| sectors(member)).max().unwrap_or(0);
    if smallest > hint("physical_block_size") && Some(best) == smallest.checked_mul(members.len() as u64) {
        Layout::Stripe { unit_bytes: smallest }.to_string()
    } else if sectors(directory) > largest_member {
        // More than any member holds, and not interleaved.
        Layout::Span.to_string()
    } else {
        "not known".into()
    }
}
