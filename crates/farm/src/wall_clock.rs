//! The time of this machine.

use model::units::Nanos;

/// A day in seconds.
pub const DAY: i64 = 86_400;

/// Seconds since 1970.
pub fn now() -> i64 {
    now_ns().0.div_euclid(Nanos::SECOND.0)
}

/// The same in ns.
pub fn now_ns() -> Nanos {
    host::clock::monotonic() + host::clock::wall_offset()
}
