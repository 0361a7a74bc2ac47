//! Where the documents are that rules name; a rule adds the place in the document.

/// The sysfs files that the kernel documents as ABI.
pub const ABI: &str = "https://docs.kernel.org/admin-guide/abi-testing.html";
/// CPUs of different capacity.
pub const CAPACITY: &str = "https://docs.kernel.org/scheduler/sched-capacity.html";
/// Control groups, version 2.
pub const CGROUP_V2: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
/// Frequency scaling.
pub const CPUFREQ: &str = "https://docs.kernel.org/admin-guide/pm/cpufreq.html";
/// Idle states.
pub const CPUIDLE: &str = "https://docs.kernel.org/admin-guide/pm/cpuidle.html";
/// Deadline scheduling, with its servers.
pub const DEADLINE: &str = "https://docs.kernel.org/scheduler/sched-deadline.html";
/// Device frequency scaling.
pub const DEVFREQ: &str = "https://docs.kernel.org/driver-api/devfreq.html";
/// Intel's driver for frequency scaling.
pub const INTEL_PSTATE: &str = "https://docs.kernel.org/admin-guide/pm/intel_pstate.html";
/// CPU isolation.
pub const ISOLATION: &str = "https://docs.kernel.org/admin-guide/cpu-isolation.html";
/// Kernel samepage merging.
pub const KSM: &str = "https://docs.kernel.org/admin-guide/mm/ksm.html";
/// Memory nodes.
pub const NUMA: &str = "https://docs.kernel.org/mm/numa.html";
/// What is promised when memory is asked for.
pub const OVERCOMMIT: &str = "https://docs.kernel.org/mm/overcommit-accounting.html";
/// The kernel's command line.
pub const PARAMETERS: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
/// Jitter of the kernel's per-CPU threads.
pub const PER_CPU_THREADS: &str = "https://docs.kernel.org/admin-guide/kernel-per-CPU-kthreads.html";
/// Intel's driver for idle injection.
pub const POWERCLAMP: &str = "https://docs.kernel.org/admin-guide/thermal/intel_powerclamp.html";
/// Caches and memory bandwidth, shared out.
pub const RESCTRL: &str = "https://docs.kernel.org/filesystems/resctrl.html";
/// Real-time kernel configuration: an expectation and a severity for each option.
pub const RT_CONFIG: &str = "https://docs.kernel.org/core-api/real-time/kernel-configuration.html";
/// Real-time group scheduling, with throttling.
pub const RT_GROUP: &str = "https://docs.kernel.org/scheduler/sched-rt-group.html";
/// Considering hardware.
pub const RT_HARDWARE: &str = "https://docs.kernel.org/core-api/real-time/hardware.html";
/// `/proc/sys/kernel`.
pub const SYSCTL_KERNEL: &str = "https://docs.kernel.org/admin-guide/sysctl/kernel.html";
/// `/proc/sys/vm`.
pub const SYSCTL_VM: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
/// How CPUs, cores and packages are exported.
pub const TOPOLOGY: &str = "https://docs.kernel.org/admin-guide/cputopology.html";
/// Utilization clamps.
pub const UCLAMP: &str = "https://docs.kernel.org/scheduler/sched-util-clamp.html";
