//! Environment variables, as the servers' own clients use them.

pub(crate) use host::{group_id, name_of_user, user_id};

/// The variables of this process, or of a test.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of this process.
pub(crate) fn of_process(name: &str) -> Option<String> {
    match name {
        // libpq uses the user that it runs as, whatever the variable is.
        "USER" => user_name(),
        _ => of_variable(name),
    }
}

/// The variable itself, unless it is empty.
pub(crate) fn of_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The user that this process runs as.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The name of the user this process runs as.
pub(crate) fn user_name() -> Option<String> {
    name_of_user(own_user())
}
