//! Where the agent answers: by default the page's own port of this machine.

use crate::listening::{Listening, cannot_answer};
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

impl Listen {
    /// The address to try.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Listen::None => None,
            Listen::Default => Some(DEFAULT),
            Listen::At(address) => Some(address),
        }
    }
}

/// Answers in a thread of its own, with the metrics and the page.
pub fn begin(
    listening: Listening,
    listen: Listen,
    state: Arc<Mutex<AgentState>>,
    api: Arc<Api>,
) -> Result<(), Failure> {
    match listening.serve(state, api) {
        Ok(url) => {
            log(6, &format!("page at {url}"));
            log(6, &format!("metrics at {url}metrics"));
            Ok(())
        }
        Err(error) if listen == Listen::Default && error.kind() == ErrorKind::AddrInUse => {
            log(4, &format!("no page: {DEFAULT} is in use; --listen ADDRESS:PORT gives another address"));
            Ok(())
        }
        Err(error) => Err(cannot_answer(listen.address().unwrap_or(DEFAULT), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_none_is_nowhere() {
        assert_eq!(parse("none").unwrap().address(), None);
        assert_eq!(parse("[::1]:80").unwrap().address().unwrap().port(), 80);
        assert_eq!(Listen::default().address(), Some(DEFAULT));
        assert!(parse("localhost").is_err() && parse("127.0.0.1").is_err());
    }
}
