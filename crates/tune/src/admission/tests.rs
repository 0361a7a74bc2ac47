//! Plans as written by `tune plan -o` are accepted unchanged; others are judged anew.

use host::MachineFiles;
use model::plan::PlanDocument;
use model::setting::{Key, Risk};
use rules::fixture::Machine;

use super::admit;
use crate::import::ImportTarget;
use crate::plan::{PlanRequest, RuleRequest, plan};
use crate::reading;

/// Machine on which the findings of a rule's failing example occur, and the plan for it.
fn planned(edits: &str, rules: &[&str]) -> (Machine, PlanDocument) {
    let mut machine = Machine::base();
    machine.edit(edits);
    let (survey, intent) = machine.survey();
    let audit = rules::audit::audit(&survey, &intent);
    let files = MachineFiles::in_memory(machine.answers.clone());
    let request = PlanRequest {
        rules: rules.iter().map(|text| RuleRequest::parse(text).unwrap()).collect(),
        without: Vec::new(),
    };
    let plan = plan(&survey, &audit, &request, "boot", &|key| reading::read(&files, key)).unwrap();
    (machine, plan)
}

fn admitted(machine: &Machine, plan: PlanDocument) -> Result<PlanDocument, String> {
    let (survey, _) = machine.survey();
    let files = MachineFiles::in_memory(machine.answers.clone());
    admit(plan, ImportTarget { files: &files, survey: &survey }).map_err(|failure| {
        assert!(failure.message.contains("make a new one with"), "{}", failure.message);
        failure.message
    })
}

/// Not isolated, on a kernel that supports isolation at run time.
const OPEN: &str = "/sys/devices/system/cpu/isolated:
    cmdline - isolcpus=managed_irq,domain,2-3
    /sys/fs/cgroup/cgroup.controllers: cpuset cpu
    /sys/fs/cgroup/cgroup.subtree_control: cpu
    /sys/fs/cgroup/cpuset.cpus.isolated:
    --cpus 2-3";

#[test]
fn what_a_plan_of_this_version_has_is_admitted_as_it_is() {
    let mut seen = 0;
    for edits in rules::knobs::ALL.iter().map(|knob| knob.examples.fires).chain([OPEN]) {
        let (machine, plan) = planned(edits, &[]);
        let written = serde_json::to_string(&plan).unwrap();
        let read = PlanDocument::parse(&written, "plan.json").unwrap();
        assert_eq!(admitted(&machine, read).as_ref(), Ok(&plan), "{edits}");
        seen += plan.changes.len();
    }
    assert!(seen > 60, "{seen}");
}

/// Plan with this key, wanted value and further fields, admitted on a machine without findings.
fn of_file(key: &str, wanted: &str, more: &str) -> Result<PlanDocument, String> {
    let text = format!(
        "{{\"schema\":\"onbeat.plan/1\",\"boot\":\"boot\",\"changes\":[{{\"key\":\"{key}\",\"wanted\":\
         \"{wanted}\",\"state\":\"planned\"{more}}}]}}"
    );
    let (machine, _) = planned(OPEN, &[]);
    admitted(&machine, PlanDocument::parse(&text, "plan.json").unwrap())
}

#[test]
fn a_file_does_not_decide_what_a_change_risks() {
    for more in ["", ",\"risk\":\"low\"", ",\"risk\":\"low\",\"readback\":\"unread\",\"path\":\"/etc/motd\""]
    {
        let throttling = of_file("sysctl:kernel.sched_rt_runtime_us", "-1", more).unwrap();
        let [change] = throttling.changes.as_slice() else { panic!("{throttling:?}") };
        assert_eq!(change.setting.risk, Risk::High);
        assert_eq!(change.setting.readback, model::setting::Comparison::Number);
        assert_eq!(change.path, "/proc/sys/kernel/sched_rt_runtime_us");
        let unknown = of_file("sysctl:net.ipv4.tcp_rmem", "1 2 3", more).unwrap();
        assert_eq!(unknown.changes[0].setting.risk, Risk::Medium);
        let any = of_file("sysfs:module/nvme/parameters/poll_queues", "2", more).unwrap();
        assert_eq!(any.changes[0].setting.risk, Risk::High);
    }
    let partners = ",\"partners\":[\"sysctl:kernel.core_pattern\"],\"restored_first\":[\"irq:1\"]";
    let change = &of_file("sysctl:vm.swappiness", "1", partners).unwrap().changes[0];
    assert!(change.setting.partners.is_empty() && change.setting.restored_first.is_empty());
}

