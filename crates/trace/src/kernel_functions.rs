//! Classification of kernel functions by name, such as helpers and functions of the kernel's own
//! timers.
//!
//! Sources: kernel/sched/core.c, kernel/locking/spinlock.c, kernel/time/, arch/x86/entry.

use model::run::Who;

/// True for functions that lock, unlock, or switch interrupts on behalf of their caller.
pub(crate) fn is_lock_helper(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    let raw = [
        "raw_spin_",
        "raw_read_",
        "raw_write_",
        "do_raw_",
        "spin_",
        "read_unlock",
        "write_unlock",
        "local_bh_",
    ];
    raw.iter().any(|prefix| bare.starts_with(prefix))
        || matches!(
            bare,
            "local_irq_enable"
                | "local_irq_restore"
                | "raw_local_irq_restore"
                | "arch_local_irq_restore"
                | "arch_local_irq_enable"
                | "native_irq_enable"
                | "trace_hardirqs_on"
                | "trace_hardirqs_on_prepare"
                | "rt_spin_lock"
                | "rt_spin_unlock"
                | "migrate_enable"
                | "preempt_count_sub"
                | "preempt_enable"
        )
}

/// True for functions that switch threads, or check for a switch.
pub(crate) fn is_scheduler(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    let starts =
        ["schedule", "preempt_schedule", "dynamic_preempt_schedule", "dynamic_cond_resched", "ttwu_"];
    starts.iter().any(|prefix| bare.starts_with(prefix))
        || matches!(
            bare,
            "cond_resched"
                | "cond_resched_lock"
                | "might_resched"
                | "dynamic_might_resched"
                | "try_to_wake_up"
        )
        || matches!(bare, "wake_up_process" | "wake_up_q" | "wake_up_state" | "default_wake_function")
        || matches!(bare, "rt_mutex_schedule" | "io_schedule" | "traceiter_sched_switch")
}

/// True for the exit path of an interrupt or a system call: the interrupted code is below it, or is
/// user space.
pub(crate) fn is_entry_code(function: &str) -> bool {
    let starts = ["irqentry_exit", "raw_irqentry_exit", "exit_to_user_mode", "syscall_exit", "sysvec_"];
    starts.iter().any(|prefix| function.starts_with(prefix))
        || ["asm_", "el0", "el1", "do_el0", "ret_to_user", "ret_from_fork", "arm64_preempt_schedule_irq"]
            .iter()
            .any(|prefix| function.starts_with(prefix))
        || matches!(function, "preempt_schedule_irq" | "do_syscall_64" | "invoke_syscall")
        || function.starts_with("entry_SYSCALL")
        || function.starts_with("do_notify_resume")
}

/// True for functions that only wait or read the time: the time counts for their caller.
pub(crate) fn passes_time(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    // Indirect calls go through thunks (arch/x86/lib/retpoline.S).
    if bare.starts_with("x86_indirect_") || bare.starts_with("x86_return_thunk") {
        return true;
    }
    let starts = ["delay", "const_udelay", "ktime_get", "read_tsc", "read_hpet", "native_sched_clock"];
    starts
        .iter()
        .any(|prefix| bare == *prefix || bare.strip_prefix(prefix).is_some_and(|r| r.starts_with('_')))
        || matches!(
            bare,
            "udelay"
                | "ndelay"
                | "mdelay"
                | "sched_clock"
                | "local_clock"
                | "kvm_clock_get_cycles"
                | "pvclock_clocksource_read_nowd"
                | "pvclock_clocksource_read"
                | "acpi_pm_read"
                | "arch_counter_get_cntvct"
                | "arch_counter_read"
        )
}

