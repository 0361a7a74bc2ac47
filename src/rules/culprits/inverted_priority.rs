//! A thread of lower priority holds what the one that came late waits for.

use super::sources::{PI_FUTEX, SCHED7};
use super::who;
use super::{Apart, Culprit, Examples};
use crate::rules::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "inverted-priority",
    title: "a priority inversion in user space",
    looks: "The thread that came late sleeps on a lock in user space, and is woken by a thread of lower priority, which itself was \
           held up by others in between.",
    tell: "By the waking: it comes from the task that held the lock, not from a timer, and no priority was inherited. The kernel \
           does not know locks of user space that have no waiters, so who held it is who woke.",
    remedy: "give the mutex the protocol PTHREAD_PRIO_INHERIT, and share none without it between threads of different priority",
    kinds: &[Slice::PriorityInversion],
    sources: &[
        Source { title: "kernel: priority inheritance of futexes", url: PI_FUTEX },
        Source { title: "sched(7)", url: SCHED7 },
    ],
    evidence: Evidence::Documented,
    cured_by: &["rcu-boost"],
    provoke: "three threads on one CPU: a low one that holds a plain pthread mutex, a middle one that spins, a high one that takes \
           the mutex",
    apart: Apart::Thread,
    general: true,
    matches: |sight| {
        Some(match sight.slice.who.comm.as_str() {
            "" => "no priority was inherited".to_owned(),
            _ => format!(
                "{} had the CPU meanwhile, and no priority was inherited",
                who::described(&sight.slice.who)
            ),
        })
    },
    examples: Examples {
        fires: "priority-inversion ns=20000000 comm=low prio=98",
        silent: "thread ns=20000000 comm=low prio=98",
    },
};
