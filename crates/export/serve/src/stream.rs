//! Server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): changes as they happen.
//!
//! ```text
//! retry: 2000
//!
//! event: state            when it is another one, as /api/v1/state
//! data: {...}
//!
//! event: moment           each second of the volume that is asked for; some at once where the stream was late
//! data: {...}
//!
//! :                       where nothing changed for 10 s
//! ```
//!
//! Each stream is a task that ends when its client does. It makes the next event only when the last one was taken, so that a
//! slow client gets fewer of them and keeps nothing waiting.

use crate::kept::Weight;
use crate::work::{NoResult, Work};
use http_body_util::{Either, Full};
use hyper::Response;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use page::{Api, Wanted};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// Events that wait for a client.
const WAITING_MAX: usize = 2;
/// Between two events of a kind.
const TICK: Duration = Duration::from_secs(1);
/// A comment is sent after this much silence: a client and proxies between see that the stream lives.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// A large state is sent less often, so that a stream needs no more than this.
const STATE_BYTES_PER_SECOND: usize = 10_000;
/// When a browser connects again.
const RETRY: &str = "retry: 2000\n\n";

/// The body of any answer.
pub(crate) type Sent = Either<Full<Bytes>, Events>;

/// The body of a stream. Its task ends with it.
pub(crate) struct Events {
    events: Receiver<Bytes>,
    task: AbortHandle,
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A state and its version, which all streams share.
#[derive(Clone)]
pub(crate) struct SharedState(u64, Arc<str>);

impl Weight for SharedState {
    fn bytes(&self) -> Option<usize> {
        Some(self.1.len())
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.events.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Begins a stream, with the moments of the volume that the query names.
pub(crate) fn events(api: Arc<Api>, states: Work<SharedState>, query: String) -> Response<Sent> {
    let (to, events) = channel(WAITING_MAX);
    let task = tokio::spawn(send(api, states, query, to)).abort_handle();
    let mut response = Response::new(Either::Right(Events { events, task }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// Sends until the client is gone. The connection of one that takes nothing any more is closed.
async fn send(api: Arc<Api>, states: Work<SharedState>, query: String, to: Sender<Bytes>) {
    let volume = query.split('&').find_map(|pair| pair.strip_prefix("volume=")).map(str::to_owned);
    if to.send(Bytes::from_static(RETRY.as_bytes())).await.is_err() {
        return;
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut sent_version, mut state_at) = (None, Instant::now());
    let mut newest_unix_ns = 0;
    let mut sent_at = Instant::now();
    loop {
        ticks.tick().await;
        let mut events = String::new();
        if sent_version != Some(api.version()) && Instant::now() >= state_at {
            let shared = match shared_state(&api, &states).await {
                Ok(shared) => Some(shared),
                Err(NoResult::Fault) => return,
                // The history is slow: the next tick tries again.
                Err(NoResult::Busy | NoResult::Late) => None,
            };
            // A state that this client has already: the change is sent with the next tick.
            let new = shared.filter(|SharedState(version, _)| sent_version != Some(*version));
            if let Some(SharedState(version, state)) = new {
                let pause = Duration::from_secs_f64(state.len() as f64 / STATE_BYTES_PER_SECOND as f64);
                (sent_version, state_at) = (Some(version), Instant::now() + pause);
                events += &event("state", &state);
            }
        }
        if let Some(moments) = volume.as_ref().and_then(|volume| api.moments(volume, newest_unix_ns)) {
            newest_unix_ns = moments.newest_unix_ns;
            moments.json.iter().for_each(|moment| events += &event("moment", moment));
        }
        if events.is_empty() && sent_at.elapsed() >= SILENCE_MAX {
            events += ":\n\n";
        }
        if events.is_empty() {
            if to.is_closed() {
                return;
            }
            continue;
        }
        sent_at = Instant::now();
        if to.send(Bytes::from(events)).await.is_err() {
            return;
        }
    }
}

/// The state, made once for all streams that ask for it at the time.
async fn shared_state(api: &Arc<Api>, states: &Work<SharedState>) -> Result<SharedState, NoResult> {
    let api = api.clone();
    let make = move |_: &Wanted| {
        let (version, state) = api.shared_state();
        SharedState(version, state.into())
    };
    states.ask(String::new(), Ipv4Addr::LOCALHOST.into(), Duration::ZERO, make).await
}

fn event(name: &str, data: &str) -> String {
    // JSON has no line breaks outside of its strings, and escapes them there.
    format!("event: {name}\ndata: {data}\n\n")
}
