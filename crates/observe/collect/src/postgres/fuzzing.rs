//! A server that sends given bytes.

use super::authentication::RequestCheck;
use super::bounded::AnswerLimit;
use super::connection::Connection;
use super::dial::Dialer;
use super::error::SNAPSHOT_LIMIT;
use super::sampler::Sampler;
use super::session::Session;
use filestats::Snapshot;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;

const LOGIN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
const READY_FOR_QUERY: &[u8] = b"Z\0\0\0\x05";

/// The server: each time that it is written to, it answers up to the next ReadyForQuery.
struct Memory {
    answers: Vec<u8>,
    sent: usize,
    /// Up to where it may send.
    end: usize,
    reader: Option<Waker>,
}

/// Opens the source and takes snapshots and samples while the bytes last; after a first byte that is odd, the login comes
/// before them. The runtime's time must be paused, so that waiting takes none.
pub fn read_answers(bytes: &[u8]) -> Vec<Snapshot> {
    let Some((first, answers)) = bytes.split_first() else { return Vec::new() };
    let login = if first % 2 == 1 { LOGIN } else { &[] };
    let memory = Memory { answers: [login, answers].concat(), sent: 0, end: 0, reader: None };
    let text = "host=192.0.2.1 user=watcher password=secret dbname=shop sslmode=disable";
    let mut connection = Connection::parse(text, &|_| None).expect("a connection string");
    connection.config.ssl_mode(SslMode::Disable);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let mut snapshots = Vec::new();
    let taken = async {
        let requests = RequestCheck::readable(connection.required_auth);
        let dialer = Dialer {
            config: &connection.config,
            connector: &connection.tls.connector,
            peer: &connection.peer,
            required_auth: connection.required_auth,
            limit: AnswerLimit::Recording,
        };
        let (client, driver) = dialer.log_in(Box::new(memory), "192.0.2.1", requests).await.ok()?;
        let session = Session { client, driver, place: connection.place.clone() };
        let mut sampler = Sampler::begin(&connection, session).await.ok()?;
        loop {
            sampler.sample_waits().await.ok()?;
            snapshots.push(sampler.snapshot().await.ok()?.snapshot);
        }
        #[expect(unreachable_code, reason = "the type of the block")]
        Some(())
    };
    let _ = runtime.expect("a runtime").block_on(async { timeout(SNAPSHOT_LIMIT, taken).await });
    snapshots
}

impl AsyncRead for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.sent == self.end && self.end < self.answers.len() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let end = self.end.min(self.sent + buffer.remaining());
        buffer.put_slice(&self.answers[self.sent..end]);
        self.sent = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Memory {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let rest = &self.answers[self.end..];
        let ready = rest.windows(READY_FOR_QUERY.len()).position(|bytes| bytes == READY_FOR_QUERY);
        let length = ready.map_or(rest.len(), |at| (at + READY_FOR_QUERY.len() + 1).min(rest.len()));
        self.end += length;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
