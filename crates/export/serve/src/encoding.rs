//! Compresses answers, where the client accepts that and it saves something.

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, VARY,
};
use hyper::{Response, StatusCode};
use std::io::Write;

/// Why a body cannot be made.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A shorter answer fits one packet as it is.
const BYTES_MIN: u64 = 1 << 10;
/// A longer one is compressed in a thread that serves no client: a mebibyte takes some 10 ms.
const BYTES_HERE_MAX: usize = 64 << 10;

/// Whether a request accepts gzip, by RFC 9110, section 12.5.3.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut any = false;
    for item in values.flat_map(|value| value.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let is_wanted =
            quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0));
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            return is_wanted;
        }
        any |= name == "*" && is_wanted;
    }
    any
}

/// Compresses the body of an answer. A stream has no length, and is sent as it comes.
pub(crate) async fn compress<B>(response: Response<B>) -> Response<Either<B, Full<Bytes>>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let has_length = response.body().size_hint().exact().is_some_and(|bytes| bytes >= BYTES_MIN);
    if !has_length || !is_compressible(response.headers()) {
        return response.map(Either::Left);
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(head, Either::Right(Full::default()));
    };
    let body = body.to_bytes();
    let compressed = match body.len() > BYTES_HERE_MAX {
        false => gzip(&body),
        true => {
            let body = body.clone();
            tokio::task::spawn_blocking(move || gzip(&body)).await.ok().flatten()
        }
    };
    let Some(compressed) = compressed else { return Response::from_parts(head, Either::Right(body.into())) };
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Either::Right(compressed.into()))
}

fn is_compressible(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_text = ["text/", "application/json", "application/openmetrics-text", "application/javascript"]
        .iter()
        .any(|begin| content.starts_with(begin));
    let is_picture = content.starts_with("image/svg+xml");
    let is_stream = content.starts_with("text/event-stream");
    (is_text || is_picture) && !is_stream && !headers.contains_key(CONTENT_ENCODING)
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn gzip_is_sent_to_those_who_accept_it() {
        for (header, accepted) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5, br", true),
            ("GZIP; q=1", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*", true),
            ("*;q=0", false),
            ("identity", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(header))]);
            assert_eq!(accepts_gzip(&headers), accepted, "{header:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    fn compressed(content: &'static str, bytes: usize) -> (HeaderMap, Vec<u8>) {
        let mut response = Response::new(Full::new(Bytes::from("x".repeat(bytes))));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (head, body) = runtime.block_on(compress(response)).into_parts();
        let body = runtime.block_on(body.collect()).unwrap().to_bytes();
        (head.headers, body.into())
    }

    #[test]
    fn long_text_is_compressed_and_nothing_else() {
        for bytes in [BYTES_MIN as usize, BYTES_HERE_MAX + 1] {
            let (headers, body) = compressed("text/plain; charset=utf-8", bytes);
            assert_eq!(
                (&headers[CONTENT_ENCODING], &headers[VARY]),
                (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
            );
            let mut text = String::new();
            flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text, "x".repeat(bytes));
        }
        for (content, bytes) in [("text/plain", 1023), ("image/png", 5000), ("text/event-stream", 5000)] {
            let (headers, body) = compressed(content, bytes);
            assert!(!headers.contains_key(CONTENT_ENCODING) && body.len() == bytes, "{content}");
        }
    }
}
