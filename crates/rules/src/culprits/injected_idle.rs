//! A thread that keeps the CPU idle to cool it.

use super::sources::{IDLE_INJECT_C, POWERCLAMP};
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "injected-idle",
    title: "idle time injected to cool the CPU",
    looks: "A thread idle_inject/N, kidle_inj/N in older kernels, runs in the place of all others, for milliseconds and again and \
           again.",
    tell: "By the thread's name; its priority is 50. That it runs says that the kernel's power capping or a thermal device asks \
           for it.",
    remedy: "cool the machine better, or lower its frequency for good, and switch the cooling device off",
    kinds: &[Slice::Thread],
    sources: &[
        Source { title: "kernel: intel_powerclamp", url: POWERCLAMP },
        Source { title: "kernel: drivers/powercap/idle_inject.c", url: IDLE_INJECT_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["idle-injection"],
    provoke: "writing 50 to cur_state of the cooling device intel_powerclamp, on Intel hardware",
    matches: |sight| {
        let comm = sight.slice.who.comm.as_str();
        let injects = comm.starts_with("idle_inject/") || comm.starts_with("kidle_inj/");
        injects.then(|| format!("{} ran", comm.split('/').next().unwrap_or(comm)))
    },
    examples: Examples {
        fires: "victim comm=audio prio=69\nthread ns=6000000 comm=idle_inject/1 pid=40 prio=49",
        silent: "victim comm=audio prio=69\nthread ns=6000000 comm=idle_injector pid=40 prio=49",
    },
    ..Culprit::DEFAULT
};
