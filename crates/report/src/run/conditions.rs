//! Conditions of a measurement, its cost and its machine, as names with values in words.

use super::{policy, probes};
use crate::words::{MachineClock, below_noise, clean, duration, span};
use model::keyword::Word;
use model::run::Run;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::{Ended, Expiry, IdleStates, Preempt, Probe, SchedulePhase, WakeMechanism};

pub(super) use super::policy::NOT_KNOWN;

fn or_unknown(text: &str) -> String {
    if text.is_empty() { NOT_KNOWN.into() } else { clean(text) }
}

/// Preemption model of the kernel.
pub fn preemption(run: &Run) -> String {
    match &run.host.preempt {
        Word::Known(Preempt::Rt) => "PREEMPT_RT".into(),
        Word::Known(Preempt::Full) => "PREEMPT (full)".into(),
        Word::Known(Preempt::Lazy) => "PREEMPT_LAZY".into(),
        Word::Known(Preempt::Voluntary) => "PREEMPT_VOLUNTARY".into(),
        Word::Known(Preempt::None) => "PREEMPT_NONE".into(),
        Word::Known(Preempt::Unknown) => NOT_KNOWN.into(),
        Word::Other(other) => or_unknown(other),
    }
}

/// Context in which the timer expires, which decides what may delay it.
pub fn expiry(run: &Run) -> String {
    match run.plan.expiry.known() {
        Some(Expiry::HardIrq) => "hard interrupt".into(),
        Some(Expiry::SoftirqThread) => {
            "a softirq thread (ktimers, FIFO 1 on PREEMPT_RT): a busy thread of higher priority delays it"
                .into()
        }
        Some(Expiry::Unknown) | None => NOT_KNOWN.into(),
    }
}

fn wake(run: &Run) -> String {
    match &run.plan.wake {
        Word::Known(WakeMechanism::Nanosleep) => "clock_nanosleep, absolute time".into(),
        Word::Known(WakeMechanism::Timerfd) => "a blocking read of a timerfd".into(),
        Word::Known(WakeMechanism::Signal) => "the signal of a POSIX timer".into(),
        Word::Known(WakeMechanism::Futex) => "the timeout of a futex".into(),
        Word::Other(other) => or_unknown(other),
    }
}

fn phase(run: &Run) -> String {
    match (&run.plan.phase, run.plan.seed) {
        (Word::Known(SchedulePhase::Staggered), _) => "staggered over the interval".into(),
        (Word::Known(SchedulePhase::Aligned), _) => "aligned: all CPUs at the same instant".into(),
        (Word::Known(SchedulePhase::Dither), Some(seed)) => {
            format!("dithered: each slot moved at random (seed {seed})")
        }
        (Word::Known(SchedulePhase::Dither), None) => "dithered: each slot moved at random".into(),
        (Word::Other(other), _) => or_unknown(other),
    }
}

fn idle(run: &Run) -> String {
    match &run.plan.idle {
        Word::Known(IdleStates::Held) => "kept shallow (/dev/cpu_dma_latency held at 0)".into(),
        Word::Known(IdleStates::AsIs) => "unchanged: leaving idle states is part of the latency".into(),
        Word::Other(other) => or_unknown(other),
    }
}

fn virtualization(run: &Run) -> String {
    match run.host.virtualization.as_str() {
        "" => NOT_KNOWN.into(),
        "none" => "no".into(),
        name => format!("yes, {}: time taken by the hypervisor is part of the latency", clean(name)),
    }
}

fn interval(run: &Run) -> String {
    match (run.plan.interval_ns, run.plan.distance_ns) {
        (None, _) => NOT_KNOWN.into(),
        (Some(interval), Some(step)) if step.0 != 0 => {
            format!("{}, plus {} for each further CPU", span(interval), span(step))
        }
        (Some(interval), _) => span(interval),
    }
}

fn length(run: &Run) -> String {
    let measured = run.elapsed_ns.map_or_else(|| NOT_KNOWN.into(), duration);
    let why = match run.ended.known() {
        Some(Ended::Signal) => ", ended by a signal",
        Some(Ended::Limit) => ", ended by the latency limit",
        Some(Ended::Error) => ", ended by an error",
        _ => "",
    };
    match run.plan.duration_ns {
        Some(planned) if run.ended != Ended::Duration || !run.complete => {
            format!("{measured} of {} planned{why}", duration(planned))
        }
        _ => format!("{measured}{why}"),
    }
}

/// Start to the second, in the measuring machine's zone.
fn started(run: &Run) -> String {
    MachineClock::of(run).start(run).unwrap_or_else(|| or_unknown(&run.started))
}

/// Set of CPUs in the kernel's notation.
pub fn cpu_list(cpus: impl IntoIterator<Item = Cpu>) -> String {
    let set: CpuSet = cpus.into_iter().collect();
    if set.is_empty() { NOT_KNOWN.into() } else { set.to_string() }
}

/// CPUs of the measured threads; for threads that a probe does not bind, all that they may run on.
fn measured_cpus(run: &Run) -> String {
    let free = run.probe().is_some() && run.primary().all(|cpu| cpu.cpu.is_none());
    let planned = run.plan.cpus.iter().copied().filter(|_| free);
    cpu_list(run.primary().filter_map(|cpu| cpu.cpu).chain(planned))
}

fn kernel(run: &Run) -> String {
    if run.host.machine.is_empty() {
        return or_unknown(&run.host.release);
    }
    format!("{} ({})", or_unknown(&run.host.release), clean(&run.host.machine))
}

