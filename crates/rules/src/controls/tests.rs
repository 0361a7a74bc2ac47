//! Tests of the records: consistency with each other and their documents, and values.

use super::*;
use crate::fixture::Machine;
use std::collections::BTreeSet;

/// A path that matches a pattern.
fn path_of(pattern: &str) -> String {
    pattern.replace('#', "7").replace('*', "name")
}

#[test]
fn each_file_has_one_record_that_says_why() {
    let mut seen = BTreeSet::new();
    for control in all() {
        assert!(seen.insert(control.pattern), "{} is there twice", control.pattern);
        let path = path_of(control.pattern);
        let found: Vec<&str> = all()
            .filter(|other| matched(other.pattern, &path).is_some())
            .map(|control| control.pattern)
            .collect();
        assert_eq!(found, [control.pattern]);
        assert!(Key::of_path(&path).is_some_and(|key| key.path() == path), "{path} has no key");
        assert!(!control.reason.is_empty() && !control.reason.ends_with('.'), "{}", control.pattern);
        assert!(control.source.starts_with("https://"), "{}", control.pattern);
    }
}

#[test]
fn partners_have_records_and_name_each_other() {
    for control in all() {
        for partner in control.partners.iter().chain(control.restored_first) {
            // The CPU that an interrupt goes to is restored, but set only by its list.
            let is_effect = matches!(Key::of_path(&path_of(partner)), Some(Key::IrqEffective(_)));
            assert!(is_effect || find(&path_of(partner)).is_some(), "{}: {partner}", control.pattern);
        }
        // Unless the partner only follows.
        for partner in control.partners.iter().filter(|_| control.restored_first.is_empty()) {
            let theirs = find(&path_of(partner)).map(|control| control.partners);
            assert_eq!(theirs, Some(&[control.pattern][..]), "{}", control.pattern);
        }
    }
}

/// Accepted values and values that give up a safeguard are of one kind.
#[test]
fn what_is_given_up_is_a_value_that_is_taken() {
    let survey = Machine::base().read();
    for control in all() {
        for value in control.gives_up {
            assert!(control.accepts.normalize(value, &survey).is_ok(), "{} {value}", control.pattern);
        }
    }
}

#[track_caller]
fn check(path: &str, value: &str, expected: &str) {
    let survey = Machine::base().read();
    let setting = find(path).and_then(|control| control.setting(path, value, &survey)).unwrap();
    let keys = |keys: &[Key]| keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",");
    let line = format!(
        "{} {} {:?} {:?} [{}] [{}]",
        setting.key,
        setting.wanted,
        setting.readback,
        setting.risk,
        keys(&setting.partners),
        keys(&setting.restored_first)
    );
    assert_eq!(line, expected);
}

#[test]
fn a_setting_has_what_the_file_needs() {
    check("/proc/sys/vm/stat_interval", "120", "sysctl:vm.stat_interval 120 Number Low [] []");
    check(
        "/proc/sys/vm/dirty_bytes",
        "8192",
        "sysctl:vm.dirty_bytes 8192 Number Medium [sysctl:vm.dirty_ratio] []",
    );
    check("/proc/irq/9/smp_affinity_list", "0-1", "irq:9 0-1 Pending Medium [] [irq:9/effective]");
    check("/proc/irq/default_smp_affinity", "3", "irq:default 3 Mask Low [] []");
    let watchdogs = "sysctl:kernel.soft_watchdog,sysctl:kernel.nmi_watchdog";
    check(
        "/proc/sys/kernel/watchdog",
        "0",
        &format!("sysctl:kernel.watchdog 0 Number High [{watchdogs}] [{watchdogs}]"),
    );
    check(
        "/proc/sys/kernel/sched_rt_runtime_us",
        "950000",
        "sysctl:kernel.sched_rt_runtime_us 950000 Number Low [] []",
    );
    check(
        "/sys/kernel/debug/sched/fair_server/cpu2/runtime",
        "0",
        "sysfs:kernel/debug/sched/fair_server/cpu2/runtime 0 Number High [] []",
    );
}

#[test]
fn the_numbers_behind_the_first_stay() {
    let mut machine = Machine::base();
    machine.edit("/proc/sys/kernel/printk: 7\t4\t1\t7");
    let path = "/proc/sys/kernel/printk";
    let setting = find(path).unwrap().setting(path, "4", &machine.read()).unwrap();
    assert_eq!(setting.wanted, "4 4 1 7");
    assert!(setting.is_met_by("4\t4\t1\t7\n") && !setting.is_met_by("7\t4\t1\t7\n"));
}

/// A detector that this kernel lacks is not written.
#[test]
fn what_is_not_there_is_no_partner() {
    let mut machine = Machine::base();
    machine.edit("/proc/sys/kernel/nmi_watchdog absent");
    let path = "/proc/sys/kernel/watchdog";
    let setting = find(path).unwrap().setting(path, "0", &machine.read()).unwrap();
    assert_eq!(setting.restored_first, [Key::Sysctl("kernel.soft_watchdog".into())]);
}

#[track_caller]
fn takes(path: &str, value: &str, expected: Result<&str, &str>) {
    let form = find(path).unwrap().normalize(path, value, &Machine::base().read());
    assert_eq!(form.as_ref().map(String::as_str).map_err(String::as_str), expected, "{path} {value}");
}

#[test]
fn values_out_of_range_are_refused_with_what_is_right() {
    let swappiness = "/proc/sys/vm/swappiness";
    takes(swappiness, " 60\n", Ok("60"));
    takes(swappiness, "201", Err("'201' is not a number from 0 to 200"));
    takes(swappiness, "+1", Err("'+1' is not a number from 0 to 200"));
    takes(swappiness, "", Err("'' is not a number from 0 to 200"));
    let limit = "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us";
    takes(limit, "n/a", Ok("n/a"));
    takes(limit, "-1", Err("'-1' is not n/a or a number from 0 to 2147483647"));
    takes("/proc/sys/kernel/printk_devkmsg", "some", Err("'some' is not on or off or ratelimit"));
    let huge = "/sys/kernel/mm/transparent_hugepage/enabled";
    takes(huge, "never", Err("this kernel has no /sys/kernel/mm/transparent_hugepage/enabled"));
    let irq = "/proc/irq/9/smp_affinity_list";
    takes(irq, "1,0", Ok("0-1"));
    takes(irq, "", Err("'' is not a list of CPUs such as 0-1 (it names no CPU)"));
    takes(irq, "3-4", Err("'3-4' is not a list of CPUs such as 0-1 (there is no CPU 4)"));
    let queues = "/sys/devices/virtual/workqueue/cpumask";
    takes(queues, "0x3", Ok("3"));
    takes(queues, "0", Err("'0' is not a mask of CPUs such as 3 for CPUs 0-1 (it names no CPU)"));
    takes(queues, "10", Err("'10' is not a mask of CPUs such as 3 for CPUs 0-1 (there is no CPU 4)"));
    takes("/sys/class/net/lo/queues/rx-0/rps_cpus", "0", Ok("0"));
    takes("/sys/kernel/debug/sched/preempt", "full", Ok("full"));
    takes(
        "/sys/kernel/debug/sched/preempt",
        "none",
        Err("this kernel does not offer none, only (full) lazy laziest"),
    );
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    takes(clock, "tsc", Ok("tsc"));
    takes(clock, "sundial", Err("'sundial' is not the name of a clocksource that the machine offers"));
    takes(
        "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
        "a b",
        Err("'a b' is not a name without blanks"),
    );
}
