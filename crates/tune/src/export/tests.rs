//! Exports of fake machines, compared line by line.

use super::*;
use crate::plan::{RuleRequest, plan};
use crate::reading;
use host::MachineFiles;
use model::plan::ChangeState;
use model::setting::Setting;
use rules::audit::audit;
use rules::fixture::Machine;
use rules::judgement::AuditVerdict;
use rules::knobs::ALL;

fn export_of(machine: &Machine, request: &PlanRequest, in_force: &[PlannedChange]) -> (Audit, Export) {
    let (survey, intent) = machine.survey();
    let audit = audit(&survey, &intent);
    let files = MachineFiles::in_memory(machine.answers.clone());
    let plan = plan(&survey, &audit, request, "", &|key| reading::read(&files, key)).unwrap();
    let booted = survey.facts.cmdline.known().cloned().unwrap_or_default();
    let export = export(&ExportInput { audit: &audit, plan: &plan, in_force, request, booted: &booted });
    (audit, export)
}

fn of_rules(edits: &str, rules: &[&str]) -> Export {
    let mut machine = Machine::base();
    machine.edit(edits);
    let rules = rules.iter().map(|rule| RuleRequest::parse(rule).unwrap()).collect();
    export_of(&machine, &PlanRequest { rules, ..PlanRequest::default() }, &[]).1
}

/// Lines of a file without comments; none if there is no such file.
fn lines<'a>(export: &'a Export, name: &str) -> Vec<&'a str> {
    let text = export.files.iter().find(|file| file.name == name).map_or("", |file| file.text.as_str());
    let held = |line: &&str| !line.is_empty() && (!line.starts_with('#') || line.ends_with("is not set"));
    text.lines().filter(held).collect()
}

#[test]
fn each_kind_of_change_goes_to_its_file() {
    let export = of_rules(
        "--cpus 1-2
         /proc/sys/vm/stat_interval: 1
         /sys/kernel/mm/ksm/run: 1
         CONFIG_PSI=y
         /proc/pressure/cpu: some avg10=0.00 avg60=0.00 avg300=0.00 total=0
         cmdline + psi=1
         CONFIG_GCOV_KERNEL=y
         CONFIG_GCOV_PROFILE_ALL=y",
        &[
            "vmstat-interval",
            "kernel-samepage-merging",
            "pressure-stall-accounting",
            "coverage-instrumentation",
        ],
    );
    assert_eq!(lines(&export, "sysctl.d/90-onbeat.conf"), ["vm.stat_interval = 10"]);
    assert_eq!(lines(&export, "tmpfiles.d/onbeat.conf"), ["w! /sys/kernel/mm/ksm/run - - - - 2"]);
    assert_eq!(lines(&export, "cmdline"), ["- psi=1", "+ psi=0"]);
    assert_eq!(
        lines(&export, "kernel.cfg"),
        ["# CONFIG_GCOV_PROFILE_ALL is not set", "# CONFIG_GCOV_KERNEL is not set"]
    );
    assert_eq!(export.left_out, []);
    let yocto = lines(&export, "yocto.conf");
    assert!(
        yocto.contains(&"SRC_URI += \"file://onbeat.cfg\"") && yocto.contains(&"APPEND:append = \" psi=0\"")
    );
    let sysctls = &export.files[0].text;
    assert!(sysctls.contains("\n# vmstat-interval: the worker runs on the CPU"), "{sysctls}");
    assert_eq!(export.files.last().map(|file| file.name), Some("README"));
}

#[test]
fn a_rule_is_in_a_file_or_is_named_with_the_reason() {
    let mut exported = 0;
    for knob in ALL {
        let mut machine = Machine::base();
        machine.edit(knob.examples.fires);
        let (audit, export) = export_of(&machine, &PlanRequest::default(), &[]);
        for found in audit.findings.iter().filter(|found| found.verdict == AuditVerdict::Fail) {
            let heads =
                export.files.iter().filter(|file| file.name != "README").flat_map(|file| file.text.lines());
            let mut heads = heads.filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
            let named = heads.any(|(rules, _)| rules.split(", ").any(|rule| rule == found.rule));
            let left = export.left_out.iter().find(|left| left.rule == found.rule);
            assert!(named || left.is_some(), "{}: {:#?}", found.rule, export);
            assert!(left.is_none_or(|left| !left.why.is_empty()));
            exported += usize::from(named);
        }
        for file in &export.files {
            assert!(!file.text.contains("\n\n\n") && file.text.ends_with('\n'), "{}", file.text);
        }
    }
    assert!(exported > 60, "{exported}");
}

