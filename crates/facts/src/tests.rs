//! Small directory trees of machines: the results of `gather` and `describe`.

// Directory trees of machines have to be written.
#![allow(clippy::disallowed_methods)]

use model::vocabulary::Preempt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use host::MachineFiles;

/// Creates a tree from lines of `/path: text`, where `| text` adds a line to the file above and
/// `/path -> target` creates a link; it exists as long as the returned directory.
///
/// A refusal is a link to itself (ELOOP), which stops root as well.
pub(super) fn tree(text: &str) -> (MachineFiles, TempDir) {
    let dir = TempDir::new().unwrap();
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        if let Some(more) = line.strip_prefix("|") {
            let (_, content) = files.last_mut().unwrap();
            content.drain(..usize::from(*content == "\n"));
            content.push_str(more.strip_prefix(' ').unwrap_or(more));
            content.push('\n');
        } else if let Some((path, target)) = line.split_once(" -> ") {
            symlink(target, new_path(dir.path(), path)).unwrap();
        } else {
            let (path, content) = line.split_once(':').unwrap();
            let content = content.strip_prefix(' ').unwrap_or(content);
            let end = if content.ends_with('\0') { "" } else { "\n" };
            files.push((path, format!("{content}{end}")));
        }
    }
    for (path, content) in files {
        fs::write(new_path(dir.path(), path), content).unwrap();
    }
    (MachineFiles::tree(dir.path()), dir)
}

fn new_path(root: &Path, path: &str) -> std::path::PathBuf {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// Describes a tree and compares the fields named in `expected`, lines of `field: value` as in
/// run.json.
fn check(text: &str, expected: &str) {
    let (host, _dir) = tree(text);
    let described = serde_json::to_value(describe(&gather(&host))).unwrap();
    for line in expected.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (field, value) = line.split_once(':').unwrap();
        let found = match &described[field] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(found, value.trim(), "{field}");
    }
}

#[test]
fn debian_6_1() {
    check(
        "/proc/sys/kernel/osrelease: 6.1.0-50-amd64
         /proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.1.170-1 (2026-05-01)
         /proc/sys/kernel/arch: x86_64
         /proc/sys/kernel/sched_rt_runtime_us: 950000
         /proc/sys/kernel/sched_rt_period_us: 1000000
         /proc/cmdline: BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet
         /boot/config-6.1.0-50-amd64:
         | # Automatically generated file; DO NOT EDIT.
         | # Linux/x86 6.1.170 Kernel Configuration
         | CONFIG_PREEMPT_VOLUNTARY=y
         | CONFIG_PREEMPT_BUILD=y
         | CONFIG_PREEMPT_DYNAMIC=y
         | CONFIG_HIGH_RES_TIMERS=y
         | CONFIG_HZ=250
         | # Kernel hacking
         /proc/cpuinfo:
         | model name : Intel(R) Core(TM) i5-8500
         | flags : fpu vme
         /sys/devices/system/cpu/online: 0-3
         /sys/devices/system/cpu/isolated:
         /sys/devices/system/cpu/nohz_full:   (null)
         /sys/devices/system/cpu/cpu0/topology/thread_siblings_list: 0,2
         /sys/devices/system/cpu/cpu1/topology/thread_siblings_list: 1,3
         /sys/devices/system/cpu/cpu2/topology/thread_siblings_list: 0,2
         /sys/devices/system/cpu/cpu3/topology/thread_siblings_list: 1,3
         /sys/devices/system/cpu/cpufreq/policy0/scaling_governor: powersave
         /sys/devices/system/cpu/cpufreq/policy0/scaling_driver: intel_pstate
         /sys/devices/system/cpu/cpufreq/policy1/scaling_governor: performance
         /sys/devices/system/cpu/cpufreq/policy1/scaling_driver: intel_pstate
         /sys/devices/system/cpu/cpuidle/current_driver: intel_idle
         /sys/devices/system/cpu/cpu0/cpuidle/state10/name: C10
         /sys/devices/system/cpu/cpu0/cpuidle/state10/latency: 890
         /sys/devices/system/cpu/cpu0/cpuidle/state2/name: C1E
         /sys/devices/system/cpu/cpu0/cpuidle/state2/latency: 10
         /sys/devices/system/cpu/cpu0/cpuidle/state0/name: POLL
         /sys/devices/system/cpu/cpu0/cpuidle/state0/latency: 0
         /sys/devices/system/clocksource/clocksource0/current_clocksource: tsc
         /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm
         /sys/class/dmi/id/sys_vendor: LENOVO",
        r##"release: 6.1.0-50-amd64
         machine: x86_64
         preempt: voluntary
         clocksource: tsc
         virtual: none
         model: Intel(R) Core(TM) i5-8500
         cmdline: BOOT_IMAGE=/vmlinuz root=xxxxxxxxx ro quiet
         online: 0-3
         isolated:
         nohz_full:
         siblings: ["0,2","1,3"]
         governor: performance,powersave
         cpufreq_driver: intel_pstate
         cpuidle_driver: intel_idle
         idle_states: ["POLL","C1E","C10"]
         idle_exit_ns: [0,10000,890000]
         rt_runtime_us: 950000
         rt_period_us: 1000000
         fair_server_runtime_ns: null
         high_res_timers: true
         hz: 250
         unknown: []"##,
    );
}

