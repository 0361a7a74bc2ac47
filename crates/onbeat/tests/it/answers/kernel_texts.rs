//! `audit` of a kernel that is not running: its configuration, and its boot loader's parameters.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::place::*;

/// An excerpt of a configuration, with its heading.
const EXCERPT: &str = include_str!("../../../../../tests/fixtures/kconfig/6.12-rt-excerpt");

fn write(root: &str, path: &str, text: &str) -> String {
    let file = Path::new(root).join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// `verdict value` of a rule, with its severity if it fails.
fn value_of(audit: &Value, rule: &str) -> String {
    let all = audit["findings"].as_array().unwrap();
    let found = all.iter().find(|found| found["rule"] == rule).unwrap();
    let word = |field: &str| found[field].as_str().unwrap().to_owned();
    match word("verdict").as_str() {
        "fail" => format!("fail {} {}", word("severity"), word("value")),
        "pass" => format!("pass {}", word("value")),
        verdict => format!("{verdict} {}", word("why")),
    }
}

#[test]
fn a_configuration_alone_is_judged() {
    let place = Place::new();
    let root = place.path("tree");
    let config = write(&root, "boot/config-6.12.0-yocto", EXCERPT);
    for args in [["audit", "--kconfig", &config], ["audit", "--root", &root]] {
        let audit = json(&args, 0);
        assert_eq!(audit["schema"], "onbeat.audit/1");
        for (rule, expected) in [
            ("preemption-model", "pass rt"),
            ("high-resolution-timers", "pass built in"),
            ("rt-group-sched", "fail high built in"),
            ("lock-debugging", "fail high PROVE_LOCKING, DEBUG_PREEMPT"),
            ("latency-tracers", "pass none"),
            ("threaded-interrupts", "pass forced by PREEMPT_RT"),
            ("rcu-boost", "pass built in"),
        ] {
            assert_eq!(value_of(&audit, rule), expected, "{args:?}");
        }
        assert!(value_of(&audit, "rt-throttling").starts_with("not-applicable needs the running kernel"));
        assert!(value_of(&audit, "rival-tuners").starts_with("not-applicable needs the running kernel"));
        assert_eq!(audit["summary"]["unknown"], 0);
        assert_eq!((&audit["host"]["machine"], &audit["host"]["preempt"]), (&"x86_64".into(), &"rt".into()));
        assert_eq!(audit["texts"]["excerpt"], true);
    }
    let screen = onbeat(&["audit", "--kconfig", &config]);
    let text = String::from_utf8(screen.stdout).unwrap();
    let first = text.split("\n\n").next().unwrap().replace("\n  ", " ");
    assert!(first.contains(&config) && first.contains("6.12.117 for x86_64"), "{first}");
    assert!(first.contains("no running kernel"), "{first}");
    assert_eq!(code(&onbeat(&["audit", "-q", "--kconfig", &config, "--fail-on", "high", "--strict"])), 3);
}

#[test]
fn a_command_line_alone_says_nothing_of_what_is_built_in() {
    let place = Place::new();
    let root = place.path("tree");
    write(&root, "boot/firmware/cmdline.txt", "console=ttyS0 root=/dev/sda isolcpus=3\n");
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(value_of(&audit, "debug-parameters"), "pass none in effect");
    let timers = value_of(&audit, "high-resolution-timers");
    assert!(timers.starts_with("not-applicable needs the kernel's configuration"), "{timers}");
    write(&root, "boot/firmware/cmdline.txt", "console=ttyS0 highres=off\n");
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(value_of(&audit, "high-resolution-timers"), "fail fatal highres=off");
}

#[test]
fn another_architecture_and_a_dynamic_kernel() {
    let place = Place::new();
    let arm = "# Linux/arm64 6.12.0 Kernel Configuration\nCONFIG_ARM64=y\nCONFIG_64BIT=y\n\
               CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HIGH_RES_TIMERS=y\n";
    let audit = json(&["audit", "--kconfig", &write(&place.path("a"), "config", arm)], 0);
    assert_eq!(value_of(&audit, "preemption-model"), "fail fatal voluntary");
    assert_eq!(value_of(&audit, "machine-check-polling"), "not-applicable x86 only; this machine is aarch64");
    // Options that act unless a parameter disables them are judged without parameters.
    let debug = format!("{arm}CONFIG_DEBUG_KMEMLEAK=y\n# CONFIG_CPU_FREQ is not set\n");
    let audit = json(&["audit", "--kconfig", &write(&place.path("d"), "config", &debug)], 0);
    assert_eq!(value_of(&audit, "memory-debugging"), "fail high DEBUG_KMEMLEAK");
    assert_eq!(value_of(&audit, "cpu-frequency-support"), "fail high not built in");
    assert_eq!(value_of(&audit, "watchdog"), "pass no soft lockup detector; no NMI watchdog");
    let riscv = arm.replace("arm64", "riscv");
    let audit = json(&["audit", "--kconfig", &write(&place.path("r"), "config", &riscv)], 0);
    assert_eq!(audit["host"]["machine"], "riscv64");
}

#[test]
fn a_boot_loaders_text_is_judged_with_it() {
    let place = Place::new();
    let root = place.path("tree");
    write(
        &root,
        "etc/default/grub",
        "GRUB_CMDLINE_LINUX=\"highres=off\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
    );
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(value_of(&audit, "high-resolution-timers"), "fail fatal highres=off");
    assert!(value_of(&audit, "lock-debugging").contains("pass it with --kconfig FILE"));
    write(&root, "boot/cmdline.txt", "console=tty1 quiet threadirqs\n");
    let config = EXCERPT.replace("CONFIG_PREEMPT_RT=y", "CONFIG_PREEMPT=y\nCONFIG_IRQ_FORCED_THREADING=y");
    let config = write(&place.path("build"), ".config", &config);
    let audit = json(&["audit", "--root", &root, "--kconfig", &config], 0);
    assert_eq!(value_of(&audit, "threaded-interrupts"), "pass threadirqs");
    assert_eq!(value_of(&audit, "high-resolution-timers"), "pass built in; switched on");
    assert_eq!(audit["texts"]["cmdline"], "/boot/cmdline.txt");
    // What a running kernel was booted with may come from there too.
    let copy = |line: &str| {
        write(&root, "proc/cmdline", line);
        String::from_utf8(onbeat(&["audit", "--root", &root, "--copy"]).stdout).unwrap()
    };
    write(&root, "boot/cmdline.txt", "console=tty1 tp_printk\n");
    let copied = copy("console=tty1 root=/dev/sda tp_printk\n");
    assert!(copied.contains("They were read from /boot/cmdline.txt"), "{copied}");
    let copied = copy("tp_printk\n");
    assert!(copied.contains("GRUB: GRUB_CMDLINE_LINUX"), "{copied}");
    fs::remove_dir_all(Path::new(&root).join("proc")).unwrap();
    let copied = String::from_utf8(onbeat(&["audit", "--root", &root, "--copy"]).stdout).unwrap();
    assert!(copied.contains("They were read from /boot/cmdline.txt"), "{copied}");
    // A command that prints the parameters cannot be run: rules that need them are unknown.
    let computed = place.path("computed");
    write(&computed, "etc/default/grub", "GRUB_CMDLINE_LINUX=\"$(cat /x)\"\n");
    let audit = json(&["audit", "--root", &computed], 0);
    assert!(value_of(&audit, "debug-parameters").starts_with("unknown"));
}

#[test]
fn what_is_no_configuration_or_no_machine_is_refused() {
    let place = Place::new();
    let root = place.path("tree");
    let file = |name: &str, text: &str| write(&place.path("files"), name, text);
    for (name, text, words) in [
        (
            "buildroot",
            "#\n# Automatically generated file; DO NOT EDIT.\n# Buildroot 2024.02 Configuration\nBR2_arm=y\n",
            "Buildroot 2024.02",
        ),
        ("defconfig", "CONFIG_ARM64=y\nCONFIG_PREEMPT_RT=y\n", "a defconfig or a fragment"),
        ("grub", "GRUB_TIMEOUT=5\n", "no line CONFIG_NAME"),
    ] {
        let told = refused(&["audit", "--kconfig", &file(name, text)], 2);
        assert!(told.contains(words) && told.trim_end().lines().count() == 1, "{told}");
    }
    refused(&["audit", "--kconfig", &place.path("none")], 2);
    let config = write(&root, "boot/config-6.12.0", EXCERPT);
    assert!(refused(&["audit", "--root", &config], 2).contains("audit --kconfig FILE"));
    write(&root, "boot/config-6.1.0", &EXCERPT.replace("6.12.117", "6.1.90"));
    assert!(refused(&["audit", "--root", &root], 2).contains("--kconfig FILE"));
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    assert!(refused(&["audit", "--root", &empty], 2).contains("no machine state"));
    // A machine that has run, and the configuration of another kernel.
    let other = place.path("other");
    write(&other, "proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
    let told = refused(&["audit", "--root", &other, "--kconfig", &config], 2);
    assert!(told.contains("it is for Linux 6.12.117, but the kernel is 6.8.0-60-generic"), "{told}");
}

#[test]
fn a_container_shows_that_its_kernel_is_not_preempt_rt() {
    let place = Place::new();
    let root = place.path("tree");
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.8.0-60-generic\n"),
        ("proc/sys/kernel/version", "#63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025\n"),
        ("proc/cmdline", "ro quiet\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
    ] {
        write(&root, path, text);
    }
    let audit = json(&["audit", "--root", &root], 0);
    assert_eq!(value_of(&audit, "preemption-model"), "fail fatal not PREEMPT_RT");
    assert_eq!(value_of(&audit, "threaded-interrupts"), "fail high no threadirqs");
}

#[test]
fn a_file_of_settings_that_is_a_link_to_null_is_switched_off() {
    let place = Place::new();
    let root = place.path("root");
    write(&root, "proc/sys/vm/swappiness", "60\n");
    write(&root, "proc/sys/vm/stat_interval", "1\n");
    write(&root, "usr/lib/sysctl.d/10-rt.conf", "vm.swappiness = 10\n");
    write(&root, "usr/lib/sysctl.d/20-rt.conf", "vm.stat_interval = 10\n");
    std::fs::create_dir_all(format!("{root}/etc/sysctl.d")).unwrap();
    std::os::unix::fs::symlink("/dev/null", format!("{root}/etc/sysctl.d/10-rt.conf")).unwrap();
    let plan = json(&["tune", "import", &root, "--root", &root], 0);
    let keys = plan["changes"].as_array().unwrap().iter().map(|change| &change["key"]);
    assert_eq!(keys.collect::<Vec<_>>(), ["sysctl:vm.stat_interval"]);
}
