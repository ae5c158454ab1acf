use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStrExt;

const TEXT: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 22 259:1 / /srv rw - xfs /dev/nvme0n1 rw
32 31 0:45 /@data /srv/my\\040data rw,noatime shared:7 master:2 - btrfs /dev/sdb1 rw,subvolid=5
33 22 0:46 / /tmp rw - tmpfs tmpfs rw
nonsense
35 22 x:y / /bad rw - ext4 /dev/q rw
";

fn number(major: u32, minor: u32) -> DeviceNumber {
    DeviceNumber { major, minor }
}

fn bytes(path: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.to_vec()))
}

fn source_of(mounts: &Mounts, path: &str) -> PathBuf {
    mounts.mount_of(Path::new(path)).unwrap().source.clone()
}

#[test]
fn a_path_lies_on_the_deepest_mount_above_it() {
    let mounts = Mounts::parse(TEXT);
    assert_eq!(source_of(&mounts, "/home/x"), Path::new("/dev/vda"));
    assert_eq!(source_of(&mounts, "/srv/x"), Path::new("/dev/nvme0n1"));
    assert_eq!(source_of(&mounts, "/srv/my data/pg"), Path::new("/dev/sdb1"));
    assert_eq!(source_of(&mounts, "/srvother"), Path::new("/dev/vda"));
    assert_eq!(mounts.point_of(Path::new("/tmp/x")), Some(Path::new("/tmp")));
    assert_eq!(mounts.point_of_device(number(259, 1)), Some(Path::new("/srv")));
    assert_eq!(mounts.point_of_device(number(8, 9)), None);
}

#[test]
fn lines_of_another_form_are_left_out() {
    assert_eq!(Mounts::parse(TEXT).iter().count(), 4);
    assert_eq!(Mounts::parse(b"").iter().count(), 0);
    assert!(Mounts::parse(b"\n\n").mount_of(Path::new("/")).is_none());
}

#[test]
fn one_mount_point_that_is_not_utf8_hides_no_other() {
    let mounts = Mounts::parse(
        b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
          40 22 7:3 / /mnt/caf\xe9 rw - ext4 /dev/loop3 rw\n\
          41 22 7:4 /\xff /mnt/b rw - ext4 /dev/loop4 rw\n\
          42 22 0:50 / /mnt/c rw - overlay overlay rw,lowerdir=/\xfe,upperdir=/u\n\
          43 22 0:51 / /mnt/d rw - fuse.x\xfd me rw\n",
    );
    assert_eq!(mounts.iter().count(), 5);
    assert_eq!(mounts.point_of_device(number(7, 3)), Some(bytes(b"/mnt/caf\xe9").as_path()));
    assert!(mounts.is_mount_point(&bytes(b"/mnt/caf\xe9")));
    assert!(!mounts.is_mount_point(Path::new("/mnt/caf\u{fffd}")));
    assert_eq!(mounts.mount_of(&bytes(b"/mnt/caf\xe9/x")).unwrap().number, number(7, 3));
    assert_eq!(mounts.point_of(Path::new("/mnt/d/x")), Some(Path::new("/mnt/d")));
}

#[test]
fn escaped_mount_points_are_decoded() {
    let mounts = Mounts::parse(
        b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
          40 22 8:1 / /a\\040b\\134c\\012d\\011e rw - xfs /dev/my\\043disk rw\n",
    );
    assert!(mounts.is_mount_point(Path::new("/a b\\c\nd\te")));
    assert_eq!(source_of(&mounts, "/a b\\c\nd\te/f"), Path::new("/dev/my#disk"));
}

#[test]
fn the_root_of_a_removed_directory_loses_its_mark() {
    let mounts = Mounts::parse(b"40 22 8:1 /old//deleted /mnt rw - xfs /dev/sda1 rw\n");
    let mount = mounts.mount_of(Path::new("/mnt/x")).unwrap();
    assert_eq!(mount.root, Path::new("/old"));
    let literal = Mounts::parse(b"40 22 8:1 /old/deleted /mnt/x\\040(deleted) rw - xfs /dev/sda1 rw\n");
    assert_eq!(literal.iter().next().unwrap().root, Path::new("/old/deleted"));
    assert!(literal.is_mount_point(Path::new("/mnt/x (deleted)")));
}

