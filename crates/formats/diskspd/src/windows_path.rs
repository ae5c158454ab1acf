//! Targets that are paths of Windows. On Linux `E:\test.dat` would be a file of that name in the current directory: such a
//! target is placed in a directory that the user names, or refused.

use crate::profile::Profile;
use crate::usage::UsageError;

/// The file's name in a path of Windows; `None` where the path is none, or ends without a name. A shell may have removed
/// the backslashes of a path that was not quoted: `E:\test.dat` is then `E:test.dat`.
pub fn file_name(path: &str) -> Option<&str> {
    let name = path.rsplit(['\\', '/', ':']).next().unwrap_or_default();
    (is_windows_path(path) && !name.is_empty()).then_some(name)
}

fn is_windows_path(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':');
    has_drive || path.contains('\\') && !path.starts_with('/') && !path.starts_with("./")
}

/// A target of Windows and its place here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTarget {
    /// As the command line or profile names it.
    pub windows: String,
    /// The file that is loaded in its place.
    pub here: String,
}

/// Places all targets of Windows in a directory, under their file names. Returns each once.
///
/// # Errors
/// Two targets would be the same file.
pub fn place(profile: &mut Profile, directory: &str) -> Result<Vec<PlacedTarget>, UsageError> {
    let mut placed: Vec<PlacedTarget> = Vec::new();
    for target in profile.time_spans.iter_mut().flat_map(|span| &mut span.targets) {
        let Some(name) = file_name(&target.path) else { continue };
        let here = format!("{}/{name}", directory.trim_end_matches('/'));
        let windows = std::mem::replace(&mut target.path, here.clone());
        match placed.iter().find(|other| other.here == here) {
            None => placed.push(PlacedTarget { windows, here }),
            Some(other) if other.windows.eq_ignore_ascii_case(&windows) => {}
            Some(other) => {
                let what = format!("'{windows}' and '{}' with --target {directory}", other.windows);
                let instead = "name their files here in place of their Windows paths";
                return Err(UsageError::new(what, format!("both would be {here}"), instead));
            }
        }
    }
    Ok(placed)
}

/// Refuses a target of Windows; `arguments` are repeated in the line to use instead.
///
/// # Errors
/// Names the first such target.
pub fn refuse(profile: &Profile, arguments: &[String]) -> Result<(), UsageError> {
    let mut targets = profile.time_spans.iter().flat_map(|span| &span.targets);
    let Some(target) = targets.find(|target| is_windows_path(&target.path)) else { return Ok(()) };
    let why = "a path of Windows; here it would be a file of that name in the current directory";
    let line: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    let instead = match file_name(&target.path) {
        Some(name) => {
            format!("headroom diskspd --target DIRECTORY {}, which uses DIRECTORY/{name}", line.join(" "))
        }
        None => "name a file or a block device of this machine".into(),
    };
    Err(UsageError::new(format!("'{}'", target.path), why, instead))
}

/// For a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Target, TimeSpan};

    fn profile(paths: &[&str]) -> Profile {
        let targets = paths.iter().map(|path| Target::new(*path)).collect();
        Profile { time_spans: vec![TimeSpan { targets, ..TimeSpan::default() }], ..Profile::default() }
    }

    #[test]
    fn paths_of_windows_are_known_as_a_shell_leaves_them() {
        let names = [
            (r"E:\testfile.dat", "testfile.dat"),
            ("E:testfile.dat", "testfile.dat"),
            (r"\\server\share\x", "x"),
            (r"data\x.dat", "x.dat"),
            ("c:/fio/x.dat", "x.dat"),
        ];
        for (path, name) in names {
            assert_eq!(file_name(path), Some(name), "{path}");
        }
        for path in ["/data/x", "x.dat", "./E:x", r"./a\b", r"/mnt/a\b", "*1", "#1", r"E:\"] {
            assert_eq!(file_name(path), None, "{path}");
        }
    }

    #[test]
    fn targets_are_placed_under_their_names_and_never_two_in_one_file() {
        let mut both = profile(&[r"E:\a.dat", r"e:\a.dat", "/data/b"]);
        let placed = place(&mut both, "/mnt/").unwrap();
        assert_eq!(placed, [PlacedTarget { windows: r"E:\a.dat".into(), here: "/mnt/a.dat".into() }]);
        let paths: Vec<&str> = both.time_spans[0].targets.iter().map(|target| target.path.as_str()).collect();
        assert_eq!(paths, ["/mnt/a.dat", "/mnt/a.dat", "/data/b"]);
        let error = place(&mut profile(&[r"E:\a.dat", r"F:\a.dat"]), "/mnt").unwrap_err();
        assert!(error.why.contains("both would be /mnt/a.dat"), "{error}");
    }

    #[test]
    fn a_refusal_shows_the_line_to_use() {
        let arguments = ["-b8K".to_owned(), r"E:\my data.dat".to_owned()];
        let error = refuse(&profile(&[r"E:\my data.dat"]), &arguments).unwrap_err();
        assert_eq!(
            error.instead,
            r"headroom diskspd --target DIRECTORY -b8K 'E:\my data.dat', which uses DIRECTORY/my data.dat"
        );
        assert_eq!(refuse(&profile(&["x.dat"]), &arguments), Ok(()));
    }
}
