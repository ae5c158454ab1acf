//! Numbers of outstanding I/Os that a sweep takes.

use capability::{Point, StorageLimits};
use workload::{Shape, Workload};

/// The steps of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steps {
    /// These, rising.
    Listed(Vec<u32>),
    /// By earlier results, up to this many.
    Adaptive { outstanding_max: u32 },
}

/// More steps are a mistake.
const STEPS_MAX: usize = 1000;
/// How far an adaptive sweep goes where nothing is said.
const ADAPTIVE_MAX: u32 = 1024;

impl Steps {
    /// The next, after those points by rising N; `None` at the end.
    pub fn next(&self, points: &[Point], shape: &Shape, around: &StorageLimits) -> Option<u32> {
        match self {
            Steps::Listed(steps) => steps.get(points.len()).copied(),
            Steps::Adaptive { outstanding_max } => {
                measure::next_step(points, shape, *outstanding_max, around)
            }
        }
    }

    /// Number of steps after the first `taken` and the next; `None` where it depends.
    pub fn left(&self, taken: usize) -> Option<usize> {
        match self {
            Steps::Listed(steps) => Some(steps.len().saturating_sub(taken + 1)),
            Steps::Adaptive { .. } => None,
        }
    }
}

const FORM: &str = "8:256:8, 1:256:geometric, 8,16,32, adaptive or adaptive:256";

/// `FROM:TO:STEP`, `FROM:TO:geometric`, a list, `adaptive`.
pub fn steps(text: &str) -> Result<Steps, String> {
    let number = |text: &str| match text.parse::<u32>() {
        Ok(number) if (1..=Workload::OUTSTANDING_MAX).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is not a number from 1 to {}; give {FORM}", Workload::OUTSTANDING_MAX)),
    };
    let parts: Vec<&str> = text.split(':').collect();
    let steps = match parts.as_slice() {
        ["adaptive"] => return Ok(Steps::Adaptive { outstanding_max: ADAPTIVE_MAX }),
        ["adaptive", most] => return Ok(Steps::Adaptive { outstanding_max: number(most)? }),
        [list] => {
            let mut listed = list.split(',').map(number).collect::<Result<Vec<u32>, String>>()?;
            listed.sort_unstable();
            listed.dedup();
            listed
        }
        [from, to, "geometric"] => {
            let (from, to) = (number(from)?, number(to)?);
            std::iter::successors(Some(from), |at| at.checked_mul(2)).take_while(|at| *at <= to).collect()
        }
        [from, to, step] => {
            let (from, to, step) = (number(from)?, number(to)?, number(step)?);
            (from..=to).step_by(step as usize).collect()
        }
        _ => return Err(format!("give {FORM}")),
    };
    match steps.len() {
        0 => Err(format!("{text} has no steps: FROM is above TO; give {FORM}")),
        many if many > STEPS_MAX => Err(format!("{text} has {many} steps: {STEPS_MAX} are the most")),
        _ => Ok(Steps::Listed(steps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_people_write_them() {
        let listed = |text: &str| match steps(text) {
            Ok(Steps::Listed(steps)) => steps,
            other => panic!("{other:?}"),
        };
        let studied = listed("8:256:8");
        assert_eq!((studied.len(), studied[0], studied[31]), (32, 8, 256));
        assert_eq!(listed("1:100:geometric"), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(listed("32,8,8,16"), [8, 16, 32]);
        assert_eq!(steps("adaptive:64"), Ok(Steps::Adaptive { outstanding_max: 64 }));
        for wrong in ["", "0:8:1", "16:8:1", "8:256:0", "1:16384:1", "8:9:10:11", "many"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }
}
