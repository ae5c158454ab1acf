//! An XML document as a tree. diskspd escapes nothing, so that `&` and quotes in a path are taken as they are.

use crate::ImportError;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::str::FromStr;

/// An element. Bounds: [`DEPTH_MAX`] levels; the text bounds the rest.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub name: String,
    pub line: usize,
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Element>,
}

/// diskspd's own documents have nine.
const DEPTH_MAX: usize = 64;

/// The top elements of a text, and the lines in which anything else stands between them.
pub(super) fn parse(text: &str) -> Result<Vec<Element>, ImportError> {
    let text = &escaped(text);
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    reader.config_mut().expand_empty_elements = true;
    // Open elements, outermost first; the first is the document.
    let mut open = vec![Element { name: "document".into(), line: 1, ..Element::default() }];
    let (mut line, mut counted_to) = (1, 0);
    loop {
        let event = reader.read_event();
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
        let line_before = line;
        line += text.as_bytes()[counted_to..at.max(counted_to)].iter().filter(|byte| **byte == b'\n').count();
        counted_to = at.max(counted_to);
        match event {
            Ok(Event::Start(start)) => {
                if open.len() > DEPTH_MAX {
                    return Err(ImportError::at(
                        line,
                        format!("more than {DEPTH_MAX} elements in each other"),
                    ));
                }
                open.push(element(&start, line));
            }
            Ok(Event::End(_)) => close(&mut open),
            Ok(words @ (Event::Text(_) | Event::CData(_))) => {
                add_text(&mut open, &String::from_utf8_lossy(&words));
            }
            Ok(Event::GeneralRef(reference)) => {
                let name = String::from_utf8_lossy(&reference).into_owned();
                let escaped = format!("&{name};");
                let meant = quick_xml::escape::unescape(&escaped).map(std::borrow::Cow::into_owned);
                add_text(&mut open, &meant.unwrap_or(escaped));
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                let path = path(&open);
                return Err(ImportError::at(line_before.max(1), error.to_string())
                    .place(path)
                    .remedy("import the XML as diskspd printed it, whole"));
            }
        }
    }
    if open.len() > 1 {
        return Err(ImportError::at(line, "the XML ends within an element")
            .place(path(&open))
            .remedy("import the whole XML, this is cut off"));
    }
    Ok(open.pop().unwrap_or_default().children)
}

/// Every `&` that begins no reference stands for itself.
fn escaped(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut escaped = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let name = piece.split(';').next().filter(|name| name.len() < piece.len()).unwrap_or_default();
        let is_reference = matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
            || name
                .strip_prefix('#')
                .is_some_and(|number| number.bytes().all(|b| b.is_ascii_hexdigit() || b == b'x'));
        escaped.push_str(if is_reference { "&" } else { "&amp;" });
        escaped.push_str(piece);
    }
    escaped
}

fn element(start: &BytesStart<'_>, line: usize) -> Element {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut attributes = start.attributes();
    let attributes = attributes.with_checks(false).flatten();
    let attributes = attributes.map(|attribute| (lossy(attribute.key.as_ref()), lossy(&attribute.value)));
    Element {
        name: lossy(start.name().as_ref()),
        line,
        attributes: attributes.collect(),
        ..Element::default()
    }
}

fn close(open: &mut Vec<Element>) {
    if open.len() > 1
        && let Some(closed) = open.pop()
        && let Some(parent) = open.last_mut()
    {
        parent.children.push(closed);
    }
}

fn add_text(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn path(open: &[Element]) -> String {
    let names: Vec<&str> = open.iter().skip(1).map(|element| element.name.as_str()).collect();
    names.join("/")
}

impl Element {
    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The child, which must be there.
    pub fn wanted(&self, name: &str) -> Result<&Element, ImportError> {
        self.child(name).ok_or_else(|| {
            ImportError::at(self.line, format!("<{}> holds no <{name}>", self.name))
                .remedy("import the whole XML of diskspd -Rxml")
        })
    }

    /// The words in a child; `None` where it is not there or empty.
    pub fn words(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim()).filter(|text| !text.is_empty())
    }

    /// The number in a child; `None` where it is not there, or what Windows prints for "not a number".
    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ImportError> {
        match self.child(name) {
            None => Ok(None),
            Some(child) => number(child.line, name, &child.text),
        }
    }

    /// Whether a child says "true".
    pub fn is(&self, name: &str) -> bool {
        self.words(name) == Some("true")
    }

    /// An attribute's number.
    pub fn attribute<T: FromStr>(&self, name: &str) -> Result<Option<T>, ImportError> {
        match self.attributes.iter().find(|(key, _)| key == name) {
            None => Ok(None),
            Some((_, value)) => number(self.line, name, value),
        }
    }
}

fn number<T: FromStr>(line: usize, name: &str, text: &str) -> Result<Option<T>, ImportError> {
    let text = text.trim();
    if text.is_empty() || text.contains("nan") || text.contains("inf") || text.contains('#') {
        return Ok(None);
    }
    let wrong = || ImportError::at(line, format!("{name} '{text}' is not a number that fits here"));
    text.parse().map(Some).map_err(|_| wrong())
}
