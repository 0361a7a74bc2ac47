//! RCU's grace periods that interrupt CPUs to be over sooner.

use super::sources::{EXPEDITED, PARAMETERS};
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "expedited-grace-period",
    title: "an expedited grace period of RCU",
    looks: "An interrupt from another CPU, in which rcu_exp_handler runs; often several in a burst.",
    tell: "By the function's exact name, that of kernels up to 4.19 among them. Who waited for the grace period is not the \
           sender, which is a kernel thread of RCU.",
    remedy: "make all grace periods normal ones: rcu_normal, or rcupdate.rcu_normal_after_boot=1",
    kinds: &[Slice::Ipi],
    sources: &[
        Source { title: "kernel: expedited grace periods", url: EXPEDITED },
        Source { title: "kernel: kernel-parameters, rcupdate.rcu_normal", url: PARAMETERS },
    ],
    evidence: Evidence::Documented,
    cured_by: &["rcu-expedited"],
    provoke: "creating and removing network namespaces, or mounting and unmounting in a loop, on another CPU",
    matches: |sight| {
        sight.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, sight.slice))
    },
    examples: Examples {
        fires: "ipi ns=30000 function=rcu_exp_handler irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=rcu_barrier_handler irq=call_function from=0 comm=sender",
    },
    ..Culprit::DEFAULT
};

/// What other CPUs are asked to run.
const FUNCTIONS: &[&str] = &["rcu_exp_handler", "sync_rcu_exp_handler"];
