//! Reads a fake process twice.

use std::collections::BTreeMap;

use super::descriptors::OpenKind;
use super::{MAX_THREADS, ProcessReader, SeenThread, processes_named, status_of};
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;
use model::units::{Cpu, Nanos};

fn stat(tid: u32, comm: &str, policy: u32, priority: u32, faults: u64) -> String {
    // Fields 4 to 9, 10 to 12, 13 to 18, 19 nice, 20, 21, 22 the start, 23 to 38,
    // 39 the CPU, 40, 41.
    let (before, between, after) = (" 0".repeat(6), " 0".repeat(6), " 0".repeat(16));
    format!(
        "{tid} ({comm}) S{before} {faults} 0 1{between} -5 2 0 {}{after} 1 {priority} {policy} 0\n",
        500 + tid
    )
}

const STATUS: &str = "Tgid:\t100\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nThreads:\t2\nVmLck:\t0 kB\nVmData:\t200 kB\n\
    CapEff:\t0\nCpus_allowed_list:\t1-2\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t0\n";

fn answers() -> BTreeMap<String, Access> {
    let list = |names: &[&str]| Access::List(names.iter().map(|name| (*name).to_owned()).collect());
    let file = |text: &str| Access::File(text.as_bytes().to_vec());
    let mut answers = BTreeMap::new();
    for (path, seen) in [
        ("", list(&["100", "200", "self"])),
        ("/100/comm", file("robot\n")),
        ("/200/comm", file("a-name-of-15-by\n")),
        ("/100/stat", file(&stat(100, "robot", 0, 0, 0))),
        ("/100/status", file(STATUS)),
        ("/100/cgroup", file("0::/robots\n")),
        ("/100/task", list(&["100", "101"])),
        ("/100/task/100/stat", file(&stat(100, "robot", 0, 0, 0))),
        ("/100/task/100/status", file(STATUS)),
        ("/100/task/101/stat", file(&stat(101, "control", 1, 80, 12))),
        ("/100/task/101/status", file(STATUS)),
        ("/100/task/101/schedstat", file("5000 1 1\n")),
        ("/100/task/101/syscall", file("running\n")),
        ("/100/fd", list(&["1"])),
        ("/100/fd/1", Access::Link("3".into())),
        ("/100/fdinfo/1", file("pos:\t0\nflags:\t02\nmnt_id:\t29\n")),
        ("/100/mountinfo", file("29 1 0:26 / /dev/pts rw - devpts devpts rw\n")),
    ] {
        answers.insert(format!("/proc{path}"), seen);
    }
    answers.insert("/sys/fs/cgroup/robots/cgroup.procs".into(), file("100\n"));
    answers.insert("/sys/fs/cgroup/robots/cpu.max".into(), file("50000 100000\n"));
    answers.insert("/sys/fs/cgroup/robots/cpu.stat".into(), file("usage_usec 5\nnr_throttled 3\n"));
    answers
}

#[test]
fn a_process_is_read_at_both_ends_of_the_window() {
    let host = MachineFiles::in_memory(answers());
    let mut reader = ProcessReader::begin(&host, 100, Nanos(1)).unwrap();
    assert!(reader.lives());
    assert_eq!(reader.real_time(), [101]);
    reader.look_at(101, Nanos(1));
    let found = reader.end(Nanos(2)).unwrap();
    let control = found.thread(101).unwrap();
    assert_eq!((control.policy_name(), control.priority, control.nice, control.rank()), ("fifo", 80, -5, 19));
    assert_eq!(control.seen_on.iter().collect::<Vec<_>>(), [&Cpu(1)]);
    let counted = control.counted.known().unwrap();
    assert_eq!((counted.minor_faults, counted.run_ns), (0, Some(0)));
    assert_eq!(control.waits.known().unwrap().running, 1);
    assert_eq!((control.calls.clone(), found.mappings.clone()), (Fact::Absent, Fact::Absent));
    assert_eq!(found.descriptors.known().unwrap()[0].kind, OpenKind::Terminal);
    assert_eq!((found.quota, found.throttled), (Fact::Known(Some((50_000, 100_000))), Fact::Known(0)));
    let growth = found.growth.known().unwrap();
    assert_eq!((growth.least_kib, growth.most_kib, growth.changes, growth.looks), (200, 200, 0, 2));
    assert_eq!((found.comm.as_str(), found.threads.len(), found.threads_changed), ("robot", 2, 0));
}

