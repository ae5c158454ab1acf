//! diskspd's command lines: what is refused and shown here, what each flag does to real I/O in the files below,
//! by the kernel's own record of it.

mod amounts;
mod bench;
mod contents;
mod durability;
mod paces;
mod places;
mod reports;
mod safety;

use programs::Headroom;
use std::fs;

/// Exit code, stdout and stderr.
fn run_diskspd(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Headroom::new().run(&[&["diskspd"], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_profile_that_is_shown_as_xml_is_read_again() {
    let place = tempfile::tempdir().unwrap();
    let (profile, disk) = (place.path().join("p.xml"), place.path().join("disk.bin"));
    let flags = ["-b8K", "-Sh", "-L", "-t4", "-o8", "-rs70", "-r16K", "-w30", "-z7", "-Rpxml"];
    let (code, xml, errors) = run_diskspd(&[&flags[..], &[disk.to_str().unwrap()]].concat());
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    fs::write(&profile, &xml).unwrap();
    let (code, again, _) = run_diskspd(&[&format!("-X{}", profile.display()), "-Rp"]);
    assert_eq!((code, again), (Some(0), xml.clone()));
    let (_, longer, _) = run_diskspd(&[&format!("-X{}", profile.display()), "-d77", "-Rp"]);
    assert_eq!(longer, xml.replace("<Duration>10<", "<Duration>77<"));
    assert!(!disk.exists(), "showing makes no file");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_touched() {
    let place = tempfile::tempdir().unwrap();
    let disk = place.path().join("disk.bin");
    let broken = place.path().join("broken.xml");
    fs::write(&broken, "<Profile>\n<Verbose>maybe</Verbose></Profile>").unwrap();
    let (disk, broken) = (disk.to_str().unwrap(), format!("-X{}", broken.display()));
    for (arguments, pieces) in [
        (&["-w101", disk][..], &["error: -w101: ", "try: "][..]),
        (&["-t4x", disk], &["error: -t4x: ", "'x' stands after the number"]),
        (&["-x", "-ft", disk], &["-x: ", "-ft: ", "--ignore-unsupported"]),
        (&["-n", "-a0", disk], &["error: -n with -a: "]),
        (&["/b8K", disk], &["error: /b8K: ", "write -b8K"]),
        (&["-X/nonexistent.xml"], &["cannot read the profile /nonexistent.xml"]),
        (&[&broken], &["broken.xml: line 2, <Verbose>: 'maybe': give one of true, false"]),
        (&["-b8K"], &["error: no target: "]),
        (&["--frobnicate", disk], &["error: --frobnicate: no such option"]),
    ] {
        let (code, _, errors) = run_diskspd(&[&["-c1M"], arguments].concat());
        let (code, errors) = if arguments[0].starts_with("-X") {
            (run_diskspd(arguments).0, run_diskspd(arguments).2)
        } else {
            (code, errors)
        };
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        for piece in pieces {
            assert!(errors.contains(piece), "no '{piece}' in: {errors}");
        }
    }
    assert!(!std::path::Path::new(disk).exists());
}

#[test]
fn help_fits_and_lists_the_flags() {
    let (code, help, _) = run_diskspd(&["-?"]);
    assert_eq!((code, help.contains("-rdpct90/10")), (Some(0), true));
    assert_eq!(run_diskspd(&["--help"]).1, help);
}
