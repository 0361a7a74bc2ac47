//! Other events that take time or block threads: work queues, CPU hotplug, idle states, faults,
//! locks, consoles, system calls, stacks.
//!
//! Source: include/trace/events/{workqueue,cpuhp,power,lock,printk,preemptirq,syscalls}.h,
//! arch/x86/include/asm/trace/exceptions.h (from 6.14 on include/trace/events/exceptions.h),
//! kernel/trace/trace_entries.h.

use super::EventSpec;
use crate::event::What;
use crate::fixed_str::FixedStr;

/// Disabling and enabling of interrupts or preemption. The caller is an offset from `_stext`, and
/// stays one if that is unknown (0).
macro_rules! toggle {
    ($event:literal, $irqs:literal, $off:literal) => {
        EventSpec::new("preemptirq", $event, &["caller_offs"], |f| {
            Some(What::Toggle { irqs: $irqs, off: $off, caller: f.in_text(0)? })
        })
    };
}

/// Step of CPU hotplug. While a CPU goes offline, its state is above the target state
/// (kernel/cpu.c, `cpuhp_next_state`).
macro_rules! hotplug {
    ($event:literal) => {
        EventSpec::new("cpuhp", $event, &["cpu", "target", "idx", "fun"], |f| {
            let offline = f.int(2)? > f.int(1)?;
            Some(What::HotplugEntry { of: f.cpu(0)?, offline, function: f.address(3)? })
        })
    };
}

/// Not recorded by a hunt, which has no window of hours.
pub static SUSPEND: EventSpec = EventSpec::new("power", "suspend_resume", &[], |_| Some(What::Suspend));

/// Written by programs to `trace_marker`; not recorded by a hunt.
pub static MARK: EventSpec = EventSpec::new("ftrace", "print", &["buf"], |f| {
    Some(What::Mark { text: FixedStr::new(f.rest(0)?.trim_ascii_end()) })
});

pub const EVENTS: &[EventSpec] = &[
    EventSpec::new("workqueue", "workqueue_execute_start", &["function"], |f| {
        Some(What::WorkEntry { function: f.address(0)? })
    }),
    // The function is recorded since 5.6.
    EventSpec::new("workqueue", "workqueue_execute_end", &[], |f| {
        Some(What::WorkExit { function: f.address(0).unwrap_or(0) })
    })
    .with_optional(&["function"]),
    hotplug!("cpuhp_enter"),
    hotplug!("cpuhp_multi_enter"),
    EventSpec::new("cpuhp", "cpuhp_exit", &["cpu"], |f| Some(What::HotplugExit { of: f.cpu(0)? })),
    EventSpec::new("power", "cpu_idle", &["state"], |f| {
        let state = f.address(0)? as u32;
        Some(What::Idle { state: (state != u32::MAX).then_some(state) })
    }),
    EventSpec::new("power", "cpu_frequency", &["cpu_id", "state"], |f| {
        Some(What::Frequency { of: f.cpu(0)?, khz: f.small(1)? })
    }),
    EventSpec::new("exceptions", "page_fault_user", &[], |_| Some(What::Fault { user: true })),
    EventSpec::new("exceptions", "page_fault_kernel", &[], |_| Some(What::Fault { user: false })),
    EventSpec::new("lock", "contention_begin", &["lock_addr", "flags"], |f| {
        Some(What::ContentionBegin { lock: f.address(0)?, flags: f.small(1)? })
    }),
    EventSpec::new("lock", "contention_end", &["lock_addr"], |f| {
        Some(What::ContentionEnd { lock: f.address(0)? })
    }),
    EventSpec::new("lock", "contended_release", &["lock_addr"], |f| {
        Some(What::ContendedRelease { lock: f.address(0)? })
    })
    .of_newer_kernels(),
    EventSpec::new("printk", "console", &[], |_| Some(What::Console)),
    toggle!("irq_disable", true, true),
    toggle!("irq_enable", true, false),
    toggle!("preempt_disable", false, true),
    toggle!("preempt_enable", false, false),
    EventSpec::new("raw_syscalls", "sys_enter", &["id", "args"], |f| {
        let arg = |at| f.element(1, at);
        Some(What::SyscallEntry { id: f.int(0)?, args: [arg(0)?, arg(1)?, arg(2)?, arg(3)?] })
    }),
    EventSpec::new("raw_syscalls", "sys_exit", &["id"], |f| Some(What::SyscallExit { id: f.int(0)? })),
    EventSpec::new("ftrace", "kernel_stack", &["size", "caller"], |f| {
        Some(What::Stack { frames: f.frames(1, f.small(0)?)?, enables: None })
    }),
];
