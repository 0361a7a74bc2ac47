//! RCU grace periods that interrupt CPUs to end sooner.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{EXPEDITED, PARAMETERS};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "expedited-grace-period",
    title: "an expedited grace period of RCU",
    signature: "An interrupt from another CPU, in which rcu_exp_handler runs; often several in a \
                burst.",
    detection: "By the function's exact name, including that of kernels up to 4.19. The sender is a kernel \
                thread of RCU, not the thread that waited for the grace period.",
    remedy: "make all grace periods normal: rcu_normal, or rcupdate.rcu_normal_after_boot=1",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "kernel: expedited grace periods", url: EXPEDITED },
        Source { title: "kernel: kernel-parameters, rcupdate.rcu_normal", url: PARAMETERS },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["rcu-expedited"],
    provoke: "creating and removing network namespaces, or mounting and unmounting in a loop, on \
              another CPU",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=rcu_exp_handler irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=rcu_barrier_handler irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &["rcu_exp_handler", "sync_rcu_exp_handler"];