/// State after `pthread_exit()` in `main()`: the first thread has no memory and no open files.
#[test]
fn a_process_whose_first_thread_has_ended_is_that_of_the_others() {
    let mut answers = answers();
    let ended = stat(100, "robot", 1, 90, 0).replace(") S ", ") Z ");
    for path in ["/proc/100/stat", "/proc/100/task/100/stat"] {
        answers.insert(path.into(), Access::File(ended.clone().into_bytes()));
    }
    let without: String =
        STATUS.lines().filter(|line| !line.starts_with("Vm")).map(|line| format!("{line}\n")).collect();
    answers.insert("/proc/100/status".into(), Access::File(without.into_bytes()));
    for name in ["fd", "fd/1", "fdinfo/1", "mountinfo", "cgroup"] {
        let answer = answers.remove(&format!("/proc/100/{name}")).unwrap();
        answers.insert(format!("/proc/100/task/101/{name}"), answer);
    }
    let host = MachineFiles::in_memory(answers.clone());
    assert!(status_of(&host, 100).known().unwrap().has_memory);
    let reader = ProcessReader::begin(&host, 100, Nanos(1)).unwrap();
    assert!(reader.lives());
    assert_eq!((reader.real_time(), reader.others()), (vec![101], vec![]));
    let found = reader.end(Nanos(2)).unwrap();
    assert_eq!((found.comm.as_str(), found.threads.len(), found.threads_changed), ("robot", 1, 0));
    assert_eq!(found.descriptors.known().unwrap()[0].kind, OpenKind::Terminal);
    assert_eq!(found.quota, Fact::Known(Some((50_000, 100_000))));
    // The last of them ends, too.
    let mut reader = ProcessReader::begin(&host, 100, Nanos(1)).unwrap();
    answers.remove("/proc/100/task/101/stat");
    reader.host = MachineFiles::in_memory(answers);
    assert!(!reader.lives() && reader.end(Nanos(2)).is_none());
}

#[test]
fn a_process_is_found_by_its_cut_name() {
    let host = MachineFiles::in_memory(answers());
    assert_eq!(processes_named(&host, "robot"), [100]);
    assert_eq!(processes_named(&host, "a-name-of-15-bytes-and-more"), [200]);
    assert!(processes_named(&host, "").is_empty() && processes_named(&host, "rob").is_empty());
    assert!(ProcessReader::begin(&host, 300, Nanos(1)).is_none());
}

#[test]
fn threads_beyond_the_bound_are_counted() {
    let mut answers = answers();
    let tids: Vec<String> = (100..100 + MAX_THREADS as u32 + 10).map(|tid| tid.to_string()).collect();
    for tid in &tids {
        let text = stat(tid.parse().unwrap(), "worker", 1, 10, 0);
        answers.insert(format!("/proc/100/task/{tid}/stat"), Access::File(text.into_bytes()));
    }
    answers.insert("/proc/100/task".into(), Access::List(tids));
    let host = MachineFiles::in_memory(answers);
    let found = ProcessReader::begin(&host, 100, Nanos(1)).unwrap().end(Nanos(2)).unwrap();
    assert_eq!((found.threads.len(), found.threads_left_out, found.threads_changed), (MAX_THREADS, 10, 0));
}

#[test]
fn real_time_threads_are_looked_at_first() {
    let mut answers = answers();
    let last = 100 + MAX_THREADS as u32 + 9;
    let tids: Vec<String> = (100..=last).map(|tid| tid.to_string()).collect();
    for tid in 100..=last {
        let text = stat(tid, "worker", u32::from(tid == last), if tid == last { 10 } else { 0 }, 0);
        answers.insert(format!("/proc/100/task/{tid}/stat"), Access::File(text.into_bytes()));
    }
    answers.insert("/proc/100/task".into(), Access::List(tids));
    let reader = ProcessReader::begin(&MachineFiles::in_memory(answers), 100, Nanos(1)).unwrap();
    assert_eq!(reader.real_time(), [last]);
}

