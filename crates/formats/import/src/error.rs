use std::fmt;

/// A text that cannot be read: where, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Line of the text, from 1.
    pub line: Option<usize>,
    /// Column in that line, from 1.
    pub column: Option<usize>,
    /// Element, job or file of the error: "Results/TimeSpan[2]/Thread[1]".
    pub place: Option<String>,
    /// The reason of the error.
    pub reason: String,
    /// The remedy.
    pub remedy: Option<String>,
}

impl ImportError {
    pub(crate) fn new(reason: impl Into<String>) -> ImportError {
        ImportError { line: None, column: None, place: None, reason: reason.into(), remedy: None }
    }

    pub(crate) fn at(line: usize, reason: impl Into<String>) -> ImportError {
        ImportError { line: Some(line), ..ImportError::new(reason) }
    }

    pub(crate) fn column(self, column: usize) -> ImportError {
        ImportError { column: Some(column), ..self }
    }

    pub(crate) fn place(self, place: impl Into<String>) -> ImportError {
        ImportError { place: Some(place.into()), ..self }
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> ImportError {
        ImportError { remedy: Some(remedy.into()), ..self }
    }
}

/// "line 12, column 3: Results/TimeSpan[1]: '1x' is not a number".
impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            _ => {}
        }
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ImportError {}
