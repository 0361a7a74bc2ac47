//! Other threads of the fair scheduler, where the one that came late is one too.

use super::sources::SCHED7;
use super::who;
use super::{Apart, Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "fair-neighbour",
    title: "other threads of the fair scheduler",
    looks: "The thread that came late is under SCHED_OTHER, and others of the same class run before it.",
    tell: "By the priorities in the switch: both are 100 or more in the kernel's count. A fair thread before a real-time one is \
           never named by this rule.",
    remedy: "give the thread a real-time policy (SCHED_FIFO), or a CPU of its own",
    kinds: &[Slice::Thread],
    sources: &[Source { title: "sched(7), SCHED_OTHER", url: SCHED7 }],
    evidence: Evidence::Documented,
    cured_by: &["cpu-isolation", "cgroup-cpuset", "cpuset-partition", "group-placement"],
    provoke: "a thread under SCHED_OTHER as the victim, and a busy loop on its CPU",
    apart: Apart::Thread,
    general: true,
    matches: |sight| {
        let who = &sight.slice.who;
        let both =
            who.prio >= 100 && sight.spike.victim.prio >= 100 && !who.comm.is_empty() && !sight.of_victim();
        both.then(|| format!("{} had the CPU", who::described(who)))
    },
    examples: Examples {
        fires: "victim comm=onbeat prio=120\nthread ns=3000000 comm=stress pid=900 prio=120",
        silent: "victim comm=onbeat prio=19\nthread ns=3000000 comm=stress pid=900 prio=120",
    },
    ..Culprit::DEFAULT
};
