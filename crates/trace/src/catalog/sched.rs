//! Scheduling of threads.
//!
//! Source: include/trace/events/sched.h.

use super::EventSpec;
use crate::event::{Task, What};
use crate::fields::Fields;

const WAKE: &[&str] = &["comm", "pid", "prio", "target_cpu"];

/// Task from three consecutive fields: name, thread ID, priority.
#[inline(always)]
fn task(fields: &Fields, from: usize) -> Option<Task> {
    Some(Task { comm: fields.comm(from)?, pid: fields.i32(from + 1)?, prio: fields.i32(from + 2)? })
}

pub const EVENTS: &[EventSpec] = &[
    EventSpec::new(
        "sched",
        "sched_switch",
        &["prev_comm", "prev_pid", "prev_prio", "next_comm", "next_pid", "next_prio", "prev_state"],
        |f| Some(What::Switch { prev: task(f, 0)?, state: f.int(6)?, next: task(f, 3)? }),
    ),
    EventSpec::new("sched", "sched_waking", WAKE, |f| {
        Some(What::Waking { task: task(f, 0)?, target: f.cpu(3)? })
    }),
    EventSpec::new("sched", "sched_wakeup", WAKE, |f| {
        Some(What::Wakeup { task: task(f, 0)?, target: f.cpu(3)? })
    }),
    EventSpec::new("sched", "sched_wakeup_new", WAKE, |f| {
        Some(What::Wakeup { task: task(f, 0)?, target: f.cpu(3)? })
    }),
    EventSpec::new("sched", "sched_migrate_task", &["pid", "orig_cpu", "dest_cpu"], |f| {
        Some(What::Migrate { pid: f.small(0)?, from: f.cpu(1)?, to: f.cpu(2)? })
    }),
    EventSpec::new("sched", "sched_pi_setprio", &["pid", "oldprio", "newprio"], |f| {
        Some(What::Inherit { pid: f.small(0)?, old: f.small(1)?, new: f.small(2)? })
    }),
    EventSpec::new("sched", "sched_process_fork", &["child_pid"], |f| {
        Some(What::Fork { child: f.small(0)? })
    }),
    EventSpec::new("sched", "sched_process_exec", &["old_pid"], |f| Some(What::Exec { old: f.small(0)? })),
    EventSpec::new("sched", "sched_process_exit", &[], |_| Some(What::Exit)),
];
