//! Runs as test results, for systems that collect those: a run against a limit; and tables for
//! analysis engines.

pub mod kcidb;
pub mod lava;
pub mod parquet;

use model::units::Nanos;

use crate::records::FarmRun;

/// Result of a run against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// It is complete and valid, and nothing was later. This is not a prediction.
    Within,
    /// Something was later.
    Over,
    /// It is a measurement without a limit.
    Measured,
    /// It is invalid, or ended early.
    Void,
}

impl RunResult {
    /// A run that was ended early and was over the limit by then is over it.
    pub fn of(run: &FarmRun, limit: Option<Nanos>) -> RunResult {
        match (limit, run.max_ns) {
            _ if run.invalid > 0 => RunResult::Void,
            (Some(limit), Some(max)) if max > limit => RunResult::Over,
            (_, None) => RunResult::Void,
            _ if !run.complete => RunResult::Void,
            (Some(_), Some(_)) => RunResult::Within,
            (None, Some(_)) => RunResult::Measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_run_that_counts_is_within_a_limit() {
        let of = |max: Option<i64>, complete, invalid, limit: Option<i64>| {
            let run = FarmRun { max_ns: max.map(Nanos), complete, invalid, ..FarmRun::default() };
            RunResult::of(&run, limit.map(Nanos))
        };
        assert_eq!(of(Some(5), true, 0, Some(5)), RunResult::Within);
        assert_eq!(of(Some(6), true, 0, Some(5)), RunResult::Over);
        assert_eq!(of(Some(6), false, 0, Some(5)), RunResult::Over);
        assert_eq!(of(Some(4), false, 0, Some(5)), RunResult::Void);
        assert_eq!(of(Some(6), true, 1, Some(5)), RunResult::Void);
        assert_eq!(of(None, true, 0, Some(5)), RunResult::Void);
        assert_eq!(of(Some(4), true, 0, None), RunResult::Measured);
    }
}
