//! Passwords stay out of printed text: arguments of sources are shown only where they surely hold none.

/// Text printed in place of a connection text that may hold a password.
pub(crate) const NOT_SHOWN: &str = "(a connection that cannot be read)";

/// A piece of a mistyped argument, quoted for an error message. A piece of a URL may hold a password and is left out.
pub fn quote_unless_secret(piece: &str) -> String {
    if piece.contains(['@', ':']) { "that".into() } else { format!("'{piece}'") }
}

/// Why a text with a password must not be an argument; `instead` says where the password belongs.
pub(crate) fn password_is_exposed(instead: &str) -> String {
    format!(
        "it holds a password, or what may be one, and everybody on this machine can read arguments; {instead}"
    )
}

/// A connection text `[//][USER@]PLACE[?NAME=VALUE&...]`, as it may be printed; `None` if any
/// part of it is not surely of that form and of these options: it may be a password, or a piece of one.
pub(crate) fn printable<'a>(text: &'a str, options: &[&str]) -> Option<&'a str> {
    let rest = text.strip_prefix("//").unwrap_or(text);
    let (place, assignments) = match rest.split_once('?') {
        Some(parts) => parts,
        None if rest.contains('=') => ("", rest),
        None => (rest, ""),
    };
    let user = place.rsplit_once('@').map_or("", |(user, _)| user);
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '=' | ';' | '&');
    let is_separator = |c: char| c == '&' || c.is_whitespace();
    let is_known = |assignment: &str| {
        assignment
            .split_once('=')
            .is_some_and(|(name, value)| options.contains(&name) && value.chars().all(is_plain))
    };
    let is_safe = !user.contains([':', '/', '@'])
        && place.chars().all(is_plain)
        && assignments.split(is_separator).filter(|option| !option.is_empty()).all(is_known);
    is_safe.then_some(text)
}
