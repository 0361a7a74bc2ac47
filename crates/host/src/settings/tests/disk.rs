//! Truncated journals, and full disks.

use super::super::fake::{AppendFailure, DEBIAN_6_1_RT, DEBIAN_6_12_RT};
use super::*;

/// Plan with a partition, a pair of partners, a refusal and an interrupt.
fn plan(kernel: &FakeKernel) -> Vec<PlannedChange> {
    let choices = kernel.choices();
    let steps = [
        ("sysctl:vm.dirty_bytes", "1048576"),
        ("sysctl:vm.compaction_proactiveness", "101"),
        ("cgroup:onbeat/", "present"),
        ("cgroup:onbeat/cpuset.cpus", "2-3"),
        ("cgroup:onbeat/cpuset.cpus.partition", "isolated"),
        ("irq:24", "0-1"),
    ];
    let change = |(key, wanted): (&str, &str)| {
        let key: Key = key.parse().unwrap();
        let choice = choices.iter().find(|choice| choice.setting.key == key).unwrap();
        planned(Setting { wanted: wanted.to_owned(), ..choice.setting.clone() })
    };
    steps.map(change).to_vec()
}

/// Kernel that saves its state after each write.
struct Recorded<'a> {
    kernel: &'a mut FakeKernel,
    after: Vec<FakeKernel>,
}

impl Kernel for Recorded<'_> {
    fn read(&self, key: &Key) -> model::fact::Fact<String> {
        self.kernel.read(key)
    }

    fn write(&mut self, key: &Key, value: Option<&str>) -> io::Result<()> {
        let written = self.kernel.write(key, value);
        self.after.push(self.kernel.clone());
        written
    }

    fn effective_affinity(&self, irq: u32) -> model::fact::Fact<String> {
        self.kernel.effective_affinity(irq)
    }

    fn affinities(&self) -> Vec<(Key, String)> {
        self.kernel.affinities()
    }

    fn groups_below(&self, group: &str) -> Vec<String> {
        self.kernel.groups_below(group)
    }

    fn processes_in(&self, group: &str) -> Vec<GroupProcess> {
        self.kernel.processes_in(group)
    }
}

/// Truncates the journal at every byte, with the machine in its states when that byte was written,
/// before and after the next writes: all that was written to the kernel is undone.
#[test]
fn a_journal_that_is_cut_anywhere_undoes_what_was_done() {
    let mut kernel = FakeKernel::boot(&DEBIAN_6_1_RT);
    let (before, plan) = (kernel.snapshot(), plan(&kernel));
    let at_the_start = kernel.clone();
    let mut store = MemoryStore::default();
    let mut recorded = Recorded { kernel: &mut kernel, after: Vec::new() };
    applied(&mut recorded, &mut store, &plan, true).unwrap();
    let states: Vec<FakeKernel> = std::iter::once(at_the_start).chain(recorded.after).collect();
    let bytes = store.read("1.jsonl").unwrap();
    // A write follows the line that announces it: an intent, or a restore decision.
    let mut written = 0;
    let mut from = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record: JournalRecord = serde_json::from_slice(line).unwrap();
        let end = from + line.len();
        for cut in from..=end {
            let mut machines = vec![states[written].clone()];
            if cut == end {
                let more = match &record {
                    JournalRecord::Intent { .. } => 1,
                    JournalRecord::Restoring { writes, .. } => writes.len(),
                    _ => 0,
                };
                // Some of the decided values read as wanted already and were not written.
                machines.extend(states.iter().skip(written + 1).take(more).cloned());
            }
            for kernel in machines {
                let mut bench = Bench::of(kernel);
                bench.store.put("1.jsonl", &bytes[..cut]);
                let restored = bench.undo(false).unwrap();
                assert!(restored.iter().all(|one| one.state == ChangeState::Undone), "{cut}: {restored:?}");
                assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new(), "at {cut}");
                assert_eq!(bench.live(), Vec::<String>::new());
            }
        }
        written += usize::from(matches!(record, JournalRecord::Intent { .. }));
        from = end;
    }
    assert_eq!(written, 6);
}

/// If the disk is full or read-only, for one append or from one on, no further change is made, and
/// earlier ones are undone.
#[test]
fn without_a_journal_nothing_is_changed() {
    for errno in [libc::ENOSPC, libc::EROFS, libc::EIO] {
        for lasts in [true, false] {
            for after in 0..20 {
                for leaves in [0, 1, 40, usize::MAX] {
                    full_disk(AppendFailure { after, errno, leaves, lasts });
                }
            }
        }
    }
}

fn full_disk(failure: AppendFailure) {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let (before, plan) = (bench.kernel.snapshot(), plan(&bench.kernel));
    bench.store.failure = Some(failure);
    let made = bench.apply(&plan, true).unwrap();
    let failed = bench.store.appends > failure.after;
    assert_eq!(made.is_err(), failed, "{failure:?}");
    if failure.after == 0 {
        assert_eq!((made.unwrap_err().raw_os_error(), bench.writes), (Some(failure.errno), 0));
    }
    if failed {
        // It was undone at once, although the journal may not contain that.
        assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new(), "{failure:?}");
    }
    bench.store.failure = None;
    bench.undo(false).unwrap();
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new(), "{failure:?}");
    assert_eq!(bench.live(), Vec::<String>::new());
}

#[test]
fn an_entry_whose_journal_failed_makes_no_further_change() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    bench.store.failure = Some(AppendFailure { after: 1, errno: libc::ENOSPC, leaves: 9, lasts: false });
    let before = bench.kernel.snapshot();
    let mut entry = Entry::begin(&mut bench.kernel, &mut bench.store, opened()).unwrap();
    assert!(entry.make(&change("sysctl:vm.swappiness", "10")).is_err());
    assert!(entry.make(&change("sysctl:vm.swappiness", "10")).is_err());
    drop(entry);
    assert_eq!(bench.kernel.snapshot(), before);
    assert_eq!(bench.store.appends, 2);
}

#[test]
fn a_full_disk_does_not_keep_an_undo_from_being_made() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let before = bench.kernel.snapshot();
    bench.apply(&plan(&bench.kernel), true).unwrap().unwrap();
    let after = bench.store.appends;
    bench.store.failure = Some(AppendFailure { after, errno: libc::ENOSPC, leaves: 3, lasts: true });
    let entry = read_entry(&bench.store, "1").unwrap().unwrap();
    let (restored, noted) = restore(&mut bench.kernel, &mut bench.store, &entry, false);
    assert!(restored.iter().all(|one| one.state == ChangeState::Undone), "{restored:?}");
    assert_eq!(noted.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}
