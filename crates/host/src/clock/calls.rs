//! Clocks that rustix reads more slowly than the C library, or on which it panics if a filter of
//! system calls refuses them.

#![allow(unsafe_code)]

#[cfg(target_env = "musl")]
use std::mem::MaybeUninit;

use model::units::Nanos;

/// CLOCK_MONOTONIC through the C library.
#[cfg(target_env = "musl")]
#[inline(always)]
pub fn musl_monotonic() -> Nanos {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock exists on every Linux, so that the call fills the structure.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    // Widened where the C library has 32 bits.
    #[allow(clippy::unnecessary_cast)]
    Nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// Time of a clock, through the vDSO if it has that clock; none if a filter of system calls refuses
/// it.
#[cfg(target_pointer_width = "64")]
pub fn clock_time(clock: libc::clockid_t) -> Option<Nanos> {
    // SAFETY: the function writes the one structure whose address it is given, or fails.
    filled(|time| unsafe { libc::clock_gettime(clock, time) })
}

/// Time of a clock; none if a filter of system calls refuses it.
///
/// Bypasses the C library, whose 32-bit seconds of CLOCK_REALTIME may end in 2038.
#[cfg(target_pointer_width = "32")]
pub fn clock_time(clock: libc::clockid_t) -> Option<Nanos> {
    let known = rustix::time::DynamicClockId::Known(clock.try_into().ok()?);
    let time = rustix::time::clock_gettime_dynamic(known).ok()?;
    Some(Nanos(time.tv_sec * 1_000_000_000 + i64::from(time.tv_nsec)))
}

/// Offset of local time from UTC in seconds, at a time since the Epoch (tzset(3)): from `$TZ`, else
/// /etc/localtime; none if the C library cannot compute it.
pub fn utc_offset_s(since_epoch_s: i64) -> Option<i32> {
    // musl's alias will become wider; until then it is the type that the function takes.
    #[allow(deprecated)]
    let time = libc::time_t::try_from(since_epoch_s).ok()?;
    let mut fields = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both are locals that outlive the call; it fills the structure, or returns null.
    let filled = unsafe { !libc::localtime_r(&time, fields.as_mut_ptr()).is_null() };
    // SAFETY: all zeros is a valid value of the structure.
    let fields = unsafe { fields.assume_init() };
    filled.then(|| i32::try_from(fields.tm_gmtoff).ok()).flatten()
}

/// Resolution of a clock; none if a filter of system calls refuses it.
pub fn clock_resolution(clock: libc::clockid_t) -> Option<Nanos> {
    // SAFETY: the function writes the one structure whose address it is given, or fails.
    filled(|time| unsafe { libc::clock_getres(clock, time) })
}

fn filled(call: impl FnOnce(&mut libc::timespec) -> libc::c_int) -> Option<Nanos> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Widened where the C library has 32 bits.
    #[allow(clippy::unnecessary_cast)]
    (call(&mut time) == 0).then(|| Nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_clock_gives_none() {
        assert!(clock_time(libc::CLOCK_THREAD_CPUTIME_ID).is_some_and(|time| time.0 > 0));
        assert!(clock_resolution(libc::CLOCK_MONOTONIC).is_some_and(|time| time.0 > 0));
        assert_eq!((clock_time(15), clock_resolution(15)), (None, None), "no such clock");
    }
}
