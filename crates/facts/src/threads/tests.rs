//! Threads of machines as small directory trees: the result, live and from a capture.

use super::*;
use crate::tasks::{PF_KTHREAD, PF_NO_SETAFFINITY};
use crate::tests::tree;
use proptest::prelude::*;

const KERNEL: u64 = PF_KTHREAD | 0x40;
const BOUND: u64 = PF_KTHREAD | PF_NO_SETAFFINITY | 0x40;

/// A stat line whose other fields contain what must not be in a capture; the start of a kernel
/// thread may be.
fn stat(comm: &str, flags: u64, threads: u32, priority: u32, policy: u32) -> String {
    let start = if flags & PF_KTHREAD == 0 { 4714 } else { 61 };
    format!(
        "7 ({comm}) S 4711 4712 1 0 -1 {flags} 9 9 9 9 4713 12 9 9 -51 9 {threads} 9 {start} \
         9 9 18446744073709551615 \
         4715 4716 4717 4718 9 9 9 9 9 9 9 9 17 3 {priority} {policy} 9 9 9 9 9 9 9 9 9 9 9"
    )
}

fn machine() -> String {
    let status =
        |cpus: &str| format!("\n| Name: x\n| Uid: 4720 4720\n| Cpus_allowed_list:\t{cpus}\n| Mems: 4721");
    let lines = [
        format!("/proc/2/stat: {}", stat("kthreadd", KERNEL, 1, 0, 0)),
        format!("/proc/2/status:{}", status("0-3")),
        format!("/proc/15/stat: {}", stat("migration/0", BOUND, 1, 99, 1)),
        format!("/proc/15/status:{}", status("0")),
        format!("/proc/16/stat: {}", stat("cpuhp/0", BOUND, 1, 0, 0)),
        format!("/proc/17/stat: {}", stat("kworker/0:1-events", BOUND, 1, 0, 0)),
        format!("/proc/18/stat: {}", stat("irq/45-enx00112", KERNEL, 1, 50, 1)),
        format!("/proc/18/status:{}", status("1")),
        format!("/proc/300/stat: {}", stat("secret", 0, 1, 0, 0)),
        format!("/proc/301/stat: {}", stat("tuned", 0, 4, 0, 0)),
        format!("/proc/301/task/301/stat: {}", stat("tuned", 0, 4, 0, 0)),
        format!("/proc/301/task/302/stat: {}", stat("gmain", 0, 4, 0, 0)),
        format!("/proc/400/stat: {}", stat("mystery", 0, 2, 0, 0)),
        format!("/proc/400/task/400/stat: {}", stat("mystery", 0, 2, 0, 0)),
        format!("/proc/400/task/401/stat: {}", stat("pump) R (", 0, 2, 80, 2)),
        format!("/proc/400/task/401/status:{}", status("2-3")),
        format!("/proc/500/stat: {}", stat("onbeat", 0, 1, 10, 1)),
        "/proc/self -> 500\n/proc/uptime: 1 2".to_owned(),
    ];
    lines.join("\n")
}

/// Result for a machine and for its capture, which have to be the same.
fn read_tree(text: &str) -> (Threads, BTreeMap<String, Access>) {
    let (host, _dir) = tree(text);
    let host = host.recording();
    let live = read_threads(&host, &["tuned", "irqbalance"]);
    let accesses = host.recorded().unwrap().accesses();
    let again = MachineFiles::in_memory(accesses.clone()).recording();
    assert_eq!(read_threads(&again, &["tuned", "irqbalance"]), live, "{text}");
    assert_eq!(again.recorded().unwrap().accesses(), accesses, "{text}");
    (live.known().cloned().unwrap(), accesses)
}

