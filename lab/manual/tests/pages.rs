//! The documents of the laboratory, as they are written.

#[test]
fn the_pages_are_those_of_lab_and_log_and_none_is_of_the_package_headroom() {
    let directory = tempfile::tempdir().unwrap();
    lab_manual::write_all(directory.path()).unwrap();
    let pages = std::fs::read_dir(directory.path().join("man/man1")).unwrap();
    let pages: Vec<String> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    for page in ["headroom-lab.1", "headroom-lab-crash.1", "headroom-lab-luns-create.1", "headroom-log.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is missing in {pages:?}");
    }
    assert!(pages.iter().all(|name| name.starts_with("headroom-l")), "{pages:?}");
    let completion = std::fs::read_to_string(directory.path().join("bash/headroom-lab")).unwrap();
    assert!(completion.contains("crash"));
}

#[test]
fn the_reference_of_options_is_that_of_the_program() {
    let (written, printed) = (include_str!("../../OPTIONS.md"), lab_manual::options());
    let differing = written.lines().zip(printed.lines()).find(|(written, printed)| written != printed);
    let command = "cargo run -p lab-manual --bin headroom-lab-manual -- --options > OPTIONS.md";
    assert!(written == printed, "OPTIONS.md is not current: {command}\nfirst difference: {differing:?}");
}
