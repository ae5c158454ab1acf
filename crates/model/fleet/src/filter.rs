use std::fmt;
use std::str::FromStr;

/// A condition on a label: `cluster=a`, `cluster!=a`, `cluster=~"a|b"`, `cluster!~b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    name: String,
    operator: &'static str,
    value: String,
}

/// No condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no condition on a label; give NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX")]
pub struct WrongFilter;

impl Filter {
    /// The hosts whose instance is that name, with or without a port.
    pub fn of_host(host: &str) -> Filter {
        Filter { name: "instance".into(), operator: "=~", value: format!("{}(:[0-9]+)?", quoted(host)) }
    }

    /// The hosts with these instances.
    pub fn of_instances<'a>(instances: impl IntoIterator<Item = &'a str>) -> Filter {
        let quoted: Vec<String> = instances.into_iter().map(quoted).collect();
        Filter { name: "instance".into(), operator: "=~", value: quoted.join("|") }
    }
}

/// A regular expression for that text alone.
fn quoted(text: &str) -> String {
    text.chars()
        .flat_map(|each| {
            let special = !each.is_alphanumeric() && !matches!(each, '_' | '-' | ':');
            special.then_some('\\').into_iter().chain(std::iter::once(each))
        })
        .collect()
}

impl FromStr for Filter {
    type Err = WrongFilter;

    fn from_str(text: &str) -> Result<Filter, WrongFilter> {
        let begins = |each: char| each.is_ascii_alphabetic() || each == '_';
        let name: String = text.chars().take_while(|each| begins(*each) || each.is_ascii_digit()).collect();
        let rest = &text[name.len()..];
        if !name.starts_with(begins) {
            return Err(WrongFilter);
        }
        // The longer ones first.
        let operator = ["=~", "!~", "!=", "="].into_iter().find(|each| rest.starts_with(each));
        let operator = operator.ok_or(WrongFilter)?;
        let value = &rest[operator.len()..];
        let value = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
        Ok(Filter { name, operator, value: value.into() })
    }
}

/// As in a selector of PromQL.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        write!(f, "{}{}\"{value}\"", self.name, self.operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_is_read_and_a_value_cannot_end_the_selector() {
        let written = |text: &str| text.parse::<Filter>().map(|filter| filter.to_string());
        assert_eq!(written("cluster=a").unwrap(), "cluster=\"a\"");
        assert_eq!(written("cluster!=a").unwrap(), "cluster!=\"a\"");
        assert_eq!(written("cluster=~\"a|b\"").unwrap(), "cluster=~\"a|b\"");
        assert_eq!(written("cluster!~b.*").unwrap(), "cluster!~\"b.*\"");
        assert_eq!(written("a=\"} or up{x=").unwrap(), "a=\"\\\"} or up{x=\"");
        for wrong in ["", "cluster", "=a", "1a=b", "a b=c", "a>b"] {
            assert!(written(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_found_with_and_without_its_port() {
        assert_eq!(Filter::of_host("db1.example").to_string(), "instance=~\"db1\\\\.example(:[0-9]+)?\"");
        assert_eq!(Filter::of_host("db-1:9187").to_string(), "instance=~\"db-1:9187(:[0-9]+)?\"");
    }
}
