//! Lines, IDs and lock of the journal.

use super::*;
use crate::settings::fake::{AppendFailure, DEBIAN_6_12_RT};

/// Later versions must read the journal of this one: this text may not change.
const JOURNAL: &str = include_str!("journal.jsonl");

#[test]
fn a_journal_is_written_as_it_was() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let choices = bench.kernel.choices();
    let with = |key: &str, wanted: &str| {
        let key: Key = key.parse().unwrap();
        let choice = choices.iter().find(|choice| choice.setting.key == key).unwrap();
        planned(Setting { wanted: wanted.to_owned(), ..choice.setting.clone() })
    };
    let plan = [
        with("sysctl:vm.dirty_bytes", "1048576"),
        with("irq:25", "2-3"),
        with("cgroup:onbeat/", "present"),
        with("sysctl:vm.compaction_proactiveness", "101"),
    ];
    bench.apply(&plan, true).unwrap().unwrap();
    bench.kernel.refuse(&Key::Irq(25), Some(libc::EIO));
    bench.undo(false).unwrap();
    let written = String::from_utf8(bench.store.read("1.jsonl").unwrap()).unwrap();
    if std::env::var_os("ONBEAT_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/settings/tests/journal.jsonl");
        std::fs::write(path, &written).unwrap();
        return;
    }
    assert_eq!(written, JOURNAL);
}

#[test]
fn a_journal_of_this_version_is_read_by_later_ones() {
    let entry = entry_records(JOURNAL.as_bytes()).unwrap();
    assert_eq!(entry.opened, Opened { id: "1".to_owned(), ..opened() });
    assert!(entry.complete && !entry.confirmed && !entry.cut && entry.is_live());
    let keys: Vec<String> = entry.steps.iter().map(|step| step.change.setting.key.to_string()).collect();
    assert_eq!(
        keys,
        ["sysctl:vm.dirty_bytes", "irq:25", "cgroup:onbeat/", "sysctl:vm.compaction_proactiveness"]
    );
    let outcomes: Vec<Outcome> =
        entry.steps.iter().map(|step| step.outcome.as_ref().unwrap().outcome).collect();
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Pending, Outcome::Applied, Outcome::Refused]);
    let states: Vec<ChangeState> = entry.steps.iter().map(|step| step.restored.as_ref().unwrap().0).collect();
    assert_eq!(states, [ChangeState::Undone, ChangeState::Refused, ChangeState::Undone, ChangeState::Undone]);
    assert_eq!(entry.steps[0].others[0].value.as_deref(), Some("20"));
    assert_eq!(entry.steps[1].left.as_ref().unwrap()[0].value.as_deref(), Some("2-3"));
}

/// Fields added by a later version are ignored; an unknown fact makes its line an unknown one.
#[test]
fn what_a_later_version_adds_is_passed_over() {
    let first = JOURNAL.lines().next().unwrap();
    let more = first.replace("\"pid\":", "\"novelty\":{\"a\":[1]},\"pid\":");
    let text = format!("{more}\n{{\"fact\":\"novelty\"}}\n{{\"fact\":\"complete\"}}\n");
    let entry = entry_records(text.as_bytes()).unwrap();
    assert!(entry.complete && !entry.cut);
    assert_eq!(entry.unknown, 1);
}

#[test]
fn an_entry_that_does_not_begin_is_empty_or_refused() {
    let mut store = MemoryStore::default();
    store.put("1.jsonl", b"");
    store.put("2.jsonl", &JOURNAL.as_bytes()[..40]);
    store.put("3.jsonl", b"{\"fact\":\"novelty\"}\n");
    store.put("4.jsonl", JOURNAL.as_bytes());
    assert_eq!(read_entry(&store, "1").unwrap(), None);
    assert_eq!(read_entry(&store, "2").unwrap(), None);
    for other in ["3", "4"] {
        assert_eq!(read_entry(&store, other).unwrap_err().kind(), io::ErrorKind::InvalidData, "{other}");
    }
    for wrong in ["", "0x1", "01", "+1", "../1", "1.jsonl", "-1", "5"] {
        assert_eq!(read_entry(&store, wrong).unwrap_err().kind(), io::ErrorKind::NotFound, "{wrong}");
    }
}

