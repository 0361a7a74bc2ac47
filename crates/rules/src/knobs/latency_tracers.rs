//! Tracers of sections with interrupts or preemption disabled, built into the kernel.

use super::sources::{FTRACE, RT_CONFIG};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::line::parse_words;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "latency-tracers",
    title: "irqsoff and preemptoff tracers",
    description: "IRQSOFF_TRACER and PREEMPT_TRACER hook every place where the kernel disables and enables \
                  interrupts or preemption, to find the longest such section. Unlike other tracers, these \
                  hooks have a cost even while they are off.",
    rationale: "each change of the interrupt or preemption state goes through a hook, even while nothing is \
                traced",
    detection: "The kernel's configuration and the list of tracers in tracefs: either is enough. For active \
                tracers see tracing-left-on.",
    side_effects: "Needs another kernel, which can no longer find the longest section with interrupts off: \
                   keep a kernel with them for debugging. `onbeat hunt` does not need them.",
    wanted: "not built in",
    fix: || Remedy::of(OPTIONS.iter().map(|(option, _)| Change::kconfig(option, "n"))),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source {
            title: "kernel: real-time kernel configuration, CONFIG_IRQSOFF_TRACER and \
                    CONFIG_PREEMPT_TRACER",
            url: RT_CONFIG,
        },
        Source { title: "kernel: ftrace, the tracers", url: FTRACE },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::PreemptOff],
    reads: &[AVAILABLE],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "CONFIG_IRQSOFF_TRACER=y
                /sys/kernel/tracing/available_tracers: irqsoff nop",
        silent: "",
        unknown: "/boot refused
                  /sys/kernel/tracing refused",
    },
    ..Knob::DEFAULT
};

const AVAILABLE: &str = "/sys/kernel/tracing/available_tracers";

/// Options, with tracers in tracefs that prove them.
const OPTIONS: &[(&str, &str)] = &[("IRQSOFF_TRACER", "irqsoff"), ("PREEMPT_TRACER", "preemptoff")];

fn judge(machine: &MachineView) -> Judged {
    // A kernel with tracefs lists all tracers that it was built with, at least nop.
    let listed = machine.parsed(AVAILABLE, parse_words).ok().flatten().filter(|all| !all.is_empty());
    let config = machine.kconfig();
    let on = |(option, tracer): &&(&'static str, &str)| {
        let built = config.as_ref().is_ok_and(|config| config.is_yes(option));
        built || listed.iter().flatten().any(|name| name == tracer)
    };
    let on: Vec<&str> = OPTIONS.iter().filter(on).map(|(option, _)| *option).collect();
    match config {
        _ if !on.is_empty() => Ok(Judgement::fail(on.join(", "))
            .fix(Remedy::of(on.iter().map(|option| Change::kconfig(option, "n"))))),
        Err(unknown) if listed.is_none() => Err(unknown),
        _ => Ok(Judgement::pass("none")),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_configuration_or_the_list_of_tracers_decides() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "CONFIG_PREEMPT_TRACER=y", "fail high PREEMPT_TRACER");
        let list = "/boot refused\n/sys/kernel/tracing/available_tracers:";
        check(
            &KNOB,
            &format!("{list} preemptirqsoff preemptoff irqsoff nop"),
            "fail high IRQSOFF_TRACER, PREEMPT_TRACER",
        );
        check(&KNOB, &format!("{list} hwlat nop"), "pass none");
        check(&KNOB, list, "unknown");
        // A configuration that contradicts this belongs to another kernel.
        check(&KNOB, "/sys/kernel/tracing/available_tracers: irqsoff nop", "fail high IRQSOFF_TRACER");
    }
}
