//! Requests that a page of another site makes in the browser of someone who may read this one.
//!
//! Such a page cannot read an answer (no CORS), but each request costs something. Browsers say where a request comes from: all
//! current ones by `Sec-Fetch-Site` (<https://www.w3.org/TR/fetch-metadata/>), where the address is a loopback one or TLS is
//! used; else some requests have an `Origin`. Programs such as Prometheus send neither.
//!
//! A link from another site, as from a dashboard, opens the page. It does not open the data below `/api/`, and no frame.

use hyper::Request;
use hyper::header::{HeaderMap, ORIGIN};

/// Below it is data, for the page's own scripts.
const DATA: &str = "/api/";

/// Whether a request comes from a page of another site. `host` is the host that the request is for; `is_named` says whether a
/// name is one that the user gave this host: a proxy may change the header Host, and not Origin.
pub(crate) fn is_cross_site<B>(
    request: &Request<B>,
    host: Option<&str>,
    is_named: impl Fn(&str) -> bool,
) -> bool {
    let headers = request.headers();
    let mut sites = values(headers, "sec-fetch-site").peekable();
    if sites.peek().is_some() {
        // Another port of this host is same-site: it is another program's.
        let is_own = sites.all(|site| matches!(site, "same-origin" | "none"));
        return !is_own && (!opens_a_page(headers) || request.uri().path().starts_with(DATA));
    }
    let is_own = |origin: &str| {
        let Some((_, authority)) = origin.split_once("://") else { return false };
        host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) || is_named(authority)
    };
    !values(headers, ORIGIN.as_str()).all(is_own)
}

/// Whether the answer is shown in a tab or window of its own.
fn opens_a_page(headers: &HeaderMap) -> bool {
    values(headers, "sec-fetch-mode").eq(["navigate"])
        && values(headers, "sec-fetch-dest").all(|kind| kind == "document")
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(path: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        is_cross_site(&request, Some("localhost:9187"), |name| name == "db.example")
    }

    #[test]
    fn a_request_of_this_page_or_of_a_program_is_answered_and_one_of_another_site_is_not() {
        for (headers, refused) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")], false),
            (&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")], false),
            (&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], true),
            (&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")], true),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "")], true),
            // The browser knows better than a proxy that changed the name of the host.
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://headroom.example")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://localhost:9187")], true),
            (&[("origin", "http://localhost:9187")], false),
            (&[("origin", "http://LOCALHOST:9187")], false),
            (&[("origin", "https://db.example")], false),
            (&[("origin", "http://localhost:3000")], true),
            (&[("origin", "http://localhost")], true),
            (&[("origin", "http://evil.example")], true),
            (&[("origin", "http://localhost:9187.evil.example")], true),
            (&[("origin", "http://localhost:9187"), ("origin", "http://evil.example")], true),
            (&[("origin", "null")], true),
            (&[("origin", "")], true),
        ] {
            for path in ["/", "/api/v1/state", "/metrics"] {
                assert_eq!(is_refused(path, headers), refused, "{path} {headers:?}");
            }
        }
    }

    #[test]
    fn a_link_from_another_site_opens_the_page_and_neither_its_data_nor_a_frame() {
        let link = |path: &str, site: &str, into: &str| {
            is_refused(
                path,
                &[("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", into)],
            )
        };
        for site in ["cross-site", "same-site"] {
            assert!(!link("/", site, "document") && !link("/metrics", site, "document"));
            assert!(link("/api/v1/state", site, "document"));
            for into in ["iframe", "frame", "object", "embed"] {
                assert!(link("/", site, into), "{into}");
            }
        }
    }
}
