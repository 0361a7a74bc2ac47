//! A scheduler of ordinary tasks loaded as a BPF program.

use super::sources::SCHED_EXT;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::line::parse_word;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "sched-ext",
    title: "BPF scheduler",
    description: "From 6.12 on a BPF program can schedule ordinary tasks instead of the kernel's scheduler \
                  (SCHED_CLASS_EXT). Real-time and deadline tasks still run first.",
    rationale: "the program determines the cost of each decision, wakes CPUs by interrupts, and decides \
                where kernel threads of ordinary priority run",
    detection: "/sys/kernel/sched_ext/state. What the loaded program does is not judged.",
    side_effects: "When the program ends, ordinary tasks immediately return to the kernel's scheduler; the \
                   program's benefits are lost.",
    wanted: "disabled",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "end the program that loaded it: its name is in /sys/kernel/sched_ext/root/ops",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Practice,
    disputed: "a scheduler that does not use the audited CPUs may be harmless: `onbeat measure` with and \
               without it, and `onbeat compare` the two",
    persistence: Persistence::Runtime,
    unsettable: "the scheduler stays until the program that loaded it ends, and onbeat ends no programs",
    sources: &[Source {
        title: "kernel: extensible scheduler class, switching to and from sched_ext",
        url: SCHED_EXT,
    }],
    cures: &[SliceKind::Ipi, SliceKind::Switch, SliceKind::Thread],
    reads: &[STATE],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/sched_ext/state: enabled",
        silent: "/sys/kernel/sched_ext/state: disabled",
        unknown: "/sys/kernel/sched_ext/state refused",
    },
    ..Knob::DEFAULT
};

const STATE: &str = "/sys/kernel/sched_ext/state";

fn judge(machine: &MachineView) -> Judged {
    match machine.parsed(STATE, parse_word)?.as_deref() {
        Some("disabled") => Ok(Judgement::pass("disabled")),
        Some(state @ ("enabled" | "enabling" | "disabling")) => Ok(Judgement::fail(state)),
        Some(_) => Err(Judgement::unknown(format!("{STATE} holds an unknown state"))),
        None => Err(without(machine)),
    }
}

/// Judgement without the file.
fn without(machine: &MachineView) -> Judgement {
    match (machine.kconfig().map(|config| config.is_yes("SCHED_CLASS_EXT")), machine.series()) {
        (Ok(true), _) => {
            Judgement::unknown(format!("{STATE} is missing, although the kernel has SCHED_CLASS_EXT"))
        }
        (Ok(false), _) => Judgement::not_applicable("the kernel has no SCHED_CLASS_EXT"),
        (Err(_), Ok(series)) if series < (6, 12) => Judgement::not_applicable("it came with 6.12"),
        (Err(_), _) if machine.shows_by_absence() => Judgement::not_applicable(
            "the kernel has no SCHED_CLASS_EXT: /sys/kernel/sched_ext does not exist",
        ),
        (Err(unknown), _) => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn a_loaded_scheduler_is_seen() {
        check(&KNOB, "", "not-applicable the kernel has no SCHED_CLASS_EXT");
        check(&KNOB, "CONFIG_SCHED_CLASS_EXT=y", "unknown");
        check(
            &KNOB,
            "/boot refused",
            "not-applicable the kernel has no SCHED_CLASS_EXT: /sys/kernel/sched_ext does not exist",
        );
        check(&KNOB, "/boot refused\n/proc/sys/kernel/osrelease: 5.15.1", "not-applicable it came with 6.12");
        check(&KNOB, "/sys/kernel/sched_ext/state: enabling", "fail low enabling");
        check(&KNOB, "/sys/kernel/sched_ext/state: \u{1b}[2J", "unknown");
        check(&KNOB, "/sys/kernel/sched_ext/state: bypassed", "unknown");
    }
}
