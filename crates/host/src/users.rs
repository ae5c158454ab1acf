//! The users of this host, by /etc/passwd.

/// The name of a user; `None` where /etc/passwd has none.
pub fn name_of_user(id: u32) -> Option<String> {
    let id = id.to_string();
    find_user(|fields| fields.get(2) == Some(&id.as_str()))?.into_iter().next()
}

/// The number of a user.
pub fn user_id(name: &str) -> Option<u32> {
    find_user(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

/// The number of a user's group.
pub fn group_id(name: &str) -> Option<u32> {
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
    }
}
