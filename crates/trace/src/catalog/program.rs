//! Events about the threads of one program, which a hunt does not record: timers started, page
//! faults, memory changes and system calls.
//!
//! Source: include/trace/events/{timer,sched,mmap_lock,syscalls}.h,
//! arch/x86/include/asm/trace/exceptions.h (from 6.14 on include/trace/events/exceptions.h).

use super::EventSpec;
use crate::event::{Task, What};

/// The last one slows down every process while enabled, and is armed only on request.
pub const PROGRAM: &[EventSpec] = &[
    // The mode is recorded since 4.16.
    EventSpec::new("timer", "hrtimer_start", &["function"], |f| {
        Some(What::TimerArmed { function: f.address(0)?, mode: f.address(1).map(|mode| mode as u32) })
    })
    .with_optional(&["mode"]),
    EventSpec::new("sched", "sched_waking", &["comm", "pid", "prio", "target_cpu"], |f| {
        let task = Task { comm: f.text(0)?, pid: f.small(1)?, prio: f.small(2)? };
        Some(What::Waking { task, target: f.cpu(3)? })
    }),
    EventSpec::new("sched", "sched_migrate_task", &["pid", "orig_cpu", "dest_cpu"], |f| {
        Some(What::Migrate { pid: f.small(0)?, from: f.cpu(1)?, to: f.cpu(2)? })
    }),
    EventSpec::new("exceptions", "page_fault_user", &["address", "ip"], |f| {
        Some(What::FaultAt { address: f.address(0)?, instruction: f.address(1)? })
    }),
    // Requires memcg_id (6.13): before that the kernel looked up the control group's name at each
    // lock, and until 6.11 took a lock of its own for that (mm/mmap_lock.c).
    EventSpec::new("mmap_lock", "mmap_lock_acquire_returned", &["write", "memcg_id"], |f| {
        Some(What::MemoryLocked { write: f.int(0)? != 0 })
    }),
    EventSpec::new("raw_syscalls", "sys_enter", &["id", "args"], |f| {
        let arg = |at| f.element(1, at);
        Some(What::SyscallEntry { id: f.int(0)?, args: [arg(0)?, arg(1)?, arg(2)?, arg(3)?] })
    }),
];