/// Known conditions, and the names of the unknown ones, which are most of an import's.
pub fn known_conditions(run: &Run) -> (Vec<(&'static str, String)>, Vec<&'static str>) {
    let (known, unknown): (Vec<_>, Vec<_>) =
        conditions(run).into_iter().partition(|(_, value)| value != NOT_KNOWN);
    (known, unknown.into_iter().map(|(name, _)| name).collect())
}

/// Conditions of the measurement, those that decide the meaning of the numbers first.
pub fn conditions(run: &Run) -> Vec<(&'static str, String)> {
    let probe = probes::definition(run).map(|words| ("probe", words));
    // Conditions that do not affect samples of a probe.
    let apart: &[&str] = match run.probe() {
        None => &[],
        Some(Probe::Spin | Probe::Hw) => &["woken by", "timer expires in", "interval", "phase", "idle"],
        Some(Probe::Deadline) => &[],
        Some(Probe::Ipc | Probe::Switch | Probe::Pi | Probe::Migrate | Probe::Net | Probe::Irq) => {
            &["woken by", "timer expires in"]
        }
    };
    let of_all = all_conditions(run).into_iter().filter(|(name, _)| !apart.contains(name));
    probe.into_iter().chain(of_all).collect()
}

/// Conditions that are needed to read the numbers, in a sentence; defaults are left out.
pub fn in_short(run: &Run) -> String {
    let (known, unknown) = known_conditions(run);
    let of = |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let named = |name: &str| of(name).map(|value| format!("{name}: {value}"));
    let by_default = run.plan.wake == WakeMechanism::Nanosleep;
    let host = Some(run.host.virtualization.as_str()).filter(|host| !host.is_empty() && *host != "none");
    let parts = [
        of("probe"),
        of("kernel"),
        of("preemption"),
        of("policy"),
        of("interval").map(|interval| format!("every {interval}")),
        of("woken by").filter(|_| !by_default),
        named("idle").filter(|_| run.plan.idle == IdleStates::AsIs),
        host.map(|host| format!("virtual machine ({})", clean(host))),
        of("length"),
        named("load"),
        (!unknown.is_empty()).then(|| format!("not known: {}", unknown.join(", "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn all_conditions(run: &Run) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("kernel", kernel(run)),
        ("preemption", preemption(run)),
        ("policy", policy::policy(run)),
        ("woken by", wake(run)),
        ("timer expires in", expiry(run)),
        ("interval", interval(run)),
        ("phase", phase(run)),
        ("idle", idle(run)),
        ("clocksource", or_unknown(&run.host.clocksource)),
        ("virtual machine", virtualization(run)),
        ("measured CPUs", measured_cpus(run)),
        ("housekeeping", cpu_list(run.plan.housekeeping.iter().copied())),
        ("started", started(run)),
        ("length", length(run)),
    ];
    all.extend((!run.plan.tool.is_empty()).then(|| ("measured by", clean(&run.plan.tool))));
    all.extend(crate::load::condition(run).map(|loads| ("load", loads)));
    all.extend((!run.labels.is_empty()).then(|| ("labels", clean(&run.labels.words()))));
    all
}

/// Cost of onbeat itself, as far as it is known.
pub fn overhead(run: &Run) -> Vec<(&'static str, String)> {
    let o = &run.overhead;
    let noise = run.recorder.as_ref().and_then(|recorder| recorder.cost_noise_ns);
    let recorder = o.recorder_ns_per_cycle.map(|cost| below_noise(cost, noise).unwrap_or_else(|| span(cost)));
    let rows = [
        ("one clock read", o.clock_read_ns.map(span)),
        ("one loop iteration without its sleep", o.loop_ns.map(span)),
        ("flight recorder, per cycle", recorder),
        ("housekeeping wake-ups per second", o.housekeeping_wakeups_per_s.map(|n| format!("{n:.1}"))),
        ("share of a CPU, measuring", o.cpu_share.map(percent)),
        ("share of a CPU, housekeeping", o.housekeeping_cpu_share.map(percent)),
        ("peak memory", o.max_rss_kib.map(|n| format!("{:.1} MiB", n as f64 / 1024.0))),
        (
            "seconds merged because housekeeping was late",
            o.blocks_joined.filter(|&n| n > 0).map(|n| n.to_string()),
        ),
        (
            "block records that could not be written",
            o.blocks_unwritten.filter(|&n| n > 0).map(|n| n.to_string()),
        ),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Properties of the machine, in addition to the conditions; only known ones.
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
        ("real-time priority limit", h.rtprio_limit.map_or_else(String::new, |n| n.to_string())),
        ("locked memory limit in bytes", h.memlock_limit.map_or_else(String::new, |n| n.to_string())),
        ("capabilities", h.capabilities.join(", ")),
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
    use crate::fixture;
    use crate::run::sentences;

    #[test]
    fn words_never_promise() {
        for sample in fixture::all() {
            let mut text: String = conditions(&sample.run).into_iter().map(|(_, value)| value).collect();
            text += &sentences::limits(&sample.run).unwrap_or_default();
            assert!(
                !text.to_lowercase().contains("guarantee") && !text.contains(["WC", "ET"].concat().as_str())
            );
        }
    }

    #[test]
    fn an_import_states_what_it_does_not_know() {
        let run = fixture::import().run;
        let conditions = conditions(&run);
        let of = |name: &str| conditions.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        assert_eq!(of("timer expires in"), "not known");
        assert_eq!(of("policy"), "not known");
        assert!(
            sentences::oddities(&run)[0].contains("3 samples beyond the histogram's end, values unknown")
        );
    }
}
