//! Where the documents are that rules name; a rule adds the place in the document.

/// Real-time kernel configuration: an expectation and a severity for each option.
pub const RT_CONFIG: &str = "https://docs.kernel.org/core-api/real-time/kernel-configuration.html";
/// Considering hardware.
pub const RT_HARDWARE: &str = "https://docs.kernel.org/core-api/real-time/hardware.html";
/// CPU isolation.
pub const ISOLATION: &str = "https://docs.kernel.org/admin-guide/cpu-isolation.html";
/// The kernel's command line.
pub const PARAMETERS: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
/// `/proc/sys/kernel`.
pub const SYSCTL_KERNEL: &str = "https://docs.kernel.org/admin-guide/sysctl/kernel.html";
/// Real-time group scheduling, with throttling.
pub const RT_GROUP: &str = "https://docs.kernel.org/scheduler/sched-rt-group.html";
/// Deadline scheduling, with its servers.
pub const DEADLINE: &str = "https://docs.kernel.org/scheduler/sched-deadline.html";
/// The lockup detectors.
pub const LOCKUP_WATCHDOGS: &str = "https://docs.kernel.org/admin-guide/lockup-watchdogs.html";
/// Less work of the kernel's own threads on some CPUs.
pub const PER_CPU_KTHREADS: &str = "https://docs.kernel.org/admin-guide/kernel-per-CPU-kthreads.html";
/// What keeps RCU from ending its grace periods.
pub const RCU_STALLS: &str = "https://docs.kernel.org/RCU/stallwarn.html";
/// Ticks, and what stops them.
pub const NO_HZ: &str = "https://docs.kernel.org/timers/no_hz.html";
/// Clocksources.
pub const TIMEKEEPING: &str = "https://docs.kernel.org/timers/timekeeping.html";
/// Vulnerabilities of processors.
pub const HW_VULN: &str = "https://docs.kernel.org/admin-guide/hw-vuln/index.html";
/// Serial consoles.
pub const SERIAL_CONSOLE: &str = "https://docs.kernel.org/admin-guide/serial-console.html";
/// Polling before a guest halts.
pub const GUEST_POLLING: &str = "https://docs.kernel.org/virt/guest-halt-polling.html";
/// Files of the machine check code.
pub const SYSFS_MCE: &str = "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-mce";
/// High-resolution timers, source.
pub const HRTIMER_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/time/hrtimer.c?h=v6.12";
/// Which CPUs keep house, source.
pub const ISOLATION_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/isolation.c?h=v6.12";
/// The time stamp counter, source.
pub const TSC_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/kernel/tsc.c?h=v6.12";
