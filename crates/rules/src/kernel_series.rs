//! Verdicts on kernels 6.1, 6.12, 7.2 and 7.3 of three architectures, derived from the kernel's
//! source and Debian's configurations, not from the rules.
//!
//! A row is a kernel (series, architecture, `rt` or `stock`), edits to the well-set machine with
//! that kernel, a verdict, and the place in that kernel's source which decides it.

use crate::find;
use crate::fixture::Machine;
use host::access::Access;
use model::keyword::Keyword;

/// Kernel, edits, rule with verdict, severity and how the value begins, source.
type Row = (&'static str, &'static str, &'static str, &'static str);

const TRUSTED: &str = "cmdline - tsc=nowatchdog\n/proc/cpuinfo:\n\
                       | flags : constant_tsc nonstop_tsc tsc_adjust\n\
                       /sys/devices/system/cpu/cpu0/topology/physical_package_id: 0\n\
                       /sys/devices/system/node/online: 0-2";
const DEEP: &str = "cmdline - rcu_nocb_poll\n/sys/devices/system/cpu/cpu2/cpuidle/state1/latency: 700\n\
                    /sys/devices/system/cpu/cpu2/cpuidle/state1/disable: 0\n\
                    /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0";
const TWO_LISTS: &str = "/proc/cmdline: isolcpus=domain,2-3 nohz_full=0-1";
const TICKLESS: &str = "--cpus 2-3\n/proc/cmdline: nohz_full=2-3\n/sys/devices/system/cpu/isolated:\n\
                        /sys/devices/system/cpu/nohz_full: 2-3\n/proc/sys/vm/stat_interval: 1";
const TWO_CACHES: &str = "--cpus 0-3\nCONFIG_SCHED_CACHE=y\n\
                          /sys/kernel/debug/sched/llc_balancing/enabled: 1\n\
                          /sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2-3\n\
                          /sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list: 2-3";
const IPIS: &str = "/sys/kernel/debug/irq absent\n/proc/irq/2/smp_affinity_list: 0-3\n\
                    /proc/irq/2/effective_affinity_list: 0-3\n/sys/kernel/irq/2/actions: ";
const ON_SERIAL: &str = "/sys/class/tty/console/active: ttyS0\n/proc/consoles: ttyS0 -W- (EC ";

