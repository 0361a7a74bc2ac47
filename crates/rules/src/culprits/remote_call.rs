//! A function that runs here on request of another CPU.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{ISOLATION, SMP_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "remote-call",
    title: "a function run for another CPU",
    signature: "An interrupt from another CPU that runs a function queued by that CPU; the sender is named \
                if the kernel has events for it.",
    detection: "By the interrupt and the function's name. Calls that are known by name have separate rules; \
                interrupts that only trigger the scheduler do not count.",
    remedy: "find the reason from the sender and the function, and do not let it run while the real-time \
             task runs, or exclude this CPU from it",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "kernel: kernel/smp.c", url: SMP_C },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    evidence: EvidenceKind::Observed,
    provoke: "a kernel module that calls smp_call_function_single for the victim's CPU with a \
              function that takes long",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        (!context.slice.who.function.is_empty())
            .then(|| asked(&names::function_with_module(&context.slice.who), context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=20000000 function=long_call module=faults irq=call_function_single from=0 \
                comm=insmod",
        silent: "ipi ns=2000 irq=reschedule from=0 comm=cat",
    },
    ..CulpritRule::DEFAULT
};

/// The function that ran, and the thread that requested it.
pub(super) fn asked(function: &str, slice: &model::run::Slice) -> String {
    let who = &slice.who;
    match (who.from_cpu, who.comm.as_str()) {
        (None, _) => format!("{function} ran in an interrupt from another CPU"),
        (Some(cpu), "") => format!("{function} ran for CPU {cpu}"),
        (Some(cpu), comm) => format!("{function} ran for {} on CPU {cpu}", names::thread_name(comm)),
    }
}

#[cfg(test)]
mod tests {
    use super::asked;
    use model::run::{Slice, Who};
    use model::units::Cpu;

    #[test]
    fn the_sender_is_named_as_far_as_it_is_known() {
        let slice = |comm: &str, from_cpu| Slice {
            who: Who { comm: comm.into(), from_cpu, ..Who::default() },
            ..Slice::default()
        };
        assert_eq!(asked("f", &slice("kworker/0:1", Some(Cpu(0)))), "f ran for kworker on CPU 0");
        assert_eq!(asked("f", &slice("", Some(Cpu(2)))), "f ran for CPU 2");
        assert_eq!(asked("f", &slice("cat", None)), "f ran in an interrupt from another CPU");
    }
}
