use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Pattern of files: a file or directory by its path, a part of a name, or a pattern with `*`, `?` and `[...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePattern {
    /// This file, or all files below this directory.
    Path(PathBuf),
    /// Paths that contain this text.
    Part(String),
    /// Paths that match. A pattern that does not begin with `/` matches the path's end after any slash.
    Glob(String),
}

/// The pattern is empty, and would match all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is empty: give a path, a part of a name or a pattern such as '*.db', or nothing for all files")]
pub struct EmptyPattern;

impl FromStr for FilePattern {
    type Err = EmptyPattern;

    fn from_str(text: &str) -> Result<FilePattern, EmptyPattern> {
        if text.is_empty() {
            return Err(EmptyPattern);
        }
        if text.contains(['*', '?', '[']) {
            return Ok(FilePattern::Glob(text.to_owned()));
        }
        // The real path, as the kernel has it. A file that does not exist yet is resolved by its directory.
        let path = Path::new(text);
        let found = std::fs::canonicalize(path).ok().or_else(|| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
            Some(std::fs::canonicalize(parent).ok()?.join(path.file_name()?))
        });
        Ok(match found {
            Some(path) => FilePattern::Path(path),
            None if path.is_absolute() => FilePattern::Path(path.into()),
            None => FilePattern::Part(text.to_owned()),
        })
    }
}

impl std::fmt::Display for FilePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FilePattern::Path(path) => path.display().fmt(f),
            FilePattern::Part(text) | FilePattern::Glob(text) => f.write_str(text),
        }
    }
}

impl FilePattern {
    /// Whether a path matches one of the patterns; any path does where there are none.
    pub(super) fn any(patterns: &[FilePattern], path: &Path) -> bool {
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(path))
    }

    fn fits(&self, path: &Path) -> bool {
        let name = path.to_string_lossy();
        match self {
            FilePattern::Path(wanted) => {
                path.starts_with(wanted)
                    || name.strip_suffix(" (deleted)").is_some_and(|name| Path::new(name).starts_with(wanted))
            }
            FilePattern::Part(part) => name.contains(part.as_str()),
            FilePattern::Glob(glob) if glob.starts_with('/') => matches(glob.as_bytes(), name.as_bytes()),
            FilePattern::Glob(glob) if glob.contains('/') => {
                let whole = std::iter::once(name.as_ref());
                let mut ends = whole.chain(name.match_indices('/').map(|(slash, _)| &name[slash + 1..]));
                ends.any(|end| matches(glob.as_bytes(), end.as_bytes()))
            }
            FilePattern::Glob(glob) => {
                let last = name.rsplit('/').next().unwrap_or_default();
                matches(glob.as_bytes(), last.as_bytes())
            }
        }
    }
}

/// `*` matches any text without a slash, `**` any text, `?` one byte except a slash, `[a-z]` and `[!a-z]` one byte of a
/// set. Backtracks to the last star only, so that it takes at most the product of both lengths.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    // Where to resume on a mismatch: after the last star, which then takes one more byte.
    let mut star: Option<(usize, usize, bool)> = None;
    while n < name.len() || g < glob.len() {
        match glob.get(g) {
            Some(b'*') => {
                let all = glob.get(g + 1) == Some(&b'*');
                g += if all { 2 } else { 1 };
                star = Some((g, n, all));
                continue;
            }
            Some(first) if n < name.len() => {
                if let Some(length) = match_one(&glob[g..], *first, name[n]) {
                    (g, n) = (g + length, n + 1);
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((after, at, all)) if at < name.len() && (all || name[at] != b'/') => {
                star = Some((after, at + 1, all));
                (g, n) = (after, at + 1);
            }
            _ => return false,
        }
    }
    true
}

/// The length of the pattern's first element, which stands for one byte; `None` where `byte` does not match it.
fn match_one(glob: &[u8], first: u8, byte: u8) -> Option<usize> {
    match first {
        b'?' => (byte != b'/').then_some(1),
        b'[' => {
            let Some(end) = glob.iter().skip(2).position(|byte| *byte == b']').map(|at| at + 2) else {
                return (byte == b'[').then_some(1);
            };
            let (inside, not) = match &glob[1..end] {
                [b'!' | b'^', rest @ ..] if !rest.is_empty() => (rest, true),
                inside => (inside, false),
            };
            let mut found = false;
            let mut at = 0;
            while at < inside.len() {
                match inside.get(at + 1..at + 3) {
                    Some([b'-', to]) => {
                        found |= (inside[at]..=*to).contains(&byte);
                        at += 3;
                    }
                    _ => {
                        found |= inside[at] == byte;
                        at += 1;
                    }
                }
            }
            (found != not && byte != b'/').then_some(end + 1)
        }
        _ => (first == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        pattern.parse::<FilePattern>().unwrap().fits(Path::new(path))
    }

    #[test]
    fn files_are_named_by_path_part_or_pattern() {
        assert!(fits("/no-such/pg", "/no-such/pg/base/5/16384") && fits("/no-such/pg", "/no-such/pg"));
        assert!(!fits("/no-such/pg", "/no-such/pgx") && fits("/no-such/a.db", "/no-such/a.db (deleted)"));
        assert!(fits("pg_wal", "/data/pg_wal/0001") && !fits("pg_wal", "/data/base/1"));
        assert!(
            fits("*.db", "/a/shop.db") && !fits("*.db", "/a/shop.db-wal") && fits("*.db*", "/a/shop.db-wal")
        );
        assert!(fits("/a/*/x", "/a/b/x") && !fits("/a/*/x", "/a/b/c/x") && fits("/a/**/x", "/a/b/c/x"));
        assert!(fits("/a/**", "/a/b/c") && fits("1638?", "/base/16384") && !fits("1638?", "/base/1638"));
        assert!(
            fits("[0-9]*_fsm", "/base/16384_fsm") && !fits("[!0-9]*", "/base/16384") && fits("[ab]", "/b")
        );
        assert!(fits("*a*b*c", "/xaybzc") && !fits("*a*b*c", "/xaybz"));
    }

    #[test]
    fn a_pattern_that_does_not_begin_at_the_root_matches_below_any_directory() {
        for pattern in ["pg_wal/*", "*/pg_wal/*", "**/pg_wal/*", "pg_wal/**", "*/*/pg_wal/*"] {
            assert!(fits(pattern, "/var/lib/data/pg_wal/0001"), "{pattern}");
            assert!(!fits(pattern, "/var/lib/data/base/0001"), "{pattern}");
            assert!(
                !fits(pattern, "/var/lib/data/my_pg_wal/0001") && !fits(pattern, "/a/b/pg_wal"),
                "{pattern}"
            );
        }
        assert!(fits("*/pg_wal/*", "/pg_wal/0001"));
        assert!(!fits("*/pg_wal/*", "/data/pg_wal/archive_status/0001.done"), "a star takes no slash");
        assert!(fits("pg_wal/**", "/data/pg_wal/archive_status/0001.done"));
        assert!(fits("base/*/[0-9]*", "/data/base/5/16384") && !fits("base/*/[0-9]*", "/data/base/16384"));
        assert!(!fits("/pg_wal/*", "/data/pg_wal/0001") && !fits("/*/x", "/a/b/x"), "from the root on");
    }

    #[test]
    fn any_file_matches_where_there_is_no_pattern() {
        assert_eq!("".parse::<FilePattern>(), Err(EmptyPattern), "as of a variable that is not set");
        assert!(FilePattern::any(&[], Path::new("/x")));
        assert!(!FilePattern::any(&["*.db".parse().unwrap()], Path::new("/x")));
    }
}
