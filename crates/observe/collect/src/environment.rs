//! Environment variables, as the servers' own clients use them.

/// The variables of this process, or of a test.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of this process.
pub(crate) fn of_process(name: &str) -> Option<String> {
    match name {
        // libpq uses the user that it runs as, whatever the variable is.
        "USER" => user_name(),
        _ => std::env::var(name).ok().filter(|value| !value.is_empty()),
    }
}

/// The name of the user this process runs as.
fn user_name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut of_id = users.lines().filter(|line| line.split(':').nth(2) == Some(&id));
    of_id.next()?.split(':').next().map(str::to_owned)
}
