//! A disk that fills up while a LUN is made leaves no LUN, file or loop device. Needs root.

use luns::{LunSpec, Registry};
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE_BYTES: usize = 4096;

#[test]
fn where_the_disk_is_full_nothing_is_left_of_a_lun() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: needs root and loop devices");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (root, images) = (directory.path().join("records"), directory.path().join("images"));
    for path in [&root, &images] {
        fs::create_dir(path).unwrap();
    }
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64K,mode=700", "tmpfs"]).arg(&root);
    assert!(mount.status().unwrap().success());
    let tried = std::panic::catch_unwind(|| try_each_space(&root, &images));
    assert!(Command::new("umount").arg(&root).status().unwrap().success());
    tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// With no space for the record, then with one page more and more, until a LUN is made.
fn try_each_space(root: &Path, images: &Path) {
    let registry = Registry::at(root);
    let spec = LunSpec { bytes: 1 << 20, directory: Some(images.into()), ..LunSpec::default() };
    let mut refused = 0;
    for left_pages in 0..16 {
        fs::write(root.join("filler"), vec![1; (16 - left_pages) * PAGE_BYTES]).unwrap();
        let made = registry.create(&spec, Path::new("/bin/false"));
        fs::remove_file(root.join("filler")).unwrap();
        match made {
            Err(error) => assert!(error.to_string().contains("No space left on device"), "{error}"),
            Ok(lun) => {
                registry.remove(&lun).unwrap();
                break;
            }
        }
        refused += 1;
        assert_eq!(registry.list().unwrap().len(), 0, "with {left_pages} pages");
        assert_eq!(fs::read_dir(images).unwrap().count(), 0, "with {left_pages} pages");
    }
    assert!((1..16).contains(&refused), "{refused} refusals");
    let ours = |device: &host::LoopDevice| device.backing_file.starts_with(images);
    assert!(!host::loop_devices().iter().any(ours));
}