#[test]
fn a_thread_that_comes_later_is_looked_at_from_then_on() {
    let mut before = answers();
    before.insert("/proc/100/task".into(), Access::List(vec!["100".into()]));
    let mut reader = ProcessReader::begin(&MachineFiles::in_memory(before), 100, Nanos(10)).unwrap();
    assert!(reader.real_time().is_empty());
    reader.host = MachineFiles::in_memory(answers());
    reader.find_new(Nanos(30));
    assert_eq!(reader.real_time(), [101]);
    let found = reader.end(Nanos(40)).unwrap();
    let windows: Vec<Nanos> = found.threads.iter().map(|thread| thread.window).collect();
    assert_eq!((windows, found.window, found.threads_changed), (vec![Nanos(30), Nanos(10)], Nanos(30), 0));
}

#[test]
fn a_real_time_thread_that_comes_and_goes_is_counted() {
    let mut alone = answers();
    alone.insert("/proc/100/task".into(), Access::List(vec!["100".into()]));
    let alone = MachineFiles::in_memory(alone);
    let mut reader = ProcessReader::begin(&alone, 100, Nanos(10)).unwrap();
    for host in [MachineFiles::in_memory(answers()), alone] {
        reader.host = host;
        reader.look_for_brief();
    }
    let found = reader.end(Nanos(40)).unwrap();
    assert_eq!((found.threads.len(), found.real_time_ended), (1, 1));
}

#[test]
fn a_thread_that_becomes_real_time_is_counted_from_then_on() {
    let mut before = answers();
    before.insert("/proc/100/task/101/stat".into(), Access::File(stat(101, "control", 0, 0, 5).into_bytes()));
    let mut reader = ProcessReader::begin(&MachineFiles::in_memory(before), 100, Nanos(10)).unwrap();
    reader.host = MachineFiles::in_memory(answers());
    assert_eq!((reader.look_at(101, Nanos(30)), reader.real_time()), (SeenThread::OtherPolicy, vec![101]));
    assert_eq!(reader.look_at(101, Nanos(31)), SeenThread::Elsewhere);
    let found = reader.end(Nanos(40)).unwrap();
    let control = found.thread(101).unwrap();
    assert_eq!((control.counted.known().unwrap().minor_faults, control.window), (0, Nanos(10)));
}

/// Most of its counted activity was under its former policy.
#[test]
fn a_thread_that_became_real_time_after_the_last_look_is_not_judged() {
    let mut before = answers();
    before.insert("/proc/100/task/101/stat".into(), Access::File(stat(101, "control", 0, 0, 5).into_bytes()));
    let mut reader = ProcessReader::begin(&MachineFiles::in_memory(before), 100, Nanos(10)).unwrap();
    reader.host = MachineFiles::in_memory(answers());
    let found = reader.end(Nanos(40)).unwrap();
    assert_eq!((found.thread(101), found.threads_changed, found.comm.as_str()), (None, 1, "robot"));
}

