//! Two fake machines of four CPUs. A file, a reaction or an interrupt is one line.
//!
//! Source of their behaviour: experiments on Debian's kernels 6.1.192-rt and 6.12.117-rt.

use model::setting::Comparison::{Choice, Exact, List, Mask, Number};

use super::Traits;
use super::files::Reaction::{
    AtLeast, AtMost, Becomes, BusyUnless, Clamped, Fails, List as CpuList, Mask as CpuMask, OneOf, PartOf,
    Range, SetsAll, Silent, Switches, Unreadable, Zeroes,
};
use super::files::Row;
use super::groups::FakeGroup;
use super::interrupts::{FakeIrq, IrqKind};
use super::threads::{FakeThread, ThreadKind};
use model::setting::Comparison;

/// Tables that describe a machine.
#[derive(Clone, Copy, Debug)]
pub struct FakeMachine {
    pub traits: Traits,
    pub files: &'static [Row],
    pub irqs: &'static [FakeIrq],
    pub threads: &'static [FakeThread],
    pub groups: &'static [FakeGroup],
}

const fn row(
    key: &'static str,
    value: &'static str,
    readback: Comparison,
    reactions: &'static [super::Reaction],
    tries: &'static [&'static str],
) -> Row {
    Row { key, value, readback, reactions, tries }
}

const RT_RUNTIME: &str = "sysctl:kernel.sched_rt_runtime_us";
const RT_PERIOD: &str = "sysctl:kernel.sched_rt_period_us";
const FAIR: &str = "sysfs:kernel/debug/sched/fair_server/cpu0/runtime";
const FAIR_PERIOD: &str = "sysfs:kernel/debug/sched/fair_server/cpu0/period";
const BYTES: &str = "sysctl:vm.dirty_bytes";
const RATIO: &str = "sysctl:vm.dirty_ratio";
const BACKGROUND_BYTES: &str = "sysctl:vm.dirty_background_bytes";
const BACKGROUND_RATIO: &str = "sysctl:vm.dirty_background_ratio";
const KBYTES: &str = "sysctl:vm.overcommit_kbytes";
const OVERCOMMIT: &str = "sysctl:vm.overcommit_ratio";
const WATCHDOG: &str = "sysctl:kernel.watchdog";
const SOFT: &str = "sysctl:kernel.soft_watchdog";
const HARD: &str = "sysctl:kernel.nmi_watchdog";
const CHECK_0: &str = "sysfs:devices/system/machinecheck/machinecheck0/check_interval";
const CHECK_1: &str = "sysfs:devices/system/machinecheck/machinecheck1/check_interval";
const CHECK_2: &str = "sysfs:devices/system/machinecheck/machinecheck2/check_interval";
const LIMIT: &str = "sysctl:fake.limit";
const SHARE: &str = "sysctl:fake.share";
const WORKQUEUES: &str = "sysfs:devices/virtual/workqueue/cpumask";

