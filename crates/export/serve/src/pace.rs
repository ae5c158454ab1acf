//! How long a client may take, at each moment of its connection.
//!
//! ```text
//! Head ─ request ─> Answering ─ answer sent ─> Idle ─ first byte ─> Head ...
//!                   Streaming: as long as what was sent is taken
//! ```

use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The time that a client has to send its request, and again to read the answer: Prometheus' default timeout of a scrape.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two requests on a connection: more than the usual minute between two scrapes.
const IDLE: Duration = Duration::from_secs(75);

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Pace {
    phase: Phase,
    since: Instant,
    /// Since when a client that is sent something takes nothing.
    stalled: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request is awaited.
    Head,
    /// The answer is made, or its body is not yet handed over.
    Answering,
    /// All of the answer was handed over, and some of it may not be sent.
    Sending,
    Streaming,
    Idle,
}

impl Pace {
    fn new(now: Instant) -> Pace {
        Pace { phase: Phase::Head, since: now, stalled: None }
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// When the connection is to be closed if nothing happens; `None`: never.
    fn due(&self) -> Option<Instant> {
        let patience = match self.phase {
            Phase::Head | Phase::Answering | Phase::Sending => PATIENCE,
            Phase::Idle => IDLE,
            Phase::Streaming => return self.stalled.map(|since| since + PATIENCE),
        };
        Some(self.since + patience)
    }

    fn received(&mut self, now: Instant) {
        if self.phase == Phase::Idle {
            self.enter(Phase::Head, now);
        }
    }

    /// The body was handed over: how long it takes to send counts from the request.
    fn ended_body(&mut self) {
        if matches!(self.phase, Phase::Answering | Phase::Streaming) {
            self.phase = Phase::Sending;
        }
    }

    fn wrote(&mut self, progress: bool, now: Instant) {
        if progress {
            self.stalled = None;
        } else {
            self.stalled.get_or_insert(now);
        }
    }

    fn flushed(&mut self, now: Instant) {
        self.stalled = None;
        if self.phase == Phase::Sending {
            self.enter(Phase::Idle, now);
        }
    }
}

/// The pace of a connection, for those who watch it.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Pace>>);

impl Shared {
    pub fn new() -> Shared {
        Shared(Arc::new(Mutex::new(Pace::new(Instant::now()))))
    }

    fn lock(&self) -> MutexGuard<'_, Pace> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has arrived.
    pub fn begin_answer(&self) {
        self.lock().enter(Phase::Answering, Instant::now());
    }

    /// Its answer goes on without an end.
    pub fn begin_stream(&self) {
        self.lock().enter(Phase::Streaming, Instant::now());
    }

    /// Waits until the client has taken too long.
    pub async fn overdue(&self) {
        loop {
            let now = Instant::now();
            let due = self.lock().due();
            if due.is_some_and(|due| due <= now) {
                return;
            }
            // The next phase may be due before this one.
            let look = now + PATIENCE / 2;
            tokio::time::sleep_until(due.map_or(look, |due| due.min(look)).into()).await;
        }
    }
}

/// A connection whose bytes are watched.
pub(crate) struct Paced<S> {
    pub stream: S,
    pub pace: Shared,
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pace.lock().received(Instant::now());
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Paced<S> {
    fn note(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.pace.lock().wrote(wrote.is_ready(), Instant::now());
        wrote
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        match flushed.is_ready() {
            true => self.pace.lock().flushed(Instant::now()),
            // TLS writes what it holds when it is flushed.
            false => self.pace.lock().wrote(false, Instant::now()),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A body that says when it was handed over.
pub(crate) struct PacedBody<B> {
    pub body: B,
    pub pace: Shared,
}

impl<B: Body + Unpin> Body for PacedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for PacedBody<B> {
    fn drop(&mut self) {
        self.pace.lock().ended_body();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_its_time_and_an_idle_connection_more() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut pace = Pace::new(began);
        assert_eq!(pace.due(), Some(began + PATIENCE));
        // Bytes of a head give it no more time.
        pace.received(at(3));
        assert_eq!(pace.due(), Some(began + PATIENCE));
        pace.enter(Phase::Answering, at(4));
        // Data sent before the body's end does not end the answer, nor does its end before all is sent.
        pace.flushed(at(5));
        pace.ended_body();
        pace.wrote(false, at(6));
        assert_eq!(pace.due(), Some(at(4) + PATIENCE));
        pace.flushed(at(7));
        assert_eq!(pace.due(), Some(at(7) + IDLE));
        pace.received(at(60));
        assert_eq!(pace.due(), Some(at(60) + PATIENCE));
    }

    #[test]
    fn a_stream_lasts_as_long_as_its_client_takes_something() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut pace = Pace::new(began);
        pace.enter(Phase::Streaming, at(1));
        assert_eq!(pace.due(), None);
        pace.wrote(false, at(100));
        pace.wrote(false, at(105));
        assert_eq!(pace.due(), Some(at(100) + PATIENCE));
        pace.wrote(true, at(106));
        assert_eq!(pace.due(), None);
        pace.wrote(false, at(200));
        pace.flushed(at(201));
        assert_eq!(pace.due(), None);
    }
}
