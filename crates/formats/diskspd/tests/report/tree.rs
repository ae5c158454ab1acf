//! XML as scripts see it: elements by their path.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Element>,
}

/// The document element in a nameless one, as PowerShell's `[xml]` has it.
pub fn read(xml: &str) -> Element {
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => open.push(element(&tag)),
            Event::Empty(tag) => open.last_mut().unwrap().children.push(element(&tag)),
            Event::End(_) => {
                let mut closed = open.pop().unwrap();
                closed.text = closed.text.trim().to_string();
                open.last_mut().unwrap().children.push(closed);
            }
            Event::Text(text) => open.last_mut().unwrap().text += &text.decode().unwrap(),
            Event::GeneralRef(name) => {
                let entity = format!("&{};", name.decode().unwrap());
                open.last_mut().unwrap().text += &quick_xml::escape::unescape(&entity).unwrap();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open.len(), 1);
    open.remove(0)
}

fn element(tag: &BytesStart<'_>) -> Element {
    let attribute = |found: quick_xml::events::attributes::Attribute<'_>| {
        let name = String::from_utf8(found.key.as_ref().to_vec()).unwrap();
        (name, found.unescape_value().unwrap().into_owned())
    };
    Element {
        name: String::from_utf8(tag.name().as_ref().to_vec()).unwrap(),
        attributes: tag.attributes().map(|found| attribute(found.unwrap())).collect(),
        ..Element::default()
    }
}

impl Element {
    /// All elements at a path of names, of all parents, as `$x.Results.TimeSpan.Thread` finds them.
    pub fn all(&self, path: &str) -> Vec<&Element> {
        path.split('.').fold(vec![self], |parents, name| {
            parents.iter().flat_map(|parent| &parent.children).filter(|child| child.name == name).collect()
        })
    }

    pub fn numbers(&self, path: &str) -> Vec<f64> {
        self.all(path).iter().map(|found| found.text.parse().unwrap()).collect()
    }

    pub fn number(&self, path: &str) -> f64 {
        *self.numbers(path).first().unwrap_or_else(|| panic!("nothing at {path}"))
    }

    pub fn sum(&self, path: &str) -> f64 {
        self.numbers(path).iter().sum()
    }

    pub fn attribute(&self, name: &str) -> f64 {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1.parse().unwrap()
    }

    pub fn names(&self) -> Vec<&str> {
        self.children.iter().map(|child| child.name.as_str()).collect()
    }
}
