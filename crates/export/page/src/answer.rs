use serde_json::{Value, json};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// Why a request cannot be answered, and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub status: u16,
    pub error: String,
    pub remedy: String,
}

impl Refused {
    /// The request is wrong.
    pub fn wrong(error: impl Into<String>, remedy: impl Into<String>) -> Refused {
        Refused { status: 400, error: error.into(), remedy: remedy.into() }
    }

    /// There is no such thing.
    pub fn not_found(error: impl Into<String>, remedy: impl Into<String>) -> Refused {
        Refused { status: 404, error: error.into(), remedy: remedy.into() }
    }
}

impl From<history::Error> for Refused {
    fn from(error: history::Error) -> Refused {
        if error.is_interrupted() {
            return Refused {
                status: 503,
                error: "the answer took too long to read from the history".to_owned(),
                remedy: "a shorter stretch of time, or the same again later".to_owned(),
            };
        }
        let remedy = "headroom history lists what is kept; the agent's log says more".to_owned();
        Refused { status: 503, error: error.to_string(), remedy }
    }
}

impl From<Result<Value, Refused>> for Answer {
    fn from(result: Result<Value, Refused>) -> Answer {
        match result {
            Ok(value) => Answer { status: 200, body: value.to_string() },
            Err(Refused { status, error, remedy }) => {
                Answer { status, body: json!({ "error": error, "try": remedy }).to_string() }
            }
        }
    }
}

/// A figure for a page: four digits, so that ten thousand of them are small; `None` where it is unknown or infinite.
pub(crate) fn short(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.is_finite())?;
    if value == 0.0 {
        return Some(0.0);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    // A power of ten that is a whole number is exact: 1.234, not 1.2340000000000002.
    let power = 10_f64.powi(digits.abs());
    let rounded = if digits >= 0 { (value * power).round() / power } else { (value / power).round() * power };
    Some(if rounded.is_finite() { rounded } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_four_digits_and_an_unknown_one_is_not_zero() {
        let shown = |value: f64| serde_json::to_string(&short(Some(value))).unwrap();
        assert_eq!(shown(1234.5678), "1235.0");
        assert_eq!(shown(0.012_345_6), "0.01235");
        assert_eq!(shown(12_345_678.9), "12350000.0");
        assert_eq!(shown(-2.5e-9), "-2.5e-9");
        assert_eq!((short(None), short(Some(f64::NAN)), short(Some(0.0))), (None, None, Some(0.0)));
    }
}
