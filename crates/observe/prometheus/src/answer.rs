//! Answers of a server: <https://prometheus.io/docs/prometheus/latest/querying/api/>.

use crate::Error;
use http_client::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The series.
    pub series: Vec<Series>,
    /// Parts that the server reports as missing, as Prometheus' remote read does of a server that gives nothing.
    pub warnings: Vec<String>,
    /// A part of the servers of a cluster gave nothing.
    pub is_partial: bool,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its labels, `__name__` included.
    pub labels: BTreeMap<String, String>,
    /// Times in seconds since 1970, and values; one of an instant query.
    pub points: Vec<(f64, f64)>,
}

/// `R` is a list of series, or any value: of an answer that is no list.
#[derive(Deserialize)]
struct Written<R> {
    status: String,
    data: Option<Data<R>>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default, rename = "isPartial")]
    is_partial: bool,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Data<R> {
    #[serde(rename = "resultType")]
    result_type: String,
    result: R,
}

#[derive(Deserialize)]
struct WrittenSeries<'a> {
    metric: BTreeMap<String, String>,
    #[serde(borrow)]
    value: Option<(f64, &'a str)>,
    #[serde(borrow, default)]
    values: Vec<(f64, &'a str)>,
}

/// The most series of an answer: ten volumes of 10,000 hosts.
pub const SERIES_MAX: usize = 100_000;
/// Words of an error that are shown at most.
const WHY_CHARS_MAX: usize = 200;
/// Prefix of warnings about the query itself in Prometheus since 2.52: they report no missing part.
const ABOUT_THE_QUERY: &str = "PromQL ";

/// Reads an answer.
pub(crate) fn parse(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Response, Error> {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Error::NotAllowed(status)),
        StatusCode::TOO_MANY_REQUESTS => {
            let after = headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
            return Err(Error::Busy { after_s: after });
        }
        _ => {}
    }
    if status.is_success() && has_too_many(body) {
        return Err(Error::TooMany(SERIES_MAX));
    }
    // Of thousands of series, reading them as what they are takes half of the time that reading them as any value does.
    if let Ok(written) = serde_json::from_slice::<Written<Vec<WrittenSeries<'_>>>>(body)
        && status.is_success()
        && written.status == "success"
    {
        return read(written);
    }
    // Values that are not looked at take no memory.
    let written: Result<Written<IgnoredAny>, _> = serde_json::from_slice(body);
    match written {
        Ok(Written { status: word, error, .. }) if word == "error" => {
            Err(Error::Query(shortened(&error.unwrap_or_else(|| "it does not say why".into()))))
        }
        Ok(written) if status.is_success() => Err(not_a_list(written)),
        _ if status == StatusCode::NOT_FOUND => Err(Error::NoApi),
        Err(error) if status.is_success() => {
            Err(Error::NotPrometheus(format!("{error}, in {:?}", beginning(body))))
        }
        _ => Err(Error::Refused { status, why: beginning(body) }),
    }
}

/// Whether a text has more series than are taken, by the key that each of them has. Counted before they are read: each takes
/// a kilobyte of memory.
fn has_too_many(body: &[u8]) -> bool {
    const KEY: &[u8] = b"\"metric\"";
    let keys = body.split(|byte| *byte == b':').filter(|part| part.trim_ascii_end().ends_with(KEY));
    keys.take(SERIES_MAX + 1).count() > SERIES_MAX
}

fn read(written: Written<Vec<WrittenSeries<'_>>>) -> Result<Response, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::NotPrometheus(why.to_string());
    let data = written.data.ok_or_else(|| wrong(&"it has no data"))?;
    if !matches!(data.result_type.as_str(), "vector" | "matrix") {
        return Err(wrong(&format_args!("its result is a {}", shortened(&data.result_type))));
    }
    let series = data.result.into_iter().map(|one| {
        let points = one.value.into_iter().chain(one.values);
        let point = |(at, value): (f64, &str)| {
            let value =
                value.parse().map_err(|_| wrong(&format_args!("{:?} is not a value", shortened(value))))?;
            Ok((at, value))
        };
        Ok(Series { labels: one.metric, points: points.map(point).collect::<Result<_, Error>>()? })
    });
    let warnings = written.warnings.into_iter().filter(|one| !one.starts_with(ABOUT_THE_QUERY));
    Ok(Response {
        series: series.collect::<Result<_, Error>>()?,
        warnings: warnings.map(|one| shortened(&one)).collect(),
        is_partial: written.is_partial,
    })
}

