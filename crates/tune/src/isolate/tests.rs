//! Isolation on fake machines: created, with processes in it, and undone.

use facts::groups::{Groups, read_groups};
use facts::irqs::{Irq, Irqs};
use host::MachineFiles;
use host::access::Access;
use host::settings::fake::{DEBIAN_6_1_RT, DEBIAN_6_12_RT, FakeKernel, FakeMachine, MemoryStore};
use host::settings::{
    Applied, Entry, EntryRecords, GroupProcess, Kernel, Opened, Restored, read_entry, restore, take_out,
};
use model::fact::Fact;
use model::isolation::{PARTITION_RULE, PartitionState};
use model::plan::{ChangeState, PlannedChange};
use model::setting::Key;
use model::units::CpuSet;
use rules::partition::of_groups;

use super::list::{IsolationState, current, document, state};
use super::placing::{pin, place};
use crate::status::status;

const BOOT: &str = "6c1f1f1e-0000-4000-8000-000000000001";

fn opened() -> Opened {
    Opened {
        id: String::new(),
        boot: BOOT.to_owned(),
        pid: 4242,
        start: 77,
        version: "0.1.0".to_owned(),
        real_ns: 0,
        command: "onbeat isolate create 2-3".to_owned(),
        cpus: "2-3".to_owned(),
        undo_at_boot_ns: None,
        confirmable: false,
        with_process: false,
    }
}

/// Groups as the files of the fake kernel show them.
fn groups(kernel: &FakeKernel) -> Groups {
    const FILES: [&str; 5] = ["", ".effective", ".exclusive", ".isolated", ".partition"];
    let mut files =
        vec![("/sys/fs/cgroup/cgroup.controllers".to_owned(), Access::File(b"cpuset cpu\n".to_vec()))];
    let mut left = vec![String::new()];
    while let Some(group) = left.pop() {
        left.extend(kernel.groups_below(&group));
        let below = if group.is_empty() { String::new() } else { format!("{group}/") };
        for file in FILES.map(|name| format!("{below}cpuset.cpus{name}")) {
            if let Some(text) = kernel.read(&Key::GroupFile(file.clone())).known() {
                files
                    .push((format!("/sys/fs/cgroup/{file}"), Access::File(format!("{text}\n").into_bytes())));
            }
        }
    }
    read_groups(&MachineFiles::in_memory(files.into_iter().collect())).known().unwrap().clone()
}

struct Isolated {
    kernel: FakeKernel,
    store: MemoryStore,
}

impl Isolated {
    /// Isolates CPUs 2 and 3 of a machine.
    fn new(machine: &FakeMachine) -> Isolated {
        let (mut kernel, mut store) = (FakeKernel::boot(machine), MemoryStore::default());
        let cpus = CpuSet::parse("2-3").unwrap();
        let settings = of_groups(&groups(&kernel), &cpus, &CpuSet::default()).unwrap();
        let mut entry = Entry::begin(&mut kernel, &mut store, opened()).unwrap();
        for setting in settings {
            let outcome = entry.make(&PlannedChange::new(setting.clone(), PARTITION_RULE, "")).unwrap();
            assert!(matches!(outcome, Applied::Done(_) | Applied::Already), "{}: {outcome:?}", setting.key);
        }
        entry.complete().unwrap();
        Isolated { kernel, store }
    }

    fn entry(&self) -> EntryRecords {
        read_entry(&self.store, "1").unwrap().unwrap()
    }

    /// Places a process like `onbeat isolate run -c 3` and `move PID in`.
    fn place(&mut self, tid: u32, cpus: Option<&str>) {
        let start = self.start(tid);
        let change = place(&self.kernel, tid, start, &[(tid, start)]);
        let entry = self.entry();
        let mut resumed = Entry::resume(&mut self.kernel, &mut self.store, &entry).unwrap();
        assert_eq!(resumed.make(&change).unwrap(), Applied::Done(ChangeState::Applied));
        if let Some(cpus) = cpus {
            let change = pin(tid, start, &CpuSet::parse(cpus).unwrap(), "");
            assert_eq!(resumed.make(&change).unwrap(), Applied::Done(ChangeState::Applied));
        }
    }

    fn start(&self, tid: u32) -> u64 {
        self.process(tid).start
    }

    fn process(&self, tid: u32) -> GroupProcess {
        self.kernel.processes_in("").into_iter().find(|process| process.pid == tid).unwrap()
    }

