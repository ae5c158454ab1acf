//! One POST request.

use crate::{Destination, Protocol, partial};
use http_client::{Call, Endpoint, exchange};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use std::time::Duration;

/// The limit from the first packet to the end of the response.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes read of an error response.
const ANSWER_BYTES_MAX: usize = 4096;

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The server accepted it.
    Taken,
    /// The server rejected it permanently.
    Refused(String),
    /// It failed and can be tried again, after the time that the server names.
    Failed {
        /// Why.
        why: String,
        /// The time that the server names.
        not_before: Option<Duration>,
    },
}

/// Headers that describe a body.
pub type Headers = &'static [(&'static str, &'static str)];

/// Sends one request of a protocol.
pub(crate) async fn push(to: &Destination, body: Vec<u8>) -> Outcome {
    match exchange_within(&to.endpoint, to.protocol.headers(), body).await {
        (Outcome::Taken, answer) if to.protocol == Protocol::Otlp => {
            partial::rejected(&answer).map_or(Outcome::Taken, Outcome::Refused)
        }
        (outcome, _) => outcome,
    }
}

/// Sends one request over a connection of its own: with one request in 15 s, many servers would close an idle connection.
pub async fn post(to: &Endpoint, headers: Headers, body: Vec<u8>) -> Outcome {
    exchange_within(to, headers, body).await.0
}

/// The outcome, and the beginning of the answer.
async fn exchange_within(to: &Endpoint, headers: Headers, body: Vec<u8>) -> (Outcome, Bytes) {
    let header = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    let call = Call {
        headers: headers.iter().map(header).collect(),
        body,
        patience: PATIENCE,
        answer_bytes_max: ANSWER_BYTES_MAX,
    };
    // The certificates are read for each connection, because they may be replaced meanwhile.
    match exchange(to, call, None).await {
        Ok(answer) => {
            // The text of an answer that is too long or incomplete does not count: the status decides.
            let body = answer.body.unwrap_or_default();
            (judge(answer.status, &answer.headers, &body), body)
        }
        Err(why) => (Outcome::Failed { why: why.to_string(), not_before: None }, Bytes::new()),
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, answer: &[u8]) -> Outcome {
    if status.is_success() {
        return Outcome::Taken;
    }
    let answer = String::from_utf8_lossy(answer);
    let said: String = answer.lines().next().unwrap_or_default().trim().chars().take(200).collect();
    let why = format!("it answers {status}{}{said}", if said.is_empty() { "" } else { ": " });
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        return Outcome::Failed { why, not_before: seconds.map(Duration::from_secs) };
    }
    Outcome::Refused(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let with =
            |status: u16| judge(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), b"why\nmore");
        for status in [200, 204] {
            assert!(matches!(with(status), Outcome::Taken), "{status}");
        }
        for status in [400, 401, 404, 301, 413] {
            assert!(matches!(with(status), Outcome::Refused(why) if why.ends_with(": why")), "{status}");
        }
        for status in [429, 500, 503] {
            assert!(matches!(with(status), Outcome::Failed { not_before: None, .. }), "{status}");
        }
    }

    #[test]
    fn a_server_that_says_when_is_believed() {
        let after = |text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            match judge(StatusCode::TOO_MANY_REQUESTS, &headers, b"") {
                Outcome::Failed { not_before, .. } => not_before,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(after("120"), Some(Duration::from_secs(120)));
        // The other form is a date by the server's clock.
        assert_eq!(after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
