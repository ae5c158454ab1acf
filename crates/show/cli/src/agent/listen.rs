//! Where the agent answers: by default the page's own port of this machine.

use crate::service_log::log;
use metrics::AgentState;
use page::Api;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use terminal::Failure;

/// Where to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// At [`DEFAULT`], where that is free.
    #[default]
    Default,
    /// Nowhere.
    None,
    /// There.
    At(SocketAddr),
}

/// Only this machine reaches it.
pub const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9187);

/// `none`, or an address with its port.
pub fn parse(text: &str) -> Result<Listen, String> {
    match text {
        "none" => Ok(Listen::None),
        _ => text
            .parse()
            .map(Listen::At)
            .map_err(|_| "give ADDRESS:PORT, as in 127.0.0.1:9187, or none".to_owned()),
    }
}

/// Refuses an address that others than this machine reach, while no one has to authenticate there.
pub fn check(listen: Listen, without_authentication: bool) -> Result<(), Failure> {
    match listen {
        Listen::At(address) if !address.ip().is_loopback() && !without_authentication => Err(Failure::usage(
            format_args!("{address} is reached from other machines, and no one has to authenticate"),
        )
        .with_remedy("listen at 127.0.0.1, or give --listen-without-authentication")),
        _ => Ok(()),
    }
}

/// Answers in a thread of its own, with the metrics and the page.
pub fn begin(listen: Listen, state: Arc<Mutex<AgentState>>, api: Arc<Api>) -> Result<(), Failure> {
    let address = match listen {
        Listen::None => return Ok(()),
        Listen::Default => DEFAULT,
        Listen::At(address) => address,
    };
    match serve::page(address, state, api) {
        Ok(bound) => {
            log(6, &format!("page at http://{bound}/"));
            log(6, &format!("metrics at http://{bound}/metrics"));
            Ok(())
        }
        Err(error) if listen == Listen::Default && error.kind() == ErrorKind::AddrInUse => {
            log(4, &format!("no page: {address} is in use; --listen ADDRESS:PORT gives another address"));
            Ok(())
        }
        Err(error) => Err(Failure::new(format_args!("cannot answer at {address}: {error}"))
            .with_remedy("another port, or end who listens there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_refused_unless_it_is_said() {
        let check = |text: &str, without| check(parse(text).unwrap(), without).is_ok();
        assert!(check("127.0.0.1:9187", false) && check("[::1]:80", false) && check("none", false));
        assert!(
            !check("0.0.0.0:9187", false) && !check("[::]:9187", false) && !check("10.0.0.1:9187", false)
        );
        assert!(check("0.0.0.0:9187", true));
        assert!(parse("localhost").is_err());
    }
}
