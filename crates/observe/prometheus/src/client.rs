use crate::answer::parse;
use crate::{Error, QueryError, Response};
use http_client::{Call, Endpoint, Tls, exchange};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use std::fmt::Write;
use std::time::Duration;

/// A server, and how it is queried.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its URL, with the prefix before `/api/v1`.
    pub endpoint: Endpoint,
    /// Further headers of each request, such as that of a tenant.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Trusted certificates; `None`: those that this host trusts.
    pub tls: Option<Tls>,
    /// The limit of each query.
    pub patience: Duration,
}

/// A query in PromQL.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The expression.
    pub expression: String,
    /// Length of the range before the time, and step within it, seconds; `None` for the one time.
    pub range: Option<(u64, u64)>,
}

/// The most queries of one answer, whatever the number of hosts. Prometheus evaluates 20 at a time.
pub const QUERIES_MAX: usize = 10;
/// The most bytes of an answer: 100,000 series of 500 bytes.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Sends all queries at once, for the same time in seconds since 1970, and returns their answers in the same order. Each has a
/// thread: while one reads an answer of tens of thousands of series, the server goes on writing the others.
///
/// # Errors
/// The first query without an answer.
///
/// # Panics
/// More than [`QUERIES_MAX`] queries.
pub fn ask(client: &Client, queries: &[Query], at_unix_s: f64) -> Result<Vec<Response>, QueryError> {
    assert!(queries.len() <= QUERIES_MAX, "{} queries", queries.len());
    std::thread::scope(|scope| {
        let sent: Vec<_> = queries
            .iter()
            .map(|query| scope.spawn(move || ask_in_thread(client, query, at_unix_s)))
            .collect();
        // A thread that panics ends the program: there is no unwinding to catch here.
        sent.into_iter().map(|one| one.join().expect("a query ends with an answer or an error")).collect()
    })
}

fn ask_in_thread(client: &Client, query: &Query, at_unix_s: f64) -> Result<Response, QueryError> {
    let failed = |error: Error| QueryError { expression: query.expression.clone(), error };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| failed(Error::NotAnswered(http_client::Failed::Connection(error.to_string()))))?;
    runtime.block_on(ask_one(client, query, at_unix_s)).map_err(failed)
}

async fn ask_one(client: &Client, query: &Query, at_unix_s: f64) -> Result<Response, Error> {
    let mut headers = client.headers.clone();
    headers.push((CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")));
    let call = Call {
        headers,
        body: form(query, at_unix_s).into_bytes(),
        patience: client.patience,
        answer_bytes_max: ANSWER_BYTES_MAX,
    };
    let path = if query.range.is_some() { "/api/v1/query_range" } else { "/api/v1/query" };
    let answer = exchange(&client.endpoint.below(path), call, client.tls.as_ref()).await?;
    let body = match answer.body {
        Ok(body) => body,
        Err(why) if answer.status.is_success() => return Err(why.into()),
        // The status says more than a page that is too long.
        Err(_) => Default::default(),
    };
    parse(answer.status, &answer.headers, &body)
}

fn form(query: &Query, at_unix_s: f64) -> String {
    let expression = escaped(&query.expression);
    match query.range {
        None => format!("query={expression}&time={at_unix_s:.3}"),
        Some((back_s, step_s)) => {
            let start = at_unix_s - back_s as f64;
            format!("query={expression}&start={start:.3}&end={at_unix_s:.3}&step={step_s}")
        }
    }
}

/// Percent-encoding: all but letters and digits.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_queries_name_the_same_time() {
        let instant = Query { expression: "a{b=\"c d\"}".into(), range: None };
        assert_eq!(form(&instant, 1_700_000_000.25), "query=a%7Bb%3D%22c%20d%22%7D&time=1700000000.250");
        let range = Query { expression: "a".into(), range: Some((60, 15)) };
        assert_eq!(form(&range, 100.0), "query=a&start=40.000&end=100.000&step=15");
    }
}
