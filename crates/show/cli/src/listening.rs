//! The HTTP servers of `agent` and `record`: the options that say who may ask.

use crate::service_log::log;
use metrics::Exposition;
use page::Api;
use serve::{Access, Reload, Settings};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use terminal::Failure;

/// Who may ask what listens.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AccessArgs {
    /// TLS and users of the address: a web configuration file as Prometheus' exporters have
    #[arg(long, value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Answer who sends one of the bearer tokens in this file, one a line
    #[arg(long, value_name = "FILE")]
    pub bearer_token_file: Option<PathBuf>,
    /// A further name by which clients may ask a loopback address
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,
    /// Let everybody ask who reaches the address
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

/// An address, and who may ask there.
pub struct Listening {
    address: SocketAddr,
    access: Access,
}

impl Listening {
    /// Reads the files that are named; `None` without an address. `option` is the one that gives it.
    pub fn new(
        address: Option<SocketAddr>,
        settings: Settings,
        option: &str,
    ) -> Result<Option<Listening>, Failure> {
        let Some(address) = address else {
            let none = Settings::default();
            return match settings == none {
                true => Ok(None),
                false => Err(Failure::usage(format_args!("no address to listen on: give {option}"))),
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

    /// Begins to answer with metrics.
    pub fn serve(self, served: Arc<Mutex<impl Exposition + Send + 'static>>) -> Result<(), Failure> {
        let Listening { address, access } = self;
        let scheme = access.scheme();
        let bound =
            serve::metrics(address, access, served).map_err(|error| cannot_answer(address, &error))?;
        log(6, &format!("metrics at {scheme}://{bound}/metrics"));
        Ok(())
    }

    /// Begins to answer with metrics and the page.
    pub fn serve_page(
        self,
        served: Arc<Mutex<impl Exposition + Send + 'static>>,
        api: Arc<Api>,
    ) -> io::Result<()> {
        let Listening { address, access } = self;
        let scheme = access.scheme();
        let bound = serve::page(address, access, served, api)?;
        log(6, &format!("page at {scheme}://{bound}/"));
        log(6, &format!("metrics at {scheme}://{bound}/metrics"));
        Ok(())
    }
}

/// Another program listens there, or the address is not this machine's.
pub fn cannot_answer(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(format_args!("cannot answer at {address}: {error}"))
        .with_remedy("another port, or end who listens there")
}
