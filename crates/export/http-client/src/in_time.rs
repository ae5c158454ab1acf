//! A connection that is read until a time, and whose answer begins within a size. A timer beside it is late where data never
//! pauses: interim answers (1xx) without end keep the thread busy.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes before the body: interim answers and the head, and the part of the body that is read with them.
const HEAD_BYTES_MAX: usize = 1 << 20;

pub struct InTime<S> {
    stream: S,
    until: Instant,
    bytes_left: Arc<AtomicUsize>,
}

/// Ends the limit of the bytes before the body.
pub struct HeadSeen(Arc<AtomicUsize>);

impl HeadSeen {
    pub fn set(&self) {
        self.0.store(usize::MAX, Relaxed);
    }
}

impl<S> InTime<S> {
    pub fn new(stream: S, until: Instant) -> InTime<S> {
        InTime { stream, until, bytes_left: Arc::new(AtomicUsize::new(HEAD_BYTES_MAX)) }
    }

    pub fn head_seen(&self) -> HeadSeen {
        HeadSeen(self.bytes_left.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InTime<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if Instant::now() >= self.until {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        let left = self.bytes_left.load(Relaxed);
        if read > left {
            let why = format!("no answer begins within {HEAD_BYTES_MAX} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        if left != usize::MAX {
            self.bytes_left.store(left - read, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InTime<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