/// True for functions that spin until another CPU releases a lock; if the architecture's fast path
/// waits in place, also for functions that take a raw lock (kernel/locking/qspinlock.c, qrwlock.c;
/// arch/riscv, arch/arm).
pub(crate) fn spins_for_lock(function: &str, machine: &str) -> bool {
    let slow = matches!(
        function,
        "native_queued_spin_lock_slowpath"
            | "queued_spin_lock_slowpath"
            | "__pv_queued_spin_lock_slowpath"
            | "pv_wait_head_or_lock"
            | "virt_spin_lock"
            | "resilient_queued_spin_lock_slowpath"
            | "resilient_tas_spin_lock"
            | "queued_read_lock_slowpath"
            | "queued_write_lock_slowpath"
            | "hv_qlock_wait"
            | "kvm_wait"
            | "xen_qlock_wait"
    );
    let queued = matches!(machine, "x86_64" | "aarch64");
    let takes = || {
        let bare = function.trim_start_matches('_');
        let raw = ["raw_spin_lock", "raw_read_lock", "raw_write_lock", "do_raw_spin_lock", "arch_spin_lock"];
        raw.iter().any(|prefix| bare.starts_with(prefix))
    };
    slow || (!queued && takes())
}

/// True for functions that end by releasing a raw lock (kernel/locking/spinlock.c).
pub(crate) fn unlocks_raw(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    ["raw_spin_unlock", "raw_read_unlock", "raw_write_unlock"].iter().any(|prefix| bare.starts_with(prefix))
}

/// True for the function of the tick's timer; its name depends on the kernel version
/// (kernel/time/tick-sched.c).
pub fn is_tick(function: &str) -> bool {
    matches!(function, "tick_nohz_handler" | "tick_sched_timer")
}

/// True for functions of the kernel's own timers: waking, ticking, bandwidth. None of them runs for
/// long.
pub(crate) fn is_core_timer(function: &str) -> bool {
    is_tick(function)
        || matches!(
            function,
            "hrtimer_wakeup"
                | "posix_timer_fn"
                | "timerfd_tmrproc"
                | "timerfd_alarmproc"
                | "it_real_fn"
                | "sched_rt_period_timer"
                | "dl_task_timer"
                | "inactive_task_timer"
                | "sched_cfs_period_timer"
                | "sched_cfs_slack_timer"
                | "hrtick"
                | "alarmtimer_fired"
                | "bc_handler"
                | "perf_mux_hrtimer_handler"
                | "perf_swevent_hrtimer"
                | "psi_poll_timer"
                | "napi_watchdog"
                | "idle_inject_timer_fn"
                | "watchdog_timer_fn"
        )
}

/// Name of a softirq (include/linux/interrupt.h).
pub fn softirq(vec: u8) -> &'static str {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::from(vec)).copied().unwrap_or("softirq")
}

/// True for softirqs in which timers expire.
pub(crate) fn is_timer_softirq(vec: u8) -> bool {
    matches!(vec, 1 | 8)
}

/// Splits `function [module]` into the two fields of `who`.
pub(crate) fn named(who: Who, function: &str) -> Who {
    let (function, module) = match function.split_once(" [") {
        Some((function, module)) => (function, module.trim_end_matches(']')),
        None => (function, ""),
    };
    Who { function: function.to_owned(), module: module.to_owned(), ..who }
}

/// True for the entry code of an interrupt, which saves the registers.
pub fn is_entry(name: &str) -> bool {
    // arch/x86/include/asm/idtentry.h; before Linux 5.8, entry_64.S; with FRED, entry_64_fred.S.
    let x86 = name.starts_with("asm_sysvec_")
        || matches!(
            name,
            "asm_common_interrupt" | "asm_exc_xen_hypervisor_callback" | "apic_timer_interrupt"
        )
        || name.starts_with("asm_fred_entrypoint_");
    // arch/arm64/kernel/entry.S; the names without a suffix are those before Linux 5.14.
    let arm =
        matches!(name, "el1h_64_irq" | "el1t_64_irq" | "el1h_64_fiq" | "el1t_64_fiq" | "el1_irq" | "el0_irq")
            || (name.starts_with("el0t_") && (name.ends_with("_irq") || name.ends_with("_fiq")));
    x86 || arm
}