#[test]
fn rt_6_12_with_its_fair_server() {
    check(
        "/proc/sys/kernel/osrelease: 6.12.117+deb13-rt-amd64
         /proc/sys/kernel/version: #1 SMP PREEMPT_RT Debian 6.12.117-1
         /sys/kernel/realtime: 1
         /sys/kernel/debug/sched/preempt: (full) lazy laziest
         /sys/kernel/debug/sched/fair_server/cpu0/runtime: 50000000
         /sys/kernel/debug/sched/fair_server/cpu0/period: 1000000000
         /sys/kernel/debug/sched/fair_server/cpu1/runtime: 0
         /sys/kernel/debug/sched/fair_server/cpu1/period: 1000000000
         /proc/cmdline: isolcpus=managed_irq,domain,1 nohz_full=1 preempt=lazy
         /sys/devices/system/cpu/isolated: 1
         /sys/devices/system/cpu/nohz_full: 1
         /proc/sys/kernel/sched_rt_runtime_us: -1",
        "preempt: rt
         isolated: 1
         nohz_full: 1
         rt_runtime_us: -1
         fair_server_runtime_ns: 50000000
         virtual:
         unknown: []",
    );
}

#[test]
fn a_dynamic_kernel_switched_at_run_time() {
    check(
        "/proc/sys/kernel/osrelease: 6.12.9-amd64
         /proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1
         /sys/kernel/debug/sched/preempt: none voluntary full (lazy)
         /proc/cmdline: preempt=full",
        "preempt: lazy",
    );
}

#[test]
fn a_hybrid_x86() {
    let (host, _dir) = tree(
        "/sys/devices/system/cpu/online: 0-2
         /sys/devices/cpu_core/cpus: 0-1
         /sys/devices/cpu_atom/cpus: 2
         /sys/devices/system/cpu/cpu0/topology/core_cpus_list: 0-1
         /sys/devices/system/cpu/cpu1/topology/core_cpus_list: 0-1
         /sys/devices/system/cpu/cpu2/topology/core_cpus_list: 2",
    );
    let facts = gather(&host);
    assert_eq!([0, 1, 2, 3].map(|cpu| facts.core_type(Cpu(cpu))), ["P", "P", "E", ""]);
    assert_eq!(describe(&facts).siblings, ["0-1"]);
}

#[test]
fn a_big_little_arm64() {
    let text = "/proc/sys/kernel/osrelease: 6.6.0
         /proc/sys/kernel/arch: aarch64
         /sys/devices/system/cpu/online: 0-1
         /sys/devices/system/cpu/cpu0/cpu_capacity: 446
         /sys/devices/system/cpu/cpu1/cpu_capacity: 1024
         /proc/device-tree/model: Radxa ROCK 4\0
         /proc/device-tree/compatible: radxa,rockpi4\0rockchip,rk3399\0
         /proc/cpuinfo:
         | CPU implementer : 0x41
         | CPU part : 0xd03
         | CPU part : 0xd08
         | Serial : 0123456789abcdef
         /sys/devices/system/clocksource/clocksource0/available_clocksource: arch_sys_counter";
    check(text, "model: Radxa ROCK 4 (arm 0x41/0xd03, 0x41/0xd08)\nvirtual: none\npreempt: unknown");
    let (host, _dir) = tree(text);
    let facts = gather(&host);
    assert_eq!([0, 1].map(|cpu| facts.core_type(Cpu(cpu))), ["capacity 446", "capacity 1024"]);
}

#[test]
fn a_guest_with_both_cgroup_versions() {
    let text = "/proc/cpuinfo:
         | model name : AMD EPYC
         | flags : fpu hypervisor
         /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc kvm-clock
         /proc/self/cgroup:
         | 1:cpu:/job
         | 0::/job
         /sys/fs/cgroup/cpu/job/cpu.rt_runtime_us: 0
         /sys/fs/cgroup/unified/job/cpu.stat: usage_usec 5
         | nr_throttled 2
         | throttled_usec 10
         /proc/self/status: CapEff:\t0000000000800000
         /proc/self/limits: Max locked memory 65536 65536 bytes
         | Max realtime priority 0 0";
    check(text, "virtual: kvm\ncgroup_rt_runtime_us: 0\nunknown: []");
    let (host, _dir) = tree(text);
    let facts = gather(&host);
    let stat = facts.cpu_stat.known().unwrap();
    assert_eq!(stat.path, "/sys/fs/cgroup/unified/job/cpu.stat");
    assert_eq!((stat.throttled_periods, stat.throttled_ns), (Some(2), Some(10_000)));
    assert!(facts.capabilities.known().unwrap().sys_nice());
    assert_eq!(facts.limits.known().unwrap().rt_priority.soft, Some(0));
}