#[test]
fn a_guest_is_known_by_its_threads() {
    let status = |cpus: &str| format!("\n| Name: x\n| Cpus_allowed_list:\t{cpus}");
    let thread = |tid: u32, comm: &str, priority: u32, policy: u32, cpus: &str| {
        let stat = stat(comm, 0, 3, priority, policy);
        format!("/proc/600/task/{tid}/stat: {stat}\n/proc/600/task/{tid}/status:{}\n", status(cpus))
    };
    let text = format!(
        "/proc/600/stat: {}\n/proc/600/status:{}\n{}{}{}/proc/self -> 500\n",
        stat("qemu-kvm", 0, 4, 0, 0),
        status("0-1"),
        thread(601, "CPU 0/KVM", 0, 0, "0-3"),
        thread(602, "CPU 1/KVM", 1, 1, "3"),
        thread(603, "IO iothread1", 0, 0, "0-1"),
    );
    let (threads, accesses) = read_tree(&text);
    let [guest] = &threads.guests[..] else { panic!("{threads:?}") };
    assert_eq!(short(&guest.emulator), ("qemu-kvm", 0, Some("0-1".into()), false));
    let vcpus: Vec<_> = guest.vcpus.iter().map(short).collect();
    let own = |comm, priority, cpus: &str| (comm, priority, Some(cpus.to_owned()), false);
    assert_eq!(vcpus, [own("CPU 0/KVM", 0, "0-3"), own("CPU 1/KVM", 1, "3")]);
    assert_eq!(threads.realtime.iter().map(short).collect::<Vec<_>>(), [own("CPU 1/KVM", 1, "3")]);
    assert!(!accesses.contains_key("/proc/600/task/603/stat"));
    for (comm, is) in [("CPU 12/KVM", true), ("CPU 0/TCG", false), ("CPU x/KVM", false), ("vcpu3", true)] {
        assert_eq!(is_vcpu(comm), is, "{comm}");
    }
}

fn short(thread: &Thread) -> (&str, u32, Option<String>, bool) {
    let allowed = thread.allowed.known().map(CpuSet::to_string);
    (&thread.comm, thread.priority, allowed, thread.immovable)
}

#[test]
fn the_kernels_threads_real_time_threads_and_rivals() {
    let (threads, _) = read_tree(&machine());
    let cpus = |text: &str| Some(text.to_owned());
    assert_eq!(
        threads.kernel.iter().map(short).collect::<Vec<_>>(),
        [
            ("cpuhp/0", 0, None, true),
            ("irq/45-enx-address", 50, cpus("1"), false),
            ("kthreadd", 0, cpus("0-3"), false),
            ("migration/0", 99, cpus("0"), true),
        ]
    );
    assert_eq!(
        threads.realtime.iter().map(short).collect::<Vec<_>>(),
        [("pump) R (", 80, cpus("2-3"), false)]
    );
    assert_eq!(threads.realtime[0].policy, Some(RtPolicy::RoundRobin));
    let named = |thread: &Thread| (thread.tid, thread.start);
    assert_eq!((named(&threads.kernel[2]), named(&threads.realtime[0])), ((2, 61), (401, 0)));
    assert_eq!(threads.programs.iter().collect::<Vec<_>>(), ["tuned"]);
    assert!(threads.complete);
}

