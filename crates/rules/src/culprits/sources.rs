//! Documents that culprits cite, in addition to those of the knobs.

pub use super::super::knobs::sources::*;

pub const GENERIC_IRQ: &str = "https://docs.kernel.org/core-api/genericirq.html";
/// Lock types and their rules.
pub const LOCKTYPES: &str = "https://docs.kernel.org/locking/locktypes.html";
/// The osnoise tracer: kinds of interference, and their order.
pub const OSNOISE: &str = "https://docs.kernel.org/trace/osnoise-tracer.html";
/// Patching of code on x86, source: `do_sync_core`.
pub const ALTERNATIVE_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/kernel/alternative.c?h=v6.12";
/// The clocksource watchdog, source.
pub const CLOCKSOURCE_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/time/clocksource.c?h=v6.12";
/// Governors that work by timers, source: `dbs_work_handler`.
pub const CPUFREQ_GOVERNOR_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/cpufreq/cpufreq_governor.c?h=v6.12";
/// Memory error reporting, source: `edac_mc_workq_function`.
pub const EDAC_MC_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/edac/edac_mc.c?h=v6.12";
/// Performance events, source: `remote_function`.
pub const EVENTS_CORE_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/events/core.c?h=v6.12";
/// Expedited grace periods of RCU.
pub const EXPEDITED: &str =
    "https://docs.kernel.org/RCU/Design/Expedited-Grace-Periods/Expedited-Grace-Periods.html";
/// The hardware latency detector.
pub const HWLAT: &str = "https://docs.kernel.org/trace/hwlat_detector.html";
/// Idle injection, source: its threads.
pub const IDLE_INJECT_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/powercap/idle_inject.c?h=v6.12";
/// Machine checks, source: `mce_timer_fn`.
pub const MCE_CORE_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/kernel/cpu/mce/core.c?h=v6.12";
/// membarrier(2), source: the functions that other CPUs run.
pub const MEMBARRIER_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/membarrier.c?h=v6.12";
pub const MEMBARRIER2: &str = "https://man7.org/linux/man-pages/man2/membarrier.2.html";
/// mlock(2): measures of real-time processes against page faults.
pub const MLOCK2: &str = "https://man7.org/linux/man-pages/man2/mlock.2.html";
pub const MSR4: &str = "https://man7.org/linux/man-pages/man4/msr.4.html";
/// Registers of other CPUs, source: `__rdmsr_on_cpu`.
pub const MSR_SMP_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/lib/msr-smp.c?h=v6.12";
pub const MUTEX_PROTOCOL3: &str =
    "https://man7.org/linux/man-pages/man3/pthread_mutexattr_setprotocol.3p.html";
/// Priority inheritance of futexes.
pub const PI_FUTEX: &str = "https://docs.kernel.org/locking/pi-futex.html";
/// Messages to consoles, source.
pub const PRINTK_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/printk/printk.c?h=v6.12";
/// `/proc/stat`, including steal.
pub const PROC_STAT5: &str = "https://man7.org/linux/man-pages/man5/proc_stat.5.html";
/// Lock contention in the real-time mutex and elsewhere: the trace events.
pub const LOCK_EVENTS_H: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/trace/events/lock.h?h=v6.12";
/// The design of rt-mutexes.
pub const RT_MUTEX_DESIGN: &str = "https://docs.kernel.org/locking/rt-mutex-design.html";
/// Rules for real-time applications, and the kernel's monitor of them.
pub const RTAPP: &str = "https://docs.kernel.org/trace/rv/monitor_rtapp.html";
/// The scheduler's core, source: `hrtick_start` as of 7.1.
pub const SCHED_CORE_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/core.c?h=v7.1";
/// Calls of functions on other CPUs, source.
pub const SMP_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/smp.c?h=v6.12";
/// Softirqs and their threads, source.
pub const SOFTIRQ_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/softirq.c?h=v6.12";
pub const STOP_MACHINE_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/stop_machine.c?h=v6.12";
/// System calls: the trace events.
pub const SYSCALLS_H: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/trace/events/syscalls.h?h=v6.12";
/// TLB flushes on x86.
pub const TLB: &str = "https://docs.kernel.org/arch/x86/tlb.html";
/// TLB flushes on x86, source: `flush_tlb_func`, `do_kernel_range_flush`.
pub const TLB_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/mm/tlb.c?h=v6.12";
/// Statistics of memory, source: `vmstat_update`.
pub const VMSTAT_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/mm/vmstat.c?h=v6.12";
