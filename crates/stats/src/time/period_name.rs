//! Activities that run with a given period on Linux: hints, "compatible with" and never "caused
//! by".
//!
//! Each name is a default that the kernel's documentation or source gives, or arithmetic; a system
//! may have set others. Most periodic work is none of these.

use model::sort::CompactSort;

/// Relative difference of a period from a name, in addition to three standard errors, for clock
/// drift and timers that are re-armed late.
const RELATIVE: f64 = 0.002;

/// Period in ns and its activity, with the source above it.
const NAMES: &[(f64, &str)] = &[
    // kernel/time/clocksource.c, WATCHDOG_INTERVAL: HZ / 2, on one CPU after the other.
    (0.5e9, "the clocksource watchdog (0.5 s, from CPU to CPU)"),
    (1e9, "a timer of 1 s"),
    // Documentation/admin-guide/sysctl/vm.rst, stat_interval.
    (1e9, "the update of memory statistics (vm.stat_interval, 1 s)"),
    // Documentation/scheduler/sched-rt-group.rst.
    (1e9, "the throttling of real-time tasks (kernel.sched_rt_period_us, 1 s)"),
    (2.048e9, "a timer of 2048 ms, a power of two"),
    // kernel/watchdog.c, set_sample_period: a fifth of twice kernel.watchdog_thresh, which is 10 s.
    (4e9, "the lockup detector (2/5 of kernel.watchdog_thresh, 4 s)"),
    // Documentation/admin-guide/sysctl/vm.rst, dirty_writeback_centisecs; mm/page-writeback.c.
    (5e9, "the writeback of dirty pages (vm.dirty_writeback_centisecs, 5 s)"),
    (10e9, "a timer of 10 s"),
    // Documentation/admin-guide/mm/transhuge.rst, scan_sleep_millisecs.
    (10e9, "khugepaged (scan_sleep_millisecs, 10 s)"),
    (30e9, "a timer of 30 s"),
    // One minute is the resolution of crontab(5).
    (60e9, "a cron job or systemd timer of one minute"),
    // arch/x86/kernel/cpu/mce/core.c, check_interval; halved while errors are found.
    (300e9, "the polling for machine checks (check_interval, 5 min)"),
    (300e9, "a cron job or systemd timer of five minutes"),
    (600e9, "a cron job or systemd timer of ten minutes"),
    (900e9, "a cron job or systemd timer of a quarter of an hour"),
    (1800e9, "a cron job or systemd timer of half an hour"),
    (3600e9, "a cron job or systemd timer of one hour"),
];

/// Activities with which a period in ns and its standard error are compatible, nearest first; `hz`
/// is the kernel's CONFIG_HZ.
pub fn compatible(period_ns: f64, se_ns: f64, hz: Option<u32>) -> Vec<String> {
    let tick = hz.filter(|&hz| hz > 0).map(|hz| (1e9 / f64::from(hz), format!("the tick (1/{hz} s)")));
    let all = tick.into_iter().chain(NAMES.iter().map(|&(nominal, name)| (nominal, name.to_owned())));
    let off = |nominal: f64| (period_ns - nominal).abs();
    let mut close: Vec<(f64, String)> =
        all.filter(|&(nominal, _)| off(nominal) <= 3.0 * se_ns.max(0.0) + RELATIVE * nominal).collect();
    close.compact_sort_by(|a, b| off(a.0).total_cmp(&off(b.0)));
    close.into_iter().map(|(_, name)| name).collect()
}

/// A period in seconds with as many digits as its standard error allows: up to the error's first.
pub fn spoken(period_s: f64, se_s: f64) -> String {
    // Below a tenth of a second in milliseconds, so that no digits are spent on zeros; none below a
    // nanosecond.
    let (unit, name, most) = if period_s >= 0.1 { (1.0, "s", 9) } else { (1e3, "ms", 6) };
    let digits = |error: f64| (-(error * unit).log10().floor()).clamp(0.0, f64::from(most)) as usize;
    let digits = if se_s > 0.0 { digits(se_s) } else { most as usize };
    // An error as large as the period leaves one digit of it.
    let first = digits.max((-(period_s * unit).log10().floor()).clamp(0.0, f64::from(most)) as usize);
    format!("{:.first$} {name}", period_s * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_the_digits_that_its_error_allows() {
        for (period, error, name) in [
            (0.48731, 2e-5, "0.48731 s"),
            (0.487309391, 2.2e-6, "0.487309 s"),
            (20.3, 0.05, "20.30 s"),
            (20.3, 0.5, "20.3 s"),
            (60.0, 3.0, "60 s"),
            (60.0, 30.0, "60 s"),
            (0.004, 1e-8, "4.00000 ms"),
            (0.0123, 0.0, "12.300000 ms"),
            (0.2, 0.9, "0.2 s"),
            (0.002, 0.9, "2 ms"),
            (1.0, f64::NAN, "1.000000000 s"),
        ] {
            assert_eq!(spoken(period, error), name, "{period} {error}");
        }
        spoken(f64::NAN, f64::INFINITY);
    }

    #[test]
    fn names_are_within_their_bounds() {
        let minute = ["a cron job or systemd timer of one minute"];
        assert_eq!(compatible(60.1e9, 0.0, None), minute);
        assert_eq!(compatible(60.13e9, 0.0, None), [""; 0]);
        assert_eq!(compatible(60.13e9, 0.005e9, None), minute);
        assert_eq!(compatible(4.001e6, 0.0, Some(250)), ["the tick (1/250 s)"]);
        assert_eq!(compatible(4.001e6, 0.0, Some(1000)), [""; 0]);
        assert_eq!(compatible(1e9, 1e3, Some(0)).len(), 3);
        assert_eq!(compatible(f64::NAN, 1.0, Some(1)), [""; 0]);
    }

    #[test]
    fn the_nearest_comes_first() {
        let names = compatible(4.4e9, 0.3e9, None);
        assert!(names[0].contains("lockup") && names[1].contains("writeback"), "{names:?}");
    }
}
