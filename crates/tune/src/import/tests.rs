//! Imports for made-up machines, and any text at all.

use super::*;
use host::access::Access;
use proptest::prelude::*;
use rules::fixture::Machine;

fn file(name: &str, kind: ImportKind, text: &str) -> ImportedFile {
    ImportedFile { name: name.to_owned(), kind, text: text.to_owned() }
}

fn import_of(machine: &Machine, documents: &Documents, given: &[(&str, &str)]) -> Result<PlanDocument> {
    let files = MachineFiles::in_memory(machine.answers.clone());
    let (survey, _) = machine.survey();
    let given: Vec<(String, String)> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    import(documents, &given, ImportTarget { files: &files, survey: &survey }, "")
}

fn machine(edits: &str) -> Machine {
    let mut machine = Machine::base();
    machine.edit(edits);
    machine
}

/// `KEY NOW->WANTED` of each change, and what is left out of each.
fn shown(plan: &PlanDocument) -> (Vec<String>, Vec<String>) {
    let changes = plan.changes.iter();
    let changes =
        changes.map(|change| format!("{} {}->{}", change.setting.key, change.now, change.setting.wanted));
    let left = plan.left_out.iter().map(|left| format!("{}: {}", left.rule, left.why));
    (changes.collect(), left.collect())
}

fn sysctls(edits: &str, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let files = files.iter().map(|(name, text)| file(name, ImportKind::Sysctl, text)).collect();
    shown(&import_of(&machine(edits), &Documents { files, profiles: None }, &[]).unwrap())
}

const NET: &str = "/proc/sys/net/ipv4/conf/all/rp_filter: 0
    /proc/sys/net/ipv4/conf/eth0/rp_filter: 0
    /proc/sys/net/ipv4/conf/eth1.5/rp_filter: 0
    /proc/sys/vm/stat_interval: 1
    /proc/sys/vm/swappiness: 60";

#[test]
fn the_last_assignment_of_the_last_file_counts() {
    let (changes, left) = sysctls(
        NET,
        &[
            ("10-a.conf", "# first\nvm.stat_interval = 5\nvm/swappiness=60\n; x\n\nnone.such = 1\n"),
            ("90-b.conf", "vm.stat_interval=10\n-vm.gone = 2\nbroken\n"),
        ],
    );
    assert_eq!(changes, ["sysctl:vm.stat_interval 1->10"]);
    assert_eq!(
        left,
        [
            "90-b.conf, line 3: it is no assignment",
            "sysctl:none.such: there is no such setting on this machine",
            "sysctl:vm.gone: there is no such setting on this machine"
        ]
    );
}

#[test]
fn patterns_leave_alone_what_is_named() {
    let text =
        "net.ipv4.conf.*.rp_filter = 2\nnet.ipv4.conf.eth0.rp_filter = 1\n-net.ipv4.conf.all.rp_filter\n";
    let (changes, left) = sysctls(NET, &[("a.conf", text)]);
    assert_eq!(
        changes,
        ["sysctl:net.ipv4.conf.eth1/5.rp_filter 0->2", "sysctl:net.ipv4.conf.eth0.rp_filter 0->1"]
    );
    assert_eq!(left, Vec::<String>::new());
    let (changes, _) = sysctls(NET, &[("a.conf", "net/ipv4/conf/eth1.5/rp_filter = 1")]);
    assert_eq!(changes, ["sysctl:net.ipv4.conf.eth1/5.rp_filter 0->1"]);
}

#[test]
fn nothing_leads_out_of_its_tree_and_nothing_acts() {
    let (changes, left) = sysctls(
        "/proc/sys/vm/drop_caches: 0\n/proc/sys/kernel/modules_disabled: 0",
        &[(
            "a.conf",
            "../../etc/passwd = x\n/etc/../../x = 1\nvm.drop_caches = 3\nkernel.modules_disabled = \
            1\nvm..x = 1",
        )],
    );
    assert_eq!(changes, Vec::<String>::new());
    assert_eq!(left.len(), 5, "{left:?}");
}