/// A program with data that is not in its file, a stack, and a thread's malloc arena.
#[test]
fn mappings_have_names_that_people_know() {
    let smaps = "\
55d0c8a00000-55d0c8a01000 r--p 00000000 fe:01 131 /usr/bin/robot
VmFlags: rd
55d0c8a01000-55d0c8a02000 r-xp 00001000 fe:01 131 /usr/bin/robot
VmFlags: rd ex
55d0c8a03000-55d0c8a04000 rw-p 00002000 fe:01 131 /usr/bin/robot
VmFlags: rd wr
55d0c8a04000-55d0c8a05000 rw-p 00000000 00:00 0
VmFlags: rd wr
7f0004000000-7f0004100000 rw-p 00000000 00:00 0
VmFlags: rd wr
7f0004100000-7f0008000000 ---p 00000000 00:00 0
VmFlags: mr
7f0010000000-7f0010800000 rw-p 00000000 00:00 0
VmFlags: rd wr
7f0010900000-7f0010a00000 rw-p 00000000 00:00 0
VmFlags: rd wr
";
    let mut answers = answers();
    answers.insert("/proc/100/smaps".into(), Access::File(smaps.as_bytes().to_vec()));
    let asleep = format!("{} 0 0 0 0 0 0 0x7f00107ff000 0x1\n", libc::SYS_read);
    answers.insert("/proc/100/task/101/syscall".into(), Access::File(asleep.into_bytes()));
    let mut reader = ProcessReader::begin(&MachineFiles::in_memory(answers), 100, Nanos(1)).unwrap();
    reader.look_at(101, Nanos(1));
    let found = reader.end(Nanos(2)).unwrap();
    let mappings = found.mappings.known().unwrap();
    let words: Vec<String> = mappings.iter().map(|mapping| found.words_for(mapping)).collect();
    assert_eq!(words[2..5], ["robot", "data of robot", "malloc arena at 0x7f0004000000"]);
    assert_eq!(words[6..], ["stack of control (101)", "anonymous memory at 0x7f0010900000"]);
    // As nm prints them, whatever part of the file they are in.
    assert_eq!(
        (found.place(0x55d0_c8a0_1234), found.place(0x55d0_c8a0_4010)),
        ("robot+0x1234".into(), "robot+0x4010".into())
    );
    assert_eq!(
        (found.place(0x7f00_0400_0010).as_str(), found.place(0x10).as_str()),
        ("malloc arena at 0x7f0004000000+0x10", "")
    );
}

/// A 32-bit program on a 64-bit kernel reads with the number that close() has here.
#[test]
fn calls_have_names_where_they_have_the_numbers_of_this_machine() {
    let asleep = format!("{} 0 0 0 0 0 0 0x7f00107ff000 0x1\n", libc::SYS_read);
    let seen = |words: &[u8]| {
        let mut answers = answers();
        answers.insert("/proc/100/auxv".into(), Access::File(words.to_vec()));
        answers.insert("/proc/100/task/101/syscall".into(), Access::File(asleep.clone().into_bytes()));
        let mut reader = ProcessReader::begin(&MachineFiles::in_memory(answers), 100, Nanos(1)).unwrap();
        match reader.look_at(101, Nanos(1)) {
            SeenThread::Asleep(wait) => (wait.call, reader.end(Nanos(2)).unwrap().own_numbers),
            other => panic!("{other:?}"),
        }
    };
    let long: Vec<u8> = [4u64, 56, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let short: Vec<u8> = [4u32, 32, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (own, other) = if cfg!(target_pointer_width = "64") { (long, short) } else { (short, long) };
    assert_eq!(seen(&own), ("read", Fact::Known(true)));
    assert_eq!(seen(&other), ("", Fact::Known(false)));
    assert!(matches!(seen(&[]), ("", Fact::Malformed(_))));
}

#[test]
fn a_process_that_ends_meanwhile_is_not_judged() {
    let mut reader = ProcessReader::begin(&MachineFiles::in_memory(answers()), 100, Nanos(10)).unwrap();
    let mut after = answers();
    let zombie = stat(100, "robot", 0, 0, 0).replace(") S", ") Z");
    for path in ["/proc/100/stat", "/proc/100/task/100/stat"] {
        after.insert(path.into(), Access::File(zombie.clone().into_bytes()));
    }
    after.insert("/proc/100/task".into(), Access::List(vec!["100".into()]));
    reader.host = MachineFiles::in_memory(after);
    assert_eq!((reader.lives(), reader.end(Nanos(20))), (false, None));
}

#[test]
fn a_process_that_executes_another_program_is_told() {
    let with = |vector: Option<&[u8]>| {
        let mut answers = answers();
        let vector = vector.map(|bytes| Access::File(bytes.to_vec()));
        answers.extend(vector.map(|vector| ("/proc/100/auxv".to_owned(), vector)));
        MachineFiles::in_memory(answers)
    };
    let mut reader = ProcessReader::begin(&with(Some(&[1])), 100, Nanos(1)).unwrap();
    assert!(!reader.has_executed());
    // It has ended, or may no longer be read: that is reported elsewhere.
    for (vector, executed) in [(Some(&[2][..]), true), (Some(&[]), false), (None, false)] {
        reader.host = with(vector);
        assert_eq!(reader.has_executed(), executed, "{vector:?}");
    }
}
