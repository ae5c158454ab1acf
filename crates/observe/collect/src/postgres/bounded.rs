//! A stream that ends when the server sends more than any answer needs, before the client library keeps it: the library
//! keeps a message until it is whole, whatever its length.
//!
//! ```text
//! message: tag 1 | length 4 (of itself and the content) | content
//! ReadyForQuery ends the login and every answer: the allowance begins again
//! ```

use super::authentication::{AuthenticationFault, RequestCheck};
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Of all messages before the login is complete: a server sends 2 KiB.
const LOGIN_BYTES_MAX: usize = 64 << 10;
/// Bytes that the library keeps beside a message's own.
const MESSAGE_OVERHEAD: usize = 128;
/// The library keeps the last value of each parameter that the server reports, as long as the connection: servers report
/// about 15, poolers a few more.
const PARAMETERS_MAX: usize = 64;
/// Of a parameter, with its name: `search_path` is the longest one.
const PARAMETER_BYTES_MAX: usize = 16 << 10;
const HEADER_BYTES: usize = 5;
/// The length of every message counts itself.
const LENGTH_BYTES: usize = 4;
const AUTHENTICATION: u8 = b'R';
const REQUEST_BYTES: usize = 4;
const READY_FOR_QUERY: u8 = b'Z';
const PARAMETER_STATUS: u8 = b'S';

/// Bound on one answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerLimit {
    /// 16 MiB: the statistics of 10,000 databases take a third of it.
    Recording,
    /// For the statements of a person, on a server of that person's choice.
    None,
}

impl AnswerLimit {
    fn bytes(self) -> usize {
        match self {
            AnswerLimit::Recording => 16 << 20,
            AnswerLimit::None => usize::MAX,
        }
    }
}

/// The bytes of a TCP connection or of a Unix socket.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

pub(super) type Socket = Box<dyn ByteStream>;

/// A stream of the server's messages, of bounded size.
pub(super) struct Bounded<S> {
    stream: S,
    meter: Meter,
}

/// Follows the messages of a stream.
struct Meter {
    /// The next byte is the answer to a request for TLS, which is no message.
    awaits_tls_answer: bool,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Of the current message, still to come.
    content_bytes: usize,
    allowance: usize,
    rules: StreamRules,
    parameters: Parameters,
    /// The received part of the request in the current message; `None` behind it and in other messages.
    request: Option<Vec<u8>>,
}

