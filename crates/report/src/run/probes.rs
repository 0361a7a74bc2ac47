//! Words for the run of a probe that differ from those for wake-ups.

use super::{jobs, migrations, noise, packets, policy, responses};
use crate::totals::largest;
use crate::words::{MachineClock, clean, percent, several, span, uncapitalised};
use model::run::{CpuRun, Run, SpinGap};
use model::sort::CompactSort;
use model::units::{CpuSet, Nanos, named_cpus};
use model::vocabulary::{GapOrigin, Policy, Probe, Quantity};

/// Limit of gaps that are listed, and of interrupts of a CPU.
const SHOWN: usize = 5;

/// Definition of the measured quantity, in words; none for wake-ups.
pub fn definition(run: &Run) -> Option<String> {
    Some(match run.probe()? {
        Probe::Spin => {
            let over =
                run.plan.over_ns.map_or_else(|| "any length".into(), |over| format!("{} on", span(over)));
            let thread = if noise::is_by_osnoise(run) {
                "a thread of the kernel's osnoise tracer"
            } else {
                "a thread that does nothing else"
            };
            format!("spin: gaps between two clock reads by {thread}, from {over}")
        }
        Probe::Hw => hardware(run),
        Probe::Ipc => format!(
            "ipc {}: from before the release in one thread to after the acquire in another, {}",
            clean(&run.plan.kind),
            places(run)
        ),
        Probe::Switch => {
            "switch: half of a round trip in which a thread wakes another on its CPU with a futex, waits, \
             and is woken by it: one FUTEX_WAKE, one FUTEX_WAIT, one context switch, and half a clock read"
                .into()
        }
        Probe::Pi => format!(
            "pi: a thread waits for a mutex{} of a thread of lower priority on its CPU, while a thread \
             between them is ready to run",
            match run.plan.kind.as_str() {
                "plain" => " without priority inheritance",
                "shared" => " in shared memory",
                _ => "",
            }
        ),
        Probe::Migrate => migrations::definition(run),
        Probe::Deadline => jobs::definition(run),
        Probe::Net => packets::definition(run),
        Probe::Irq => responses::definition(run),
    })
}

/// Definition of the gaps of `probe hw`, by their source.
fn hardware(run: &Run) -> String {
    let over = run.plan.over_ns.map_or_else(|| "any length".into(), |over| format!("{} on", span(over)));
    if run.plan.spins() {
        return format!("hw: gaps between two clock reads by a thread that does nothing else, from {over}");
    }
    let sampled = match (run.plan.width_ns, run.plan.window_ns) {
        (Some(width), Some(window)) => format!(", for {} of each {}", span(width), span(window)),
        _ => String::new(),
    };
    let which = if noise::is_by_osnoise(run) { "gaps" } else { "the longest gap of each window" };
    format!(
        "hw: {which} between two clock reads by the kernel's {} tracer with interrupts \
         off{sampled}, from {over}",
        clean(&run.plan.kind)
    )
}

/// Origins of the gaps of `probe hw`, with their numbers.
pub fn origins(run: &Run) -> Option<String> {
    let gaps = run.gaps.as_deref().filter(|_| run.probe() == Some(Probe::Hw))?;
    let of = |origin: GapOrigin| gaps.iter().filter(|gap| gap.origin == origin).count();
    let words = |origin: GapOrigin| match origin {
        GapOrigin::Smi => "with SMIs of the firmware",
        GapOrigin::Hypervisor => "of the hypervisor",
        GapOrigin::Unknown => "of unknown origin",
    };
    let counted = GapOrigin::ALL.iter().map(|&origin| (of(origin), words(origin)));
    let named: Vec<String> =
        counted.filter(|(n, _)| *n > 0).map(|(n, words)| format!("{words}: {n}")).collect();
    (!named.is_empty()).then(|| format!("gaps {}", named.join(", ")))
}

/// Policy that `spin` ran under, and its meaning for the gaps.
pub fn seen_under(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Spin) {
        return None;
    }
    if noise::is_by_osnoise(run) {
        return Some(noise::seen_by(run, &some_cpus(run), others(run)));
    }
    let policy = format!("{}{}", policy::policy(run), some_cpus(run));
    Some(match (run.plan.policy == Policy::Other, most_lost(run), given_away(run)) {
        (true, Some((share, cpu)), _) => format!(
            "It ran under {policy}: {} took {share} of {cpu}. -p 1 shows the gaps of a real-time task.",
            others(run)
        ),
        (true, None, _) => format!(
            "It ran under {policy}: gaps include the time of other programs. -p 1 shows the gaps of a \
             real-time task."
        ),
        (false, _, Some(GivenAway { by, rule, part })) => format!(
            "It ran under {policy}: as a real-time task that never sleeps. {by} gave ordinary threads {part} \
             (`onbeat rules {rule}`); the kernel, the firmware, a hypervisor or a thread of higher priority \
             took the rest."
        ),
        (false, _, None) => format!(
            "It ran under {policy}: as a real-time task. Only the kernel, the firmware, a hypervisor or a \
             thread of higher priority took its time."
        ),
    })
}

