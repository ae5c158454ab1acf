//! The header Host against DNS rebinding: a page of another site, whose name leads to a loopback address, must not read
//! what a browser on this machine may.

use hyper::http::uri::Authority;
use std::net::IpAddr;

/// The names by which clients may ask, in lower case and without a port: a tunnel has another one.
pub(super) struct HostNames(Vec<String>);

impl HostNames {
    /// Those of a server on a loopback address, and more that its user says.
    pub fn new(address: IpAddr, more: &[String]) -> HostNames {
        let address = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let more = more.iter().map(|name| normal(name));
        HostNames(["localhost".to_owned(), address].into_iter().chain(more).collect())
    }

    /// Those that the user says, alone.
    pub fn given(names: &[String]) -> HostNames {
        HostNames(names.iter().map(|name| normal(name)).collect())
    }

    /// Whether a value of the header Host has one of the names.
    pub fn contain(&self, header: &str) -> bool {
        // A user before the name is none that a browser would send.
        let Ok(authority) = header.parse::<Authority>() else { return false };
        !header.contains('@') && self.0.contains(&normal(authority.host()))
    }
}

/// A final dot makes no other name.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_the_address_and_given_names_are_this_host() {
        let names = HostNames::new("127.0.0.1".parse().unwrap(), &["DB.example".into()]);
        for name in ["localhost", "LOCALHOST:9187", "localhost.", "127.0.0.1:1", "127.0.0.1", "db.Example:80"]
        {
            assert!(names.contain(name), "{name}");
        }
        for name in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil@localhost",
            "127.0.0.2",
            "[::1]:9187",
            "",
            ":80",
            "localhost/",
            "local host",
        ] {
            assert!(!names.contain(name), "{name}");
        }
        let names = HostNames::new("::1".parse().unwrap(), &[]);
        assert!(names.contain("[::1]:9187") && names.contain("localhost") && !names.contain("127.0.0.1"));
    }
}