#[test]
fn what_no_boot_keeps_is_named() {
    let edits = ALL.iter().find(|knob| knob.id == "irq-affinity").map(|knob| knob.examples.fires).unwrap();
    let export = of_rules(&format!("{edits}\ncmdline - irqaffinity=0-1"), &["irq-affinity"]);
    assert!(lines(&export, "tmpfiles.d/onbeat.conf").is_empty());
    // Interrupt numbers change; this word covers all of them.
    assert_eq!(lines(&export, "cmdline"), ["+ irqaffinity=0-1"], "{export:#?}");

    let machine = Machine::base();
    let change = |key: &str, wanted: &str, rule: &str| PlannedChange {
        state: ChangeState::Applied,
        ..PlannedChange::new(Setting::new(key.parse().unwrap(), wanted), rule, "")
    };
    let in_force = [
        change("sysctl:vm.stat_interval", "120", "vmstat-interval"),
        change("task:12/345", "0-1", "kernel-thread-affinity"),
        change("cgroup:onbeat/rt/cpuset.cpus.partition", "isolated", ""),
        change("sysfs:kernel/tracing/tracing_on", "0", "tracing-left-on"),
    ];
    let (_, export) = export_of(&machine, &PlanRequest::default(), &in_force);
    assert_eq!(lines(&export, "sysctl.d/90-onbeat.conf"), ["vm.stat_interval = 120"]);
    let left: Vec<&str> = export.left_out.iter().map(|left| left.rule.as_str()).collect();
    assert_eq!(left, ["shared-cache", "kernel-thread-affinity", "", "tracing-left-on"]);
}

#[test]
fn what_comes_first_is_in_both_files() {
    let export = of_rules(
        "/proc/cmdline: quiet
         /sys/devices/system/cpu/isolated:
         /proc/sys/kernel/sched_rt_runtime_us: 950000
         /sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000",
        &["rt-throttling", "fair-server"],
    );
    assert_eq!(lines(&export, "sysctl.d/90-onbeat.conf"), ["kernel.sched_rt_runtime_us = -1"]);
    let files = lines(&export, "tmpfiles.d/onbeat.conf");
    assert_eq!(files.first(), Some(&"w! /proc/sys/kernel/sched_rt_runtime_us - - - - -1"), "{export:#?}");
    assert!(files[1..].contains(&"w! /sys/kernel/debug/sched/fair_server/cpu2/runtime - - - - 0"));
}

#[test]
fn no_boot_writes_to_fair_servers_of_cpus_that_it_isolates() {
    let on = "/sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000";
    let left_out = |edits: &str, rules: &[&str]| {
        let export = of_rules(edits, rules);
        assert!(lines(&export, "tmpfiles.d/onbeat.conf").iter().all(|line| !line.contains("fair_server")));
        let of_server = export.left_out.iter().find(|left| left.rule == "fair-server");
        of_server.expect("the rule is left out").why.clone()
    };
    // The machine was booted with isolcpus=, or would be with this export.
    assert!(left_out(on, &["fair-server"]).contains("must not be set"));
    let open = format!("{on}\n--cpus 2-3\n/proc/cmdline: quiet\n/sys/devices/system/cpu/isolated:");
    assert!(left_out(&open, &["fair-server", "cpu-isolation"]).contains("warns"));
    // Throttling is not disabled for it alone, either.
    let throttled = format!("{open}\n/proc/sys/kernel/sched_rt_runtime_us: 950000");
    let words = |rules: &[&str]| {
        let export = of_rules(&throttled, rules);
        lines(&export, "sysctl.d/90-onbeat.conf").join(" ")
            + &lines(&export, "tmpfiles.d/onbeat.conf").join(" ")
    };
    assert_eq!(words(&["fair-server", "cpu-isolation"]), "");
    let asked = words(&["rt-throttling=-1", "fair-server", "cpu-isolation"]);
    assert!(asked.starts_with("kernel.sched_rt_runtime_us = -1"), "{asked}");
}