/// The users of the time that a thread without a real-time priority lacks.
fn others(run: &Run) -> &'static str {
    match run.host.virtualization.as_str() {
        "" | "none" => "other programs and the kernel",
        _ => "other programs, the kernel and the hypervisor",
    }
}

/// The measured CPUs, where others are online.
fn some_cpus(run: &Run) -> String {
    let measured: CpuSet = run.primary().filter_map(|cpu| cpu.cpu).collect();
    let online = CpuSet::parse(&run.host.online).unwrap_or_default();
    let others = online.without(&measured);
    if measured.is_empty() || others.is_empty() {
        return String::new();
    }
    format!(", on {} of {online}", named_cpus(measured.to_string()))
}

/// Mechanism of the kernel that takes time from a real-time thread for ordinary ones.
struct GivenAway {
    by: &'static str,
    rule: &'static str,
    /// Its share of each period, in words.
    part: String,
}

/// Mechanism whose share matches the longest gap; none if no gap matches.
fn given_away(run: &Run) -> Option<GivenAway> {
    let host = &run.host;
    let longest = largest(run).filter(|_| run.plan.policy != Policy::Other)?;
    let fair = host.fair_server_runtime_ns.and_then(|ns| i64::try_from(ns).ok());
    let (by, rule, ns, period) = match (fair, host.rt_runtime_us, host.rt_period_us) {
        (Some(ns), ..) if ns > 0 => ("The fair server", "fair-server", ns, Nanos::SECOND.0),
        (_, Some(runtime), Some(period)) if runtime >= 0 && runtime < period => {
            let [runtime, period] = [runtime, period].map(|us| us.saturating_mul(Nanos::MICRO.0));
            let (by, rule) = match fair {
                Some(_) => ("Real-time throttling", "rt-throttling"),
                None => ("Real-time throttling or the fair server", "fair-server"),
            };
            (by, rule, period - runtime, period)
        }
        _ => return None,
    };
    let part = format!("up to {} of each {}", span(Nanos(ns)), span(Nanos(period)));
    // A much longer gap has another cause.
    let is_as_long = (ns / 10 * 9..=ns / 2 * 3).contains(&longest.0);
    is_as_long.then_some(GivenAway { by, rule, part })
}

/// Largest share of a CPU that was taken from `spin`, with the CPU.
fn most_lost(run: &Run) -> Option<(String, String)> {
    let lost = run.cpus.iter().filter_map(|cpu| Some((cpu.lost_ppm?, cpu)));
    let (ppm, cpu) = lost.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((percent(ppm / 1e6), cpu.name()))
}

/// Users of the time that was taken from `spin`, as far as its policy tells.
pub fn time_taken(run: &Run) -> Option<String> {
    let (share, cpu) = most_lost(run).filter(|_| run.probe() == Some(Probe::Spin))?;
    const ABOVE: &str = "the kernel, firmware, a hypervisor or a thread of higher priority";
    let users = match given_away(run) {
        _ if run.plan.policy == Policy::Other => others(run).to_owned(),
        Some(GivenAway { by, part, .. }) => format!("{} ({part}), {ABOVE}", uncapitalised(by)),
        None => ABOVE.to_owned(),
    };
    Some(format!("{users}: {share} of {cpu}"))
}

/// Name of a run of `ipc` among others: `futex, both on one CPU`.
pub fn named(run: &Run) -> String {
    format!("{}, {}", clean(&run.plan.kind), places(run))
}

/// CPUs of the threads of `ipc`, in words.
fn places(run: &Run) -> String {
    let across: Vec<String> = run
        .cpus
        .iter()
        .filter_map(|cpu| {
            cpu.from_cpu
                .filter(|from| Some(*from) != cpu.cpu)
                .map(|from| format!("{from} to {}", cpu.label()))
        })
        .collect();
    if across.is_empty() { "both on one CPU".into() } else { format!("across CPUs: {}", across.join(", ")) }
}

