//! libpq's password file: `HOST:PORT:DATABASE:USER:PASSWORD`, `*` for any, the first line that fits counts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whom a password is looked for.
pub(super) struct Wanted<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

/// A file of passwords is a few lines; more than this is something else.
const BYTES_MAX: u64 = 1 << 20;

/// The password, `None` where the file is not there or has none. The error says why the file was passed over.
pub(super) fn password(file: &Path, wanted: &Wanted) -> Result<Option<String>, String> {
    let Ok(found) = fs::metadata(file) else { return Ok(None) };
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(format!("password file {} is no plain file of passwords: ignored", file.display()));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "password file {} may be read by others: ignored; chmod 0600 it",
            file.display()
        ));
    }
    let text = fs::read_to_string(file)
        .map_err(|error| format!("password file {} cannot be read: {error}", file.display()))?;
    Ok(text.lines().find_map(|line| password_of(line, wanted)))
}

fn password_of(line: &str, wanted: &Wanted) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (host, rest) = field(line)?;
    let (port, rest) = field(rest)?;
    let (database, rest) = field(rest)?;
    let (user, rest) = field(rest)?;
    let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
    let all = fits(&host, wanted.host)
        && fits(&port, &wanted.port.to_string())
        && fits(&database, wanted.database)
        && fits(&user, wanted.user);
    all.then(|| unescaped(rest))
}

/// Up to the next colon without a backslash before it, and what follows that.
fn field(text: &str) -> Option<(String, &str)> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => return Some((unescaped(&text[..at]), &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}
