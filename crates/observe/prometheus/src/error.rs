use http_client::{Failed, StatusCode};

/// A query without an answer, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct QueryError {
    /// The query.
    pub expression: String,
    /// Why.
    pub error: Error,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection, it broke, it took too long, or the answer is too long.
    #[error(transparent)]
    NotAnswered(#[from] Failed),
    /// It has more series than are taken.
    #[error("its answer has more than {0} series")]
    TooMany(usize),
    /// 401 or 403.
    #[error("it does not accept the credential ({0})")]
    NotAllowed(StatusCode),
    /// 429.
    #[error("it has too much to do (429){}", after(*.after_s))]
    Busy {
        /// Time after which it may be queried again, seconds.
        after_s: Option<u64>,
    },
    /// 404: the path is wrong.
    #[error("there is no API of Prometheus at this URL (404)")]
    NoApi,
    /// Another status than success.
    #[error("it answers {status}{}", after_colon(.why))]
    Refused {
        /// The status.
        status: StatusCode,
        /// The beginning of its answer.
        why: String,
    },
    /// It cannot evaluate the query.
    #[error("it cannot evaluate the query: {0}")]
    Query(String),
    /// The answer is none of Prometheus' API.
    #[error("its answer is none of Prometheus' API: {0}")]
    NotPrometheus(String),
}

impl Error {
    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::NotAnswered(Failed::Connection(_)) => "is it running, and is the URL right?",
            Error::NotAnswered(Failed::Late { .. }) => "a longer --timeout, or fewer hosts by --label",
            Error::NotAnswered(Failed::TooLong { .. }) | Error::TooMany(_) => "fewer hosts by --label",
            Error::NotAllowed(_) => {
                "HEADROOM_PROMETHEUS_AUTH as `bearer TOKEN` or `basic USER:PASSWORD`; --header for a tenant"
            }
            Error::Busy { .. } => "again later, or fewer hosts by --label",
            Error::NoApi => {
                "the URL with its prefix, as in http://victoria:8481/select/0/prometheus; /api/v1 is added"
            }
            Error::Refused { .. } | Error::Query(_) => "its log says more",
            Error::NotPrometheus(_) => {
                "the URL of Prometheus, VictoriaMetrics, Mimir or Thanos, not of a page or an agent"
            }
        }
    }
}

fn after(seconds: Option<u64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!("; it names {seconds} s until it may be asked again"))
}

fn after_colon(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}
