//! The header Host against DNS rebinding: a page of another site, whose name leads to this host, must not read what the browser
//! that shows it may. An address in place of a name is none of another site.

use hyper::http::uri::Authority;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names by which clients may ask, in lower case and without a port: a tunnel has another one.
pub(super) struct HostNames {
    names: Vec<String>,
    accept_addresses: bool,
}

impl HostNames {
    /// Those of a server on a loopback address, and more that its user says.
    pub fn new(address: IpAddr, more: &[String]) -> HostNames {
        let address = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let names = ["localhost".to_owned(), address].into_iter().chain(normal_all(more)).collect();
        HostNames { names, accept_addresses: false }
    }

    /// Those of a server that other machines reach: any address, the names of this host, and more that its user says.
    pub fn for_network(more: &[String]) -> HostNames {
        let own = normal_all(&host::host_names());
        let names = [own, normal_all(more), vec!["localhost".to_owned()]].concat();
        HostNames { names, accept_addresses: true }
    }

    /// Those that the user says, alone.
    pub fn given(names: &[String]) -> HostNames {
        HostNames { names: normal_all(names), accept_addresses: false }
    }

    /// Whether a value of the header Host has one of the names.
    pub fn contain(&self, header: &str) -> bool {
        // A user before the name is none that a browser would send.
        let Ok(authority) = header.parse::<Authority>() else { return false };
        let name = normal(authority.host());
        !header.contains('@') && (self.names.contains(&name) || self.accept_addresses && is_address(&name))
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

fn normal_all(names: &[String]) -> Vec<String> {
    names.iter().map(|name| normal(name)).collect()
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

    #[test]
    fn on_the_network_addresses_and_the_names_of_this_host_are_accepted() {
        let names = HostNames::for_network(&["db.example".into()]);
        let own = host::hostname();
        let accepted =
            ["192.0.2.7:9187", "192.0.2.7", "[2001:db8::7]:80", "localhost:9187", "DB.example.", &own];
        for name in accepted {
            assert!(names.contain(name), "{name}");
        }
        for name in
            ["evil.example:9187", "192.0.2.7.evil.example", "1.2.3", "0x7f.1", "", "[evil]", "a@192.0.2.7"]
        {
            assert!(!names.contain(name), "{name}");
        }
    }
}
