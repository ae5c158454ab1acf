//! The HTTP servers of `agent` and `page`: the options of access.

use crate::service_log::log;
use metrics::AgentState;
use page::Api;
use serve::{Access, Reload, Settings};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use terminal::Failure;

/// Access to the served pages and metrics.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AccessArgs {
    /// Serve TLS and require passwords as this file says, a web configuration file of Prometheus' exporters
    #[arg(long, value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Require one of the bearer tokens in this file, one a line
    #[arg(long, value_name = "FILE")]
    pub bearer_token_file: Option<PathBuf>,
    /// Accept requests with this host name, where clients need no authentication
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,
    /// Serve all clients, also at an address that other machines reach
    #[arg(long)]
    pub listen_without_authentication: bool,
}

impl AccessArgs {
    /// As the server takes them.
    pub fn settings(&self) -> Settings {
        Settings {
            web_config: self.web_config.clone(),
            bearer_token_file: self.bearer_token_file.clone(),
            host_names: self.host_name.clone(),
            without_authentication: self.listen_without_authentication,
        }
    }
}

/// An address, and who may read there.
pub struct Listening {
    address: SocketAddr,
    access: Access,
}

impl Listening {
    /// Reads the files that are named; `None` without an address.
    pub fn new(address: Option<SocketAddr>, settings: Settings) -> Result<Option<Listening>, Failure> {
        let Some(address) = address else {
            let none = Settings::default();
            return match settings == none {
                true => Ok(None),
                false => Err(Failure::usage("no address to listen on: give --listen ADDRESS:PORT")),
            };
        };
        let report = |reload| match reload {
            Reload::Done => log(6, "certificates, passwords and tokens were read again"),
            Reload::Refused(error) => {
                log(3, &format!("certificates, passwords and tokens before stay in force: {error}"));
            }
        };
        let access = Access::new(settings, address, report)
            .map_err(|error| Failure::usage(&error).with_remedy(error.remedy()))?;
        Ok(Some(Listening { address, access }))
    }

    /// Begins to answer. Returns the URL of the page.
    pub fn serve(self, state: Arc<Mutex<AgentState>>, api: Arc<Api>) -> io::Result<String> {
        let Listening { address, access } = self;
        let scheme = access.scheme();
        let bound = serve::serve(address, access, state, api)?;
        Ok(format!("{scheme}://{bound}/"))
    }
}

/// Why nothing listens at an address.
pub fn cannot_answer(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(format_args!("cannot answer at {address}: {error}"))
        .with_remedy("another port (--listen 127.0.0.1:0 takes any that is free), or end who listens there")
}
