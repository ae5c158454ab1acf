//! libpq's password file: `HOST:PORT:DATABASE:USER:PASSWORD`, `*` for any value. The first line that matches counts.

use std::fs;
use std::io::Read;
use std::path::Path;

/// The server, database and user of a password.
pub(super) struct Server<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

/// A larger file is no file of passwords.
const BYTES_MAX: u64 = 1 << 20;

/// Finds the password; `None` if the file does not exist or has none. The error says why the file is ignored.
pub(super) fn password(file: &Path, server: &Server) -> Result<Option<String>, String> {
    let Ok(found) = fs::metadata(file) else { return Ok(None) };
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(format!("password file {} is not a plain file of passwords: ignored", file.display()));
    }
    if !host::is_private(file, &found) {
        return Err(format!(
            "password file {} may be read by others: ignored; chmod 0600 it",
            file.display()
        ));
    }
    let mut text = String::new();
    let read = host::open_regular_file(file).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("password file {} cannot be read: {error}", file.display()))?;
    Ok(text.lines().find_map(|line| password_of(line, server)))
}

fn password_of(line: &str, server: &Server) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line;
    for value in [server.host, &server.port.to_string(), server.database, server.user] {
        let (pattern, after) = field(rest)?;
        if pattern != "*" && pattern != value {
            return None;
        }
        rest = after;
    }
    Some(unescape(rest))
}

/// The text up to the next colon that is not escaped, and the text behind it.
fn field(text: &str) -> Option<(String, &str)> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => return Some((unescape(&text[..at]), &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}
