//! Files of secrets.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The directory of a service's credentials, by systemd.exec(5): only the service may enter it.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Whether only its owner can read a file. A credential that systemd gives to a service may have an access control list for
/// the service's user, which shows in the mode as rights of the group.
pub fn is_private(path: &Path, found: &Metadata) -> bool {
    let credentials = std::env::var_os(CREDENTIALS).filter(|directory| !directory.is_empty());
    found.mode() & forbidden(path, credentials.as_deref().map(Path::new)) == 0
}

fn forbidden(path: &Path, credentials: Option<&Path>) -> u32 {
    let is_credential =
        credentials.is_some_and(|directory| directory.is_absolute() && path.parent() == Some(directory));
    if is_credential { 0o007 } else { 0o077 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn rights_of_the_group_count_unless_the_file_is_a_credential_of_a_service() {
        let directory = Some(Path::new("/run/credentials/headroom-agent.service"));
        for (path, credentials, expected) in [
            ("/run/credentials/headroom-agent.service/tokens", directory, 0o007),
            ("/run/credentials/headroom-agent.service/../tokens", directory, 0o077),
            ("/run/credentials/other.service/tokens", directory, 0o077),
            ("/etc/headroom/tokens", directory, 0o077),
            ("/run/credentials/headroom-agent.service/tokens", None, 0o077),
            ("tokens", Some(Path::new("")), 0o077),
        ] {
            assert_eq!(forbidden(Path::new(path), credentials), expected, "{path} {credentials:?}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_not_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "a").unwrap();
        for (mode, expected) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o660, false)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_private(&path, &std::fs::metadata(&path).unwrap()), expected, "{mode:o}");
        }
    }
}
