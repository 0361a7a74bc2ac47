//! CPUs on which the timer of the lockup detectors is armed: this shows whether they run if their
//! files must not be read.
//!
//! Source: kernel/time/timer_list.c for the text, and `watchdog_enable()` in kernel/watchdog.c for
//! the timer. The kernel prints it with each CPU's timers locked for some steps at a time, so it is
//! read only if nothing else shows it.

use super::line::{excerpt, parse_i64};
use super::uname::series;
use super::whole;
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;
use model::units::{Cpu, CpuSet};

const PATH: &str = "/proc/timer_list";
const THRESHOLD: &str = "/proc/sys/kernel/watchdog_thresh";

/// Files of the lockup detectors whose reading changes the effect of a later write.
///
/// On kernels that lack "always restore watchdog_softlockup(,hardlockup)_user_enabled after proc
/// show" (in 6.14), a read copies the settings in effect to the requested ones
/// (`proc_watchdog_common()` in kernel/watchdog.c). With no detector in effect, that forgets which
/// were requested: a later 1 in another of these files enables nothing. Each file does that to its
/// own setting, and reading one is the only way to find out which of them is safe to read.
pub const SWITCHES: [&str; 3] =
    ["/proc/sys/kernel/watchdog", "/proc/sys/kernel/soft_watchdog", "/proc/sys/kernel/nmi_watchdog"];

/// CPUs with such a timer; absent if there is no need to look.
pub fn read_watchdog_timers(host: &MachineFiles) -> Fact<CpuSet> {
    let release = whole::text(host, "/proc/sys/kernel/osrelease");
    let threshold = whole::text(host, THRESHOLD).parse(|text| parse_i64(&text));
    if restores(release.known().map(String::as_str)) || matches!(threshold, Fact::Absent | Fact::Known(0)) {
        return Fact::Absent;
    }
    let timers = host.unrecorded().read_text(PATH).parse(|text| parse_timer_list(&text));
    host.record_as(
        PATH,
        match &timers {
            // Its value is irrelevant, but not that it is malformed.
            Fact::Malformed(_) => Access::File(b"?\n".to_vec()),
            other => Access::of(other, |timers| Access::File(reduced(timers).into_bytes())),
        },
    );
    timers.map(|timers| timers.with_watchdog)
}

/// True if reading the switches changes nothing.
pub fn may_read_switches(host: &MachineFiles, timers: &Fact<CpuSet>) -> bool {
    // A copy of the files has no requested settings to forget.
    if !host.asks_the_kernel(SWITCHES[0]) {
        return true;
    }
    let release = whole::text(host, "/proc/sys/kernel/osrelease");
    let threshold = whole::text(host, THRESHOLD).parse(|text| parse_i64(&text));
    harmless(release.known().map(String::as_str), &threshold, timers)
}

/// True if the kernel restores the requested settings, has no detectors, or one is in effect.
fn harmless(release: Option<&str>, threshold: &Fact<i64>, timers: &Fact<CpuSet>) -> bool {
    restores(release) || *threshold == Fact::Absent || timers.known().is_some_and(|cpus| !cpus.is_empty())
}

/// True if the kernel of this release restores the requested settings; false for an unknown
/// release.
fn restores(release: Option<&str>) -> bool {
    release.and_then(series).is_some_and(|series| series >= (6, 14))
}

/// Resolution of timers in nanoseconds, by a copy of the list; on a running kernel, clock_getres(2)
/// answers, which locks nothing.
pub fn read_timer_resolution_ns(host: &MachineFiles) -> Fact<u64> {
    if host.asks_the_kernel(PATH) {
        return Fact::Absent;
    }
    let expected = || "expected .resolution: and a number of nsecs".to_owned();
    host.read_text(PATH).parse(|text| parse_resolution_ns(&text).ok_or_else(expected))
}

/// The first `.resolution:     1 nsecs` of `/proc/timer_list`: all its clocks have the same.
pub fn parse_resolution_ns(text: &str) -> Option<u64> {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(".resolution:"))?;
    found.trim().strip_suffix(" nsecs")?.trim().parse().ok().filter(|ns| *ns > 0)
}

/// Watchdog timers in a list of timers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// CPUs in the list.
    pub cpus: CpuSet,
    /// CPUs with a timer of the lockup detectors.
    pub with_watchdog: CpuSet,
}