/// Files of both kernels.
macro_rules! common {
    ($($more:expr),* $(,)?) => { &[
        row("sysctl:vm.stat_interval", "1", Number,
            &[Range(0, 2_147_483_647)], &["120", "0", "010", "-1", "x"]),
        row("sysctl:vm.swappiness", "60", Number, &[Range(0, 200)], &["0", "10", "201"]),
        row("sysctl:vm.compaction_proactiveness", "20", Number, &[Range(0, 100)], &["0", "101"]),
        row(RATIO, "20", Number, &[Range(0, 100), Zeroes(BYTES)], &["10", "0", "101"]),
        row(BYTES, "0", Number, &[Range(8192, i64::MAX), Zeroes(RATIO)], &["1048576", "8191", "0"]),
        row(BACKGROUND_RATIO, "0", Number, &[Range(0, 100), Zeroes(BACKGROUND_BYTES)], &["5", "0"]),
        row(BACKGROUND_BYTES, "65536", Number,
            &[Range(1, i64::MAX), Zeroes(BACKGROUND_RATIO)], &["8192", "0"]),
        row(OVERCOMMIT, "50", Number, &[Range(0, 1000), Zeroes(KBYTES)], &["80", "0"]),
        row(KBYTES, "0", Number, &[Range(0, i64::MAX), Zeroes(OVERCOMMIT)], &["4096", "0"]),
        row("sysctl:kernel.sched_rr_timeslice_ms", "50", Number,
            &[Clamped(0, 1000), Becomes("0", "100")], &["0", "10", "2000"]),
        row("sysctl:kernel.timer_migration", "1", Number, &[Range(0, 1)], &["0", "1", "2"]),
        row("sysctl:kernel.printk", "4 4 1 7", Exact, &[], &["3 4 1 3"]),
        row("sysctl:net.core.busy_poll", "0", Number, &[Clamped(0, 10_000)], &["50", "20000"]),
        row("sysctl:kernel.sealed", "1", Number, &[Fails(libc::EPERM)], &["0"]),
        row("sysctl:kernel.hidden", "1", Number, &[Unreadable(libc::EACCES)], &["0"]),
        row(SOFT, "1", Number, &[Range(0, 1), PartOf(WATCHDOG)], &[]),
        row(HARD, "0", Number, &[Fails(libc::EACCES), PartOf(WATCHDOG)], &[]),
        row("sysctl:kernel.watchdog_cpumask", "0-3", List, &[CpuList], &["0-1", "0,1", ""]),
        row("sysfs:devices/system/clocksource/clocksource0/current_clocksource", "tsc", Exact,
            &[Silent(&["tsc", "hpet"])], &["hpet", "nonsense"]),
        row("sysfs:module/pcie_aspm/parameters/policy", "default", Choice,
            &[OneOf(&["default", "performance", "powersave"]), Fails(libc::EPERM)], &["performance"]),
        row("sysfs:kernel/mm/transparent_hugepage/enabled", "madvise", Choice,
            &[OneOf(&["always", "madvise", "never"])], &["never", "always", "perhaps"]),
        row(CHECK_0, "300", Number, &[Range(0, 1_000_000), SetsAll(&[CHECK_1, CHECK_2])], &["0", "60"]),
        row(CHECK_1, "300", Number, &[Range(0, 1_000_000), SetsAll(&[CHECK_0, CHECK_2])], &["0", "-1"]),
        row(CHECK_2, "300", Number, &[Range(0, 1_000_000), SetsAll(&[CHECK_0, CHECK_1])], &["10"]),
        // No kernel has these two: the first is changed by the second before it is refused.
        row(LIMIT, "0", Number, &[Clamped(0, 1000), Zeroes(SHARE)], &["2000", "10"]),
        row(SHARE, "7", Number, &[Range(0, 10), Zeroes(LIMIT)], &["11", "3"]),
        row(WORKQUEUES, "f", Mask, &[CpuMask(1)], &["3", "0", "00000003"]),
        row("sysfs:devices/virtual/workqueue/writeback/cpumask", "00000000,0000000f", Mask,
            &[CpuMask(2)], &["3", "0", "1,00000001"]),
        row("sysfs:devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "n/a", Number,
            &[], &["0", "5"]),
        row("irq:default", "f", Mask, &[CpuMask(1)], &["3", "0"]),
        $($more),*
    ] };
}

const THREADS: &[FakeThread] = &[
    thread(1, ThreadKind::User, "0-3", false, "", "other 0"),
    thread(2, ThreadKind::Kernel, "0-3", false, "", "other 0"),
    thread(10, ThreadKind::Bound, "3", false, "", "fifo 99"),
    thread(11, ThreadKind::Kernel, "0-3", false, "", "fifo 1"),
    thread(12, ThreadKind::Kernel, "2", true, "", "other 0"),
    thread(13, ThreadKind::Interrupt(24), "2", false, "", "fifo 50"),
    thread(14, ThreadKind::Interrupt(25), "0-3", false, "", "fifo 50"),
    thread(15, ThreadKind::Interrupt(27), "3", false, "", "fifo 50"),
    thread(500, ThreadKind::User, "0-3", false, "system.slice", "other 0"),
    thread(501, ThreadKind::User, "3", true, "system.slice", "rr 5"),
    thread(502, ThreadKind::User, "1-2", true, "", "other -5"),
];

