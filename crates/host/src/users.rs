//! The users of this host, by /etc/passwd and /etc/group.

use rustix::fs::getxattr;
use rustix::io::Errno;
use std::path::Path;

/// Write permission of the group.
const GROUP_WRITE: u32 = 0o020;
/// Write permission of all users.
const ALL_WRITE: u32 = 0o002;

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

/// "user postgres", for messages; by its number where it has no name.
pub(crate) fn shown(user: u32) -> String {
    format!("user {}", name_of_user(user).unwrap_or_else(|| user.to_string()))
}

/// Whether the permissions of the file at `path` let other users than its owner and root write to it. A group of which the
/// owner is the only member is no other user, as for sshd of Debian: many systems give each user such a group, and an umask
/// of 002. A named user of an access control list hides behind the permissions of the group.
pub fn others_may_write(path: &Path, owner: u32, group: u32, mode: u32) -> bool {
    if mode & ALL_WRITE != 0 {
        return true;
    }
    mode & GROUP_WRITE != 0 && (has_access_list(path) || !is_private_group(group, owner))
}

/// True also where that cannot be read.
fn has_access_list(path: &Path) -> bool {
    !matches!(
        getxattr(path, "system.posix_acl_access", &mut [0_u8; 0]),
        Err(Errno::NODATA | Errno::OPNOTSUPP)
    )
}

/// Whether a user is the only member of a group.
fn is_private_group(group: u32, user: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).ok();
    let (Some(users), Some(groups)) = (read("/etc/passwd"), read("/etc/group")) else { return false };
    has_only_member(&users, &groups, group, user)
}

fn has_only_member(users: &str, groups: &str, group: u32, user: u32) -> bool {
    let (group, user) = (group.to_string(), user.to_string());
    let users: Vec<Vec<&str>> = users.lines().map(|line| line.split(':').collect()).collect();
    let is_user = |fields: &[&str]| fields.get(2) == Some(&user.as_str());
    let names: Vec<&str> = users.iter().filter(|fields| is_user(fields)).map(|fields| fields[0]).collect();
    let mut primary = users.iter().filter(|fields| fields.get(3) == Some(&group.as_str()));
    // A group that is not in the file may have members of a directory service.
    let mut entries = groups.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    let Some(entry) = entries.find(|fields| fields.get(2) == Some(&group.as_str())) else { return false };
    let mut members = entry.get(3).unwrap_or(&"").split(',').filter(|name| !name.is_empty());
    !names.is_empty() && primary.all(|fields| is_user(fields)) && members.all(|name| names.contains(&name))
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

    #[test]
    fn only_a_group_without_another_member_is_private() {
        let users = "root:x:0:0::/root:\nann:x:1000:1000::/:\nbob:x:1001:1001::/:\ncid:x:1002:1001::/:\n";
        let groups = "root:x:0:\nann:x:1000:\nbob:x:1001:\nown:x:50:ann\nstaff:x:51:ann,bob\nempty:x:52:\n";
        for (group, user, expected) in [
            (0, 0, true),
            (1000, 1000, true),
            // The group that cid has at login.
            (1001, 1001, false),
            (1000, 1001, false),
            (50, 1000, true),
            (50, 1001, false),
            (51, 1000, false),
            (52, 1000, true),
            (9, 1000, false),
            (1000, 9, false),
        ] {
            assert_eq!(has_only_member(users, groups, group, user), expected, "{group} of {user}");
        }
    }

    #[test]
    fn others_write_by_their_permission_a_shared_group_or_an_access_control_list() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let may = |group, mode| others_may_write(file.path(), 0, group, mode);
        assert!(may(0, 0o602) && may(u32::MAX, 0o620) && !may(u32::MAX, 0o644));
    }
}