#[test]
fn what_no_rule_would_write_is_refused() {
    for (key, wanted, why) in [
        ("sysctl:vm.swappiness", "1000", "'1000' is not a number from 0 to 200"),
        ("sysctl:vm.swappiness", "1\\n2", "several lines"),
        ("sysctl:kernel.core_pattern", "a\\nb", "several lines"),
        ("sysctl:kernel.core_pattern", "", "no value"),
        ("sysctl:kernel.modules_disabled", "1", "cannot be undone"),
        ("sysctl:vm.drop_caches", "3", "has an effect once"),
        ("sysfs:power/state", "mem", "has an effect once"),
        ("sysfs:bus/pci/devices/0000:00:01.0/remove", "1", "has an effect once"),
        ("irq:1/effective", "1", "follows"),
        ("irq:1", "99", "there is no CPU 99"),
        ("cgroup:system.slice/cgroup.kill", "1", "only for its own partition"),
        ("cgroup:onbeat/", "present", "only for its own partition"),
        ("cgroup:onbeat/cpuset.cpus.exclusive", "0-3", "no CPU would be left"),
        ("cgroup:onbeat/cpuset.cpus.exclusive", "7", "does not exist here"),
        ("task:1/1/group", "/onbeat/rt", "isolate move"),
    ] {
        let refused = of_file(key, wanted, "").unwrap_err();
        assert!(refused.contains(why), "{key}: {refused}");
    }
    let undone = of_file("sysctl:vm.swappiness", "1", "").unwrap();
    let mut document = undone.clone();
    document.changes[0].state = model::plan::ChangeState::Undone;
    let (machine, _) = planned("", &[]);
    assert!(admitted(&machine, document).unwrap_err().contains("applied changes"));
    let mut twice = undone.clone();
    twice.changes.extend(undone.changes);
    assert!(admitted(&machine, twice).unwrap_err().contains("twice"));
}

#[test]
fn groups_are_those_of_the_partition() {
    let (machine, plan) = planned(OPEN, &["cpu-isolation"]);
    assert!(plan.changes.len() > 3);
    let with = |key: &str, wanted: &str| {
        let mut plan = plan.clone();
        plan.changes[1].setting.key = key.parse::<Key>().unwrap();
        plan.changes[1].setting.wanted = wanted.to_owned();
        admitted(&machine, plan)
    };
    assert_eq!(with("cgroup:onbeat/rt/cpuset.mems", "0").unwrap().changes.len(), plan.changes.len());
    for (key, wanted) in [
        ("cgroup:system.slice/cgroup.kill", "1"),
        ("cgroup:onbeat/rt/cgroup.freeze", "1"),
        ("cgroup:elsewhere/", "present"),
    ] {
        assert!(
            with(key, wanted).unwrap_err().contains("a partition of these CPUs does not need it"),
            "{key}"
        );
    }
    assert!(with("cgroup:cgroup.subtree_control", "-cpu").is_err());
}

#[test]
fn threads_of_programs_are_left_alone() {
    let stat = "/proc/700/stat: 700 (prog) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 1 0 0 0 0 0 0 \
                0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0\n/proc/700/status: Cpus_allowed_list: 0-3";
    let (machine, mut plan) = planned(stat, &["vmstat-interval=77"]);
    plan.changes[0].setting.key = "task:700/5".parse().unwrap();
    plan.changes[0].setting.wanted = "0".to_owned();
    assert!(admitted(&machine, plan.clone()).unwrap_err().contains("not a kernel thread"));
    // The thread has ended: nothing will be done.
    plan.changes[0].setting.key = "task:700/6".parse().unwrap();
    assert!(admitted(&machine, plan).is_ok());
}