#[test]
fn lines_of_tmpfiles_write_where_they_point() {
    let edits = "/sys/kernel/mm/ksm/run: 1
        /sys/kernel/mm/transparent_hugepage/enabled: [always] madvise never
        /sys/devices/system/machinecheck/machinecheck0/check_interval: 300
        /sys/devices/system/machinecheck/machinecheck1/check_interval: 0";
    let text = "d /run/x 0755 root root -\n# x\nw! /sys/kernel/mm/ksm/run - - - - 2\n\
                w /sys/devices/system/machinecheck/machinecheck*/check_interval - - - - 0\n\
                w+ /sys/kernel/mm/ksm/run - - - - 1\nw /etc/passwd - - - - x\n\
                w /sys/kernel/mm/transparent_hugepage/enabled - - - - sometimes\nw /sys/kernel/%m - - - - 1\n\
                w /sys/kernel/none - - - - 1\n";
    let documents = Documents { files: vec![file("o.conf", ImportKind::Tmpfiles, text)], profiles: None };
    let (changes, left) = shown(&import_of(&machine(edits), &documents, &[]).unwrap());
    assert_eq!(
        changes,
        [
            "sysfs:kernel/mm/ksm/run 1->2",
            "sysfs:devices/system/machinecheck/machinecheck0/check_interval 300->0"
        ]
    );
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(left.iter().any(|left| left.contains("always or madvise or never")), "{left:?}");
}

#[test]
fn what_partrt_kept_is_a_plan() {
    let text = "partrt_settings: Mon\n/proc/sys/vm/stat_interval \
        1\n/sys/bus/workqueue/devices/writeback/cpumask f\n/opt/x 1\n";
    let documents = Documents { files: vec![file("partrt_env", ImportKind::Partrt, text)], profiles: None };
    let edits = "/proc/sys/vm/stat_interval: 1000\n/sys/devices/virtual/workqueue/writeback/cpumask: 3";
    let (changes, left) = shown(&import_of(&machine(edits), &documents, &[]).unwrap());
    let mask = "sysfs:devices/virtual/workqueue/writeback/cpumask 3->f";
    assert_eq!(changes, ["sysctl:vm.stat_interval 1000->1", mask]);
    assert_eq!(left, ["partrt_env, line 4: /opt/x is no setting"]);
}

fn profiles(files: &[(&str, &str)], name: &str) -> Documents {
    let answers = files
        .iter()
        .map(|(path, text)| (format!("/{path}"), Access::File(text.as_bytes().to_vec())))
        .collect();
    let text = files.iter().find(|(path, _)| *path == format!("{name}/tuned.conf")).unwrap().1;
    Documents {
        files: vec![file("tuned.conf", ImportKind::Tuned, text)],
        profiles: Some((MachineFiles::in_memory(answers), name.to_owned())),
    }
}

const BASIC: &str = "
[main]
summary=low latency
[sysctl]
vm.swappiness=10
vm.stat_interval = 10   # seconds
[cpu]
governor=conservative|performance
force_latency=1
[vm]
transparent_hugepages=never
";

const CHILD: &str = "
[main]
include=basic
[variables]
include=/etc/tuned/child-variables.conf
shown=\\\\${isolated}
isolated = ${isolated}
assert=${f:assertion_non_equal:isolated is set:${isolated}:${shown}}
other_mask=${f:cpulist2hex_invert:${isolated}}
[sysctl]
vm.swappiness=>30
vm.stat_interval=20
kernel.version=${f:exec:uname:-r}
[sysfs]
/sys/devices/virtual/workqueue/cpumask=${other_mask}
[bootloader]
cmdline_child=+isolcpus=${isolated}
[script]
script=${i:PROFILE_DIR}/script.sh
";

const TUNED: &str = "/proc/sys/vm/stat_interval: 1
    /proc/sys/vm/swappiness: 60
    /sys/kernel/mm/transparent_hugepage/enabled: [always] madvise never
    /sys/devices/virtual/workqueue/cpumask: f
    /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: schedutil
    /sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors: performance schedutil";

#[test]
fn a_profile_is_merged_with_what_it_includes() {
    let documents = profiles(
        &[
            ("basic/tuned.conf", BASIC),
            ("child/tuned.conf", CHILD),
            ("child/child-variables.conf", "isolated=2-3\n"),
        ],
        "child",
    );
    let (changes, left) = shown(&import_of(&machine(TUNED), &documents, &[]).unwrap());
    assert!(changes.contains(&"sysctl:vm.stat_interval 1->20".to_owned()), "{changes:?}");
    assert!(changes.contains(&"sysfs:devices/virtual/workqueue/cpumask f->3".to_owned()), "{changes:?}");
    assert!(
        changes.contains(
            &"sysfs:kernel/mm/transparent_hugepage/enabled [always] madvise never->never".to_owned()
        ),
        "{changes:?}"
    );
    // 60 is more than 30 already.
    assert!(!changes.iter().any(|change| change.contains("swappiness")), "{changes:?}");
    let has = |what: &str| left.iter().any(|left| left.contains(what));
    assert!(has("[script] script = ") && has("a script is not run"), "{left:?}");
    assert!(has("[sysctl] kernel.version: its value comes from a command, which is not run"), "{left:?}");
    assert!(has("[bootloader] cmdline_child = +isolcpus=2-3"), "{left:?}");
    assert!(changes.contains(&"hold:cpu_dma_latency ->1".to_owned()), "{changes:?}");
}

