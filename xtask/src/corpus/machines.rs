//! The captured machines: data only. A new one is a record here and, with a setup, a script next to
//! it.

use crate::live::machine::{ARM, Machine, NEW, NEW_RT, OLD, OLD_RT, RISCV, RT, X86};

/// A machine whose capture is kept.
pub struct Captured {
    /// Machine to boot.
    pub machine: Machine,
    /// Description, in a sentence.
    pub is: &'static str,
    /// Reason for keeping it, in a sentence.
    pub why: &'static str,
    /// Kernel modules to load; their dependencies are found.
    pub modules: &'static [&'static str],
    /// Run in the guest before the capture; a failing command ends it.
    pub setup: &'static str,
    /// Files of the guest and their expected contents at the capture, which prove the setup.
    pub expects: &'static [(&'static str, &'static str)],
}

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const PARTITION: &str = "/sys/fs/cgroup/rt.slice/cpuset.cpus.partition";

const STOCK: Captured = Captured { machine: X86, is: "", why: "", modules: &[], setup: "", expects: &[] };

/// Every captured machine.
pub const CORPUS: &[Captured] = &[
    Captured {
        machine: Machine { name: "debian-6.1", ..OLD },
        is: "Debian 12's own kernel on 2 CPUs, nothing set.",
        why: "The common machine: no PREEMPT_RT, throttling of the old kind, cpuset partitions of the first form.",
        expects: &[(ONLINE, "0-1")],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.1-rt", ..OLD_RT },
        is: "Debian 12's own PREEMPT_RT kernel on 2 CPUs, nothing set.",
        why: "PREEMPT_RT from before it was merged, with `/sys/kernel/realtime`.",
        expects: &[(ONLINE, "0-1"), ("/sys/kernel/realtime", "1")],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.12", metapackage: "linux-image-6.12-amd64", smp: "4", ..X86 },
        is: "Debian's 6.12 kernel on 4 CPUs, nothing set.",
        why: "PREEMPT_DYNAMIC, and the fair server instead of throttling.",
        expects: &[(ONLINE, "0-3")],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.12-rt", smp: "4", ..RT },
        is: "Debian's 6.12 PREEMPT_RT kernel on 4 CPUs, nothing set.",
        why: "What one gets by installing the kernel and doing nothing else.",
        expects: &[(ONLINE, "0-3")],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-tuned",
            smp: "4",
            words: "quiet isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 rcu_nocb_poll irqaffinity=0-1 nowatchdog \
                    nosoftlockup skew_tick=1 tsc=reliable mce=ignore_ce audit=0 psi=0 kfence.sample_interval=0 \
                    transparent_hugepage=never init_on_alloc=0 processor.max_cstate=1 \
                    rcupdate.rcu_normal_after_boot=1",
            ..RT
        },
        is: "6.12 PREEMPT_RT with CPUs 2-3 isolated at boot and every setting that can be set at run time.",
        why: "As good as an emulated machine can be: most rules pass here, and what fails must be right to fail.",
        setup: include_str!("setup/tuned.sh"),
        expects: &[
            (ISOLATED, "2-3"),
            ("/proc/irq/default_smp_affinity", "3"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
            ("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0"),
            ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "0"),
            ("/sys/devices/virtual/workqueue/cpumask", "3"),
            ("/proc/sys/kernel/watchdog", "0"),
            ("/proc/sys/vm/stat_interval", "120"),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-nohz-full",
            smp: "4",
            words: "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 skew_tick=1 \
                    tsc=reliable",
            ..RT
        },
        is: "6.12 PREEMPT_RT with `nohz_full=2-3` and a program that never sleeps on CPU 2.",
        why: "The busy-polling style, where advice for periodic loops does not hold.",
        setup: include_str!("setup/busy.sh"),
        expects: &[
            (ISOLATED, "2-3"),
            (NOHZ_FULL, "2-3"),
            ("/proc/sys/kernel/watchdog_cpumask", "0-1"),
            ("/sys/devices/virtual/workqueue/cpumask", "3"),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.12-rt-partition", smp: "4", ..RT },
        is: "6.12 PREEMPT_RT with an isolated cpuset partition on CPUs 2-3, made at run time.",
        why: "Isolation that `/sys/devices/system/cpu/isolated` does not show.",
        setup: include_str!("setup/partition.sh"),
        expects: &[
            (PARTITION, "isolated"),
            ("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3"),
            ("/sys/devices/virtual/workqueue/cpumask", "3"),
            ("/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-1"),
            (ISOLATED, ""),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.12-rt-partition-invalid", smp: "4", ..RT },
        is: "6.12 PREEMPT_RT with a cpuset partition that was asked for and is invalid.",
        why: "A write that succeeded and isolates nothing.",
        setup: include_str!("setup/partition-invalid.sh"),
        expects: &[
            (PARTITION, "isolated invalid (Cpu list in cpuset.cpus not exclusive)"),
            ("/sys/fs/cgroup/cpuset.cpus.isolated", ""),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-64-cpus",
            smp: "64,sockets=2,cores=32,threads=1",
            memory: "2G",
            devices: &[
                "-object",
                "memory-backend-ram,id=m0,size=1G",
                "-object",
                "memory-backend-ram,id=m1,size=1G",
                "-numa",
                "node,nodeid=0,cpus=0-31,memdev=m0",
                "-numa",
                "node,nodeid=1,cpus=32-63,memdev=m1",
            ],
            words: "quiet isolcpus=managed_irq,domain,32-63 rcu_nocbs=32-63 irqaffinity=0-31 skew_tick=1",
            ..RT
        },
        is: "6.12 PREEMPT_RT on 64 CPUs in 2 memory nodes, the second node isolated.",
        why: "Masks of several words, node lists, and the bounds on how much is read.",
        expects: &[
            (ONLINE, "0-63"),
            (ISOLATED, "32-63"),
            ("/sys/devices/system/node/node1/cpulist", "32-63"),
            ("/proc/irq/default_smp_affinity", "00000000,ffffffff"),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-smt",
            smp: "8,sockets=1,cores=4,threads=2",
            words: "quiet isolcpus=managed_irq,domain,3-6 rcu_nocbs=3-6 irqaffinity=0-2,7",
            ..RT
        },
        is: "6.12 PREEMPT_RT on 4 cores of 2 threads, CPUs 3-6 isolated.",
        why: "A mistake on purpose: two isolated CPUs share their core with one that is not.",
        expects: &[
            (ISOLATED, "3-6"),
            ("/sys/devices/system/cpu/smt/active", "1"),
            ("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "2-3"),
            ("/sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "6-7"),
        ],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-drives",
            smp: "4",
            devices: &[
                "-blockdev",
                "driver=null-co,node-name=disk,size=67108864,read-zeroes=on",
                "-device",
                "nvme,drive=disk,serial=lab,max_ioqpairs=4",
                "-netdev",
                "user,id=net,restrict=on",
                "-device",
                "vmxnet3,netdev=net",
            ],
            words: "quiet isolcpus=2-3",
            ..RT
        },
        is: "6.12 PREEMPT_RT with an NVMe drive and a network interface of several queues, CPUs 2-3 isolated.",
        why: "Interrupts whose affinity the kernel manages and refuses to change, on isolated CPUs.",
        modules: &["nvme", "vmxnet3"],
        setup: include_str!("setup/drives.sh"),
        expects: &[
            (ISOLATED, "2-3"),
            ("/sys/class/nvme/nvme0/state", "live"),
            ("/sys/block/nvme0n1/mq/1/cpu_list", "1"),
            // Block work is kept off isolated CPUs since 6.11; the queue and its interrupt exist.
            ("/sys/block/nvme0n1/mq/3/cpu_list", ""),
            ("/sys/class/net/eth0/queues/rx-3/rps_cpus", "0"),
        ],
    },
    Captured {
        machine: Machine {
            name: "debian-6.12-rt-debug",
            // It patches its own text constantly, which multi-threaded emulation gets wrong.
            accel: "tcg,thread=single",
            words: "loglevel=8 ignore_loglevel ftrace=function slub_debug=FZPU kmemleak=on page_poison=1 \
                    schedstats=enable printk.devkmsg=on initcall_debug",
            ..RT
        },
        is: "6.12 PREEMPT_RT as a search for a fault leaves it: tracer, slab checks, a talkative serial console.",
        why: "Debugging left on, a FIFO-99 thread and swap: most of what must be found is here.",
        modules: &["brd"],
        setup: include_str!("setup/debug.sh"),
        expects: &[
            ("/sys/kernel/tracing/current_tracer", "function"),
            ("/sys/kernel/tracing/tracing_on", "1"),
            ("/sys/kernel/tracing/events/sched/sched_switch/enable", "1"),
            ("/proc/sys/kernel/printk", "8 4 1 7"),
            ("/proc/swaps", "Filename Type Size Used Priority /dev/ram0 partition 16380 0 -2"),
        ],
    },
    Captured {
        machine: Machine { name: "debian-6.12-arm64", ..ARM },
        is: "Debian's 6.12 kernel for arm64 on 2 CPUs, with neither debugfs nor tracefs nor cgroups mounted.",
        why: "Another architecture, and an image that mounts what it needs and no more.",
        setup: include_str!("setup/embedded.sh"),
        expects: &[(ONLINE, "0-1")],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-6.12-riscv64", ..RISCV },
        is: "Debian 13's kernel for riscv64 on 2 CPUs, nothing set.",
        why: "An architecture of which no rule may judge by what x86 has.",
        expects: &[(ONLINE, "0-1")],
        ..STOCK
    },
    Captured {
        machine: Machine { name: "debian-7.3", smp: "4", ..NEW },
        is: "Debian's 7.3 kernel on 4 CPUs, nothing set.",
        why: "The newest kernel, lazy preemption by default.",
        expects: &[(ONLINE, "0-3")],
        ..STOCK
    },
    Captured {
        machine: Machine {
            name: "debian-7.3-rt",
            smp: "4",
            words: "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 preempt=none",
            ..NEW_RT
        },
        is: "Debian's 7.3 PREEMPT_RT kernel with CPUs 2-3 isolated at boot, and one word that it lost.",
        why: "The newest kernel: no throttling, HRTICK, two servers, a list of housekeeping CPUs.",
        expects: &[
            (ONLINE, "0-3"),
            (ISOLATED, "2-3"),
            (NOHZ_FULL, "2-3"),
            ("/sys/devices/system/cpu/housekeeping", "0-1"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "1000000"),
        ],
        ..STOCK
    },
];
