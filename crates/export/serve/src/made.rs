//! An answer in memory, as it is sent and kept.

use crate::encoding::{BYTES_MIN, gzip};
use crate::kept::Weight;
use crate::stream::Sent;
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::{Response, StatusCode};

/// A status and a body.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    status: StatusCode,
    content_type: &'static str,
    body: Bytes,
    is_gzip: bool,
}

impl Made {
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Made {
        Made { status, content_type, body: body.into(), is_gzip: false }
    }

    /// A body that is compressed already.
    pub fn from_gzip(content_type: &'static str, body: impl Into<Bytes>) -> Made {
        Made { is_gzip: true, ..Made::new(StatusCode::OK, content_type, body) }
    }

    /// Compressed where that saves something. A mebibyte takes some 10 ms: not for the thread that serves.
    pub fn compressed(self) -> Made {
        match (self.body.len() >= BYTES_MIN).then(|| gzip(&self.body)).flatten() {
            Some(body) => Made { body: body.into(), is_gzip: true, ..self },
            None => self,
        }
    }

    pub fn response(self) -> Response<Sent> {
        let mut response = Response::new(Either::Left(Full::new(self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if self.is_gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        response
    }
}

impl Weight for Made {
    fn bytes(&self) -> Option<usize> {
        (self.status == StatusCode::OK).then_some(self.body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Read;

    #[test]
    fn long_text_is_compressed_and_short_text_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (length, is_gzip) in [(BYTES_MIN - 1, false), (BYTES_MIN, true), (100 << 10, true)] {
            let made = Made::new(StatusCode::OK, "text/plain", "x".repeat(length)).compressed();
            let (head, body) = made.response().into_parts();
            assert_eq!(head.headers.contains_key(CONTENT_ENCODING), is_gzip, "{length}");
            assert_eq!(head.headers.contains_key(VARY), is_gzip, "{length}");
            let body = runtime.block_on(body.collect()).unwrap().to_bytes();
            let mut text = String::new();
            if is_gzip {
                flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
            }
            assert_eq!(if is_gzip { text.len() } else { body.len() }, length);
        }
    }
}