/// Messages that the server may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamRules {
    pub limit: AnswerLimit,
    pub requests: RequestCheck,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Stop {
    #[error("{0}")]
    Answer(&'static str),
    #[error(transparent)]
    Authentication(#[from] AuthenticationFault),
}

impl From<&'static str> for Stop {
    fn from(why: &'static str) -> Stop {
        Stop::Answer(why)
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> io::Error {
        match stop {
            Stop::Answer(why) => io::Error::new(io::ErrorKind::InvalidData, why),
            Stop::Authentication(fault) => io::Error::new(io::ErrorKind::InvalidData, fault),
        }
    }
}

/// The parameters that the server has reported.
#[derive(Default)]
struct Parameters {
    names: BTreeSet<Vec<u8>>,
    /// The received part of the name in the current message; `None` behind it and in other messages.
    name: Option<Vec<u8>>,
}

impl<S> Bounded<S> {
    /// A stream whose next byte begins a message.
    pub fn new(stream: S, rules: StreamRules) -> Bounded<S> {
        let meter = Meter {
            awaits_tls_answer: false,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            content_bytes: 0,
            allowance: LOGIN_BYTES_MAX,
            rules,
            parameters: Parameters::default(),
            request: None,
        };
        Bounded { stream, meter }
    }

    /// A stream whose next byte answers a request for TLS.
    pub fn awaiting_tls_answer(stream: S, rules: StreamRules) -> Bounded<S> {
        let mut bounded = Bounded::new(stream, rules);
        bounded.meter.awaits_tls_answer = true;
        bounded
    }

    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// This stream, if it carries records of TLS from now on: the messages are inside of them.
    pub fn into_inner(self) -> (S, StreamRules) {
        let StreamRules { limit, requests } = self.meter.rules;
        (self.stream, StreamRules { limit, requests: requests.within_tls() })
    }
}

impl Meter {
    fn pass(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        if self.awaits_tls_answer && !bytes.is_empty() {
            self.awaits_tls_answer = false;
            bytes = &bytes[1..];
        }
        while !bytes.is_empty() {
            let (content, rest) = bytes.split_at(self.content_bytes.min(bytes.len()));
            self.content_bytes -= content.len();
            self.parameters.pass(content)?;
            self.pass_request(content)?;
            let (header, rest) = rest.split_at((HEADER_BYTES - self.header_bytes).min(rest.len()));
            self.header[self.header_bytes..self.header_bytes + header.len()].copy_from_slice(header);
            self.header_bytes += header.len();
            bytes = rest;
            if self.header_bytes == HEADER_BYTES {
                self.begin_message()?;
            }
        }
        Ok(())
    }

    fn begin_message(&mut self) -> Result<(), Stop> {
        self.header_bytes = 0;
        let [tag, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        self.content_bytes =
            length.checked_sub(LENGTH_BYTES).ok_or("it does not speak PostgreSQL's protocol")?;
        self.allowance = match self.allowance.checked_sub(length + MESSAGE_OVERHEAD) {
            Some(_) if tag == READY_FOR_QUERY => self.rules.limit.bytes(),
            Some(left) => left,
            None => return Err("its answer is longer than any that was requested".into()),
        };
        if tag == PARAMETER_STATUS && length > PARAMETER_BYTES_MAX {
            return Err("it reports a parameter that is longer than any".into());
        }
        self.parameters.name = (tag == PARAMETER_STATUS).then(Vec::new);
        self.request = (tag == AUTHENTICATION).then(Vec::new);
        Ok(())
    }

    /// Follows the content of a message: the request of an authentication is checked before the client library sees it.
    fn pass_request(&mut self, content: &[u8]) -> Result<(), AuthenticationFault> {
        let Some(mut request) = self.request.take() else { return Ok(()) };
        request.extend(content.iter().take(REQUEST_BYTES - request.len()));
        match <[u8; REQUEST_BYTES]>::try_from(request) {
            Ok(request) => self.rules.requests.pass(u32::from_be_bytes(request)),
            Err(part) => {
                self.request = Some(part);
                Ok(())
            }
        }
    }
}

impl Parameters {
    /// Follows the content of a message: a name, a byte of zero, the value.
    fn pass(&mut self, content: &[u8]) -> Result<(), &'static str> {
        let Some(mut name) = self.name.take() else { return Ok(()) };
        let end = content.iter().position(|byte| *byte == 0);
        name.extend(&content[..end.unwrap_or(content.len())]);
        match end {
            Some(_) => drop(self.names.insert(name)),
            None => self.name = Some(name),
        }
        match self.names.len() > PARAMETERS_MAX {
            true => Err("it reports more parameters than any server has"),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let (Poll::Ready(Ok(())), Err(why)) = (&read, self.meter.pass(&buf.filled()[before..])) {
            buf.set_filled(before);
            return Poll::Ready(Err(why.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::authentication::{Method, RequiredAuth};
    use super::*;
    use proptest::prelude::*;

    fn message(tag: u8, length: u32) -> Vec<u8> {
        [&[tag], length.to_be_bytes().as_slice(), &vec![0; (length as usize).saturating_sub(4).min(1 << 20)]]
            .concat()
    }

    fn rules(limit: AnswerLimit) -> StreamRules {
        StreamRules { limit, requests: RequestCheck::readable(RequiredAuth::default()) }
    }

    fn meter() -> Meter {
        Bounded::new((), rules(AnswerLimit::Recording)).meter
    }

    #[test]
    fn an_answer_has_a_limit_and_the_next_one_its_own() {
        let mut login = meter();
        assert!(login.pass(&message(b'N', 60_000)).is_ok());
        assert!(login.pass(&message(b'N', 60_000)).is_err(), "more than a login");
        let mut encrypted = Bounded::awaiting_tls_answer((), rules(AnswerLimit::Recording)).meter;
        assert!(encrypted.pass(b"N").is_ok());
        for _ in 0..100 {
            assert!(encrypted.pass(&message(b'Z', 5)).is_ok());
            assert!(encrypted.pass(&message(b'D', 1 << 20)).is_ok());
        }
        assert!(meter().pass(&message(b'E', 3)).is_err());
        assert!(meter().pass(&message(b'E', u32::MAX)).is_err());
        let mut experiment = Bounded::new((), rules(AnswerLimit::None)).meter;
        assert!(experiment.pass(&message(b'E', u32::MAX)).is_err(), "before the login");
    }

    #[test]
    fn a_request_for_the_password_is_refused_however_it_arrives() {
        let request = |code: u32| [b"R\0\0\0\x08".as_slice(), &code.to_be_bytes()].concat();
        let fault = Err(Stop::Authentication(AuthenticationFault::Readable(Method::Password)));
        assert_eq!(meter().pass(&[message(b'N', 9), request(3)].concat()), fault);
        let mut bytewise = meter();
        let passed: Vec<_> = request(3).iter().map(|byte| bytewise.pass(&[*byte])).collect();
        assert_eq!((passed[..8].iter().all(Result::is_ok), passed[8]), (true, fault));
        let mut plain = Bounded::awaiting_tls_answer((), rules(AnswerLimit::Recording));
        assert!(plain.meter.pass(&[b"N".as_slice(), &request(5)].concat()).is_err());
        let (_, within) = Bounded::new((), rules(AnswerLimit::Recording)).into_inner();
        assert_eq!(Bounded::new((), within).meter.pass(&request(3)), Ok(()));
    }

    #[test]
    fn an_experiment_may_have_long_answers() {
        let mut meter = Bounded::new((), rules(AnswerLimit::None)).meter;
        assert!(meter.pass(&message(b'Z', 5)).is_ok());
        assert!((0..40).all(|_| meter.pass(&message(b'D', 1 << 20)).is_ok()));
    }

    #[test]
    fn parameters_are_few_however_often_they_are_reported() {
        let report = |meter: &mut Meter, name: usize| {
            let content = format!("name{name}\0value\0");
            let length = (content.len() as u32 + 4).to_be_bytes();
            meter.pass(&[b"S".as_slice(), &length, content.as_bytes()].concat())
        };
        let mut often = meter();
        for _ in 0..100_000 {
            assert_eq!(report(&mut often, 7), Ok(()));
            assert!(often.pass(&message(b'Z', 5)).is_ok());
        }
        let mut many = meter();
        let refused = (0..100_000).position(|name| {
            let _ = many.pass(&message(b'Z', 5));
            report(&mut many, name).is_err()
        });
        assert_eq!(refused, Some(PARAMETERS_MAX));
        let mut long = meter();
        assert!(long.pass(&message(b'Z', 5)).is_ok());
        assert!(long.pass(&message(b'S', 1 << 20)).is_err());
    }

    proptest! {
        #[test]
        fn the_pieces_in_which_bytes_arrive_do_not_matter(
            messages in prop::collection::vec((prop::sample::select(b"DSZ".as_slice()), 0..300u32), 0..20),
            cut in 1..50usize,
        ) {
            let all: Vec<u8> = messages.iter().flat_map(|(tag, length)| message(*tag, *length)).collect();
            let (mut whole, mut pieces) = (meter(), meter());
            let in_pieces = all.chunks(cut).try_for_each(|piece| pieces.pass(piece));
            prop_assert_eq!(whole.pass(&all), in_pieces);
            prop_assert_eq!(whole.allowance, pieces.allowance);
            prop_assert_eq!(whole.parameters.names, pieces.parameters.names);
        }
    }
}