/// Functions called with interrupts off that enable them near their last instructions: an interrupt
/// in one can only have arrived then (include/linux/spinlock_api_smp.h, rwlock_api_smp.h).
const UNLOCKS: [&str; 6] = [
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "_raw_read_unlock_irq",
    "_raw_read_unlock_irqrestore",
    "_raw_write_unlock_irq",
    "_raw_write_unlock_irqrestore",
];

/// Functions entered with interrupts off that enable them and then do little; for use if no code
/// can be read. finish_lock_switch in kernel/sched/core.c; kernel/softirq.c, the last name since
/// Linux 6.10.
const OPENERS: [&str; 4] = ["finish_task_switch", "preempt_schedule_irq", "__do_softirq", "handle_softirqs"];

/// Functions in which an idle CPU enables interrupts: the wait there delays no interrupt.
const IDLE: [&str; 17] = [
    "acpi_idle_do_entry",
    "acpi_idle_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpu_startup_entry",
    "cpuidle_enter_state",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "intel_idle",
    "intel_idle_irq",
    "mwait_idle",
    "poll_idle",
    "pv_native_safe_halt",
    "native_safe_halt",
];

/// True for functions that enable interrupts near their last instructions.
pub fn enables_irqs_at_end(function: &str) -> bool {
    UNLOCKS.contains(&function)
}

/// True for functions that enable interrupts, by name alone.
pub fn enables_irqs(function: &str) -> bool {
    enables_irqs_at_end(function) || OPENERS.contains(&function)
}

/// True for functions in which a CPU idles.
pub fn is_idle_function(function: &str) -> bool {
    IDLE.contains(&function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_distinguished_from_their_callers() {
        for helper in ["_raw_spin_unlock_irqrestore", "__raw_spin_unlock_irq", "_raw_read_unlock_irq"] {
            assert!(is_lock_helper(helper), "{helper}");
        }
        for other in ["inject_irqs_off", "rawv6_rcv", "read_pages", "spi_sync"] {
            assert!(!is_lock_helper(other) && !is_scheduler(other) && !is_entry_code(other), "{other}");
        }
        for scheduler in ["__schedule", "preempt_schedule_thunk", "__cond_resched", "schedule_timeout"] {
            assert!(is_scheduler(scheduler), "{scheduler}");
        }
        assert!(
            is_entry_code("irqentry_exit_cond_resched") && is_entry_code("asm_sysvec_apic_timer_interrupt")
        );
    }

    #[test]
    fn waiting_for_a_lock_is_known_from_its_slow_path() {
        for slow in
            ["native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath", "queued_write_lock_slowpath"]
        {
            assert!(spins_for_lock(slow, "x86_64") && !passes_time(slow), "{slow}");
        }
        // With a separate slow path, taking a lock does not wait; if the function waits in place,
        // it does.
        assert!(!spins_for_lock("_raw_spin_lock", "x86_64") && spins_for_lock("_raw_spin_lock", "riscv64"));
        assert!(!spins_for_lock("rt_spin_lock", "riscv64") && !spins_for_lock("mutex_spin_on_owner", ""));
        assert!(unlocks_raw("_raw_spin_unlock_irqrestore") && !unlocks_raw("rt_spin_unlock"));
        for helper in [
            "delay_tsc",
            "__const_udelay",
            "__delay",
            "ktime_get_mono_fast_ns",
            "read_tsc",
            "__x86_indirect_thunk_array",
        ] {
            assert!(passes_time(helper), "{helper}");
        }
        assert!(!passes_time("delayed_work_timer_fn") && !passes_time("ktime_getter"));
    }

    #[test]
    fn a_function_brings_its_module() {
        let who = named(Who::default(), "hold [faults]");
        assert_eq!((who.function.as_str(), who.module.as_str()), ("hold", "faults"));
        assert_eq!(named(Who::default(), "do_exit").module, "");
        assert_eq!((softirq(3), softirq(200)), ("NET_RX", "softirq"));
    }
}
