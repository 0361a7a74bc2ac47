//! A thread that keeps the CPU idle to cool it.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{IDLE_INJECT_C, POWERCLAMP};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "injected-idle",
    title: "idle time injected to cool the CPU",
    signature: "A thread idle_inject/N (kidle_inj/N in older kernels) repeatedly preempts all other threads \
                for milliseconds.",
    detection: "By the thread's name; its priority is 50. It runs because the kernel's power capping or a \
                thermal device requests it.",
    remedy: "improve the cooling of the CPU, or lower the frequency permanently, and switch the cooling device off",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "kernel: intel_powerclamp", url: POWERCLAMP },
        Source { title: "kernel: drivers/powercap/idle_inject.c", url: IDLE_INJECT_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["idle-injection"],
    provoke: "writing 50 to cur_state of the cooling device intel_powerclamp, on Intel hardware",
    matches: |context| {
        let comm = context.slice.who.comm.as_str();
        let injects = comm.starts_with("idle_inject/") || comm.starts_with("kidle_inj/");
        injects.then(|| format!("{} ran", comm.split('/').next().unwrap_or(comm)))
    },
    examples: SpikeExamples {
        fires: "victim comm=audio prio=69\nthread ns=6000000 comm=idle_inject/1 pid=40 prio=49",
        silent: "victim comm=audio prio=69\nthread ns=6000000 comm=idle_injector pid=40 prio=49",
    },
    ..CulpritRule::DEFAULT
};
