//! The connection to the server that is queried.

use http_client::{Endpoint, HeaderName, HeaderValue, Tls};
use prometheus::Client;
use std::path::PathBuf;
use std::time::Duration;
use terminal::{Failure, Output};
use workload_file::values;

#[derive(clap::Args)]
pub struct ConnectionArgs {
    /// The server, with its prefix: http://prometheus:9090, http://victoria:8481/select/0/prometheus
    #[arg(long, value_name = "URL", global = true)]
    prometheus: Option<String>,
    /// Send this header too, such as 'X-Scope-OrgID: team'; several may be given
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, global = true)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Trust the authorities in this PEM file [default: those that this host trusts]
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// This client's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "key", global = true)]
    cert: Option<PathBuf>,
    /// The key of --cert, PEM
    #[arg(long, value_name = "FILE", requires = "cert", global = true)]
    key: Option<PathBuf>,
    /// The limit of each query
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::some_time, global = true)]
    timeout: Duration,
}

/// The variable of the environment that may hold the credential.
const AUTH: &str = "HEADROOM_PROMETHEUS_AUTH";

impl ConnectionArgs {
    /// The client that they describe.
    pub fn client(&self, out: &mut Output) -> Result<Client, Failure> {
        let url = self.prometheus.as_ref().ok_or_else(|| {
            Failure::usage("no server given: --prometheus URL")
                .with_remedy("--prometheus http://prometheus:9090")
        })?;
        let text = std::env::var(AUTH).ok().filter(|text| !text.is_empty());
        let credential = text.map(|text| text.parse()).transpose();
        let credential = credential.map_err(|why: http_client::WrongCredential| {
            Failure::usage(format_args!("{AUTH} holds {why}"))
        })?;
        // The API's path is often part of what is copied.
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix("/api/v1").unwrap_or(url);
        let endpoint = Endpoint::new(url, credential, "http://prometheus:9090", AUTH);
        let endpoint = endpoint.map_err(|why| Failure::usage(format_args!("--prometheus: {why}")))?;
        if endpoint.shows_credential() {
            out.warn("the credential goes over http:// and can be read on the way; use https://");
        }
        let identity = self.cert.as_deref().zip(self.key.as_deref());
        let tls = match (&self.ca, identity) {
            (None, None) => None,
            (authorities, identity) => {
                let tls = Tls::from_files(authorities.as_deref(), identity);
                Some(tls.map_err(Failure::new)?)
            }
        };
        Ok(Client { endpoint, headers: self.header.clone(), tls, patience: self.timeout })
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "no header; give 'NAME: VALUE'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    Ok((name, value))
}