#[test]
fn a_capture_contains_nothing_of_other_threads() {
    let (_, accesses) = read_tree(&machine());
    let paths: Vec<&str> = accesses.keys().map(String::as_str).collect();
    assert!(paths.contains(&"/proc/400/task/401/status"));
    for path in ["/proc/17/stat", "/proc/300/stat", "/proc/301/task", "/proc/500/stat", "/proc/16/status"] {
        assert!(!paths.contains(&path), "{path}");
    }
    for (path, seen) in &accesses {
        let text = match seen {
            Access::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        for word in ["47", "secret", "mystery", "gmain", "onbeat", "kworker", "00112", "Uid", "300", "500"] {
            assert!(!text.contains(word), "{path}: {text}");
        }
    }
}

#[test]
fn unreadable_threads_are_reported_live_and_from_a_capture() {
    assert!(read_tree(&format!("{}\n/proc/900/status: gone", machine())).0.complete);
    for failure in [
        "/proc/900/stat: broken",
        "/proc/900/stat -> stat",
        "/proc/400/task/402/stat -> stat",
        "/proc/400/task/402/stat: broken\n/proc/900/stat: broken",
    ] {
        assert!(!read_tree(&format!("{}\n{failure}", machine())).0.complete, "{failure}");
    }
    let hidden = format!("/proc/600/stat: {}\n/proc/600/task -> task", stat("mystery", 0, 2, 0, 0));
    let (threads, accesses) = read_tree(&hidden);
    assert!(!threads.complete && matches!(accesses["/proc/600/task"], Access::Refused(_)));
}

#[test]
fn threads_over_the_bound_leave_a_mark() {
    let (host, _dir) = tree(&machine());
    for (room, complete) in [(3, false), (5, true)] {
        let host = host.unrecorded().recording();
        let live = read_at_most(&host, &[], room);
        let threads = live.known().unwrap();
        assert_eq!((threads.kernel.len() + threads.realtime.len(), threads.complete), (room, complete));
        let accesses = host.recorded().unwrap().accesses();
        assert_eq!(read_at_most(&MachineFiles::in_memory(accesses), &[], room), live);
    }
}

#[test]
fn an_unknown_affinity_is_not_invented() {
    for (status, expected) in [
        ("/proc/5/status: Name: x", "Malformed"),
        ("/proc/5/status:\n| Cpus_allowed_list: x", "Malformed"),
        ("/proc/5/status -> status", "Refused"),
        ("", "Absent"),
    ] {
        let (threads, _) =
            read_tree(&format!("/proc/5/stat: {}\n{status}", stat("rcu_preempt", KERNEL, 1, 0, 0)));
        assert!(format!("{:?}", threads.kernel[0].allowed).starts_with(expected), "{status}");
    }
    let (host, _dir) = tree("/sys/x: 1");
    assert_eq!(read_threads(&host, &[]), Fact::Absent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_capture_gives_the_same_as_the_machine(
        threads in proptest::collection::vec((1..9u32, 1..4u32, "[a-z()0-9/ ]{0,6}|tuned", 0..4u64, 1..3u32, 0..3u32), 0..12)
    ) {
        let mut lines = BTreeMap::new();
        for (pid, tid, comm, kind, count, policy) in threads {
            let flags = [0, 0, KERNEL, BOUND][kind as usize];
            let line = if count == 2 && policy == 2 { "broken".to_owned() } else { stat(&comm, flags, count, policy, policy) };
            lines.insert(format!("/proc/{pid}/stat"), line.clone());
            lines.insert(format!("/proc/{pid}/task/{}/stat", pid + tid), line);
            lines.insert(format!("/proc/{pid}/status"), format!("Cpus_allowed_list:\t{tid}"));
        }
        let text: Vec<String> = lines.iter().map(|(path, line)| format!("{path}: {line}")).collect();
        if !text.is_empty() {
            read_tree(&text.join("\n"));
        }
    }

    #[test]
    fn names_keep_no_part_of_an_address(comm in "[a-z/]{0,4}(enx|wlx)[0-9a-f]{4,12}") {
        let name = without_address(&comm);
        prop_assert!(name.ends_with("-address"), "{}", name);
        prop_assert_eq!(without_address(&name), name);
    }
}

#[test]
fn a_record_knows_which_programs_it_was_asked_for() {
    let (_, accesses) = read_tree(&machine());
    let again = read_threads(&MachineFiles::in_memory(accesses), &["tuned", "slabtop"]);
    let again = again.known().unwrap();
    assert!(again.programs.contains("tuned"));
    assert_eq!(again.unasked.iter().collect::<Vec<_>>(), ["slabtop"]);
}
