//! XML as diskspd writes it: an element a line, indented by two spaces a level.

use std::fmt::{Display, Write};

/// Names and values of attributes.
pub(crate) type Attributes<'a> = [(&'a str, &'a dyn Display)];

/// XML being written.
#[derive(Default)]
pub(crate) struct Xml {
    pub text: String,
    pub depth: usize,
}

impl Xml {
    pub fn within(&mut self, name: &str, inside: impl FnOnce(&mut Xml)) {
        self.within_with(name, &[], inside);
    }

    pub fn within_with(&mut self, name: &str, attributes: &Attributes<'_>, inside: impl FnOnce(&mut Xml)) {
        self.tag(name, attributes, ">");
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line(format_args!("</{name}>"));
    }

    pub fn empty(&mut self, name: &str, attributes: &Attributes<'_>) {
        self.tag(name, attributes, "/>");
    }

    fn tag(&mut self, name: &str, attributes: &Attributes<'_>, end: &str) {
        let attributes: String =
            attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escaped(value))).collect();
        self.line(format_args!("<{name}{attributes}{end}"));
    }

    pub fn leaf(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("<{name}>{}</{name}>", escaped(&value)));
    }

    /// Writes an element that diskspd writes only if it has a value.
    pub fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.leaf(name, value);
        }
    }

    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let indent = 2 * self.depth;
        writeln!(self.text, "{:indent$}{line}", "").expect("a string takes any text");
    }
}

/// As text that XML takes: markup as entities, control characters, which XML has no way to say, as `?`.
fn escaped(value: &dyn Display) -> String {
    let text: String = value.to_string();
    let allowed = |c: char| if c.is_control() && !matches!(c, '\t' | '\n' | '\r') { '?' } else { c };
    let text: String = text.chars().map(allowed).collect();
    quick_xml::escape::escape(&text).into_owned()
}
