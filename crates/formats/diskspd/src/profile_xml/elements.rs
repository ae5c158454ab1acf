//! XML as a tree of elements that know their lines: all that a profile needs of it.

use super::ProfileError;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Elements within elements, at most; a profile has nine.
const DEPTH_MAX: usize = 32;
/// Elements of a document, at most: a profile of 10,000 targets has half of them.
const ELEMENTS_MAX: usize = 1 << 20;

/// An element.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub line: usize,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    /// All text in it, unchanged there.
    pub text: String,
}

impl Element {
    pub fn error(&self, why: impl Into<String>) -> ProfileError {
        ProfileError { line: self.line, element: self.name.clone(), why: why.into() }
    }
}

/// Reads a document.
pub fn parse(xml: &str) -> Result<Element, ProfileError> {
    let xml = xml.strip_prefix('\u{feff}').unwrap_or(xml);
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut lines = Lines { xml: xml.as_bytes(), counted_to: 0, line: 1 };
    let (mut open, mut root, mut elements) = (Vec::<Element>::new(), None, 0_usize);
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let event = reader.read_event();
        let line = lines.at(start);
        let wrong = |open: &[Element], why: String| ProfileError {
            line,
            element: open.last().map_or("Profile".into(), |element| element.name.clone()),
            why,
        };
        match event.map_err(|error| wrong(&open, format!("this is no XML: {error}")))? {
            Event::Start(tag) => {
                elements += 1;
                if open.len() >= DEPTH_MAX || elements > ELEMENTS_MAX {
                    return Err(wrong(&open, "more elements than any profile has".into()));
                }
                let element = element(&tag, line).map_err(|why| wrong(&open, why))?;
                open.push(element);
            }
            Event::End(_) => {
                let Some(element) = open.pop() else {
                    return Err(wrong(&open, "an end without a beginning".into()));
                };
                close(element, &mut open, &mut root)?;
            }
            Event::Text(text) => {
                let text = text.xml_content().map_err(|error| wrong(&open, error.to_string()))?;
                add_text(&text, &mut open).map_err(|why| wrong(&open, why))?;
            }
            Event::CData(text) => {
                let text = text.xml_content().map_err(|error| wrong(&open, error.to_string()))?;
                add_text(&text, &mut open).map_err(|why| wrong(&open, why))?;
            }
            Event::GeneralRef(reference) => {
                let name = String::from_utf8_lossy(&reference).into_owned();
                let unknown = || wrong(&open, format!("&{name}; stands for nothing; write &amp; for an &"));
                let text = match reference.resolve_char_ref() {
                    Ok(Some(char)) => char.to_string(),
                    Ok(None) => resolve_predefined_entity(&name).ok_or_else(unknown)?.to_owned(),
                    Err(_) => return Err(unknown()),
                };
                add_text(&text, &mut open).map_err(|why| wrong(&open, why))?;
            }
            Event::DocType(_) => return Err(wrong(&open, "a profile has no DOCTYPE; leave it out".into())),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => {
                return match (open.pop(), root) {
                    (Some(element), _) => Err(element.error("it does not end")),
                    (None, Some(root)) => Ok(root),
                    (None, None) => Err(wrong(&open, "there is no element".into())),
                };
            }
        }
    }
}

fn element(tag: &BytesStart<'_>, line: usize) -> Result<Element, String> {
    let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| format!("in <{name}>: {error}"))?;
        let value = attribute.unescape_value().map_err(|error| format!("in <{name}>: {error}"))?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        if !key.starts_with("xmlns") && !key.contains(':') {
            attributes.push((key, value.into_owned()));
        }
    }
    Ok(Element { name, line, attributes, children: Vec::new(), text: String::new() })
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), ProfileError> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_some() => return Err(element.error("a second document; give one")),
        None => *root = Some(element),
    }
    Ok(())
}

fn add_text(text: &str, open: &mut [Element]) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("text outside of the profile".into()),
    }
    Ok(())
}

/// Counts lines once, forwards.
struct Lines<'a> {
    xml: &'a [u8],
    counted_to: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, offset: usize) -> usize {
        let offset = offset.clamp(self.counted_to, self.xml.len());
        self.line += self.xml[self.counted_to..offset].iter().filter(|byte| **byte == b'\n').count();
        self.counted_to = offset;
        self.line
    }
}