#[test]
fn ids_count_on_and_are_never_used_twice() {
    let mut store = MemoryStore::default();
    for name in ["9.jsonl", "10.jsonl", "lock", "010.jsonl", "x.jsonl", ".jsonl", "11.jsonl~", "-3.jsonl"] {
        store.put(name, b"");
    }
    assert_eq!(entry_ids(&store).unwrap(), ["9", "10"]);
    let (_, id) = Journal::begin(&mut store, opened()).unwrap();
    assert_eq!(id, "11");
    assert_eq!(read_entry(&store, "11").unwrap().unwrap().opened.id, "11");
    store.put(&format!("{}.jsonl", u64::MAX), b"");
    assert!(Journal::begin(&mut store, opened()).is_err());
}

#[test]
fn a_line_that_was_cut_never_becomes_whole() {
    let lines: Vec<&str> = JOURNAL.split_inclusive('\n').collect();
    let begun = lines[..2].concat();
    let mut store = MemoryStore::default();
    // Only its newline is missing.
    store.put("1.jsonl", begun.trim_end().as_bytes());
    let mut journal = Journal::resume(&mut store, "1").unwrap();
    journal.note(&JournalRecord::Confirmed).unwrap();
    let entry = read_entry(&store, "1").unwrap().unwrap();
    assert!(entry.cut && entry.confirmed && entry.steps.is_empty());
}

/// Records after a line that failed half-way are read.
#[test]
fn a_line_that_failed_does_not_take_the_next_along() {
    for leaves in [0, 1, 9, usize::MAX] {
        let mut store = MemoryStore::default();
        store.put("1.jsonl", JOURNAL.lines().next().map(|line| format!("{line}\n")).unwrap().as_bytes());
        store.failure = Some(AppendFailure { after: 0, errno: libc::ENOSPC, leaves, lasts: false });
        let mut journal = Journal::resume(&mut store, "1").unwrap();
        assert!(journal.note(&JournalRecord::Complete).is_err());
        journal.note(&JournalRecord::Confirmed).unwrap();
        let entry = read_entry(&store, "1").unwrap().unwrap();
        assert!(entry.confirmed && entry.unknown == 0, "{leaves}: {entry:?}");
    }
}

/// Undoing a change takes as much space again: an entry stops growing while there is room for it.
#[test]
fn an_entry_leaves_room_for_its_undoing() {
    let quarter = super::super::journal::JOURNAL_LIMIT / 4;
    let mut store = MemoryStore::default();
    let first = JOURNAL.lines().next().unwrap();
    let padded = format!("{first}\n{}\n", " ".repeat(quarter - first.len() - 500));
    store.put("1.jsonl", padded.as_bytes());
    let mut journal = Journal::resume(&mut store, "1").unwrap();
    let intent = |step| JournalRecord::Intent {
        step,
        change: Box::new(change("sysctl:vm.swappiness", "10")),
        old: None,
        others: Vec::new(),
    };
    let mut made = 0;
    while journal.note(&intent(made)).is_ok() {
        made += 1;
        assert!(made < 9, "the bound is not kept");
    }
    assert!(made > 0);
    journal.note(&JournalRecord::Restoring { step: 0, writes: Vec::new() }).unwrap();
    assert_eq!(read_entry(&store, "1").unwrap().unwrap().steps.len(), made as usize);
}

/// `isolate run` adds steps to a completed entry in this way.
#[test]
fn steps_that_are_added_have_numbers_of_their_own() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let before = bench.kernel.snapshot();
    bench.apply(&[change("sysctl:vm.swappiness", "10")], false).unwrap().unwrap();
    for value in ["20", "30"] {
        let entry = read_entry(&bench.store, "1").unwrap().unwrap();
        let mut resumed = Entry::resume(&mut bench.kernel, &mut bench.store, &entry).unwrap();
        resumed.make(&change("sysctl:vm.swappiness", value)).unwrap();
    }
    let entry = read_entry(&bench.store, "1").unwrap().unwrap();
    let numbers: Vec<u32> = entry.steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    bench.undo(false).unwrap();
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}