#[test]
fn a_value_that_was_asked_for_takes_the_place_of_the_rules_own() {
    let export = of_rules("", &["vmstat-interval=120"]);
    assert_eq!(lines(&export, "sysctl.d/90-onbeat.conf"), ["vm.stat_interval = 120"]);
    let nothing = of_rules("", &["vmstat-interval"]);
    assert_eq!(nothing.contents(), []);
    assert!(nothing.files[0].text.contains("There is nothing to keep."));
}

#[test]
fn paths_and_values_stand_for_themselves() {
    use tmpfiles_d::{escaped_path, escaped_value};
    assert_eq!(escaped_path("/sys/a b%c/x[0]*?\"\\"), "\"/sys/a b%%c/x[[]0][*][?]\\\"\\\\\\\\\"");
    assert_eq!(escaped_path("/sys/devices/system/cpu/cpu1/online"), "/sys/devices/system/cpu/cpu1/online");
    assert_eq!(escaped_value("50% \\n"), "50%% \\\\n");
}

#[test]
fn a_kernel_that_ignores_its_loader_takes_words_where_it_is_built() {
    let edits = "CONFIG_CMDLINE_OVERRIDE=y\ncmdline + psi=1\nCONFIG_PSI=y\n\
                 /proc/pressure/cpu: some avg10=0.00 avg60=0.00 avg300=0.00 total=0";
    let export = of_rules(edits, &["pressure-stall-accounting"]);
    let text = |name: &str| export.files.iter().find(|file| file.name == name).unwrap().text.clone();
    assert_eq!(lines(&export, "cmdline"), ["- psi=1", "+ psi=0"]);
    assert!(text("cmdline").contains("CONFIG_CMDLINE") && !text("cmdline").contains("GRUB"));
    assert!(text("yocto.conf").contains("CONFIG_CMDLINE") && !text("yocto.conf").contains("APPEND"));
    let mut machine = Machine::base();
    machine.edit(edits);
    let fix = machine.finding(rules::find("pressure-stall-accounting").unwrap()).fix;
    assert!(fix.contains("a kernel built anew (CONFIG_CMDLINE;"), "{fix}");
}

#[test]
fn an_option_has_with_it_what_it_needs() {
    let option = |name: &str| KernelOption {
        rule: "r".into(),
        why: String::new(),
        option: name.into(),
        value: "y".into(),
    };
    let lines_of = |names: &[&str]| {
        let options: Vec<KernelOption> = names.iter().map(|name| option(name)).collect();
        let text = kernel::fragment(&options).unwrap();
        text.lines().filter(|line| line.starts_with("CONFIG_")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        lines_of(&["RCU_BOOST", "RCU_NOCB_CPU"]),
        "CONFIG_RCU_EXPERT=y CONFIG_RCU_BOOST=y CONFIG_RCU_NOCB_CPU=y"
    );
    assert_eq!(
        lines_of(&["PREEMPT_RT", "RCU_BOOST"]),
        "CONFIG_EXPERT=y CONFIG_PREEMPT_RT=y CONFIG_RCU_BOOST=y"
    );
    assert_eq!(lines_of(&["RCU_NOCB_CPU", "NO_HZ_FULL"]), "CONFIG_RCU_NOCB_CPU=y CONFIG_NO_HZ_FULL=y");
}

#[test]
fn the_only_console_stays() {
    let edits = |consoles: &str| {
        let words: Vec<String> =
            consoles.split(' ').map(|name| format!("cmdline + console={name}\n")).collect();
        words.concat() + "/sys/class/tty/console/active: tty0 ttyS0"
    };
    let export = of_rules(&edits("ttyS0,115200"), &["serial-console"]);
    assert!(lines(&export, "cmdline").is_empty());
    let left = export.left_out.iter().find(|left| left.rule == "serial-console").unwrap();
    assert_eq!(left.why, "console=ttyS0,115200 is the only console on the command line");
    assert!(left.instead.contains("such as console=tty0"), "{}", left.instead);
    let export = of_rules(&edits("tty0 ttyS0"), &["serial-console"]);
    assert_eq!(lines(&export, "cmdline"), ["- console=ttyS0"]);
}
