//! The CPU's frequency is changed.

use super::context::SliceContext;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{CPUFREQ, CPUFREQ_GOVERNOR_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "frequency-change",
    title: "a CPU frequency change",
    signature: "A governor's work, its thread sugov:N, or a section with interrupts off that sets the \
                frequency (on some boards through firmware); or a frequency event between wake-up and \
                running.",
    detection: "By the thread's name, the work's function, or exact names of governors in the stack. Changes \
                by the processor itself have no event.",
    remedy: "set a governor that does not change the frequency (performance), or raise the minimum frequency \
             to the maximum",
    kinds: &[
        SliceKind::Frequency,
        SliceKind::IrqsOff,
        SliceKind::PreemptOff,
        SliceKind::Thread,
        SliceKind::Workqueue,
    ],
    sources: &[
        Source { title: "kernel: frequency scaling", url: CPUFREQ },
        Source { title: "kernel: drivers/cpufreq/cpufreq_governor.c", url: CPUFREQ_GOVERNOR_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["cpufreq-governor", "cpufreq-limit"],
    provoke: "the ondemand or schedutil governor and a changing load, on a machine whose driver sleeps or \
              calls firmware",
    matches,
    examples: SpikeExamples {
        fires: "irqs-off ns=440000 comm=kworker/2:1 prio=120 function=clk_scu_atf_set_cpu_rate \
                stack=clk_scu_atf_set_cpu_rate<clk_set_rate<od_dbs_update<dbs_work_handler",
        silent: "irqs-off ns=440000 comm=kworker/2:1 prio=120 function=clk_scu_atf_set_cpu_rate \
                 stack=clk_scu_atf_set_cpu_rate<clk_set_rate",
    },
    ..CulpritRule::DEFAULT
};

/// Functions of governors, and those that set the frequency for them.
const FUNCTIONS: &[&str] = &[
    "__cpufreq_driver_target",
    "cpufreq_driver_fast_switch",
    "cs_dbs_update",
    "dbs_work_handler",
    "od_dbs_update",
    "sugov_work",
];

fn matches(context: &SliceContext) -> Option<String> {
    let slice = context.slice;
    if slice.kind == SliceKind::Frequency {
        return Some("the frequency changed between wake-up and running".to_owned());
    }
    if slice.kind == SliceKind::Thread && slice.who.comm.starts_with("sugov:") {
        return Some("the schedutil governor's thread ran".to_owned());
    }
    context.stack_function_in(FUNCTIONS).map(|function| format!("{function} in the stack"))
}