/// Noun for a sample, singular and plural.
pub fn sample(run: &Run) -> (&'static str, &'static str) {
    let quantity = run.primary().next().and_then(|cpu| cpu.measures.known());
    match (run.probe(), quantity) {
        (Some(Probe::Spin | Probe::Hw), _) | (None, Some(Quantity::Gap)) => ("gap", "gaps"),
        (Some(Probe::Ipc), _) | (None, Some(Quantity::Ipc)) => ("hand-over", "hand-overs"),
        (Some(Probe::Switch), _) | (None, Some(Quantity::Switch)) => ("switch", "switches"),
        (Some(Probe::Pi), _) | (None, Some(Quantity::Inversion)) => ("inversion", "inversions"),
        (None, Some(Quantity::Signal)) => ("signal", "signals"),
        (Some(Probe::Migrate), _) | (None, Some(Quantity::Migration)) => ("round", "rounds"),
        (Some(Probe::Deadline), _) | (None, Some(Quantity::Deadline)) => ("job", "jobs"),
        (Some(Probe::Net), _) | (None, Some(Quantity::Packet)) => ("packet", "packets"),
        (Some(Probe::Irq), _) | (None, Some(Quantity::Response)) => ("response", "responses"),
        (None, None | Some(Quantity::Wakeup | Quantity::Irq | Quantity::User)) => ("wake-up", "wake-ups"),
    }
}

/// Words for a sample above a value.
pub fn longer(run: &Run) -> &'static str {
    match run.probe() {
        None => "larger one",
        Some(_) => "longer one",
    }
}

/// Heads of the columns that a probe uses differently: the samples, and the value that follows
/// their number.
pub fn heads(run: &Run) -> (&'static str, &'static str) {
    match run.probe() {
        None if sample(run).0 == "gap" => ("gaps", "lost ppm"),
        None => ("cycles", "missed"),
        Some(Probe::Spin) => ("gaps", "lost ppm"),
        Some(Probe::Hw) if run.plan.spins() || noise::is_by_osnoise(run) => ("gaps", "lost ppm"),
        Some(Probe::Hw) => ("gaps", "missed"),
        Some(Probe::Ipc) => ("samples", "from CPU"),
        Some(Probe::Switch) => ("samples", "missed"),
        Some(Probe::Pi | Probe::Migrate) => ("samples", "failed"),
        Some(Probe::Deadline) => ("jobs", "missed"),
        Some(Probe::Net) => ("samples", "lost"),
        Some(Probe::Irq) => ("events", "not split"),
    }
}

/// Value in the column after the number of samples.
pub fn beside(cpu: &CpuRun) -> Option<String> {
    let lost = cpu.lost_ppm.map(|ppm| format!("{ppm:.1}"));
    let failed = || cpu.inversions.map(|of| of.made.saturating_sub(of.resolved).to_string());
    let violated = || cpu.migration.map(|of| of.violations.to_string());
    let not_split = || cpu.responses.as_ref().map(|of| of.not_split.to_string());
    let unanswered = || cpu.packets.map(|of| (of.lost + of.late).to_string());
    lost.or_else(failed)
        .or_else(violated)
        .or_else(unanswered)
        .or_else(not_split)
        .or_else(|| cpu.from_cpu.map(|from| from.to_string()))
        .or_else(|| cpu.missed.map(|n| n.to_string()))
}

/// Longest gaps with their times, and the interrupts of each CPU during the run.
pub fn gaps(run: &Run) -> Vec<String> {
    let (Some(gaps), Some(_)) = (&run.gaps, largest(run)) else { return Vec::new() };
    let mut longest: Vec<&SpinGap> = gaps.iter().collect();
    longest.compact_sort_by_key(|gap| std::cmp::Reverse(gap.ns));
    let named = |gap: &&SpinGap| format!("{} on CPU {} at {}", span(gap.ns), gap.cpu, when(run, gap));
    let examples: Vec<String> = longest.iter().take(SHOWN).map(named).collect();
    let mut lines = vec![format!("longest gaps: {}", examples.join("; "))];
    lines.extend(origins(run).map(|origins| format!("origins: {origins}")));
    if let Some(dropped) = run.gaps_dropped.filter(|&n| n > 0) {
        let count = several(gaps.len() as u64, "gap", "gaps");
        lines.push(format!(
            "run.json lists the longest {count} with their times; {dropped} are only in the histogram"
        ));
    }
    for cpu in run.cpus.iter().filter(|cpu| !cpu.interrupts.is_empty()) {
        let counted = |(at, count): (usize, &model::run::InterruptCount)| {
            (at < SHOWN).then(|| format!("{} {} ({})", clean(&count.irq), clean(&count.name), count.count))
        };
        let named: Vec<String> = cpu.interrupts.iter().enumerate().filter_map(counted).collect();
        let more = cpu.interrupts.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more in run.json") } else { String::new() };
        lines.push(format!("interrupts of {} during the run: {}{more}", cpu.name(), named.join(", ")));
    }
    lines
}

