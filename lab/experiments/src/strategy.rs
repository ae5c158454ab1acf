use std::fmt;
use std::str::FromStr;

/// How a crashed engine is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Serves immediately; pages are written in the background.
    Instant,
    /// Reads the log first, then writes many pages at the same time, one sync.
    Wide,
    /// As [`Strategy::Wide`], through a memory mapping of the data file: the kernel writes the pages back.
    Mapped,
    /// Reads the log in large blocks, then writes page by page, one sync.
    Prefetch,
    /// Small reads, page by page, many syncs.
    Serial,
    /// The only one that the engine has.
    Own,
}

impl Strategy {
    /// All that an engine may offer for choice.
    pub const ALL: [Strategy; 5] =
        [Strategy::Instant, Strategy::Wide, Strategy::Mapped, Strategy::Prefetch, Strategy::Serial];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Instant => "instant",
            Strategy::Wide => "wide",
            Strategy::Mapped => "mapped",
            Strategy::Prefetch => "prefetch",
            Strategy::Serial => "serial",
            Strategy::Own => "own",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Strategy, String> {
        let strategy = Strategy::ALL.into_iter().find(|strategy| strategy.name() == text);
        let all = Strategy::ALL.map(Strategy::name).join(", ");
        strategy.ok_or_else(|| format!("there is no strategy '{text}'; give {all}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_is_parsed_from_its_name_and_own_cannot_be_chosen() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        assert!("own".parse::<Strategy>().unwrap_err().contains("prefetch"));
    }
}
