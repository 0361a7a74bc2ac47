//! HRTICK: a timer that ends the slice of an ordinary task.

use super::sources::{SCHED_FAIR_C, SCHED_FEATURES_H};
use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::line::parse_words;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "hrtick",
    title: "slice timers of ordinary tasks",
    description: "With the scheduler's feature HRTICK a high-resolution timer ends the slice of an ordinary \
                  task to the microsecond, instead of at the next tick as up to 6.12. It is on by default on \
                  kernels that program the timer at kernel exit (HRTIMER_REARM_DEFERRED from 7.1 on, as on \
                  x86 and RISC-V, not arm64).",
    rationale: "if two ordinary tasks share a CPU, each slice costs one more timer interrupt, and a wake-up \
                from another CPU starts it by an interrupt (__hrtick_start)",
    detection: "The list of features in debugfs, which needs root. The timer is armed only if more than one \
                ordinary task is runnable, which hardly happens on a CPU out of load balancing: there the \
                rule does not apply. HRTICK_DL enforces the runtimes of deadline tasks.",
    side_effects: "Slices of ordinary tasks end at ticks again, later than requested.",
    wanted: "NO_HRTICK if ordinary tasks share the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "echo NO_HRTICK >/sys/kernel/debug/sched/features, and again at each boot",
        )
        .with_persistence(Persistence::Runtime)
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Runtime,
    unsettable: "the file accepts one feature and shows all of them, so a write cannot be read back",
    sources: &[
        Source { title: "kernel: kernel/sched/features.h, HRTICK", url: SCHED_FEATURES_H },
        Source { title: "kernel: kernel/sched/fair.c, hrtick_start_fair()", url: SCHED_FAIR_C },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::Ipi],
    reads: &[FEATURES],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/osrelease", "/sys/devices/system/cpu/isolated"],
    judge,
    examples: Examples {
        fires: "--cpus 1-3
                /sys/kernel/debug/sched/features: PLACE_LAG HRTICK HRTICK_DL NO_TTWU_QUEUE",
        silent: "--cpus 1-3
                 /sys/kernel/debug/sched/features: PLACE_LAG NO_HRTICK HRTICK_DL",
        unknown: "--cpus 1-3
                  CONFIG_HRTIMER_REARM_DEFERRED=y
                  /sys/kernel/debug/sched/features refused",
    },
    ..Knob::DEFAULT
};

/// Scheduler features by name, with `NO_` before those that are off.
const FEATURES: &str = "/sys/kernel/debug/sched/features";

fn judge(machine: &MachineView) -> Judged {
    let listed = machine.parsed(FEATURES, parse_words);
    let has = |name: &str| matches!(&listed, Ok(Some(words)) if words.iter().any(|word| word == name));
    if has("NO_HRTICK") {
        return Ok(Judgement::pass("NO_HRTICK"));
    }
    if has("HRTICK") {
        let is_off = load_balancing::is_off(machine);
        return if is_off { Err(out(machine)) } else { Ok(Judgement::fail("HRTICK")) };
    }
    let off = || Judgement::not_applicable("off by default: the kernel has no HRTIMER_REARM_DEFERRED");
    match (machine.kconfig().map(|config| config.is_yes("HRTIMER_REARM_DEFERRED")), machine.series()) {
        (Ok(false), _) => Err(off()),
        (Err(_), Ok(series)) if series < (7, 1) => Err(off()),
        // Whether it is on does not matter there.
        _ if load_balancing::is_off(machine) => Err(out(machine)),
        _ => match listed? {
            None => Err(unknown_absent(FEATURES)),
            Some(_) => Err(Judgement::unknown(format!("{FEATURES} does not name HRTICK"))),
        },
    }
}

/// Judgement on CPUs out of load balancing.
fn out(machine: &MachineView) -> Judgement {
    Judgement::not_applicable(format!(
        "out of load balancing, where two ordinary tasks are rarely runnable: {}",
        cpu_list(machine.cpus())
    ))
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, KNOB};
    use crate::fixture::check;

    #[test]
    fn the_feature_counts_where_ordinary_tasks_share_a_cpu() {
        let on = format!("{FEATURES}: NI_RANDOM HRTICK HRTICK_DL");
        check(&KNOB, &format!("--cpus 1-3\n{on}"), "fail info HRTICK");
        check(&KNOB, &on, "not-applicable");
        check(&KNOB, &format!("{FEATURES}: NO_HRTICK NO_HRTICK_DL"), "pass NO_HRTICK");
        check(&KNOB, &format!("{FEATURES}: HRTICKS"), "not-applicable");
        let deferred = "--cpus 1-3\nCONFIG_HRTIMER_REARM_DEFERRED=y";
        check(&KNOB, &format!("{deferred}\n{FEATURES} absent"), "unknown");
        check(&KNOB, &format!("{deferred}\n{FEATURES}: HRTICKS"), "unknown");
        check(&KNOB, &format!("/boot absent\n{FEATURES} refused"), "not-applicable");
        let of = |release: &str| {
            format!("/boot absent\n/proc/sys/kernel/osrelease: {release}\n{FEATURES} refused")
        };
        check(&KNOB, &of("7.0.9"), "not-applicable");
        check(&KNOB, &format!("--cpus 1-3\n{}", of("7.1.2")), "unknown");
        check(&KNOB, &of("7.1.2"), "not-applicable");
    }
}
