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
/// `/proc/sys/vm`.
pub const SYSCTL_VM: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
/// Kernel samepage merging.
pub const KSM: &str = "https://docs.kernel.org/admin-guide/mm/ksm.html";
/// What is promised when memory is asked for.
pub const OVERCOMMIT: &str = "https://docs.kernel.org/mm/overcommit-accounting.html";
/// Jitter of the kernel's per-CPU threads.
pub const PER_CPU_THREADS: &str = "https://docs.kernel.org/admin-guide/kernel-per-CPU-kthreads.html";
/// Control groups, version 2.
pub const CGROUP_V2: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