#[test]
fn variables_that_are_missing_are_asked_for_and_those_given_count() {
    let documents = profiles(&[("basic/tuned.conf", BASIC), ("child/tuned.conf", CHILD)], "child");
    let (_, left) = shown(&import_of(&machine(TUNED), &documents, &[]).unwrap());
    assert!(left.iter().any(|left| left.contains("--set NAME=VALUE")), "{left:?}");
    let (changes, _) = shown(&import_of(&machine(TUNED), &documents, &[("isolated", "1")]).unwrap());
    assert!(changes.contains(&"sysfs:devices/virtual/workqueue/cpumask f->d".to_owned()), "{changes:?}");
}

#[test]
fn a_profile_that_refuses_itself_is_refused() {
    let text =
        "[variables]\nx=${f:assertion:CPUs are online:${f:cpulist_unpack:2,9}:${f:cpulist_online:2,9}}\n";
    let documents = profiles(&[("a/tuned.conf", text)], "a");
    let failure = import_of(&machine(""), &documents, &[]).unwrap_err();
    assert!(failure.message.contains("it asserts 'CPUs are online'"), "{failure}");
}

#[test]
fn circles_and_names_that_lead_elsewhere_end() {
    let (a, b) = ("[main]\ninclude=b,../../etc,-c\n", "[main]\ninclude=a\n[sysctl]\nvm.stat_interval=7\n");
    let documents = profiles(&[("a/tuned.conf", a), ("b/tuned.conf", b)], "a");
    let (changes, left) = shown(&import_of(&machine(NET), &documents, &[]).unwrap());
    assert_eq!(changes, ["sysctl:vm.stat_interval 1->7"]);
    assert_eq!(
        left,
        [
            "a, include ../../etc: it is no name of a profile",
            "a, include c: there is no such profile beside this one"
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the text, the plan holds nothing but sysctls, sysfs and interrupts.
    #[test]
    fn any_text_is_a_plan_or_a_refusal(
        text in "([a-z.*/${}f:%\\\\\"'=\\[\\]#;!+-]{0,12}( |\n|=|/sys/|/proc/sys/|w! \
            |\\$\\{f:cpulist_unpack:)){0,20}",
        kind in 0..4usize,
    ) {
        use ImportKind::{Partrt, Sysctl, Tmpfiles, Tuned};
        let kind = [Sysctl, Tmpfiles, Tuned, Partrt][kind];
        let text = if kind == Tuned { format!("[sysctl]\n{text}") } else { text };
        let documents = Documents { files: vec![file("x.conf", kind, &text)], profiles: None };
        let machine = Machine::of([("/proc/sys/vm/a".to_owned(), Access::File(b"1\n".to_vec()))].into());
        let files = MachineFiles::in_memory(machine.answers.clone());
        let survey = machine.read();
        if let Ok(plan) = import(&documents, &[], ImportTarget { files: &files, survey: &survey }, "") {
            for change in &plan.changes {
                let key = &change.setting.key;
                prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key.clone()));
                prop_assert!(matches!(
                    change.setting.key,
                    Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault | Key::Hold(_)
                ));
            }
        }
    }
}

#[test]
fn a_text_has_a_bound_and_says_what_is_over_it() {
    let lines: String = (0..20_005).map(|at| format!("net.ipv4.x{at} = 1\nvm.swappiness = {at}\n")).collect();
    let (changes, left) = sysctls("/proc/sys/vm/swappiness: 60", &[("a.conf", &lines)]);
    assert_eq!(changes, Vec::<String>::new());
    assert!(left.iter().any(|left| left == "sysctl:vm.swappiness: '20004' is not a number from 0 to 200"));
    let rest = "the rest: 6 settings more than the 20000 that are read of a text";
    assert_eq!(left.iter().filter(|left| *left == rest).count(), 1);
}
