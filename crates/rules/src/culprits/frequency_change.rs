//! The CPU's frequency is changed.

use super::sources::{CPUFREQ, CPUFREQ_GOVERNOR_C};
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "frequency-change",
    title: "a change of the CPU's frequency",
    looks: "A governor's work, its thread sugov:N, or a section with interrupts off in which the frequency is set, by firmware on \
           some boards; or an event of a new frequency between wake-up and run.",
    tell: "By the thread's name, the work's function, or exact names of governors in the stack. Changes that the processor makes \
           by itself have no event.",
    remedy: "set a governor that does not change the frequency (performance), or the lowest frequency to the highest",
    kinds: &[Slice::Frequency, Slice::IrqsOff, Slice::PreemptOff, Slice::Thread, Slice::Workqueue],
    sources: &[
        Source { title: "kernel: frequency scaling", url: CPUFREQ },
        Source { title: "kernel: drivers/cpufreq/cpufreq_governor.c", url: CPUFREQ_GOVERNOR_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["cpufreq-governor", "cpufreq-limit"],
    provoke: "the ondemand or schedutil governor and a load that comes and goes, on a machine whose driver sleeps or calls firmware",
    matches: known,
    examples: Examples {
        fires: "irqs-off ns=440000 comm=kworker/2:1 prio=120 function=clk_scu_atf_set_cpu_rate stack=clk_scu_atf_set_cpu_rate<clk_set_rate<od_dbs_update<dbs_work_handler",
        silent: "irqs-off ns=440000 comm=kworker/2:1 prio=120 function=clk_scu_atf_set_cpu_rate stack=clk_scu_atf_set_cpu_rate<clk_set_rate",
    },
    ..Culprit::DEFAULT
};

/// Functions of governors, and of what sets the frequency for them.
const FUNCTIONS: &[&str] = &[
    "__cpufreq_driver_target",
    "cpufreq_driver_fast_switch",
    "cs_dbs_update",
    "dbs_work_handler",
    "od_dbs_update",
    "sugov_work",
];

fn known(sight: &super::Sight) -> Option<String> {
    let slice = sight.slice;
    if slice.kind == Slice::Frequency {
        return Some("the frequency changed between wake-up and run".to_owned());
    }
    if slice.kind == Slice::Thread && slice.who.comm.starts_with("sugov:") {
        return Some("the schedutil governor's thread ran".to_owned());
    }
    sight.in_stack(FUNCTIONS).map(|function| format!("{function} in the stack"))
}
