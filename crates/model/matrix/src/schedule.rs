use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::time::Duration;
use workload::{RunLength, parse_duration};

/// How the runs of a matrix follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunSchedule {
    /// Of each run, not measured.
    pub warm_up: Time,
    /// Of each run, measured.
    pub duration: Time,
    /// Of each run, after the measured part.
    pub cool_down: Time,
    /// Runs of each point, at most.
    pub repeats: u32,
    /// Order of the runs.
    pub order: Order,
    /// All seeds and random orders follow from this one.
    pub seed: u64,
    /// Points beyond saturation are skipped: where four times the outstanding I/Os gained less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune_percent: Option<f64>,
    /// Time for all of it; `None`: every point is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Time>,
}

/// Order of the runs. Repeats are whole passes over the points in either case, so that a drift over time
/// shows as disagreement of the repeats and not as a difference between points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As the axes are written: targets outermost, then pattern, writes, block, threads, outstanding.
    #[default]
    Listed,
    /// Shuffled in each pass, by the seed.
    Random,
}

/// A time, written as "500ms" or "2m"; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl RunSchedule {
    /// How long each run goes on.
    pub fn length(&self) -> RunLength {
        RunLength {
            warm_up: self.warm_up.0,
            duration: self.duration.0,
            cool_down: self.cool_down.0,
            ios_max: None,
        }
    }
}

impl Default for RunSchedule {
    fn default() -> RunSchedule {
        let seconds = |seconds| Time(Duration::from_secs(seconds));
        RunSchedule {
            warm_up: seconds(1),
            duration: seconds(10),
            cool_down: seconds(0),
            repeats: 1,
            order: Order::Listed,
            seed: 0,
            prune_percent: None,
            budget: None,
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = self.0.as_micros();
        let text = match micros {
            _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
            _ if micros.is_multiple_of(1_000) => format!("{}ms", micros / 1_000),
            _ => format!("{micros}us"),
        };
        serializer.serialize_str(&text)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a time as in \"500ms\", \"15s\" or \"2m\", or seconds")]
        enum Written {
            Whole(u64),
            Fraction(f64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Whole(seconds) => seconds.to_string(),
            Written::Fraction(seconds) => seconds.to_string(),
            Written::Text(text) => text,
        };
        parse_duration(&text).map(Time).map_err(D::Error::custom)
    }
}
