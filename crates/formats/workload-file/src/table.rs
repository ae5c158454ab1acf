//! One table of a file: its keys are taken one by one, and what is left at the end is not known.

use crate::error::FileError;
use crate::values::Wrong;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table with its place in the text.
pub struct Table<'t> {
    text: &'t str,
    /// Where it begins, for what concerns all of it.
    line: usize,
    name: String,
    entries: BTreeMap<&'t str, (Range<usize>, &'t DeValue<'t>)>,
    known: Vec<&'static str>,
}

/// The words of other tools, for who comes from there.
const ELSEWHERE: [(&str, &str); 22] = [
    ("bs", "block"),
    ("block-size", "block"),
    ("blocksize", "block"),
    ("bssplit", "sizes"),
    ("rw", "pattern"),
    ("readwrite", "pattern"),
    ("rwmixwrite", "writes"),
    ("write-share", "writes"),
    ("iodepth", "outstanding"),
    ("queue-depth", "outstanding"),
    ("numjobs", "threads"),
    ("runtime", "duration"),
    ("time", "duration"),
    ("ramp-time", "warm-up"),
    ("warmup", "warm-up"),
    ("from", "offset"),
    ("size", "length"),
    ("rate-iops", "limit"),
    ("randseed", "seed"),
    ("filename", "target"),
    ("fsync", "sync"),
    ("number-ios", "ios"),
];

impl<'t> Table<'t> {
    pub(crate) fn new(
        text: &'t str,
        name: impl Into<String>,
        at: &Range<usize>,
        table: &'t DeTable<'t>,
    ) -> Table<'t> {
        let entries =
            table.iter().map(|(key, value)| (key.get_ref().as_ref(), (key.span(), value.get_ref())));
        Table {
            text,
            line: line_of(text, at.start),
            name: name.into(),
            entries: entries.collect(),
            known: Vec::new(),
        }
    }

    /// A single value, whatever TOML takes it for: `8192` and `"8K"` are read alike.
    ///
    /// # Errors
    /// Where it is no single value, or `read` refuses it.
    pub fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, Wrong>,
    ) -> Result<Option<T>, FileError> {
        let Some((at, value)) = self.remove(key) else { return Ok(None) };
        let line = line_of(self.text, at.start);
        let wrong = |wrong| FileError::new(line, key, wrong);
        let text: Cow<'_, str> = match value {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().into(),
            DeValue::Float(number) => number.as_str().into(),
            DeValue::Boolean(yes) => yes.to_string().into(),
            other => {
                let reason = format!("a single value belongs here, not {}", kind_of(other));
                return Err(wrong(Wrong::new(
                    reason,
                    format!(
                        "write one value, as in {key} = \"...\"; headroom run --print-file prints a file"
                    ),
                )));
            }
        };
        read(&text).map(Some).map_err(wrong)
    }

    /// A list of texts; empty where the key is not there.
    pub fn strings(&mut self, key: &'static str) -> Result<Vec<String>, FileError> {
        let Some((at, value)) = self.remove(key) else { return Ok(Vec::new()) };
        let texts = match value {
            DeValue::Array(array) => {
                array.iter().map(|each| each.get_ref().as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        texts.ok_or_else(|| {
            let wrong = Wrong::new("a list of texts belongs here", format!("write {key} = [\"…\", \"…\"]"));
            FileError::new(line_of(self.text, at.start), key, wrong)
        })
    }

    /// A table in this one.
    ///
    /// # Errors
    /// Where the key is something else.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Table<'t>>, FileError> {
        let Some((at, value)) = self.remove(key) else { return Ok(None) };
        match value {
            DeValue::Table(table) => Ok(Some(Table::new(self.text, key, &at, table))),
            other => {
                let reason = format!("a table belongs here, not {}", kind_of(other));
                let wrong = Wrong::new(reason, format!("write [{key}], or {key} = {{ … }}"));
                Err(FileError::new(line_of(self.text, at.start), key, wrong))
            }
        }
    }

    /// The tables of an array, `[[key]]`.
    ///
    /// # Errors
    /// Where the key is something else.
    pub fn tables(&mut self, key: &'static str, heading: &str) -> Result<Vec<Table<'t>>, FileError> {
        let Some((at, value)) = self.remove(key) else { return Ok(Vec::new()) };
        let wrong = |line, other: &DeValue<'_>| {
            let reason = format!("tables belong here, not {}", kind_of(other));
            FileError::new(
                line,
                key,
                Wrong::new(reason, format!("write {heading}, with a line for each key below it")),
            )
        };
        let DeValue::Array(array) = value else { return Err(wrong(line_of(self.text, at.start), value)) };
        let table = |each: &'t Spanned<DeValue<'t>>| match each.get_ref() {
            DeValue::Table(table) => Ok(Table::new(self.text, heading, &each.span(), table)),
            other => Err(wrong(line_of(self.text, each.span().start), other)),
        };
        array.iter().map(table).collect()
    }

    /// Remaining entries, in the order of the text: for a table whose keys are names.
    pub(crate) fn rest(&mut self) -> Vec<(&'t str, usize, &'t DeValue<'t>)> {
        let mut rest: Vec<_> = std::mem::take(&mut self.entries).into_iter().collect();
        rest.sort_by_key(|(_, (at, _))| at.start);
        rest.into_iter().map(|(name, (at, value))| (name, line_of(self.text, at.start), value)).collect()
    }

    /// Whether the key is there, taken or not yet read.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Something is wrong with all of it.
    #[must_use]
    pub fn wrong(&self, wrong: Wrong) -> FileError {
        FileError::new(self.line, self.name.as_str(), wrong)
    }

    /// Checks that every key was read, so that no key is ignored silently.
    ///
    /// # Errors
    /// Names the first key that was not read.
    pub fn finish(mut self) -> Result<(), FileError> {
        let name = self.name.clone();
        let known = std::mem::take(&mut self.known);
        let Some((key, line, _)) = self.rest().into_iter().next() else { return Ok(()) };
        let remedy = match nearest(key, &known) {
            Some(nearest) => format!("{nearest}, if that is meant"),
            None => format!("one of {}", known.join(", ")),
        };
        let reason = format!("there is no such key in {name}");
        Err(FileError::new(line, key, Wrong::new(reason, remedy)))
    }

    fn remove(&mut self, key: &'static str) -> Option<(Range<usize>, &'t DeValue<'t>)> {
        self.known.push(key);
        self.entries.remove(key)
    }
}

/// The first line is 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The known word that was probably meant.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
    if let Some(ours) = elsewhere.filter(|ours| known.contains(ours)) {
        return Some(ours);
    }
    let closest = known.iter().map(|each| (distance(&word, each), *each)).min()?;
    (closest.0 <= 1 + word.chars().count() / 4).then_some(closest.1)
}

/// Insertions, deletions and replacements from one word to the other (Levenshtein 1965).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.chars().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (column, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_and_the_words_of_other_tools_are_understood() {
        let known = ["block", "writes", "outstanding", "warm-up"];
        assert_eq!(nearest("outstandng", &known), Some("outstanding"));
        assert_eq!(nearest("warm_up", &known), Some("warm-up"));
        assert_eq!(nearest("iodepth", &known), Some("outstanding"));
        assert_eq!(nearest("numjobs", &known), None, "there are no threads here");
        assert_eq!(nearest("zzz", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
