//! Imports on fake machines, and of arbitrary texts.

use super::*;
use host::access::Access;
use proptest::prelude::*;
use rules::fixture::Machine;

fn file(name: &str, kind: ImportKind, text: &str) -> ImportedFile {
    ImportedFile { name: name.to_owned(), kind, text: text.to_owned() }
}

fn import_of(machine: &Machine, documents: &Documents) -> Result<PlanDocument> {
    let files = MachineFiles::in_memory(machine.answers.clone());
    let (survey, _) = machine.survey();
    import(documents, &ImportRequest::default(), ImportTarget { files: &files, survey: &survey }, "")
}

fn machine(edits: &str) -> Machine {
    let mut machine = Machine::base();
    machine.edit(edits);
    machine
}

/// `KEY NOW->WANTED` of each change, and the omitted parts with their reasons.
fn change_lines(plan: &PlanDocument) -> (Vec<String>, Vec<String>) {
    let changes = plan.changes.iter();
    let changes =
        changes.map(|change| format!("{} {}->{}", change.setting.key, change.now, change.setting.wanted));
    let left = plan.left_out.iter().map(|left| format!("{}: {}", left.rule, left.why));
    (changes.collect(), left.collect())
}

fn sysctls(edits: &str, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let files = files.iter().map(|(name, text)| file(name, ImportKind::Sysctl, text)).collect();
    change_lines(&import_of(&machine(edits), &Documents { files, profiles: None }).unwrap())
}

const NET: &str = "/proc/sys/net/ipv4/conf/all/rp_filter: 0
    /proc/sys/net/ipv4/conf/eth0/rp_filter: 0
    /proc/sys/net/ipv4/conf/eth1.5/rp_filter: 0
    /proc/sys/vm/stat_interval: 1
    /proc/sys/vm/swappiness: 60";

#[test]
fn a_text_without_a_valid_line_is_refused() {
    let refused = |text: &str| {
        let files = vec![file("x.conf", ImportKind::Sysctl, text)];
        import_of(&machine(NET), &Documents { files, profiles: None }).err().map(|error| error.message)
    };
    let line = refused("vm.stat_interval = ten\n").unwrap();
    assert!(line.contains("x.conf, line 1: sysctl:vm.stat_interval: "), "{line}");
    let line = refused("# nothing\nthis is no setting\n").unwrap();
    assert!(line.contains("x.conf, line 2: it is not an assignment"), "{line}");
    for text in [
        "vm.stat_interval = ten\nvm.swappiness = 10\n",
        "none.such = 1\n",
        "kernel.kexec_load_disabled=1\n",
        "",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

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
            "90-b.conf, line 3: it is not an assignment",
            "sysctl:none.such: this machine has no such setting",
            "sysctl:vm.gone: this machine has no such setting"
        ]
    );
}

#[test]
fn a_switch_that_is_not_read_is_looked_for() {
    let files = [("a.conf", "kernel.nmi_watchdog = 0\n")];
    assert_eq!(sysctls("/proc/sys/kernel/nmi_watchdog: 1", &files).0, ["sysctl:kernel.nmi_watchdog ->0"]);
    let (changes, left) = sysctls("/proc/sys/kernel/nmi_watchdog absent", &files);
    assert_eq!(changes, Vec::<String>::new());
    assert_eq!(left, ["sysctl:kernel.nmi_watchdog: this machine has no such setting"]);
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
    // A line without a value revokes that of an earlier one, and a later one sets it again.
    let files = [
        ("a.conf", "vm.stat_interval=5\nvm.swappiness=1\n"),
        ("b.conf", "-vm.stat_interval\n-vm/swappiness\n"),
    ];
    assert_eq!(sysctls(NET, &files).0, Vec::<String>::new());
    let (changes, _) = sysctls(NET, &[files[0], files[1], ("c.conf", "vm.swappiness=2\n")]);
    assert_eq!(changes, ["sysctl:vm.swappiness 60->2"]);
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
    let (changes, left) = change_lines(&import_of(&machine(edits), &documents).unwrap());
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
    let (changes, left) = change_lines(&import_of(&machine(edits), &documents).unwrap());
    let mask = "sysfs:devices/virtual/workqueue/writeback/cpumask 3->f";
    assert_eq!(changes, ["sysctl:vm.stat_interval 1000->1", mask]);
    assert_eq!(left, ["partrt_env, line 4: /opt/x is not a setting"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any text, the plan contains only sysctls, sysfs files, interrupts and holds.
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
        let request = ImportRequest { partial: true, ..ImportRequest::default() };
        if let Ok(plan) = import(&documents, &request, ImportTarget { files: &files, survey: &survey }, "") {
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
    let rest = "the rest: 6 settings more than the limit of 20000 for one text";
    assert_eq!(left.iter().filter(|left| *left == rest).count(), 1);
}
