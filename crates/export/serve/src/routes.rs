//! Answers by path.

use crate::accept::Client;
use crate::encoding::{BYTES_MIN, accepts_gzip};
use crate::files::{self, File};
use crate::made::Made;
use crate::stream::{self, Sent, SharedState};
use crate::work::{NoResult, Work};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use metrics::{AgentState, Format};
use page::{Answer, Api, DETAILS_WITHIN, Question, Wanted};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The contents that are served.
pub(crate) struct Site {
    /// `/metrics`.
    state: Arc<Mutex<AgentState>>,
    /// The page's data.
    api: Arc<Api>,
    /// Answers that read much of the history.
    history: Work<Made>,
    /// Answers from memory.
    memory: Work<Made>,
    scrapes: Work<Made>,
    /// States for streams.
    states: Work<SharedState>,
}

/// Threads of each queue. Reading the history takes one processor at most, and delays no other answer.
const HISTORY_THREADS: usize = 1;
const MEMORY_THREADS: usize = 2;
const SCRAPE_THREADS: usize = 1;
const STATE_THREADS: usize = 1;
/// All of them.
pub(crate) const THREADS: usize = HISTORY_THREADS + MEMORY_THREADS + SCRAPE_THREADS + STATE_THREADS;
/// Bytes of answers from the history that are given again: some 100 charts of a month, compressed.
pub(crate) const KEPT_BYTES_MAX: usize = 8 << 20;
/// Bytes of metrics that are given again.
const SCRAPES_BYTES_MAX: usize = 1 << 20;
/// Metrics are given again for this long: making them holds the lock of those who judge.
const SCRAPE_KEPT: Duration = Duration::from_millis(200);
/// Between two checks whether details that are reduced only when a page shows them are there.
const NAP: Duration = Duration::from_millis(50);
/// When a client that was refused for others asks again: most of them have their answer by then.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Site {
    pub fn new(state: Arc<Mutex<AgentState>>, api: Arc<Api>) -> Site {
        Site {
            state,
            api,
            history: Work::new(HISTORY_THREADS, KEPT_BYTES_MAX),
            memory: Work::new(MEMORY_THREADS, 0),
            scrapes: Work::new(SCRAPE_THREADS, SCRAPES_BYTES_MAX),
            states: Work::new(STATE_THREADS, 0),
        }
    }
}

/// The answer to a request that is allowed: a GET or a HEAD.
pub(crate) async fn answer<B>(request: Request<B>, site: Arc<Site>) -> Response<Sent> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let client = request.extensions().get::<Client>().map_or(Ipv4Addr::LOCALHOST.into(), |client| client.0);
    at(path, query, request.headers(), client, &site).await
}

async fn at(path: &str, query: &str, headers: &HeaderMap, client: IpAddr, site: &Site) -> Response<Sent> {
    match path {
        "/metrics" => metrics(site, headers, client).await,
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/readyz" if !site.api.is_ready() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "databases are being looked for\n")
        }
        "/readyz" => text(StatusCode::OK, "ok\n"),
        "/api/v1/stream" => stream::events(site.api.clone(), site.states.clone(), query.to_owned()),
        path => match (path.strip_prefix("/api/v1/"), files::at(path)) {
            (Some(path), _) => data(site, (path, query), accepts_gzip(headers), client).await,
            (None, Some(file)) => embedded(file, headers),
            (None, None) => {
                text(StatusCode::NOT_FOUND, "not here; the page is at /, the metrics at /metrics\n")
            }
        },
    }
}

async fn metrics(site: &Site, headers: &HeaderMap, client: IpAddr) -> Response<Sent> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (format, gzip) = (Format::accepted(accept), accepts_gzip(headers));
    let state = site.state.clone();
    let make = move |_: &Wanted| {
        let text = state.lock().unwrap_or_else(PoisonError::into_inner).text(format);
        let made = Made::new(StatusCode::OK, format.content_type(), text);
        if gzip { made.compressed() } else { made }
    };
    let key = format!("{gzip} {}", format.content_type());
    match site.scrapes.ask(key, client, SCRAPE_KEPT, make).await {
        Ok(made) => made.response(),
        Err(why) => refused(why, TEXT, |error, remedy| format!("{error}; {remedy}\n")),
    }
}

/// Work that may take long runs on another thread than the one that serves.
async fn data(site: &Site, (path, query): (&str, &str), gzip: bool, client: IpAddr) -> Response<Sent> {
    let question = match site.api.question(path, query) {
        Ok(question) => question,
        Err(refused) => return made(refused).response(),
    };
    let began = Instant::now();
    while !site.api.has_figures_for(&question) && began.elapsed() < DETAILS_WITHIN {
        tokio::time::sleep(NAP).await;
    }
    let work = if question.reads_history() { &site.history } else { &site.memory };
    let (key, kept_for) = (format!("{gzip} {}", question.key()), question.kept_for());
    let answered = work.ask(key, client, kept_for, make(site.api.clone(), question, gzip)).await;
    match answered {
        Ok(made) => made.response(),
        Err(why) => refused(why, JSON, |error, remedy| {
            serde_json::json!({ "error": error, "try": remedy }).to_string()
        }),
    }
}

fn make(api: Arc<Api>, question: Question, gzip: bool) -> impl Fn(&Wanted) -> Made {
    move |wanted| {
        let made = made(api.answer(&question, wanted));
        if gzip && wanted() { made.compressed() } else { made }
    }
}

fn made(answer: Answer) -> Made {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Made::new(status, JSON, answer.body)
}

/// The answer to a request that could not be answered.
fn refused(why: NoResult, content_type: &'static str, body: impl Fn(&str, &str) -> String) -> Response<Sent> {
    let (status, error, remedy) = match why {
        NoResult::Busy => {
            (StatusCode::SERVICE_UNAVAILABLE, "too many requests wait for an answer", "the same again later")
        }
        NoResult::Late => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the answer took too long",
            "the same again later, or a shorter stretch of time",
        ),
        NoResult::Fault => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "a fault of Headroom",
            "the log of the agent has the backtrace",
        ),
    };
    let mut response = Made::new(status, content_type, body(error, remedy)).response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    }
    response
}

fn embedded(file: &'static File, headers: &HeaderMap) -> Response<Sent> {
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag);
    let gzip = || file.gzip().filter(|_| file.bytes.len() >= BYTES_MIN && accepts_gzip(headers));
    let made = match is_known {
        true => Made::new(StatusCode::NOT_MODIFIED, file.content_type, Bytes::new()),
        false => match gzip() {
            Some(gzip) => Made::from_gzip(file.content_type, Bytes::from_static(gzip)),
            None => Made::new(StatusCode::OK, file.content_type, Bytes::from_static(file.bytes)),
        },
    };
    let mut response = made.response();
    response.headers_mut().insert(ETAG, HeaderValue::from_static(file.etag));
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Sent> {
    Made::new(status, TEXT, text).response()
}
