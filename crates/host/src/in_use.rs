use crate::devices::Sysfs;
use crate::mounts::{Mounts, Number};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Everything found that uses the block device or a part of it: "mounted at /srv", "swap", "held by dm-0".
pub(crate) fn of_device(number: Number) -> Vec<String> {
    let sysfs = Sysfs::real();
    let parts = sysfs.with_partitions(number);
    let mut uses = Vec::new();
    if let Ok(mounts) = Mounts::read() {
        let on_it =
            mounts.iter().filter(|mount| mount.block_device().is_some_and(|dev| parts.contains(&dev)));
        uses.extend(on_it.map(|mount| format!("mounted at {}", mount.point.display())));
    }
    let swaps = swap_areas();
    let swap =
        |path: &&String| Number::of_block_device(Path::new(path)).is_some_and(|dev| parts.contains(&dev));
    uses.extend(swaps.iter().filter(swap).map(|path| format!("swap on {path}")));
    uses.extend(sysfs.holders(number).into_iter().map(|holder| format!("held by {holder}")));
    uses.extend(loops_on(|file| Number::of_block_device(file).is_some_and(|dev| parts.contains(&dev))));
    uses
}

/// What uses a regular file as storage of its own: a loop device or swap.
pub(crate) fn of_file(metadata: &fs::Metadata) -> Vec<String> {
    let same = |path: &Path| {
        fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()))
    };
    let swaps = swap_areas().into_iter().filter(|path| same(Path::new(path)));
    swaps.map(|path| format!("swap on {path}")).chain(loops_on(same)).collect()
}

fn loops_on(ours: impl Fn(&Path) -> bool) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backing = devices.filter_map(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        ours(Path::new(file.trim_end())).then(|| device.file_name().to_string_lossy().into_owned())
    });
    backing.map(|name| format!("backing {name}")).collect()
}

/// Paths of `/proc/swaps`; the first line is a heading.
fn swap_areas() -> Vec<String> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next().map(str::to_string)).collect()
}
