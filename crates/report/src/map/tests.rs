//! Machines for the map, and the expected texts.

use super::*;
use facts::survey::{SurveyRequest, survey};
use host::MachineFiles;
use model::units::CpuSet;
use rules::fixture::Machine;
use rules::intent::{Profile, intent};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Machine with this number of CPUs, a thread and an interrupt queue on each, and edits to it.
pub fn machine(cpus: usize, edits: &str) -> Machine {
    let mut machine = Machine::of(BTreeMap::new());
    let last = cpus - 1;
    let mut text = format!(
        "/proc/cmdline: ro\n/sys/devices/system/cpu/online: 0-{last}\n/sys/devices/system/cpu/isolated:\n\
         /sys/devices/virtual/workqueue/cpumask: {}\n",
        vec!["ffffffff"; cpus.div_ceil(32)].join(",")
    );
    for cpu in 0..cpus {
        let number = 100 + cpu;
        text += &thread(1000 + cpu, &format!("migration/{cpu}"), 0x0420_0000, 99, &cpu.to_string());
        text += &thread(3000 + cpu, &format!("cpuhp/{cpu}"), 0x0420_0000, 0, "");
        let _ = writeln!(text, "/proc/irq/{number}/smp_affinity_list: {cpu}");
        let _ = writeln!(text, "/sys/kernel/irq/{number}/actions: nvme0q{cpu}");
    }
    machine.edit(&text);
    machine.edit(edits);
    machine
}

/// Files of a thread; a priority makes it SCHED_FIFO.
pub fn thread(pid: usize, comm: &str, flags: u32, priority: u32, cpus: &str) -> String {
    let policy = u32::from(priority > 0);
    format!(
        "/proc/{pid}/stat: {pid} ({comm}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 0{} 17 0 {priority} {policy}{}\n\
         /proc/{pid}/status: Cpus_allowed_list:\t{cpus}\n",
        " 0".repeat(12),
        " 0".repeat(11)
    )
}

/// Four CPUs, of which two are reserved for a control loop.
pub fn four() -> Machine {
    let edits = "/sys/devices/system/cpu/isolated: 2-3
         /proc/cmdline: isolcpus=2-3 rcu_nocbs=2-N
         /sys/devices/virtual/workqueue/cpumask: 3
         /proc/irq/9/smp_affinity_list: 0-3
         /proc/irq/9/effective_affinity_list: 0
         /sys/kernel/irq/9/actions: acpi\n";
    let threads = [
        thread(20, "kthreadd", 0x0020_0000, 0, "0-1"),
        thread(21, "irq/9-acpi", 0x0020_0000, 50, "0"),
        thread(22, "kcompactd0", 0x0020_0000, 0, "0-3"),
        thread(500, "control", 0, 80, "2"),
    ];
    machine(4, &(edits.to_owned() + &threads.concat()))
}

pub fn map_of(machine: &Machine) -> Map {
    let wanted = SurveyRequest { texts: READS.to_vec(), programs: Vec::new() };
    let survey = survey(&MachineFiles::in_memory(machine.answers.clone()), &wanted);
    let intent = intent(&survey, Profile::default(), machine.cpus.as_ref()).unwrap();
    Map::of(&survey, &intent)
}