/// Parses `/proc/timer_list`: each CPU with its timers, then the tick devices.
pub fn parse_timer_list(text: &str) -> Result<Timers, String> {
    let mut timers = Timers::default();
    let mut last = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(number) = line.strip_prefix("cpu: ") {
            let cpu = number.trim().parse().ok().filter(|&cpu| cpu < model::units::CPU_LIMIT).map(Cpu);
            last = Some(
                cpu.ok_or_else(|| format!("expected the number of a CPU, found '{}'", excerpt(number)))?,
            );
            timers.cpus.0.extend(last);
        } else if line.starts_with("Tick Device:") {
            // The list of timers is complete: other sections follow.
            return if timers.cpus.is_empty() {
                Err("expected the timers of some CPUs, found none".to_owned())
            } else {
                Ok(timers)
            };
        } else if let Some(function) = function(line) {
            if function.starts_with("0x") {
                return Err("it names no functions".to_owned());
            }
            // With link-time optimization a name can have a suffix: `.llvm.` and a number.
            if function.split('.').next() == Some("watchdog_timer_fn") {
                timers.with_watchdog.0.extend(last);
            }
        }
    }
    Err("expected a list of timers, found a truncated one".to_owned())
}

/// The function of a line such as ` #6: <0000000050032415>, watchdog_timer_fn, S:01`.
fn function(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix('#')?.split_once(": ")?;
    number.parse::<u32>().ok()?;
    Some(rest.split(", ").nth(1)?.trim())
}

fn reduced(timers: &Timers) -> String {
    let mut text = String::new();
    for cpu in timers.cpus.iter() {
        text += &format!("cpu: {cpu}\n");
        if timers.with_watchdog.contains(cpu) {
            text += " #0: <0>, watchdog_timer_fn, S:01\n";
        }
    }
    text + "Tick Device: mode:     1\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "Timer List Version: v0.10\nHRTIMER_MAX_CLOCK_BASES: 8\nnow at 12459609920408 nsecs\n\ncpu: 0\n clock 0:\n\
        \x20 .base:       00000000ec82188a\nactive timers:\n #0: <000000001196a4f6>, hrtimer_wakeup, S:01\n\
        \x20# expires at 12459610058766-12459610108766 nsecs [in 138358 to 188358 nsecs]\n\
        \x20#1: <0000000050032415>, watchdog_timer_fn, S:01\n # expires at 1-1 nsecs [in 1 to 1 nsecs]\n\
        cpu: 1\nactive timers:\n #0: <00000000690d3302>, tick_nohz_handler, S:01\n\nTick Device: mode:     1\nBroadcast device\n";

    #[test]
    fn the_detectors_timers_are_found_by_their_function() {
        let timers = parse_timer_list(LIST).unwrap();
        assert_eq!((timers.cpus.to_string(), timers.with_watchdog.to_string()), ("0-1".into(), "0".into()));
        assert_eq!(parse_timer_list(&reduced(&timers)), Ok(timers));
        let optimised = LIST.replace("watchdog_timer_fn", "watchdog_timer_fn.llvm.123");
        assert_eq!(parse_timer_list(&optimised).unwrap().with_watchdog.to_string(), "0");
        let another = LIST.replace("watchdog_timer_fn", "my_watchdog_timer_fn");
        assert!(parse_timer_list(&another).unwrap().with_watchdog.is_empty());
    }

    #[test]
    fn a_list_without_its_end_or_without_names_is_not_used() {
        let end = LIST.find("Tick Device").unwrap();
        for cut in (0..=end).filter(|&at| LIST.is_char_boundary(at)) {
            assert!(parse_timer_list(&LIST[..cut]).is_err(), "{cut}");
        }
        assert!(parse_timer_list(&LIST.replace("watchdog_timer_fn", "0xffffffff81234567")).is_err());
        assert!(parse_timer_list("Tick Device: mode: 1\n").is_err());
    }

    #[test]
    fn kernels_that_restore_are_known_by_their_series() {
        assert!(restores(Some("6.14.0")) && restores(Some("7.0.1")));
        for other in [Some("6.13.9"), Some("6.1.0-50-rt-amd64"), Some("x"), None] {
            assert!(!restores(other), "{other:?}");
        }
    }

    #[test]
    fn a_switch_is_read_only_where_that_changes_nothing() {
        let (ten, on) = (Fact::Known(10), Fact::Known(CpuSet::parse("0-3").unwrap()));
        let refused = Fact::Refused(libc::EACCES);
        assert!(harmless(Some("6.12.9"), &ten, &on));
        assert!(harmless(Some("6.14.0"), &ten, &refused));
        assert!(harmless(Some("6.12.9"), &Fact::Absent, &refused));
        for timers in [Fact::Known(CpuSet::default()), refused, Fact::Absent, Fact::Malformed("x".into())] {
            for threshold in [&ten, &Fact::Known(0), &Fact::Refused(libc::EACCES)] {
                assert!(!harmless(Some("6.12.9"), threshold, &timers), "{timers:?}");
                assert!(!harmless(None, threshold, &timers), "{timers:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "((cpu: | #[0-9]: <x>, |Tick Device:)?[\\PC]{0,12}\n){0,8}") {
            let _ = parse_timer_list(&text);
        }
    }
}
