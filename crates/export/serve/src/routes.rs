//! What is answered at which path.

use crate::files::{self, File};
use crate::stream::{self, Sent};
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Request, Response, StatusCode};
use metrics::{AgentState, Format};
use page::Api;
use std::sync::{Arc, Mutex, PoisonError};

/// What is served.
pub(crate) struct Site {
    /// `/metrics`.
    pub state: Arc<Mutex<AgentState>>,
    /// The page's data.
    pub api: Arc<Api>,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// The answer to a request that is allowed: a GET or a HEAD.
pub(crate) async fn answer<B>(request: Request<B>, site: Arc<Site>) -> Response<Sent> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    at(path, query, request.headers(), &site).await
}

async fn at(path: &str, query: &str, headers: &HeaderMap, site: &Site) -> Response<Sent> {
    let api = || site.api.clone();
    match path {
        "/metrics" => metrics(&site.state, headers),
        "/healthz" => sent(StatusCode::OK, TEXT, "ok\n"),
        "/readyz" if !site.api.is_ready() => {
            sent(StatusCode::SERVICE_UNAVAILABLE, TEXT, "databases are being looked for\n")
        }
        "/readyz" => sent(StatusCode::OK, TEXT, "ok\n"),
        "/api/v1/stream" => stream::events(api(), query.to_owned()),
        path if path.starts_with("/api/v1/") => data(api(), path, query).await,
        path => match files::at(path) {
            Some(file) => embedded(file, headers),
            None => {
                sent(StatusCode::NOT_FOUND, TEXT, "not here; the page is at /, the metrics at /metrics\n")
            }
        },
    }
}

fn metrics(state: &Mutex<AgentState>, headers: &HeaderMap) -> Response<Sent> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    let text = state.lock().unwrap_or_else(PoisonError::into_inner).text(format);
    sent(StatusCode::OK, format.content_type(), text)
}

/// Reads the history and may wait, so that it is done by another thread than the one that serves.
async fn data(api: Arc<Api>, path: &str, query: &str) -> Response<Sent> {
    let path = path.trim_start_matches("/api/v1/").to_owned();
    let query = query.to_owned();
    let answered = tokio::task::spawn_blocking(move || api.answer(&path, &query)).await;
    match answered {
        Ok(answer) => {
            let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            sent(status, JSON, answer.body)
        }
        Err(_) => {
            let text =
                "{\"error\":\"a fault of Headroom\",\"try\":\"the log of the agent has the backtrace\"}";
            sent(StatusCode::INTERNAL_SERVER_ERROR, JSON, text)
        }
    }
}

fn embedded(file: &'static File, headers: &HeaderMap) -> Response<Sent> {
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag);
    let mut response = match is_known {
        true => sent(StatusCode::NOT_MODIFIED, file.content_type, Bytes::new()),
        false => sent(StatusCode::OK, file.content_type, Bytes::from_static(file.bytes)),
    };
    response.headers_mut().insert(ETAG, HeaderValue::from_static(file.etag));
    response
}

fn sent(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Sent> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
