//! `kernel.*` sysctls, the scheduler's files in debugfs, RCU, the lockup detectors.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{
    DEADLINE, HALT_POLLING, LOCKUP_WATCHDOGS, PARAMETERS, RT_GROUP, SCHED_DEBUG_C, SYSCTL_KERNEL, TIMEKEEPING,
};
use model::setting::{Comparison, Risk};

const SOFT: &str = "/proc/sys/kernel/soft_watchdog";
const HARD: &str = "/proc/sys/kernel/nmi_watchdog";

/// Runtime of a deadline server, in ns.
const SERVER: Control = Control {
    accepts: Accepted::Number(0, i64::MAX),
    gives_up: &["0"],
    reason: "seen on 6.12: a smaller runtime or period is refused with EBUSY unless sched_rt_runtime_us is \
             -1, and that can only be lowered again after the server's runtime is restored; a runtime above \
             the period is EINVAL, and so is a period below the runtime",
    source: SCHED_DEBUG_C,
    ..Control::DEFAULT
};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/proc/sys/kernel/sched_rt_runtime_us",
        accepts: Accepted::Number(-1, i32::MAX as i64),
        gives_up: &["-1"],
        reason: "-1 means unlimited, and admits deadline servers of any size; a limit is refused with EBUSY \
                 if deadline tasks and servers already use more",
        source: RT_GROUP,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/sched_rt_period_us",
        accepts: Accepted::Number(1, i32::MAX as i64),
        risk: Risk::Medium,
        reason: "a period below sched_rt_runtime_us is EINVAL, so the order in which the two are written \
                 depends on the direction",
        source: RT_GROUP,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/sched_rr_timeslice_ms",
        accepts: Accepted::Number(1, i32::MAX as i64),
        reason: "0 and negative values set the default of 100, so they cannot be read back",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control { pattern: "/sys/kernel/debug/sched/fair_server/cpu#/runtime", ..SERVER },
    Control {
        pattern: "/sys/kernel/debug/sched/fair_server/cpu#/period",
        accepts: Accepted::Number(100_000, i64::MAX),
        gives_up: &[],
        source: DEADLINE,
        ..SERVER
    },
    Control { pattern: "/sys/kernel/debug/sched/ext_server/cpu#/runtime", ..SERVER },
    Control {
        pattern: "/sys/kernel/debug/sched/llc_balancing/enabled",
        accepts: Accepted::Number(0, 1),
        reason: "reads back as written, even on machines with one last-level cache, where it has no effect",
        source: SCHED_DEBUG_C,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/debug/sched/preempt",
        readback: Comparison::Choice,
        accepts: Accepted::Words(&["none", "voluntary", "full", "lazy"]),
        reason: "lists the models that the kernel has, the active one in parentheses; any other is EINVAL",
        source: PARAMETERS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/watchdog",
        gives_up: &["0"],
        partners: &[SOFT, HARD],
        restored_first: &[SOFT, HARD],
        reason: "switches both detectors; before 6.14, if one of them is read while this is 0, a later 1 \
                 enables neither, so they are written without being read before this is restored",
        source: LOCKUP_WATCHDOGS,
        ..Control::DEFAULT
    },
    Control {
        pattern: SOFT,
        readback: Comparison::Unread,
        gives_up: &["0"],
        reason: "before 6.14, reading it while watchdog is 0 changes the effect of a later 1",
        source: LOCKUP_WATCHDOGS,
        ..Control::DEFAULT
    },
    Control {
        pattern: HARD,
        readback: Comparison::Unread,
        gives_up: &["0"],
        optional: true,
        reason: "like soft_watchdog; a guest without performance counters refuses it (EACCES, before 6.12 \
                 ENOTSUPP)",
        source: LOCKUP_WATCHDOGS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/watchdog_cpumask",
        readback: Comparison::List,
        accepts: Accepted::Cpus,
        risk: Risk::Medium,
        reason: "a CPU list in spite of its name; a hang of a CPU outside of it is not reported",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/watchdog_thresh",
        accepts: Accepted::Number(0, 60),
        gives_up: &["0"],
        reason: "0 switches the detectors off",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/printk",
        accepts: Accepted::Number(1, 15),
        first_of_several: true,
        reason: "the first of its four numbers is the console's level",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/printk_devkmsg",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["on", "off", "ratelimit"]),
        reason: "EINVAL if printk.devkmsg= is on the command line",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/printk/parameters/ignore_loglevel",
        readback: Comparison::Exact,
        accepts: Accepted::Words(&["N", "Y"]),
        reason: "a module flag reads back as a letter, however it was written",
        source: PARAMETERS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/timer_migration",
        source: SYSCTL_KERNEL,
        reason: "if off, timers stay on idle CPUs and wake them",
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/numa_balancing",
        accepts: Accepted::Number(0, 3),
        risk: Risk::Medium,
        reason: "1 balances tasks and their memory, 2 moves memory between tiers",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/sched_schedstats",
        reason: "scheduler statistics, which tools may read",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/task_delayacct",
        reason: "delay statistics, which tools may read",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/proc/sys/kernel/stack_tracer_enabled",
        reason: "the stack tracer",
        source: SYSCTL_KERNEL,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/rcu_normal",
        reason: "1 overrides rcu_expedited",
        source: PARAMETERS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/rcu_expedited",
        accepts: Accepted::Number(0, i32::MAX as i64),
        reason: "a count of its users, which the kernel raises and lowers itself",
        source: PARAMETERS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        readback: Comparison::Exact,
        accepts: Accepted::Clocksource,
        risk: Risk::Medium,
        reason: "an unknown name is accepted without an error, and nothing changes",
        source: TIMEKEEPING,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/module/kvm/parameters/halt_poll_ns",
        accepts: Accepted::Number(0, u32::MAX as i64),
        reason: "nanoseconds; for guests without a limit set by themselves",
        source: HALT_POLLING,
        ..Control::DEFAULT
    },
];