/// Why an answer is no list of series.
fn not_a_list(written: Written<IgnoredAny>) -> Error {
    if written.status != "success" {
        return Error::NotPrometheus(format!("its status is {:?}", shortened(&written.status)));
    }
    Error::NotPrometheus(match written.data {
        None => "it has no data".into(),
        Some(data) if matches!(data.result_type.as_str(), "vector" | "matrix") => {
            "its result is not a list of series".into()
        }
        Some(data) => format!("its result is a {}", shortened(&data.result_type)),
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(WHY_CHARS_MAX).collect()
}

fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * WHY_CHARS_MAX)]);
    shortened(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(status: u16, body: &str) -> Result<Response, Error> {
        parse(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn a_vector_and_a_matrix_are_read_with_their_labels() {
        let vector = parsed(
            200,
            r#"{"status":"success","data":{"resultType":"vector","result":[
                {"metric":{"__name__":"up","instance":"a"},"value":[1700000000.5,"+Inf"]},
                {"metric":{},"value":[1700000000.5,"NaN"]}]}}"#,
        );
        let vector = vector.unwrap().series;
        assert_eq!(vector[0].labels["instance"], "a");
        assert_eq!(vector[0].points, [(1_700_000_000.5, f64::INFINITY)]);
        assert!(vector[1].points[0].1.is_nan());
        let matrix = parsed(
            200,
            r#"{"status":"success","data":{"resultType":"matrix","result":[
                {"metric":{"instance":"a"},"values":[[1,"0.5"],[2,"0.75"]]}]}}"#,
        );
        assert_eq!(matrix.unwrap().series[0].points, [(1.0, 0.5), (2.0, 0.75)]);
    }

    #[test]
    fn an_answer_of_too_many_series_is_refused_before_it_is_read() {
        let series = |count: usize| {
            let all = vec![r#"{"metric" :{},"value":[1,"1"]}"#; count].join(",");
            format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{all}]}}}}"#)
        };
        assert_eq!(parsed(200, &series(SERIES_MAX)).unwrap().series.len(), SERIES_MAX);
        assert_eq!(parsed(200, &series(SERIES_MAX + 1)), Err(Error::TooMany(SERIES_MAX)));
    }

    #[test]
    fn an_answer_that_is_not_whole_says_so() {
        let empty = r#""data":{"resultType":"vector","result":[]}"#;
        let partial = parsed(200, &format!(r#"{{"status":"success","isPartial":true,{empty}}}"#)).unwrap();
        assert!(partial.is_partial && partial.warnings.is_empty());
        let warnings = r#""warnings":["remote read: no answer","PromQL warning: a quantile out of range"]"#;
        let warned = parsed(200, &format!(r#"{{"status":"success",{warnings},{empty}}}"#)).unwrap();
        assert_eq!(warned.warnings, ["remote read: no answer"]);
    }

    #[test]
    fn each_answer_that_is_none_is_an_error_of_its_own() {
        let error = |status: u16, body: &str| parsed(status, body).unwrap_err().to_string();
        assert!(error(401, "").contains("credential"));
        assert!(error(429, "").contains("429"));
        assert!(error(404, "404 page not found").contains("no API of Prometheus"));
        assert!(error(502, "<html>\nbad gateway").ends_with("502 Bad Gateway: <html>"));
        assert!(error(200, "<html>").contains("none of Prometheus' API"));
        assert!(error(200, r#"{"status":"success"}"#).contains("no data"));
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#;
        assert!(error(200, scalar).contains("scalar"));
        let timeout = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
        assert_eq!(error(503, timeout), "it cannot evaluate the query: query timed out");
        let word =
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}"#;
        assert!(error(200, word).contains("\"x\" is not a value"));
    }
}
