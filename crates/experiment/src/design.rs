//! Defaults that are fixed before the first segment.

use model::experiment::ExperimentPlan;
use model::units::Nanos;
use stats::pair::e_value::STOP_AT;
use stats::pair::verdict::RATE_MARGIN;

/// Number of pairs after which an experiment ends without a verdict.
pub const MOST_PAIRS: u32 = 16;

/// Least number of pairs: 7 of 7 reach the e-value, fewer cannot.
pub const LEAST_PAIRS: u32 = 7;

/// Limit of the number of pairs.
pub const ALLOWED_PAIRS: u32 = 400;

/// Time ignored after each switch.
pub const SETTLE: Nanos = Nanos(2_000_000_000);

/// Reciprocal of the largest share of dropped pairs.
pub const DROPPED_SHARE: u32 = 5;

/// Default plan; change, limit, seed, load and CPUs are the user's.
pub fn usual() -> ExperimentPlan {
    ExperimentPlan {
        settle_ns: SETTLE,
        most_pairs: MOST_PAIRS,
        stop_at: STOP_AT,
        rate_margin: RATE_MARGIN,
        p50_factor: 1.1,
        p50_ns: Nanos::MICRO,
        load_share: 0.8,
        interval_ns: Nanos(1_000_000),
        ..ExperimentPlan::default()
    }
}
