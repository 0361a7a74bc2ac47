//! Where the documents are that rules name; a rule adds the place in the document.

/// cgroup v2.
pub const CGROUP_V2: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
/// Deadline scheduling, with its servers.
pub const DEADLINE: &str = "https://docs.kernel.org/scheduler/sched-deadline.html";
/// Delay accounting.
pub const DELAY_ACCOUNTING: &str = "https://docs.kernel.org/accounting/delay-accounting.html";
/// Trace events.
pub const EVENTS: &str = "https://docs.kernel.org/trace/events.html";
/// The function tracer and its directory.
pub const FTRACE: &str = "https://docs.kernel.org/trace/ftrace.html";
/// Code coverage of the kernel.
pub const GCOV: &str = "https://docs.kernel.org/dev-tools/gcov.html";
/// High resolution timers and dynamic ticks.
pub const HIGHRES: &str = "https://docs.kernel.org/timers/highres.html";
/// CPU isolation.
pub const ISOLATION: &str = "https://docs.kernel.org/admin-guide/cpu-isolation.html";
/// The kernel address sanitizer.
pub const KASAN: &str = "https://docs.kernel.org/dev-tools/kasan.html";
/// Code coverage for fuzzing.
pub const KCOV: &str = "https://docs.kernel.org/dev-tools/kcov.html";
/// The sampling memory error detector.
pub const KFENCE: &str = "https://docs.kernel.org/dev-tools/kfence.html";
/// The memory leak detector.
pub const KMEMLEAK: &str = "https://docs.kernel.org/dev-tools/kmemleak.html";
/// Statistics of locks.
pub const LOCKSTAT: &str = "https://docs.kernel.org/locking/lockstat.html";
/// Reducing scheduling-clock ticks.
pub const NO_HZ: &str = "https://docs.kernel.org/timers/no_hz.html";
/// The kernel's command line.
pub const PARAMETERS: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
/// Pressure stall information.
pub const PRESSURE: &str = "https://docs.kernel.org/accounting/psi.html";
/// RCU's requirements.
pub const RCU_REQUIREMENTS: &str = "https://docs.kernel.org/RCU/Design/Requirements/Requirements.html";
/// RCU's options at build time; no page of the documentation lists them.
pub const RCU_OPTIONS: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/rcu/Kconfig?h=v6.12";
/// Stalls of RCU.
pub const RCU_STALLS: &str = "https://docs.kernel.org/RCU/stallwarn.html";
/// Real-time kernel configuration: an expectation and a severity for each option.
pub const RT_CONFIG: &str = "https://docs.kernel.org/core-api/real-time/kernel-configuration.html";
/// How a real-time kernel differs.
pub const RT_DIFFERENCES: &str = "https://docs.kernel.org/core-api/real-time/differences.html";
/// Real-time group scheduling, with throttling.
pub const RT_GROUP: &str = "https://docs.kernel.org/scheduler/sched-rt-group.html";
/// Considering hardware.
pub const RT_HARDWARE: &str = "https://docs.kernel.org/core-api/real-time/hardware.html";
/// Schedulers in BPF.
pub const SCHED_EXT: &str = "https://docs.kernel.org/scheduler/sched-ext.html";
/// The allocator of small objects, and its debugging.
pub const SLAB: &str = "https://docs.kernel.org/admin-guide/mm/slab.html";
/// Its source: what reading /proc/slabinfo does.
pub const SLUB_SOURCE: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/mm/slub.c?h=v6.12";
/// `/proc/sys/kernel`.
pub const SYSCTL_KERNEL: &str = "https://docs.kernel.org/admin-guide/sysctl/kernel.html";
/// Transparent huge pages.
pub const TRANSPARENT_HUGEPAGES: &str = "https://docs.kernel.org/admin-guide/mm/transhuge.html";
