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

/// Serialises seconds since 1970, of which 0 stands for an unknown time, as null.
pub fn null_if_zero<S: serde::Serializer>(seconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&Some(seconds).filter(|seconds| **seconds != 0), serializer)
}
