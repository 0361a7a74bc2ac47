//! The sentences: conditions, integrity, limits. Values become words only here and in the tables.

use crate::bundle::run::{Integrity, Run};
use crate::units::{CpuSet, Nanos};

/// What stands where a number is not known.
pub const UNKNOWN: &str = "\u{2013}";
const NOT_KNOWN: &str = "not known";

/// A foreign string without the characters that would steer a terminal, break a line or a CSV
/// comment, or turn the direction of the text around it.
pub fn clean(text: &str) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            // Not allowed in XML, so a picture with one would not open.
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Microseconds with one decimal, as the field writes latencies.
pub fn us(latency: Nanos) -> String {
    let tenths = (i128::from(latency.0) + if latency.0 < 0 { -50 } else { 50 }) / 100;
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
}

/// As [`us`], with a dash for what is not known.
pub fn us_or_dash(latency: Option<Nanos>) -> String {
    latency.map_or_else(|| UNKNOWN.to_string(), us)
}

/// A number, with a dash for what is not known.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| UNKNOWN.to_string(), |value| value.to_string())
}

/// A latency with its unit: `41.3 us`.
pub fn span(latency: Nanos) -> String {
    let text = latency.to_string();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

/// A length of time as people say it: `1 h 2 min`, `2 min 5 s`, `10.0 s`, `350 ms`.
pub fn duration(length: Nanos) -> String {
    let s = length.0.max(0) / Nanos::SECOND.0;
    match s {
        0 => span(length),
        1..100 => format!("{:.1} s", length.as_secs()),
        100..3_600 => two_units(s, ("min", 60), ("s", 1)),
        3_600..86_400 => two_units(s, ("h", 3_600), ("min", 60)),
        _ => two_units(s, ("d", 86_400), ("h", 3_600)),
    }
}

fn two_units(s: i64, (large, size): (&str, i64), (small, part): (&str, i64)) -> String {
    match s % size / part {
        0 => format!("{} {large}", s / size),
        rest => format!("{} {large} {rest} {small}", s / size),
    }
}

/// The wall time of an event: without its date where that is the run's own.
pub fn time_of_day(time: &str, started: &str) -> String {
    let Some((date, rest)) = time.split_once('T') else { return clean(time) };
    let end = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let clock: String = rest[..end].chars().take(12).collect();
    if started.split_once('T').is_some_and(|(day, _)| day == date) {
        return clean(&clock);
    }
    clean(&format!("{date} {clock}"))
}

/// A name with its letter for one and for several.
pub fn several(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

fn known(text: &str) -> String {
    if text.is_empty() { NOT_KNOWN.into() } else { clean(text) }
}

/// Policy and priority: `SCHED_FIFO, priority 80`.
pub fn policy(run: &Run) -> String {
    match (run.plan.policy.as_str(), run.plan.priority) {
        ("other", _) => "SCHED_OTHER (no real-time priority)".into(),
        ("", _) => NOT_KNOWN.into(),
        (name, Some(priority)) => format!("SCHED_{}, priority {priority}", clean(name).to_uppercase()),
        (name, None) => format!("SCHED_{}, priority not known", clean(name).to_uppercase()),
    }
}

/// Which preemption model the kernel has.
pub fn preemption(run: &Run) -> String {
    match run.host.preempt.as_str() {
        "rt" => "PREEMPT_RT".into(),
        "full" => "PREEMPT (full)".into(),
        "lazy" => "PREEMPT_LAZY".into(),
        "voluntary" => "PREEMPT_VOLUNTARY".into(),
        "none" => "PREEMPT_NONE".into(),
        "unknown" => NOT_KNOWN.into(),
        other => known(other),
    }
}

/// Where the timer expires, which decides who may delay it.
pub fn expiry(run: &Run) -> String {
    match run.plan.expiry.as_str() {
        "hard-irq" => "hard interrupt".into(),
        "softirq-thread" => {
            "a softirq thread (ktimers, FIFO 1 on PREEMPT_RT): a busy thread of higher priority delays it"
                .into()
        }
        _ => NOT_KNOWN.into(),
    }
}

fn wake(run: &Run) -> String {
    match run.plan.wake.as_str() {
        "nanosleep" => "clock_nanosleep, absolute time".into(),
        "timerfd" => "a blocking read of a timerfd".into(),
        "signal" => "the signal of a POSIX timer".into(),
        "futex" => "the timeout of a futex".into(),
        other => known(other),
    }
}

fn phase(run: &Run) -> String {
    match (run.plan.phase.as_str(), run.plan.seed) {
        ("staggered", _) => "staggered over the interval".into(),
        ("aligned", _) => "aligned: all CPUs at the same instant".into(),
        ("dither", Some(seed)) => format!("dithered: each slot moved at random (seed {seed})"),
        ("dither", None) => "dithered: each slot moved at random".into(),
        (other, _) => known(other),
    }
}

fn idle(run: &Run) -> String {
    match run.plan.idle.as_str() {
        "held" => "kept shallow (/dev/cpu_dma_latency held at 0)".into(),
        "as-is" => "as is: leaving idle states is part of the latency".into(),
        other => known(other),
    }
}

fn virtualization(run: &Run) -> String {
    match run.host.virtualization.as_str() {
        "" => NOT_KNOWN.into(),
        "none" => "no".into(),
        name => format!("yes, {}: what the hypervisor takes is part of the latency", clean(name)),
    }
}

fn interval(run: &Run) -> String {
    match (run.plan.interval_ns, run.plan.distance_ns) {
        (None, _) => NOT_KNOWN.into(),
        (Some(interval), Some(step)) if step.0 != 0 => {
            format!("{}, and {} more for each further CPU", span(interval), span(step))
        }
        (Some(interval), _) => span(interval),
    }
}

fn length(run: &Run) -> String {
    let measured = run.elapsed_ns.map_or_else(|| NOT_KNOWN.into(), duration);
    let why = match run.ended.as_str() {
        "signal" => ", ended by a signal",
        "limit" => ", ended by the latency limit",
        "error" => ", ended by an error",
        _ => "",
    };
    match run.plan.duration_ns {
        Some(planned) if run.ended != "duration" || !run.complete => {
            format!("{measured} of {} planned{why}", duration(planned))
        }
        _ => format!("{measured}{why}"),
    }
}

/// A set of CPUs in the kernel's notation.
pub fn cpu_list(cpus: impl IntoIterator<Item = crate::units::Cpu>) -> String {
    let set: CpuSet = cpus.into_iter().collect();
    if set.is_empty() { NOT_KNOWN.into() } else { set.to_string() }
}

fn kernel(run: &Run) -> String {
    if run.host.machine.is_empty() {
        return known(&run.host.release);
    }
    format!("{} ({})", known(&run.host.release), clean(&run.host.machine))
}

/// The conditions that are known, and the names of those that are not, which is most of an import's.
pub fn known_conditions(run: &Run) -> (Vec<(&'static str, String)>, Vec<&'static str>) {
    let (known, unknown): (Vec<_>, Vec<_>) =
        conditions(run).into_iter().partition(|(_, value)| value != NOT_KNOWN);
    (known, unknown.into_iter().map(|(name, _)| name).collect())
}

/// The conditions of the measurement, the ones that decide what the numbers mean first.
pub fn conditions(run: &Run) -> Vec<(&'static str, String)> {
    vec![
        ("kernel", kernel(run)),
        ("preemption", preemption(run)),
        ("policy", policy(run)),
        ("woken by", wake(run)),
        ("timer expires in", expiry(run)),
        ("interval", interval(run)),
        ("phase", phase(run)),
        ("idle", idle(run)),
        ("clocksource", known(&run.host.clocksource)),
        ("virtual machine", virtualization(run)),
        ("measured CPUs", cpu_list(run.cpus.iter().map(|cpu| cpu.cpu))),
        ("housekeeping", cpu_list(run.plan.housekeeping.iter().copied())),
        ("started", known(&run.started)),
        ("length", length(run)),
    ]
}

/// What a test of this length cannot say.
pub fn limits(run: &Run) -> Option<String> {
    let length = run.elapsed_ns.filter(|length| length.0 > 0)?;
    Some(format!(
        "What these numbers cannot say: a mechanism rarer than about once per {} (a third of the test) may not have occurred in the {} that were measured.",
        duration(Nanos(length.0 / 3)),
        duration(length)
    ))
}

/// That the run was cut short, where it was.
pub fn incomplete(run: &Run) -> Option<String> {
    if run.complete {
        return None;
    }
    let reach = run.elapsed_ns.map_or_else(String::new, |length| format!(" after {}", duration(length)));
    Some(format!("INCOMPLETE: the run did not come to its end; the numbers stop{reach}."))
}

/// An integrity entry as a sentence.
pub fn integrity(entry: &Integrity) -> String {
    let place = entry.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let detail = if entry.detail.is_empty() { String::new() } else { format!(": {}", clean(&entry.detail)) };
    format!("{}{place}{detail}", clean(&entry.kind))
}

/// Samples whose value an import does not carry, and the wake-ups that came early.
pub fn oddities(run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    for cpu in &run.cpus {
        if let Some(n) = cpu.overflows.filter(|&n| n > 0) {
            let what = several(n, "sample", "samples");
            notes.push(format!("CPU {}: {what} beyond the histogram's end, values unknown.", cpu.cpu));
        }
        if let Some(n) = cpu.early.filter(|&n| n > 0) {
            let down = cpu
                .min_ns
                .filter(|min| min.0 < 0)
                .map(|min| format!(", by up to {}", span(Nanos(min.0.saturating_neg()))));
            let what = several(n, "wake-up", "wake-ups");
            notes.push(format!("CPU {}: {what} before the time{}.", cpu.cpu, down.unwrap_or_default()));
        }
    }
    notes
}

/// The tool's own cost, as far as it is known.
pub fn overhead(run: &Run) -> Vec<(&'static str, String)> {
    let o = &run.overhead;
    let rows = [
        ("one read of the clock", o.clock_read_ns.map(span)),
        ("one turn of the loop without its sleep", o.loop_ns.map(span)),
        ("flight recorder, per cycle", o.recorder_ns_per_cycle.map(span)),
        ("housekeeping wake-ups per second", o.housekeeping_wakeups_per_s.map(|n| format!("{n:.1}"))),
        ("peak memory", o.max_rss_kib.map(|n| format!("{:.1} MiB", n as f64 / 1024.0))),
        (
            "seconds joined because housekeeping came late",
            o.blocks_joined.filter(|&n| n > 0).map(|n| n.to_string()),
        ),
        ("seconds that could not be written", o.blocks_unwritten.filter(|&n| n > 0).map(|n| n.to_string())),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

/// The machine, beyond what the conditions say; only what is known.
pub fn environment(run: &Run) -> Vec<(&'static str, String)> {
    let h = &run.host;
    let number = |n: Option<i64>| n.map_or_else(String::new, |n| n.to_string());
    let rows = [
        ("processor", h.model.clone()),
        ("kernel build", h.kernel.clone()),
        ("kernel command line", h.cmdline.clone()),
        ("online CPUs", h.online.clone()),
        ("isolated CPUs", h.isolated.clone()),
        ("nohz_full CPUs", h.nohz_full.clone()),
        ("SMT siblings", h.siblings.join("; ")),
        ("cpufreq governor", h.governor.clone()),
        ("cpufreq driver", h.cpufreq_driver.clone()),
        ("cpuidle driver", h.cpuidle_driver.clone()),
        ("idle states", h.idle_states.join(", ")),
        ("real-time runtime in us (-1: no limit)", number(h.rt_runtime_us)),
        ("real-time period in us", number(h.rt_period_us)),
        (
            "fair server's runtime",
            h.fair_server_runtime_ns
                .map_or_else(String::new, |n| span(Nanos(n.try_into().unwrap_or(i64::MAX)))),
        ),
        ("cgroup's real-time runtime in us", number(h.cgroup_rt_runtime_us)),
        (
            "high-resolution timers",
            h.high_res_timers.map_or_else(String::new, |on| if on { "yes" } else { "no" }.into()),
        ),
        ("tick frequency in Hz", h.hz.map_or_else(String::new, |hz| hz.to_string())),
    ];
    rows.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, clean(&value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn latencies_are_microseconds_with_one_decimal() {
        for (ns, text) in [(0, "0.0"), (1_249, "1.2"), (1_250, "1.3"), (-60, "-0.1"), (7_123_456, "7123.5")] {
            assert_eq!(us(Nanos(ns)), text);
        }
        assert_eq!(us(Nanos(i64::MIN)), "-9223372036854775.8");
        assert_eq!(us_or_dash(None), UNKNOWN);
        assert_eq!(span(Nanos(41_300)), "41.3 us");
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        for (ns, text) in [
            (350_000_000, "350 ms"),
            (10_000_123_456, "10.0 s"),
            (125_000_000_000, "2 min 5 s"),
            (3_603_000_000_000, "1 h"),
            (3_725_000_000_000, "1 h 2 min"),
            (200_000_000_000_000, "2 d 7 h"),
        ] {
            assert_eq!(duration(Nanos(ns)), text);
        }
    }

    #[test]
    fn times_lose_the_date_they_share_with_the_start() {
        let started = "2026-11-21T09:00:00Z";
        assert_eq!(time_of_day("2026-11-21T09:12:31.123456Z", started), "09:12:31.123");
        assert_eq!(time_of_day("2026-11-22T00:00:01Z", started), "2026-11-22 00:00:01");
        assert_eq!(time_of_day("yesterday\u{1b}[31m", started), "yesterday\u{fffd}[31m");
        assert_eq!(time_of_day("", started), "");
        assert_eq!(time_of_day("2026-11-21Té", started), "é");
    }

    #[test]
    fn words_never_promise() {
        for sample in fixture::all() {
            let mut text: String = conditions(&sample.run).into_iter().map(|(_, value)| value).collect();
            text += &limits(&sample.run).unwrap_or_default();
            assert!(!text.to_lowercase().contains("guarantee") && !text.contains("WCET"));
        }
    }

    #[test]
    fn an_import_knows_little_and_says_so() {
        let run = fixture::import().run;
        let conditions = conditions(&run);
        let of = |name: &str| conditions.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        assert_eq!(of("timer expires in"), "not known");
        assert_eq!(of("policy"), "not known");
        assert!(oddities(&run)[0].contains("3 samples beyond the histogram's end, values unknown"));
    }
}