    /// Group and CPUs of a process.
    fn where_is(&self, tid: u32) -> (String, String) {
        let start = self.start(tid);
        let read = |what: &str| {
            let key: Key = format!("task:{tid}/{start}{what}").parse().unwrap();
            self.kernel.read(&key).known().unwrap().clone()
        };
        (read("/group"), read(""))
    }

    fn undo(&mut self) -> Vec<Restored> {
        let entry = self.entry();
        let (restored, noted) = restore(&mut self.kernel, &mut self.store, &entry, false);
        noted.unwrap();
        restored
    }
}

const MACHINES: [&FakeMachine; 2] = [&DEBIAN_6_12_RT, &DEBIAN_6_1_RT];

fn at(group: &str, cpus: &str) -> (String, String) {
    (group.to_owned(), cpus.to_owned())
}

#[test]
fn processes_and_those_that_they_start_go_back() {
    for machine in MACHINES {
        let before = FakeKernel::boot(machine).snapshot();
        let mut isolated = Isolated::new(machine);
        isolated.place(500, Some("3"));
        isolated.place(502, None);
        isolated.kernel.start_thread(600, 500);
        isolated.kernel.start_thread(601, 600);
        assert_eq!(isolated.where_is(601), at("/onbeat/rt", "3"));
        isolated.kernel.end_thread(600);
        let restored = isolated.undo();
        let left: Vec<_> = restored.iter().filter(|done| done.state != ChangeState::Undone).collect();
        assert!(left.is_empty(), "{left:?}");
        // Its parent has ended, but its next ancestor is known.
        assert_eq!(isolated.where_is(601), at("/system.slice", "0-3"));
        isolated.kernel.end_thread(601);
        assert_eq!(isolated.kernel.snapshot(), before);
    }
}

#[test]
fn the_group_of_a_process_may_be_gone() {
    for machine in MACHINES {
        let mut isolated = Isolated::new(machine);
        isolated.kernel.write(&"cgroup:session/".parse().unwrap(), Some("present")).unwrap();
        let group: Key = format!("task:500/{}/group", isolated.start(500)).parse().unwrap();
        isolated.kernel.write(&group, Some("/session")).unwrap();
        isolated.place(500, None);
        isolated.kernel.write(&"cgroup:session/".parse().unwrap(), None).unwrap();
        assert!(isolated.undo().iter().all(|done| done.state == ChangeState::Undone));
        assert_eq!(isolated.where_is(500).0, "/");
    }
}

#[test]
fn one_is_taken_out_and_the_rest_stays() {
    for machine in MACHINES {
        let mut isolated = Isolated::new(machine);
        isolated.place(500, Some("2"));
        isolated.kernel.start_thread(600, 500);
        for tid in [500, 600] {
            let (entry, process) = (isolated.entry(), isolated.process(tid));
            let refusal = take_out(&mut isolated.kernel, &mut isolated.store, &entry, &process).unwrap();
            assert_eq!(refusal, None);
            assert_eq!(isolated.where_is(tid), at("/system.slice", "0-1"));
        }
        let cpus = CpuSet::parse("2-3").unwrap();
        let state = state(Some(&groups(&isolated.kernel)), &CpuSet::default(), Some(&isolated.entry()));
        assert_eq!((state.partition, state.cpus), (PartitionState::Isolated, cpus));
        isolated.undo();
        assert_eq!(isolated.where_is(600), at("/system.slice", "0-3"));
    }
}

#[test]
fn what_a_process_does_itself_is_its_own() {
    let mut isolated = Isolated::new(&DEBIAN_6_12_RT);
    isolated.place(500, Some("2"));
    let key = |what: &str| -> Key { format!("task:500/{}{what}", isolated.start(500)).parse().unwrap() };
    isolated.kernel.write(&key(""), Some("3")).unwrap();
    let restored = isolated.undo();
    assert!(restored.iter().all(|done| done.state == ChangeState::Undone), "{restored:?}");
    assert_eq!(isolated.where_is(500), at("/system.slice", "3"));
}

#[test]
fn a_process_that_went_elsewhere_stays_there() {
    let mut isolated = Isolated::new(&DEBIAN_6_12_RT);
    isolated.place(500, Some("2"));
    let group: Key = format!("task:500/{}/group", isolated.start(500)).parse().unwrap();
    isolated.kernel.write(&group, Some("/")).unwrap();
    let restored = isolated.undo();
    assert!(restored.iter().all(|done| done.state == ChangeState::Undone), "{restored:?}");
    assert_eq!(isolated.where_is(500), at("/", "0-3"));
}

