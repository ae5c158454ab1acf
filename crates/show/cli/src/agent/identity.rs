//! `--instance` and `--label`: by what servers know this host, scraped or pushed to.

use super::AgentArgs;
use metrics::{ExtraLabels, Identity};
use std::collections::BTreeMap;
use terminal::Failure;

/// The longest name of a host is 253 bytes; a port follows.
const INSTANCE_BYTES_MAX: usize = 260;

/// `cluster=east`.
pub fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE, as in cluster=east")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// By the arguments, and by the file where they say nothing; a label of the arguments replaces that of the file.
pub fn new(
    args: &AgentArgs,
    instance: Option<String>,
    labels: BTreeMap<String, String>,
) -> Result<Identity, Failure> {
    let instance = args.instance.clone().or(instance).unwrap_or_else(host::hostname);
    if instance.is_empty() || instance.len() > INSTANCE_BYTES_MAX {
        return Err(Failure::usage(format_args!(
            "--instance has {} bytes: give 1 to {INSTANCE_BYTES_MAX}, as in db1",
            instance.len()
        )));
    }
    let given = args.label.iter().map(|(name, _)| name);
    let mut labels = labels;
    given.for_each(|name| drop(labels.remove(name)));
    let all = labels.into_iter().chain(args.label.iter().cloned());
    let labels = ExtraLabels::new(all).map_err(|why| Failure::usage(format_args!("--label: {why}")))?;
    Ok(Identity { instance, host: host::hostname(), labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_name_and_a_value_that_may_have_an_equals_sign() {
        assert_eq!(parse_label("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert!(parse_label("east").is_err());
    }
}