/// A forced undo of kept values is completed without being forced again.
#[test]
fn a_forced_undo_that_was_cut_short_is_carried_on() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    bench.apply(&[change("sysctl:vm.swappiness", "10")], false).unwrap().unwrap();
    let key: Key = "sysctl:vm.swappiness".parse().unwrap();
    bench.kernel.write(&key, Some("77")).unwrap();
    assert_eq!(bench.undo(false).unwrap()[0].state, ChangeState::Kept);
    let at = (bench.kernel.clone(), bench.store.clone());
    let mut carried_on = 0;
    for crash in 0..12 {
        (bench.kernel, bench.store) = at.clone();
        bench.store.countdown = bench.countdown.clone();
        bench.countdown.set(Some(crash));
        let ended = bench.undo(true).is_none();
        bench.countdown.set(None);
        let entry = read_entry(&bench.store, "1").unwrap().unwrap();
        let decided = entry.steps[0].restoring.is_some();
        assert!(!decided || entry.is_live(), "{crash}: it would not be chosen again");
        bench.undo(false).unwrap();
        let now = bench.kernel.read(&key).known().cloned().unwrap();
        if ended && decided {
            carried_on += 1;
            assert_eq!(now, "60", "{crash}");
        }
    }
    assert!(carried_on > 1, "{carried_on}");
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        entry_records(&bytes);
    }

    /// Accepts any lines of a journal in any order, truncated or not, with anything in between.
    #[test]
    fn any_lines_are_taken(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..2_000, "[^\n]{0,9}"), 0..12),
    ) {
        let lines: Vec<&str> = JOURNAL.lines().collect();
        let mut bytes = lines[0].as_bytes().to_vec();
        bytes.push(b'\n');
        for (line, cut, more) in &picks {
            let line = line.get(&lines).as_bytes();
            bytes.extend(&line[..line.len().min(*cut)]);
            bytes.extend(more.as_bytes());
            bytes.push(b'\n');
        }
        let entry = entry_records(&bytes).unwrap();
        let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
        bench.store.put("1.jsonl", &bytes);
        let _ = restore(&mut bench.kernel, &mut bench.store, &entry, true);
    }
}

fn folder() -> (tempfile::TempDir, Folder) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("journal");
    let folder = Folder::make(&path).unwrap();
    (temporary, folder)
}

fn locked(folder: &Folder) -> JournalLock {
    take_lock(folder).unwrap().ok_or_else(|owner| owner).unwrap_or_else(|owner| panic!("{owner:?} has it"))
}

#[test]
fn one_at_a_time_has_the_lock() {
    let (temporary, folder) = folder();
    let lock = take_lock(&folder).unwrap();
    let other = Folder::open(&temporary.path().join("journal")).unwrap();
    let owner = take_lock(&other).unwrap().ok_or_else(|owner| owner).err();
    assert_eq!(owner, Some(LockOwner { pid: std::process::id() }));
    drop(lock);
    let _lock = locked(&other);
    assert_eq!(entry_ids(&folder).unwrap(), Vec::<String>::new());
}

/// The lock is held by another process, which is killed.
#[test]
fn the_lock_goes_with_its_owner() {
    let (temporary, folder) = folder();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settings::tests::records::takes_the_lock_and_waits", "--include-ignored"])
        .env("ONBEAT_TEST_JOURNAL", temporary.path().join("journal"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let owner = loop {
        match take_lock(&folder).unwrap() {
            LockOutcome::Held(owner) if owner.pid == child.id() => break owner,
            LockOutcome::Locked(_) | LockOutcome::Held(_) => {}
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended without the lock");
        std::thread::yield_now();
    };
    assert_eq!(owner.pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    locked(&folder);
}

#[test]
#[ignore = "the other process of the test above"]
fn takes_the_lock_and_waits() {
    let Some(path) = std::env::var_os("ONBEAT_TEST_JOURNAL") else { return };
    let folder = Folder::open(path.as_ref()).unwrap();
    let _lock = loop {
        if let LockOutcome::Locked(lock) = take_lock(&folder).unwrap() {
            break lock;
        }
    };
    // Until its starter kills it or ends.
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
}

#[test]
fn a_folder_keeps_lines() {
    let (temporary, mut folder) = folder();
    folder.append("1.jsonl", b"a\n").unwrap();
    folder.append("1.jsonl", b"b\n").unwrap();
    assert_eq!(folder.read("1.jsonl").unwrap(), b"a\nb\n");
    assert_eq!(entry_ids(&folder).unwrap(), ["1"]);
    let path = temporary.path().join("journal");
    std::os::unix::fs::symlink("1.jsonl", path.join("2.jsonl")).unwrap();
    assert!(folder.read("2.jsonl").is_err() && folder.append("2.jsonl", b"c\n").is_err());
    let open_to_others = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&path, open_to_others).unwrap();
    assert!(Folder::open(&path).is_err());
}

/// A process started while the lock is held must not inherit it, such as the keeper.
#[test]
fn the_lock_is_not_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::make(&dir.path().join("journal")).unwrap();
    let _lock = locked(&folder);
    let path = dir.path().canonicalize().unwrap().join("journal/lock");
    let mut seen = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok) {
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let info = format!("/proc/self/fdinfo/{}", entry.file_name().to_str().unwrap());
            let info = std::fs::read_to_string(info).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
            assert_eq!(flags & libc::O_CLOEXEC, libc::O_CLOEXEC);
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
}
