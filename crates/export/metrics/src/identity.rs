//! The labels by which a server identifies a host: the same whether it scrapes the host or the host pushes.

use std::fmt;

/// The name of a host, and the labels added to those of all its series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The label `instance`.
    pub instance: String,
    /// The name of the host, as OTLP has it beside that.
    pub host: String,
    /// Further labels.
    pub labels: ExtraLabels,
}

/// Labels that are added to all series of a host, as `cluster="east"`: by name, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraLabels(Vec<(String, String)>);

/// The labels that Headroom gives its series itself, and those that servers give.
pub const OWN_LABELS: &[&str] = &[
    "class",
    "curve",
    "device",
    "from",
    "instance",
    "job",
    "kind",
    "layer",
    "le",
    "mount",
    "op",
    "outstanding",
    "parent",
    "part",
    "pattern",
    "reason",
    "resource",
    "source",
    "to",
    "type",
    "verdict",
    "version",
];

/// The most further labels: servers drop labels beyond 30, and each is in every series.
pub const EXTRA_LABELS_MAX: usize = 5;
/// The most bytes of a further label's value.
pub const LABEL_BYTES_MAX: usize = 200;

/// Why labels cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongLabel {
    /// It is no name of a label.
    Name(String),
    /// Headroom or the server gives this label.
    Own(String),
    /// It is given twice.
    Twice(String),
    /// Its value is empty or too long.
    Value(String),
    /// There are more than [`EXTRA_LABELS_MAX`].
    TooMany(usize),
}

impl ExtraLabels {
    /// Labels by name and value.
    ///
    /// # Errors
    /// [`WrongLabel`].
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<ExtraLabels, WrongLabel> {
        let mut labels: Vec<(String, String)> = pairs.into_iter().collect();
        labels.sort_unstable();
        for (name, value) in &labels {
            if !is_name(name) {
                return Err(WrongLabel::Name(name.clone()));
            }
            if OWN_LABELS.contains(&name.as_str()) {
                return Err(WrongLabel::Own(name.clone()));
            }
            if value.is_empty() || value.len() > LABEL_BYTES_MAX {
                return Err(WrongLabel::Value(name.clone()));
            }
        }
        if let Some(twice) = labels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(WrongLabel::Twice(twice[0].0.clone()));
        }
        match labels.len() {
            0..=EXTRA_LABELS_MAX => Ok(ExtraLabels(labels)),
            more => Err(WrongLabel::TooMany(more)),
        }
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// As Prometheus has it; two underscores begin names that servers use.
fn is_name(name: &str) -> bool {
    let begins = |each: char| each.is_ascii_alphabetic() || each == '_';
    name.starts_with(begins)
        && name.chars().all(|each| begins(each) || each.is_ascii_digit())
        && !name.starts_with("__")
}

impl fmt::Display for WrongLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongLabel::Name(name) => {
                write!(f, "{name:?} is not a name of a label; give letters, digits and _, as in cluster=east")
            }
            WrongLabel::Own(name) => {
                write!(f, "the label {name} is Headroom's own or the server's; give another name")
            }
            WrongLabel::Twice(name) => write!(f, "the label {name} is given twice; give it once"),
            WrongLabel::Value(name) => {
                write!(f, "the value of the label {name} must have 1 to {LABEL_BYTES_MAX} bytes")
            }
            WrongLabel::TooMany(count) => {
                write!(f, "{count} labels: give up to {EXTRA_LABELS_MAX}, each is in every series")
            }
        }
    }
}

impl std::error::Error for WrongLabel {}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Result<ExtraLabels, WrongLabel> {
        ExtraLabels::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn labels_are_by_name_and_none_can_replace_another() {
        let two = labels(&[("cluster", "east"), ("b_2", "\"x\\")]).unwrap();
        assert_eq!(two.iter().collect::<Vec<_>>(), [("b_2", "\"x\\"), ("cluster", "east")]);
        assert_eq!(labels(&[("mount", "/x")]), Err(WrongLabel::Own("mount".into())));
        assert_eq!(labels(&[("a", "1"), ("a", "2")]), Err(WrongLabel::Twice("a".into())));
        for wrong in ["", "1a", "a-b", "__name__", "é", "a b"] {
            assert_eq!(labels(&[(wrong, "x")]), Err(WrongLabel::Name(wrong.into())));
        }
        assert_eq!(labels(&[("a", "")]), Err(WrongLabel::Value("a".into())));
        assert_eq!(labels(&[("a", &"x".repeat(201))]), Err(WrongLabel::Value("a".into())));
        assert_eq!(
            labels(&["a", "b", "c", "d", "e", "f"].map(|name| (name, "x"))),
            Err(WrongLabel::TooMany(6))
        );
    }
}