const fn thread(
    tid: u32,
    kind: ThreadKind,
    cpus: &'static str,
    pinned: bool,
    group: &'static str,
    policy: &'static str,
) -> FakeThread {
    FakeThread { tid, kind, cpus, pinned, group, policy }
}

const fn irqs(managed: i32) -> [FakeIrq; 5] {
    [
        FakeIrq { number: 0, cpus: "0", kind: IrqKind::Managed(managed) },
        FakeIrq { number: 24, cpus: "2", kind: IrqKind::Movable },
        FakeIrq { number: 25, cpus: "0-3", kind: IrqKind::Idle },
        FakeIrq { number: 26, cpus: "0-3", kind: IrqKind::Movable },
        FakeIrq { number: 27, cpus: "3", kind: IrqKind::Managed(managed) },
    ]
}

/// With a fair server, partitions in groups that are not partitions, and remembered masks.
pub const DEBIAN_6_12_RT: FakeMachine = FakeMachine {
    traits: Traits { cpus: 4, exclusive: true, remembers_masks: true, workqueues_follow: Some(WORKQUEUES) },
    files: common![
        row(WATCHDOG, "1", Number, &[Range(0, 1), Switches(&[SOFT, HARD])], &["0", "1"]),
        row(
            RT_RUNTIME,
            "950000",
            Number,
            &[Range(-1, 1_000_000), BusyUnless(FAIR, "50000000")],
            &["-1", "900000", "-2"]
        ),
        row(
            FAIR,
            "50000000",
            Number,
            &[Range(0, i64::MAX), BusyUnless(RT_RUNTIME, "-1"), AtMost(FAIR_PERIOD)],
            &["0", "10000000", "2000000000"]
        ),
        row(
            FAIR_PERIOD,
            "1000000000",
            Number,
            &[Range(100, i64::MAX), BusyUnless(RT_RUNTIME, "-1"), AtLeast(FAIR)],
            &["40000000", "500000000"]
        ),
        row(
            "sysfs:kernel/debug/sched/preempt",
            "lazy",
            Choice,
            &[OneOf(&["full", "lazy", "laziest"])],
            &["full", "none"]
        ),
    ],
    irqs: &irqs(libc::EPERM),
    threads: THREADS,
    groups: &[
        FakeGroup { path: "", subtree: &["cpu", "io", "memory", "pids"], cpus: "" },
        FakeGroup { path: "system.slice", subtree: &["memory", "pids"], cpus: "" },
    ],
};

/// Without these features, and with a group that has its CPUs set.
pub const DEBIAN_6_1_RT: FakeMachine = FakeMachine {
    traits: Traits { cpus: 4, exclusive: false, remembers_masks: false, workqueues_follow: None },
    files: common![
        // Its soft half is on, which a read does not show.
        row(WATCHDOG, "0", Number, &[Range(0, 1), Switches(&[SOFT, HARD])], &["1"]),
        row(
            RT_RUNTIME,
            "950000",
            Number,
            &[Range(-1, i64::MAX), AtMost(RT_PERIOD)],
            &["-1", "900000", "2000000"]
        ),
        row(RT_PERIOD, "1000000", Number, &[Range(1, i64::MAX), AtLeast(RT_RUNTIME)], &["960000", "940000"]),
    ],
    irqs: &irqs(libc::EIO),
    threads: THREADS,
    groups: &[
        FakeGroup { path: "", subtree: &["cpuset", "cpu", "io", "memory", "pids"], cpus: "" },
        FakeGroup { path: "system.slice", subtree: &["memory", "pids"], cpus: "" },
        FakeGroup { path: "machine.slice", subtree: &[], cpus: "0-1" },
    ],
};