#[test]
fn refusals_are_named_and_absence_is_not() {
    check(
        "/sys/kernel/debug/sched/preempt -> preempt
         /proc/sys/kernel/sched_rt_runtime_us: lots
         /proc/sys/kernel/osrelease: ../../etc",
        r#"unknown: ["/proc/sys/kernel/osrelease: expected one word, found '../../etc'","/sys/kernel/debug/sched/preempt: refused: ELOOP, too many links","/proc/sys/kernel/sched_rt_runtime_us: expected a number, found 'lots'"]
         release:
         preempt: unknown
         rt_runtime_us: null"#,
    );
    check("", "unknown: []\nrelease:\nvirtual:\nhz: null");
}

#[test]
fn a_configuration_of_another_kernel_is_noted_and_not_used() {
    check(
        "/proc/sys/kernel/osrelease: 6.12.9
         /boot/config-6.12.9:
         | # Automatically generated file; DO NOT EDIT.
         | # Linux/x86 5.15.0 Kernel Configuration
         | CONFIG_PREEMPT_RT=y
         | CONFIG_HZ=1000
         | # Kernel hacking",
        r#"preempt: unknown
         hz: null
         unknown: ["/boot/config-6.12.9: not used: it is for Linux 5.15.0, but the kernel is 6.12.9"]"#,
    );
    check(
        "/proc/sys/kernel/osrelease: 6.12.9
         /boot/config-6.12.9:
         | # Automatically generated file; DO NOT EDIT.
         | # Linux/x86 5.15.0 Kernel Configuration
         | CONFIG_HZ=1000
         | # Kernel hacking
         /lib/modules/6.12.9/config:
         | # Automatically generated file; DO NOT EDIT.
         | CONFIG_HZ=100
         | # Kernel hacking",
        "hz: 100",
    );
}

/// The file with the architecture exists since 6.1.
#[test]
fn the_architecture_of_an_older_kernel_is_told_by_its_other_texts() {
    let of = |text: &str| gather(&tree(&format!("/proc/sys/kernel/osrelease: 5.10.9\n{text}")).0).machine;
    let config = |arch: &str, options: &str| {
        format!(
            "/boot/config-5.10.9:\n| # Automatically generated file; DO NOT EDIT.\n\
             | # Linux/{arch} 5.10.9 Kernel Configuration\n{options}| # Kernel hacking\n"
        )
    };
    let known = |name: &str| Fact::Known(name.to_owned());
    assert_eq!(of(&config("arm64", "| CONFIG_HZ=250\n")), known("aarch64"));
    assert_eq!(of(&config("x86", "| CONFIG_64BIT=y\n")), known("x86_64"));
    assert_eq!(of("/proc/cpuinfo: flags\t: fpu lm"), known("x86_64"));
    assert_eq!(of("/proc/cpuinfo: isa\t: rv64imafdc"), known("riscv64"));
    assert_eq!(of("/proc/cpuinfo: Features\t: half thumb"), Fact::Absent);
}

#[test]
fn many_refusals_are_counted() {
    let mut text = "/sys/devices/system/cpu/online: 0-99\n".to_owned();
    for cpu in 0..100 {
        text += &format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity: none\n");
    }
    let (host, _dir) = tree(&text);
    let unknown = gather(&host).unknown();
    assert_eq!((unknown.len(), unknown[40].as_str()), (41, "and 60 more"));
}

#[test]
fn what_identifies_a_machine_is_neither_described_nor_recorded() {
    let (host, _dir) = tree(
        "/proc/cmdline: smsc95xx.macaddr=B8:27:EB:12:34:56 quiet -- --token=x
         /proc/cpuinfo:
         | model name : x
         | Serial : 0123456789abcdef",
    );
    let host = host.recording();
    let facts = gather(&host);
    assert_eq!(describe(&facts).cmdline, "smsc95xx.macaddr=xx:xx:xx:xx:xx:xx quiet");
    let seen = format!("{:?}", host.recorded().unwrap().accesses());
    for word in ["0123456789abcdef", "48, 49, 50, 51, 52", "18, 52"] {
        assert!(!seen.contains(word), "{word}");
    }
}

#[test]
fn no_text_anywhere_upsets_the_reading() {
    let (empty, _dir) = tree("");
    let empty = empty.recording();
    gather(&empty);
    let paths: Vec<String> = empty.recorded().unwrap().accesses().into_keys().collect();
    for hostile in [
        "",
        "\n",
        "\0\0",
        "0-8192\n",
        "0-8192",
        "-",
        "99999999999999999999",
        ") ( (",
        "::::",
        "=\"",
        "n\u{301}\u{202e}: 1",
    ] {
        let (_, dir) = tree("");
        for path in &paths {
            // Some of the paths are directories of others.
            let _ = fs::create_dir_all(dir.path().join(path.trim_start_matches('/')).parent().unwrap());
            let _ = fs::write(dir.path().join(path.trim_start_matches('/')), hostile);
        }
        let described = describe(&gather(&MachineFiles::tree(dir.path())));
        assert!(
            described.unknown.len() <= 41 && described.preempt == Preempt::Unknown,
            "{hostile}: {described:?}"
        );
    }
}