const ROWS: &[Row] = &[
    ("7.3 x86_64 rt", "cmdline + tsc=watchdog", "tsc-watchdog fail medium tsc=watchdog", "tsc.c:1212"),
    ("7.2 x86_64 stock", "cmdline + tsc=watchdog", "tsc-watchdog fail medium tsc=watchdog", "tsc.c:1212"),
    ("6.12 x86_64 rt", "cmdline + tsc=watchdog", "tsc-watchdog pass", "tsc.c:1231, 1560"),
    ("6.1 x86_64 rt", TRUSTED, "tsc-watchdog fail medium", "tsc.c:1220: nr_online_nodes <= 2"),
    ("7.3 x86_64 rt", TRUSTED, "tsc-watchdog pass", "tsc.c:1246: topology_max_packages() <= 4"),
    ("7.3 x86_64 rt", "/proc/sys/kernel/sched_rt_runtime_us: 1000000", "rt-throttling pass", "rt.c, default"),
    (
        "7.3 aarch64 rt",
        "/proc/sys/kernel/sched_rt_runtime_us: 950000",
        "rt-throttling not-applicable",
        "rt.c:97",
    ),
    ("6.1 x86_64 rt", "/proc/sys/kernel/sched_rt_runtime_us: 950000", "rt-throttling fail medium", "rt.c:25"),
    (
        "7.3 riscv64 stock",
        "LINE 1500",
        "parameter-length pass 1500 of 2048",
        "riscv/include/uapi/asm/setup.h",
    ),
    (
        "7.2 riscv64 stock",
        "LINE 1500",
        "parameter-length pass 1500 of 2048",
        "riscv/include/uapi/asm/setup.h",
    ),
    ("6.12 riscv64 stock", "LINE 1500", "parameter-length fail high", "riscv/include/uapi/asm/setup.h"),
    ("6.1 riscv64 stock", "LINE 1000", "parameter-length fail low", "riscv/include/uapi/asm/setup.h"),
    ("7.3 aarch64 rt", "LINE 1500", "parameter-length pass", "arm64/include/uapi/asm/setup.h:25"),
    ("7.3 aarch64 rt", "cmdline + idle=nop", "idle-poll fail low idle=nop", "arm64/kernel/idle.c:28"),
    ("7.3 aarch64 rt", "cmdline + idle=wfi", "idle-poll pass", "arm64/kernel/idle.c:24"),
    ("7.2 aarch64 rt", "cmdline + idle=nop", "unknown-parameters fail low idle=nop", "arm64/kernel/idle.c"),
    ("7.2 aarch64 rt", "cmdline + idle=nop", "idle-poll pass", "arm64/kernel/idle.c"),
    ("7.3 x86_64 rt", "cmdline + idle=poll\ncmdline + idle=halt", "idle-poll fail low", "process.c:1005"),
    (
        "7.3 x86_64 rt",
        "cmdline + nohlt",
        "unknown-parameters fail low nohlt",
        "x86/Kconfig: no IDLE_POLL_SETUP",
    ),
    ("7.3 riscv64 stock", "cmdline + nohlt\nDEEP", "idle-states pass nohlt:", "kernel/sched/idle.c:351"),
    ("7.3 riscv64 stock", "cmdline + nohlt\ncmdline + hlt\nDEEP", "idle-states fail high", "sched/idle.c:48"),
    (
        "6.12 x86_64 rt",
        "cmdline + idle=poll\nDEEP",
        "idle-states pass idle=poll:",
        "process.c:1003, sched/idle.c",
    ),
    ("7.3 x86_64 stock", "cmdline + preempt=voluntary", "unknown-parameters fail low", "core.c:7983"),
    ("7.3 x86_64 stock", "cmdline + preempt=voluntary", "preemption-model fail fatal lazy", "core.c:8088"),
    (
        "6.12 x86_64 stock",
        "cmdline + preempt=voluntary",
        "unknown-parameters pass",
        "core.c, sched_dynamic_mode()",
    ),
    (
        "7.3 aarch64 stock",
        "cmdline + preempt=full",
        "unknown-parameters fail low",
        "arm64: no PREEMPT_DYNAMIC",
    ),
    ("7.3 aarch64 stock", "cmdline + preempt=full", "preemption-model fail fatal lazy", "Kconfig.preempt:78"),
    ("7.3 aarch64 rt", "cmdline + preempt=lazy", "unknown-parameters fail low", "arm64: no PREEMPT_DYNAMIC"),
    ("7.3 x86_64 rt", "cmdline + preempt=lazy", "unknown-parameters pass", "core.c:7995"),
    ("7.2 x86_64 rt", "cmdline + check_pages=1", "debug-parameters fail medium", "mm/mm_init.c"),
    ("6.12 x86_64 rt", "cmdline + check_pages=1", "debug-parameters pass", "mm/mm_init.c"),
    ("6.12 aarch64 stock", "", "preemption-model fail fatal voluntary", "Kconfig.preempt"),
    ("7.3 riscv64 stock", "--profile audio", "preemption-model fail high lazy", "Kconfig.preempt:78"),
    (
        "7.3 x86_64 rt",
        "/proc/sys/vm/laptop_mode: 5",
        "laptop-mode not-applicable",
        "mm/page-writeback.c:2222",
    ),
    ("6.12 x86_64 rt", "/proc/sys/vm/laptop_mode: 5", "laptop-mode fail info", "mm/page-writeback.c:1875"),
    (
        "7.2 riscv64 stock",
        "/sys/module/damon_stat/parameters/enabled: Y",
        "damon-monitoring fail low",
        "damon/stat.c",
    ),
    ("7.3 x86_64 rt", "--cpus 0-3\nFEATURES HRTICK HRTICK_DL", "hrtick fail info", "sched/features.h:65"),
    ("7.3 aarch64 rt", "--cpus 0-3", "hrtick not-applicable", "sched/features.h:68: no REARM_DEFERRED"),
    ("6.12 x86_64 rt", "FEATURES NO_HRTICK NO_HRTICK_DL", "hrtick pass", "sched/features.h"),
    ("7.2 x86_64 rt", TWO_CACHES, "cache-aware-balancing fail info", "sched/topology.c:857"),
    ("6.12 x86_64 rt", "--cpus 0-3", "cache-aware-balancing not-applicable", "init/Kconfig: no SCHED_CACHE"),
    ("6.1 x86_64 rt", "", "fair-server not-applicable", "sched/deadline.c: no fair server"),
    (
        "7.3 x86_64 rt",
        "SERVER 50000000",
        "fair-server fail medium 50 ms of 1 s on CPU 2",
        "sched/debug.c:463",
    ),
    ("7.3 x86_64 rt", TWO_LISTS, "parameter-conflicts fail medium", "isolation.c, first_cpu"),
    ("6.12 x86_64 rt", TWO_LISTS, "parameter-conflicts pass", "isolation.c, housekeeping_setup()"),
    ("7.3 x86_64 rt", TICKLESS, "vmstat-interval fail low", "isolation.h:87: HK_TYPE_DOMAIN alone"),
    ("6.12 x86_64 rt", TICKLESS, "vmstat-interval not-applicable", "isolation.h:70"),
    ("7.3 x86_64 rt", TICKLESS, "rcu-callbacks pass nohz_full", "rcu/tree_nocb.h:1355"),
    ("7.2 riscv64 stock", "IRQ Rescheduling interrupts", "irq-affinity pass", "riscv/kernel/smp.c:44, 212"),
    ("6.12 riscv64 stock", "IRQ Function call interrupts", "irq-affinity pass", "riscv/kernel/smp.c:198"),
    ("7.3 aarch64 rt", "IRQ IPI", "irq-affinity pass", "arm64/kernel/smp.c:1131"),
    ("7.3 aarch64 rt", "IRQ uart-pl011", "irq-affinity fail high uart-pl011", "an SPI, which is movable"),
    ("7.3 x86_64 stock", "SERIAL Np a) 4:64", "serial-console fail low", "8250_core.c:529"),
    ("7.2 x86_64 stock", "SERIAL p a) 4:64", "serial-console fail medium", "8250_core.c: no CON_NBCON"),
    ("7.3 aarch64 rt", "HARD 1", "watchdog fail high on CPUs 2-3;", "kernel/watchdog_buddy.c"),
    ("7.3 x86_64 rt", "", "transparent-hugepages not-applicable", "mm/Kconfig:837"),
    ("7.3 x86_64 rt", "", "numa-balancing not-applicable", "init/Kconfig:1031"),
];

