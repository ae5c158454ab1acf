//! Environment variables, as the servers' own clients use them.

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

/// The name of a user; `None` where /etc/passwd has none.
pub(crate) fn name_of_user(id: u32) -> Option<String> {
    let id = id.to_string();
    find_user(|fields| fields.get(2) == Some(&id.as_str()))?.into_iter().next()
}

/// The number of a user.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    find_user(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

/// The number of a user's group.
pub(crate) fn group_id(name: &str) -> Option<u32> {
    find_user(|fields| fields.first() == Some(&name))?.get(3)?.parse().ok()
}

/// "postgres:x:101:104:..." of /etc/passwd.
fn find_user(is_wanted: impl Fn(&[&str]) -> bool) -> Option<Vec<String>> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    Some(users.find(|fields| is_wanted(fields))?.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_name_and_by_number() {
        assert_eq!(
            (name_of_user(0).as_deref(), user_id("root"), group_id("root")),
            (Some("root"), Some(0), Some(0))
        );
        assert_eq!((name_of_user(u32::MAX), user_id("no such user")), (None, None));
        assert_eq!(user_name().and_then(|name| user_id(&name)), Some(own_user()));
    }
}
