//! Timer migration: on which CPU a timer goes off that another one started.

use super::sources::{HRTIMER_C, ISOLATION};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::cpu_list;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "timer-migration",
    title: "timer migration",
    description: "With timer_migration 1 a high-resolution timer that is started on an idle CPU, or on one \
                  of nohz_full=, is queued on a housekeeping CPU if that CPU has an earlier timer. This also \
                  applies to the sleep of the real-time task itself.",
    rationale: "a sleeping task on a CPU of nohz_full= is woken by another CPU, through an additional \
                interrupt, and not in the same way at each wake-up",
    detection: "The sysctl and the list of nohz_full. On a CPU that is isolated without nohz_full a task's \
                own timers stay where they are started. Migration of timer wheel timers changed in 6.9, and \
                excludes isolated CPUs from 6.19 on; the sysctl does not affect it.",
    side_effects: "With 0 a timer stays on the CPU that started it, also kernel timers that should expire on \
                   other CPUs, and idle CPUs wake up more often.",
    wanted: "0 if tasks on CPUs of nohz_full= sleep",
    fix: || Change::sysctl("kernel.timer_migration", 0).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Source,
    disputed: "tuned's real-time profile sets 0, OpenShift's 1: with 0 the task's timers stay with it, with \
               1 kernel timers leave its CPU; `onbeat compare` of a run with each decides it for one \
               machine",
    persistence: Persistence::Runtime,
    sets: SYSCTL,
    sources: &[
        Source { title: "kernel source: kernel/time/hrtimer.c, switch_hrtimer_base()", url: HRTIMER_C },
        Source { title: "kernel: CPU isolation, full dynticks", url: ISOLATION },
    ],
    cures: &[SliceKind::Ipi, SliceKind::TimerIrq, SliceKind::Softirq],
    reads: &[SYSCTL],
    facts: &[
        "/sys/devices/system/cpu/nohz_full",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/nohz_full: 2-3
                /proc/sys/kernel/timer_migration: 1",
        silent: "--cpus 2-3
                 /proc/sys/kernel/timer_migration: 0",
        unknown: "--cpus 2-3
                  /proc/sys/kernel/timer_migration refused",
    },
    ..Knob::DEFAULT
};

const SYSCTL: &str = "/proc/sys/kernel/timer_migration";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    if machine.number_if_present(SYSCTL)?.ok_or_else(|| unknown_absent(SYSCTL))? == 0 {
        return Ok(Judgement::pass("0"));
    }
    if machine.has_profile(Profile::BusyPoll) {
        return Ok(Judgement::pass("1, which moves timers off CPUs whose tasks do not sleep"));
    }
    let tickless = machine.nohz_full()?.map(|tickless| tickless.and(machine.cpus())).unwrap_or_default();
    if tickless.is_empty() {
        // A kernel whose list is not there has none, or hides it with all of /sys; then there are
        // no CPUs to judge for.
        return Ok(Judgement::pass("1, and no audited CPU is in nohz_full"));
    }
    Ok(Judgement::fail(format!("1, with {} in nohz_full", cpu_list(&tickless))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const ONE: &str = "/proc/sys/kernel/timer_migration: 1";
    const TICKLESS: &str = "/sys/devices/system/cpu/nohz_full: 3";

    #[test]
    fn it_applies_where_the_tick_is_off_and_tasks_sleep() {
        check(&KNOB, "", "pass 1, and no audited CPU is in nohz_full");
        check(&KNOB, TICKLESS, "fail low 1, with CPU 3 in nohz_full");
        let absent = "/sys/devices/system/cpu/nohz_full absent\nCONFIG_NO_HZ_FULL";
        check(&KNOB, &format!("{absent}=y"), "unknown /sys/devices/system/cpu/nohz_full is not there");
        check(&KNOB, &format!("{absent}=n"), "pass 1, and no audited CPU is in nohz_full");
        check(&KNOB, &format!("{TICKLESS}\n/proc/sys/kernel/timer_migration: 0"), "pass 0");
        check(
            &KNOB,
            &format!("{TICKLESS}\n{ONE}\n--profile busy-poll"),
            "pass 1, which moves timers off CPUs whose tasks do not sleep",
        );
        check(&KNOB, "/sys/devices/system/cpu/nohz_full refused", "unknown");
        check(&KNOB, "/proc/sys/kernel/timer_migration absent", "unknown");
        check(&KNOB, "--cpus 0-3", "not-applicable");
    }
}