#[test]
fn a_controller_that_others_use_stays() {
    let mut isolated = Isolated::new(&DEBIAN_6_12_RT);
    isolated.kernel.write(&"cgroup:other/".parse().unwrap(), Some("present")).unwrap();
    let cpus: Key = "cgroup:other/cpuset.cpus".parse().unwrap();
    isolated.kernel.write(&cpus, Some("0-1")).unwrap();
    let restored = isolated.undo();
    let rest: Vec<_> = restored.iter().filter(|done| done.state != ChangeState::Undone).collect();
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0].state, ChangeState::Kept);
    assert!(rest[0].why.contains("other/cpuset.cpus"), "{}", rest[0].why);
    assert_eq!(isolated.kernel.read(&cpus).known().unwrap(), "0-1");
    assert!(current(&[isolated.entry()], BOOT).is_none(), "nothing is isolated any more");
}

#[test]
fn a_partition_that_is_lost_is_said_so_and_undone() {
    let before = FakeKernel::boot(&DEBIAN_6_1_RT).snapshot();
    let mut isolated = Isolated::new(&DEBIAN_6_1_RT);
    let neighbour: Key = "cgroup:machine.slice/cpuset.cpus".parse().unwrap();
    isolated.kernel.write(&neighbour, Some("0-3")).unwrap();
    let found = state(Some(&groups(&isolated.kernel)), &CpuSet::default(), Some(&isolated.entry()));
    assert_eq!(found.partition, PartitionState::Invalid);
    assert!(found.reason.contains("not exclusive"), "{}", found.reason);
    isolated.kernel.write(&neighbour, Some("0-1")).unwrap();
    assert!(isolated.undo().iter().all(|done| done.state == ChangeState::Undone));
    assert_eq!(isolated.kernel.snapshot(), before);
}

#[test]
fn nothing_is_isolated_without_a_partition() {
    let files = groups(&FakeKernel::boot(&DEBIAN_6_12_RT));
    let found = state(Some(&files), &CpuSet::default(), None);
    assert_eq!((found.partition, found.cpus.is_empty()), (PartitionState::None, true));
    let by_boot = state(Some(&files), &CpuSet::parse("3").unwrap(), None);
    assert!(by_boot.reason.contains("isolcpus="), "{}", by_boot.reason);
}

#[test]
fn what_has_ended_is_neither_in_force_nor_another_s() {
    let mut isolated = Isolated::new(&DEBIAN_6_12_RT);
    isolated.place(500, Some("3"));
    isolated.kernel.end_thread(500);
    let is_of_thread = |change: &PlannedChange| matches!(change.setting.key, Key::Task { .. });
    let document = status(&isolated.kernel, &[isolated.entry()], BOOT, 0, false);
    let of_thread: Vec<_> = document.changes.iter().filter(|change| is_of_thread(change)).collect();
    assert_eq!(of_thread.len(), 2);
    for change in of_thread {
        let found = (change.now.as_str(), change.state, change.why.as_str());
        assert_eq!(found, ("", ChangeState::Void, "it has ended"), "{}", change.setting.key);
    }
    let restored = isolated.undo();
    let of_thread: Vec<_> = restored.iter().filter(|done| is_of_thread(&done.change)).collect();
    assert_eq!(of_thread.len(), 2);
    for done in of_thread {
        assert_eq!((done.state, done.why.as_str()), (ChangeState::Undone, "it has ended"));
    }
}

#[test]
fn an_interrupt_that_leaves_when_it_occurs_is_listed_until_then() {
    let state = IsolationState {
        cpus: CpuSet::parse("2-3").unwrap(),
        partition: PartitionState::Isolated,
        reason: String::new(),
        effective: CpuSet::parse("2-3").unwrap(),
    };
    let irq = |number, actions: &[&str], effective| Irq {
        number,
        actions: actions.iter().map(|&name| name.to_owned()).collect(),
        chip: String::new(),
        allowed: Fact::Known(CpuSet::parse("0-1").unwrap()),
        effective,
        managed: None,
        per_cpu: None,
    };
    let on = |cpus: &str| Fact::Known(CpuSet::parse(cpus).unwrap());
    let irqs = Irqs {
        irqs: vec![
            irq(24, &["eth0"], on("2")),
            irq(25, &["eth1"], on("0")),
            irq(27, &["eth2"], Fact::Absent),
        ],
        ..Irqs::default()
    };
    let listed = document(&state, None, &[], Some(&irqs)).interrupts;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((listed[0].irq.as_str(), listed[0].pending), ("24", true));
    assert_eq!(listed[0].why, "on CPU 2 until its next interrupt");
}