/// Time of day of a gap, if it is among the worst of its CPU; else the time since the CPU's start.
fn when(run: &Run, gap: &SpinGap) -> String {
    let cpu = run.cpus.iter().find(|cpu| cpu.cpu == Some(gap.cpu));
    let ends = Nanos(gap.mono_ns.0.saturating_add(gap.ns.0));
    let timed = cpu.and_then(|cpu| cpu.worst.iter().find(|worst| worst.mono_ns == Some(ends)));
    match (timed, cpu.and_then(|cpu| cpu.t0_mono_ns)) {
        (Some(worst), _) if !worst.time.is_empty() => MachineClock::of(run).time_of_day(&worst.time),
        (_, Some(start)) => format!("{} of the run", span(Nanos(gap.mono_ns.0.saturating_sub(start.0)))),
        _ => "an unknown time".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;

    #[test]
    fn spin_says_under_which_policy_it_ran_and_what_that_means() {
        assert_eq!(seen_under(&Run::default()), None);
        let mut run = Run { command: "probe".into(), complete: true, ..Run::default() };
        run.plan.probe = Probe::Spin.into();
        run.plan.policy = Policy::Other.into();
        let lost = |cpu, ppm| CpuRun { cpu: Some(Cpu(cpu)), lost_ppm: Some(ppm), ..CpuRun::default() };
        run.cpus = vec![lost(0, 10.0), lost(1, 852_092.0)];
        let policy = seen_under(&run).expect("it spun");
        assert!(
            policy.starts_with("It ran under SCHED_OTHER") && policy.contains("took 85 % of CPU 1"),
            "{policy}"
        );
        assert!(policy.contains("-p 1 "), "{policy}");
        let text = super::super::table::brief(&run, 200, false);
        assert!(text.starts_with(&policy), "{text}");
        (run.plan.policy, run.plan.priority) = (Policy::Fifo.into(), Some(1));
        let policy = seen_under(&run).expect("it spun");
        assert!(policy.starts_with("It ran under SCHED_FIFO, priority 1: as a real-time task"), "{policy}");
        let answer = super::super::answer::render(&run, None, 80, false);
        assert!(answer.contains("\nwho     the kernel, firmware, a hypervisor or a thread of"), "{answer}");
        run.host.online = "0-2".into();
        assert!(
            seen_under(&run).is_some_and(|policy| policy.contains("priority 1, on CPUs 0-1 of 0-2: as a"))
        );
        // The longest gap matches the fair server's share, or else that of throttling.
        run.cpus[1].max_ns = Some(Nanos(50_500_000));
        run.cpus[0].max_ns = Some(Nanos(9_000));
        run.host.rt_runtime_us = Some(950_000);
        run.host.rt_period_us = Some(1_000_000);
        let policy = seen_under(&run).expect("it spun");
        assert!(
            policy.contains(
                "Real-time throttling or the fair server gave ordinary threads up to 50 ms of each 1 s"
            ),
            "{policy}"
        );
        run.host.fair_server_runtime_ns = Some(50_000_000);
        let policy = seen_under(&run).expect("it spun");
        assert!(
            policy.contains("The fair server gave ") && policy.contains("`onbeat rules fair-server`"),
            "{policy}"
        );
        let culprit = time_taken(&run).expect("it spun");
        assert!(culprit.starts_with("the fair server (up to 50 ms of each 1 s), the kernel, "), "{culprit}");
        // A gap ten times as long has another cause, and a server without runtime takes nothing.
        run.cpus[1].max_ns = Some(Nanos(500_000_000));
        assert!(time_taken(&run).is_some_and(|culprit| culprit.starts_with("the kernel, ")));
        run.cpus[1].max_ns = Some(Nanos(50_500_000));
        run.host.fair_server_runtime_ns = Some(0);
        assert!(time_taken(&run).is_some_and(|culprit| culprit.starts_with("real-time throttling (up to ")));
        run.cpus[1].max_ns = Some(Nanos(9_000));
        assert!(time_taken(&run).is_some_and(|culprit| culprit.starts_with("the kernel, ")));
        run.plan.policy = Policy::Other.into();
        let answer = super::super::answer::render(&run, None, 80, false);
        assert!(answer.contains("\nwho     other programs and the kernel: 85 % of CPU 1\n"), "{answer}");
        run.host.virtualization = "kvm".into();
        let policy = seen_under(&run).expect("it spun");
        assert!(policy.contains(": other programs, the kernel and the hypervisor took 85 % of"), "{policy}");
    }
}