#[test]
fn tags_and_an_empty_source_shift_no_field() {
    let mounts = Mounts::parse(
        b"40 22 8:1 / /a rw shared:1 master:2 propagate_from:3 unbindable new:tag - xfs /dev/sda1 rw\n\
          41 22 0:9 / /b rw - tmpfs  rw,size=4k\n\
          42 22 0:4 net:[4026532496] /run/netns/x rw - nsfs nsfs rw\n",
    );
    assert_eq!(source_of(&mounts, "/a"), Path::new("/dev/sda1"));
    let tmpfs = mounts.mount_of(Path::new("/b")).unwrap();
    assert_eq!((tmpfs.source.as_os_str().is_empty(), tmpfs.super_options.as_str()), (true, "rw,size=4k"));
    assert_eq!(mounts.mount_of(Path::new("/run/netns/x")).unwrap().root, Path::new("net:[4026532496]"));
}

#[test]
fn a_file_has_a_name_for_each_mount_that_shows_it() {
    let mounts = Mounts::parse(
        b"27 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
          40 27 8:1 /var/lib/volumes /srv rw - ext4 /dev/sda1 rw\n\
          41 27 8:1 /var/lib/volumes/pg/16384 /one/file rw - ext4 /dev/sda1 rw\n",
    );
    let names: Vec<_> = mounts.names_of(number(8, 1), Path::new("/var/lib/volumes/pg/16384")).collect();
    assert_eq!(names, ["/var/lib/volumes/pg/16384", "/srv/pg/16384", "/one/file"].map(PathBuf::from));
    assert!(!names[2].as_os_str().as_bytes().ends_with(b"/"));
    assert_eq!(mounts.names_of(number(8, 1), Path::new("/etc/passwd")).count(), 1);
}

#[test]
fn a_mount_over_a_directory_covers_what_was_mounted_there_and_below() {
    let mounts = Mounts::parse(
        b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
          31 22 8:1 / /srv rw - xfs /dev/sda1 rw\n\
          32 31 8:2 / /srv/data rw - xfs /dev/sda2 rw\n\
          33 31 8:3 / /srv rw - xfs /dev/sda3 rw\n",
    );
    assert_eq!(source_of(&mounts, "/srv/data/x"), Path::new("/dev/sda3"));
    assert_eq!(source_of(&mounts, "/srv"), Path::new("/dev/sda3"));
    // All are still mounted: their devices are in use.
    assert_eq!(mounts.iter().count(), 4);
    assert!(mounts.is_mount_point(Path::new("/srv/data")));
}

#[test]
fn a_root_that_was_mounted_over_and_a_root_that_is_no_mount_point_are_followed() {
    let switched =
        Mounts::parse(b"1 1 0:2 / / rw - rootfs rootfs rw\n22 1 254:0 / / rw - ext4 /dev/vda rw\n");
    assert_eq!(source_of(&switched, "/etc"), Path::new("/dev/vda"));
    let jail =
        Mounts::parse(b"60 22 0:5 / /proc rw - proc proc rw\n61 22 8:1 / /data rw - xfs /dev/sda1 rw\n");
    assert_eq!(source_of(&jail, "/data/x"), Path::new("/dev/sda1"));
    assert!(jail.mount_of(Path::new("/etc")).is_none());
}

#[test]
fn the_root_of_this_process_is_mounted() {
    let mounts = Mounts::read().unwrap();
    assert!(mounts.mount_of(Path::new("/proc")).is_some_and(|mount| mount.filesystem == "proc"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<Vec<u8>>(), line in "[0-9: /\\\\a-z\n-]{0,200}") {
        Mounts::parse(&text);
        Mounts::parse(line.as_bytes()).mount_of(Path::new("/a/b"));
    }

    #[test]
    fn no_broken_line_makes_the_parser_panic(at in 0..TEXT.len(), byte in any::<u8>()) {
        let mut text = TEXT.to_vec();
        text[at] = byte;
        Mounts::parse(&text).mount_of(Path::new("/srv/my data/x"));
    }
}

#[test]
fn a_change_of_the_mounts_is_seen_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let point = dir.path().canonicalize().unwrap();
    let is_mounted = || Mounts::read().unwrap().is_mount_point(&point);
    assert!(!is_mounted());
    let command = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program).args(arguments).arg(&point).status();
        status.is_ok_and(|status| status.success())
    };
    if !command("mount", &["-t", "tmpfs", "none"]) {
        return eprintln!("skipped: this user may not mount");
    }
    let seen = is_mounted();
    assert!(command("umount", &[]));
    assert!(seen && !is_mounted());
    // Unchanged mounts are not read again. Other tests mount too.
    let is_kept = |_| Arc::ptr_eq(&Mounts::read().unwrap().0, &Mounts::read().unwrap().0);
    assert!((0..1000).any(is_kept));
}
