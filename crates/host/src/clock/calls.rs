//! Clocks that rustix reads more slowly than the C library, or panics over when a filter of system
//! calls refuses them.

#![allow(unsafe_code)]

#[cfg(target_env = "musl")]
use std::mem::MaybeUninit;

use model::units::Nanos;

/// CLOCK_MONOTONIC by the C library's function.
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

/// What a clock shows, through the vDSO where it has that clock; none where a filter of system
/// calls refuses it.
#[cfg(target_pointer_width = "64")]
pub fn clock_time(clock: libc::clockid_t) -> Option<Nanos> {
    // SAFETY: the function writes the one structure whose address it is given, or fails.
    filled(|time| unsafe { libc::clock_gettime(clock, time) })
}

/// What a clock shows; none where a filter of system calls refuses it.
///
/// Not from the C library, whose seconds may have 32 bits: those of CLOCK_REALTIME end in 2038.
#[cfg(target_pointer_width = "32")]
pub fn clock_time(clock: libc::clockid_t) -> Option<Nanos> {
    let known = rustix::time::DynamicClockId::Known(clock.try_into().ok()?);
    let time = rustix::time::clock_gettime_dynamic(known).ok()?;
    Some(Nanos(time.tv_sec * 1_000_000_000 + i64::from(time.tv_nsec)))
}

/// How many seconds the clock of this machine's zone is ahead of UTC at a time since the Epoch
/// (tzset(3)): by `$TZ`, else by /etc/localtime; none where the C library cannot tell.
pub fn utc_offset_s(since_epoch_s: i64) -> Option<i32> {
    // musl's alias is to become wider, and is what the function takes until then.
    #[allow(deprecated)]
    let time = libc::time_t::try_from(since_epoch_s).ok()?;
    let mut fields = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both are locals that outlive the call; it fills the structure, or gives a null.
    let filled = unsafe { !libc::localtime_r(&time, fields.as_mut_ptr()).is_null() };
    // SAFETY: all zeros is a value of it, too.
    let fields = unsafe { fields.assume_init() };
    filled.then(|| i32::try_from(fields.tm_gmtoff).ok()).flatten()
}

/// The resolution of a clock; none where a filter of system calls refuses it.
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