/// Configurations of Debian, as far as they differ from the well-set machine's.
fn configuration(series: &str, arch: &str, model: &str) -> String {
    let (x86, new) = (arch == "x86_64", series.starts_with('7'));
    let mut options = vec![("SOFTLOCKUP_DETECTOR", "y"), ("HARDLOCKUP_DETECTOR", "y")];
    if !x86 {
        options.extend([("GENERIC_IDLE_POLL_SETUP", "y"), ("HARDLOCKUP_DETECTOR_BUDDY", "y")]);
    }
    if new {
        options.extend([("DAMON", "y"), ("SCHED_CACHE", "y"), ("SCHED_CLASS_EXT", "y")]);
        options.push(("HRTIMER_REARM_DEFERRED", if arch == "aarch64" { "n" } else { "y" }));
    }
    if model == "rt" {
        options.push(("PREEMPT_DYNAMIC", if x86 && series != "6.1" { "y" } else { "n" }));
    }
    if model == "stock" {
        options.extend([("PREEMPT_RT", "n"), (if new { "PREEMPT_LAZY" } else { "PREEMPT_VOLUNTARY" }, "y")]);
        options.extend([
            ("PREEMPT_DYNAMIC", if x86 { "y" } else { "n" }),
            ("ARCH_HAS_PREEMPT_LAZY", if new { "y" } else { "n" }),
        ]);
    }
    options.iter().map(|(option, value)| format!("CONFIG_{option}={value}\n")).collect()
}

