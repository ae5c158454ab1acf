//! The block layer of a device: each byte of I/O is attributed to its file.

use super::{Bench, FILE_BYTES, Fio, NOT_PASSED_ON, UNSEEN_REQUESTS, layer_samples, opened, sum};
use collect::Source;
use collect::process::Selection;
use filestats::{Sample, Snapshot};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Bytes read and written in the block layer, over the paths that `wanted` selects.
fn block_bytes(snapshot: &Snapshot, wanted: impl Fn(&str) -> bool) -> (u64, u64) {
    let layer_samples = snapshot.samples.iter().filter(|sample| sample.file.instance == "block layer");
    let layer: Vec<&Sample> = layer_samples.filter(|sample| wanted(&sample.file.path)).collect();
    (sum(&layer, |one| one.counters.read).bytes, sum(&layer, |one| one.counters.write).bytes)
}

/// A device with requests of at most 64 KiB gets a direct I/O of 1 MiB in parts; each is attributed to the file.
#[test]
fn direct_io_that_is_too_large_for_the_device_is_attributed_part_by_part() {
    let Some(mut disk) = testbed::LoopDisk::new(64 << 20) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let bench = Bench::in_directory(tempfile::tempdir_in(&directory).unwrap());
    disk.limit_requests(64);
    for engine in ["--ioengine=psync", "--ioengine=libaio"] {
        let options = [engine, "--rw=rw", "--direct=1", "--bs=1m", "--rwmixread=50"];
        let Some((fio, snapshot)) =
            bench.watched(&options, &[&UNSEEN_REQUESTS[..], &[NOT_PASSED_ON]].concat())
        else {
            return;
        };
        let block = layer_samples(&snapshot, &bench.file, "block layer");
        for (kind, ops) in
            [("read", sum(&block, |one| one.counters.read)), ("write", sum(&block, |one| one.counters.write))]
        {
            let bytes = fio.totals(kind).1;
            assert!(bytes > 0 && ops.count >= bytes / (64 << 10), "{kind}: {ops:?}");
            assert_eq!(ops.bytes, bytes, "{engine}: {kind}");
        }
    }
}

/// The bytes that the device counts are those of the files, the file system and the I/Os that the kernel did not pass to
/// the programs.
#[test]
fn all_block_io_of_a_device_is_attributed() {
    let Some(mut disk) = testbed::LoopDisk::new(64 << 20) else { return };
    let directory = disk.format_and_mount().to_path_buf();
    let bench = Bench::in_directory(tempfile::tempdir_in(&directory).unwrap());
    let settle = || assert!(Command::new("sync").arg("-f").arg(&directory).status().unwrap().success());
    settle();
    let Some(mut source) = opened(&Selection::default()) else { return };
    let device = disk.device().to_str().unwrap();
    let counted = || -> (u64, u64) {
        let name = disk.device().file_name().unwrap();
        let text = fs::read_to_string(Path::new("/sys/block").join(name).join("stat")).unwrap();
        let field = |at: usize| text.split_ascii_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
        (field(2) * 512, field(6) * 512)
    };
    let not_told = format!("{device} (unattributed)");
    let ours = |snapshot: &Snapshot| {
        let known = |path: &str| path.starts_with(directory.to_str().unwrap()) || path == device;
        (block_bytes(snapshot, known), block_bytes(snapshot, |path| path == not_told))
    };
    let device_before = counted();
    let (known_before, rest_before) = ours(&source.snapshot().unwrap());
    let kinds: [&[&str]; 4] = [
        &["--ioengine=mmap", "--rw=randwrite", "--fsync=256"],
        &["--ioengine=psync", "--rw=randrw", "--fsync=64"],
        &["--ioengine=libaio", "--rw=randrw", "--direct=1", "--iodepth=8"],
        &["--ioengine=psync", "--rw=write", "--invalidate=1"],
    ];
    for options in kinds {
        Fio::run(&bench.file, options);
    }
    settle();
    let (snapshot, device_after) = (source.snapshot().unwrap(), counted());
    let (known_after, rest_after) = ours(&snapshot);
    let since = |after: (u64, u64), before: (u64, u64)| (after.0 - before.0, after.1 - before.1);
    let (known, rest) = (since(known_after, known_before), since(rest_after, rest_before));
    let of_device = since(device_after, device_before);
    eprintln!(
        "attributed {known:?}, not told for what {rest:?}, the device {of_device:?}: {:?}",
        snapshot.notes
    );
    assert_eq!((known.0 + rest.0, known.1 + rest.1), of_device, "read, written bytes");
    assert!(of_device.1 >= 3 * FILE_BYTES, "it was written");
    assert!(rest.0 + rest.1 <= (of_device.0 + of_device.1) / 5, "nearly all of it is told for what");
    // I/Os that were not passed on are reported, and not timed.
    let of_disk = |note: &&String| note.starts_with(&format!("{device}: {NOT_PASSED_ON}"));
    let unseen = snapshot.notes.iter().find(of_disk).is_some_and(|note| !note.contains(", 0 of them since"));
    let row = snapshot.samples.iter().find(|sample| sample.file.path == not_told);
    let timed = row.is_none_or(|row| row.counters.write.stall_ns.known().is_some());
    assert!(!(timed && unseen), "{:?}", snapshot.notes);
}