/// Each mark as `name list`.
fn marks(map: &Map) -> String {
    let words = |mark: &CpuProperty| {
        format!("{} {}", mark.name, mark.cpus.as_ref().map_or("?".to_owned(), CpuSet::to_string))
    };
    map.apart.iter().chain([&map.workqueues]).map(words).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_isolates_cpus_and_what_may_run_there() {
    let map = map_of(&four());
    assert_eq!(marks(&map), "isolcpus 2-3; cpuset partition ; nohz_full ; rcu_nocbs 2-3; unbound work 0-1");
    assert_eq!((map.matter.to_string(), map.unknown.len()), ("2-3".to_owned(), 0), "{:?}", map.unknown);
    let groups: Vec<String> = map.groups.iter().map(|group| group.cpus.to_string()).collect();
    assert_eq!(groups, ["0-1", "2-3"]);
    let names =
        |work: &Work| work.on(&map.matter).map(|item| item.name.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(&map.lands), "nvme0q2 nvme0q3");
    assert_eq!(names(&map.may), "acpi nvme0q2 nvme0q3");
    assert_eq!(names(&map.movable), "kcompactd0");
    assert_eq!(names(&map.bound), "cpuhp/2 cpuhp/3 migration/2 migration/3");
    let ranks: Vec<u32> = map.realtime.iter().map(|step| step.rank).collect();
    assert_eq!(ranks, [101, 80, 50]);
}

#[test]
fn offloaded_callbacks() {
    let config = "/proc/sys/kernel/osrelease: 6.12.9\n/boot/config-6.12.9:\n| # Automatically generated file; DO NOT EDIT.\n\
                  | # Linux/x86 6.12.9 Kernel Configuration\n| # Kernel hacking\n| CONFIG_RCU_NOCB_CPU=y\n";
    for (edits, expected) in [
        ("/proc/cmdline: ro", ""),
        ("/proc/cmdline: rcu_nocbs=all", "0-3"),
        ("/proc/cmdline: rcu_nocbs=1\n/sys/devices/system/cpu/nohz_full: 3", "1,3"),
        ("/proc/cmdline: rcu_nocbs=1-x", "?"),
        ("/proc/cmdline refused", "?"),
        (&format!("{config}| CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y"), "0-3"),
        (&format!("{config}| CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n/proc/cmdline: rcu_nocbs"), ""),
        (&format!("{config}CONFIG_RCU_NOCB_CPU=n\n/proc/cmdline: rcu_nocbs=2"), ""),
    ] {
        let map = map_of(&machine(4, edits));
        assert_eq!(marks(&map).split("; ").nth(3), Some(format!("rcu_nocbs {expected}").as_str()), "{edits}");
        assert_eq!(map.unknown.is_empty(), expected != "?", "{:?}", map.unknown);
    }
}

#[test]
fn what_cannot_be_read_is_unknown_and_not_empty() {
    let map = map_of(&machine(
        2,
        "/sys/devices/system/cpu/isolated refused
         /sys/devices/virtual/workqueue/cpumask absent
         /sys/fs/cgroup/cgroup.controllers refused
         /sys/devices/system/cpu/cpu0/topology/core_cpus_list: x
         /proc/irq refused
         /proc refused",
    ));
    assert_eq!(marks(&map), "isolcpus ?; cpuset partition ?; nohz_full ; rcu_nocbs ?; unbound work ?");
    assert!([&map.lands, &map.may, &map.movable, &map.bound].iter().all(|work| work.partial));
    assert_eq!(map.unknown.len(), 7, "{:#?}", map.unknown);
    assert_eq!(map.groups[0].alike.apart, [None, None, Some(false), None]);
    let none = map_of(&Machine::of(BTreeMap::new()));
    assert!(none.cpus.is_empty() && none.groups.is_empty() && !none.unknown.is_empty());
}

#[test]
fn partitions_are_seen_with_and_without_the_sum() {
    let group = "/sys/fs/cgroup/cgroup.controllers: cpuset
        /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated
        /sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 3\n";
    for (sum, expected) in [("", "3"), ("/sys/fs/cgroup/cpuset.cpus.isolated: 2-3", "2-3")] {
        let map = map_of(&machine(4, &format!("{group}{sum}")));
        assert!(marks(&map).contains(&format!("cpuset partition {expected};")), "{}", marks(&map));
    }
}

#[test]
fn half_a_core_is_seen() {
    let cores = (0..4).map(|cpu| {
        format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list: {},{}\n", cpu % 2, cpu % 2 + 2)
    });
    let map = map_of(&machine(4, &(cores.collect::<String>() + "/sys/devices/system/cpu/isolated: 3")));
    let split: Vec<String> =
        map.groups.iter().map(|group| format!("{}|{}", group.cpus, group.split)).collect();
    assert_eq!(split, ["0-2|3", "3|1"]);
}

#[test]
fn many_cpus_are_few_groups() {
    let mut edits = "/sys/devices/system/cpu/isolated: 16-127,144-255\n".to_owned();
    for cpu in 0..256 {
        let (first, second) = (cpu % 128, cpu % 128 + 128);
        let _ = writeln!(edits, "/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list: {first},{second}");
    }
    for node in 0..4 {
        let (a, b) = (node * 32, node * 32 + 128);
        let _ = writeln!(edits, "/sys/devices/system/node/node{node}/cpulist: {a}-{},{b}-{}", a + 31, b + 31);
    }
    let map = map_of(&machine(256, &edits));
    let groups: Vec<String> = map.groups.iter().map(|group| group.cpus.to_string()).collect();
    assert_eq!(groups, ["0-15,128-143", "16-31,144-159", "32-63,160-191", "64-95,192-223", "96-127,224-255"]);
    assert!(map.groups.iter().all(|group| group.split.is_empty()));
    assert_eq!((map.lands.items.len(), map.realtime.len()), (256, 1));
    assert_eq!(map.realtime[0].names, ["migration/N (256)"]);
    for width in [60, 100, 200] {
        let text = super::text::render(&map, width, false);
        assert!(
            text.lines().count() < 50 && text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
    }
}