/// The well-set machine with another kernel.
fn machine(kernel: &str) -> Machine {
    let [series, arch, model] = kernel.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let release = match series {
        "6.1" => "6.1.192",
        "6.12" => "6.12.117",
        "7.2" => "7.2.13",
        _ => "7.3.4",
    };
    let numbers = facts::uname::series(release).unwrap();
    let (new, x86) = (numbers >= (7, 0), arch == "x86_64");
    let flag = match (model, x86, new) {
        ("rt", ..) => "PREEMPT_RT ",
        (_, true, _) => "PREEMPT_DYNAMIC ",
        (_, false, true) => "PREEMPT ",
        (_, false, false) => "",
    };
    let mut machine = Machine::base();
    machine.edit(&configuration(series, arch, model));
    let old = machine.answers.keys().find(|path| path.starts_with("/boot/config-")).unwrap().clone();
    let Some(Access::File(config)) = machine.answers.remove(&old) else { panic!("{old} is no file") };
    let config = String::from_utf8(config).unwrap().replace("6.12.9", release);
    machine.answers.insert(format!("/boot/config-{release}"), Access::File(config.into_bytes()));
    machine.edit(&format!(
        "/proc/sys/kernel/osrelease: {release}\n/proc/sys/kernel/version: #1 SMP {flag}Debian\n\
         /proc/sys/kernel/arch: {arch}\n/sys/kernel/debug/sched/preempt absent"
    ));
    if !x86 {
        machine.edit("/proc/cpuinfo:\n| processor : 0\ncmdline - tsc=nowatchdog");
    }
    if numbers < (6, 12) {
        machine.edit("/sys/kernel/debug/sched/fair_server absent");
    }
    machine
}

/// Expands the edits: a word in capitals stands for several.
fn edits(short: &str) -> String {
    let line = |line: &str| match line.split_once(' ').unwrap_or((line, "")) {
        ("LINE", length) => format!("/proc/cmdline: a={}", "b".repeat(length.parse::<usize>().unwrap() - 2)),
        ("DEEP", _) => DEEP.to_owned(),
        ("FEATURES", names) => format!("/sys/kernel/debug/sched/features: PLACE_LAG {names}"),
        ("SERVER", ns) => format!("/sys/kernel/debug/sched/fair_server/cpu2/runtime: {ns}"),
        ("IRQ", name) => format!("{IPIS}{name}"),
        ("SERIAL", rest) => format!("{ON_SERIAL}{rest}"),
        ("HARD", on) => format!("/proc/sys/kernel/nmi_watchdog: {on}"),
        _ => line.to_owned(),
    };
    short.lines().map(|short| line(short) + "\n").collect()
}

#[test]
fn verdicts_are_those_of_the_kernels_source() {
    let mut wrong = Vec::new();
    for (kernel, short, expected, source) in ROWS {
        let mut machine = machine(kernel);
        machine.edit(&edits(short));
        let (rule, verdict) = expected.split_once(' ').unwrap();
        let found = machine.finding(find(rule).unwrap());
        let severity = if found.verdict.name() == "fail" {
            format!(" {}", found.severity.name())
        } else {
            String::new()
        };
        let words = if found.value.is_empty() { &found.reason } else { &found.value };
        let verdict_text = format!("{}{severity} {words}", found.verdict.name());
        if verdict_text != verdict && !verdict_text.starts_with(&format!("{verdict} ")) {
            wrong.push(format!("{kernel}, {short}: {rule} {verdict_text}; expected {verdict} ({source})"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ROWS.len() >= 40);
}
