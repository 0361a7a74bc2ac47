//! Addresses of the documents that rules cite; a rule adds the place in the document.

/// The sysfs files that the kernel documents as ABI.
pub const ABI: &str = "https://docs.kernel.org/admin-guide/abi-testing.html";
/// CPUs of different capacity.
pub const CAPACITY: &str = "https://docs.kernel.org/scheduler/sched-capacity.html";
/// Control groups, version 2.
pub const CGROUP_V2: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";
pub const CPUFREQ: &str = "https://docs.kernel.org/admin-guide/pm/cpufreq.html";
pub const CPUIDLE: &str = "https://docs.kernel.org/admin-guide/pm/cpuidle.html";
/// Control groups of version 1: cpusets.
pub const CPUSETS1: &str = "https://docs.kernel.org/admin-guide/cgroup-v1/cpusets.html";
/// Statistics of memory accesses.
pub const DAMON_STAT: &str = "https://docs.kernel.org/admin-guide/mm/damon/stat.html";
/// Deadline scheduling, including its servers.
pub const DEADLINE: &str = "https://docs.kernel.org/scheduler/sched-deadline.html";
pub const DELAY_ACCOUNTING: &str = "https://docs.kernel.org/accounting/delay-accounting.html";
pub const DEVFREQ: &str = "https://docs.kernel.org/driver-api/devfreq.html";
/// Settings of network cards.
pub const ETHTOOL: &str = "https://man7.org/linux/man-pages/man8/ethtool.8.html";
pub const ETHTOOL_NETLINK: &str = "https://docs.kernel.org/networking/ethtool-netlink.html";
pub const EVENTS: &str = "https://docs.kernel.org/trace/events.html";
/// The function tracer and its directory.
pub const FTRACE: &str = "https://docs.kernel.org/trace/ftrace.html";
pub const HWLAT: &str = "https://docs.kernel.org/trace/hwlat_detector.html";
/// The osnoise tracer.
pub const OSNOISE: &str = "https://docs.kernel.org/trace/osnoise-tracer.html";
/// The timerlat tracer.
pub const TIMERLAT: &str = "https://docs.kernel.org/trace/timerlat-tracer.html";
/// Code coverage of the kernel.
pub const GCOV: &str = "https://docs.kernel.org/dev-tools/gcov.html";
/// Polling before a guest halts.
pub const GUEST_POLLING: &str = "https://docs.kernel.org/virt/guest-halt-polling.html";
/// Polling on the host before a guest's CPU sleeps.
pub const HALT_POLLING: &str = "https://docs.kernel.org/virt/kvm/halt-polling.html";
/// High resolution timers and dynamic ticks.
pub const HIGHRES: &str = "https://docs.kernel.org/timers/highres.html";
pub const HRTIMER_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/time/hrtimer.c?h=v6.12";
/// Hardware random number generators.
pub const HW_RANDOM: &str = "https://docs.kernel.org/admin-guide/hw_random.html";
pub const HW_VULN: &str = "https://docs.kernel.org/admin-guide/hw-vuln/index.html";
/// The governor menu of idle states, source.
pub const IDLE_MENU_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/cpuidle/governors/menu.c?h=v6.12";
/// Intel's driver for frequency scaling.
pub const INTEL_PSTATE: &str = "https://docs.kernel.org/admin-guide/pm/intel_pstate.html";
/// The affinity of interrupts.
pub const IRQ_AFFINITY: &str = "https://docs.kernel.org/core-api/irq/irq-affinity.html";
pub const ISOLATION: &str = "https://docs.kernel.org/admin-guide/cpu-isolation.html";
/// Housekeeping CPUs, source.
pub const ISOLATION_C: &str = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/isolation.c?h=v6.12";
/// The kernel address sanitizer.
pub const KASAN: &str = "https://docs.kernel.org/dev-tools/kasan.html";
/// Code coverage for fuzzing.
pub const KCOV: &str = "https://docs.kernel.org/dev-tools/kcov.html";
/// The sampling memory error detector.
pub const KFENCE: &str = "https://docs.kernel.org/dev-tools/kfence.html";
/// The memory leak detector.
pub const KMEMLEAK: &str = "https://docs.kernel.org/dev-tools/kmemleak.html";
pub const KSM: &str = "https://docs.kernel.org/admin-guide/mm/ksm.html";
/// Guests with real-time work.
pub const LIBVIRT_REALTIME: &str = "https://www.libvirt.org/kbase/kvm-realtime.html";
pub const LOCKSTAT: &str = "https://docs.kernel.org/locking/lockstat.html";
pub const LOCKUP_WATCHDOGS: &str = "https://docs.kernel.org/admin-guide/lockup-watchdogs.html";
pub const MSI: &str = "https://docs.kernel.org/PCI/msi-howto.html";
/// Polling of network devices.
pub const NAPI: &str = "https://docs.kernel.org/networking/napi.html";
pub const NET_DEV_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/net/core/dev.c?h=v6.12";
/// Distribution of network work over CPUs.
pub const NET_SCALING: &str = "https://docs.kernel.org/networking/scaling.html";
pub const NO_HZ: &str = "https://docs.kernel.org/timers/no_hz.html";
pub const NUMA: &str = "https://docs.kernel.org/mm/numa.html";
/// Modes of accounting for requested memory.
pub const OVERCOMMIT: &str = "https://docs.kernel.org/mm/overcommit-accounting.html";
/// The kernel's command line.
pub const PARAMETERS: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
/// Reducing jitter from per-CPU kernel threads.
pub const PER_CPU_KTHREADS: &str = "https://docs.kernel.org/admin-guide/kernel-per-CPU-kthreads.html";
/// Intel's driver for idle injection.
pub const POWERCLAMP: &str = "https://docs.kernel.org/admin-guide/thermal/intel_powerclamp.html";
pub const PRESSURE: &str = "https://docs.kernel.org/accounting/psi.html";
/// RCU's build options; no page of the documentation lists them.
pub const RCU_OPTIONS: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/rcu/Kconfig?h=v6.12";
pub const RCU_STALLS: &str = "https://docs.kernel.org/RCU/stallwarn.html";
/// Partitioning of caches and memory bandwidth.
pub const RESCTRL: &str = "https://docs.kernel.org/filesystems/resctrl.html";
/// The use of real-time priorities.
pub const RHEL_PRIORITIES: &str = "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/10/html/monitoring_and_managing_system_status_and_performance/priority-map";
/// Real-time kernel configuration: an expectation and a severity for each option.
pub const RT_CONFIG: &str = "https://docs.kernel.org/core-api/real-time/kernel-configuration.html";
/// Differences of a real-time kernel.
pub const RT_DIFFERENCES: &str = "https://docs.kernel.org/core-api/real-time/differences.html";
/// Real-time group scheduling, with throttling.
pub const RT_GROUP: &str = "https://docs.kernel.org/scheduler/sched-rt-group.html";
pub const RT_HARDWARE: &str = "https://docs.kernel.org/core-api/real-time/hardware.html";
/// Suspension of unused devices.
pub const RUNTIME_PM: &str = "https://docs.kernel.org/power/runtime_pm.html";
pub const SCHED7: &str = "https://man7.org/linux/man-pages/man7/sched.7.html";
/// A check of desktops for sound.
pub const RTCQS: &str = "https://github.com/autostatic/rtcqs";
/// Files of the scheduler in debugfs, source.
pub const SCHED_DEBUG_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/debug.c";
pub const SCHED_FAIR_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/fair.c";
/// Defaults of the scheduler's features, source.
pub const SCHED_FEATURES_H: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/features.h";
pub const SCHED_TOPOLOGY_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/sched/topology.c";
pub const SCHED_EXT: &str = "https://docs.kernel.org/scheduler/sched-ext.html";
pub const SERIAL_CONSOLE: &str = "https://docs.kernel.org/admin-guide/serial-console.html";
/// The allocator of small objects, and its debugging.
pub const SLAB: &str = "https://docs.kernel.org/admin-guide/mm/slab.html";
/// The allocator's source: reading of /proc/slabinfo.
pub const SLUB_SOURCE: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/mm/slub.c?h=v6.12";
/// Unhandled interrupts, source.
pub const SPURIOUS_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/kernel/irq/spurious.c";
pub const SYSCTL_KERNEL: &str = "https://docs.kernel.org/admin-guide/sysctl/kernel.html";
pub const SYSCTL_VM: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
/// Files of the machine check code.
pub const SYSFS_MCE: &str = "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-mce";
pub const TIMEKEEPING: &str = "https://docs.kernel.org/timers/timekeeping.html";
/// Export of CPUs, cores and packages.
pub const TOPOLOGY: &str = "https://docs.kernel.org/admin-guide/cputopology.html";
pub const TRANSPARENT_HUGEPAGES: &str = "https://docs.kernel.org/admin-guide/mm/transhuge.html";
/// The time stamp counter, source.
pub const TSC_C: &str =
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/kernel/tsc.c?h=v6.12";
/// A profile for hosts of real-time guests.
pub const TUNED_KVM: &str =
    "https://github.com/redhat-performance/tuned/tree/master/profiles/realtime-virtual-host";
pub const UCLAMP: &str = "https://docs.kernel.org/scheduler/sched-util-clamp.html";
pub const WORKQUEUE: &str = "https://docs.kernel.org/core-api/workqueue.html";
