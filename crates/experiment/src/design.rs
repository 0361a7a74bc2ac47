//! What is fixed before the first segment, where nothing else is asked for.

use model::experiment::ExperimentPlan;
use model::units::Nanos;
use stats::pair::e_value::STOP_AT;
use stats::pair::verdict::RATE_MARGIN;

/// Pairs after which an experiment ends without a verdict.
pub const MOST_PAIRS: u32 = 16;

/// Fewer than these cannot reach the e-value: 7 of 7 do.
pub const LEAST_PAIRS: u32 = 7;

/// Most pairs that may be asked for.
pub const ALLOWED_PAIRS: u32 = 400;

/// Left out behind each switch.
pub const SETTLE: Nanos = Nanos(2_000_000_000);

/// One dropped pair in so many is too many.
pub const DROPPED_SHARE: u32 = 5;

/// The usual rules; change, limit, seed, load and CPUs are the user's.
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
