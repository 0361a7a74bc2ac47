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
/// Control groups of version 2.
pub const CGROUP2: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
/// Control groups of version 1: cpusets.
pub const CPUSETS1: &str = "https://docs.kernel.org/admin-guide/cgroup-v1/cpusets.html";
/// The affinity of interrupts.
pub const IRQ_AFFINITY: &str = "https://docs.kernel.org/core-api/irq/irq-affinity.html";
/// The kernel's threads of each CPU, and what can be done about them.
pub const KTHREADS: &str = "https://docs.kernel.org/admin-guide/kernel-per-CPU-kthreads.html";
/// What networking spreads over CPUs.
pub const NET_SCALING: &str = "https://docs.kernel.org/networking/scaling.html";
/// Which real-time priorities are for whom.
pub const RHEL_PRIORITIES: &str =
    "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/10/optimize-priority_map";
/// Scheduling policies.
pub const SCHED7: &str = "https://man7.org/linux/man-pages/man7/sched.7.html";
/// Workqueues.
pub const WORKQUEUE: &str = "https://docs.kernel.org/core-api/workqueue.html";
