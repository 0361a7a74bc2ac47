//! Several entries over each other: applied, interrupted, expired, undone in any order.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use host::settings::fake::{Countdown, Crash, Crashing, DEBIAN_6_12_RT, FakeKernel, MemoryStore};
use host::settings::{Opened, remove_spent};
use model::setting::{Comparison, Setting};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use super::*;
use crate::apply::{ApplyOptions, apply};
use crate::expiry::{Expired, expire};
use crate::status::status;
use model::setting::Key;
use model::units::CpuSet;

const BOOT: &str = "6c1f1f1e-0000-4000-8000-000000000001";
const OTHER_BOOT: &str = "6c1f1f1e-0000-4000-8000-000000000002";
const SWAPPINESS: &str = "sysctl:vm.swappiness";
const INTERVAL: &str = "sysctl:vm.stat_interval";

struct Bench {
    kernel: FakeKernel,
    store: MemoryStore,
    countdown: Countdown,
}

fn opened(for_some_time: bool) -> Opened {
    Opened {
        id: String::new(),
        boot: BOOT.to_owned(),
        pid: 4242,
        start: 77,
        version: "0.1.0".to_owned(),
        real_ns: 0,
        command: "onbeat tune apply".to_owned(),
        cpus: "2-3".to_owned(),
        undo_at_boot_ns: for_some_time.then_some(1),
        confirmable: false,
        with_process: false,
    }
}

fn set(key: &str, value: &str) -> PlannedChange {
    PlannedChange::new(Setting::new(key.parse().unwrap(), value), "", "")
}

impl Bench {
    fn new() -> Bench {
        let countdown = Countdown::default();
        let mut store = MemoryStore::default();
        store.countdown = countdown.clone();
        Bench { kernel: FakeKernel::boot(&DEBIAN_6_12_RT), store, countdown }
    }

    /// Runs a function that is interrupted after some steps of kernel and disk; none if it was.
    fn run<T>(
        &mut self,
        crash: Option<u32>,
        what: impl FnOnce(&mut Crashing, &mut MemoryStore) -> T,
    ) -> Option<T> {
        self.countdown.set(crash);
        let mut kernel = Crashing { kernel: &mut self.kernel, countdown: self.countdown.clone(), writes: 0 };
        let store = &mut self.store;
        let done = catch_unwind(AssertUnwindSafe(|| what(&mut kernel, store)));
        self.countdown.set(None);
        match done {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Crash>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    fn apply_until(&mut self, changes: &[PlannedChange], for_some_time: bool, crash: Option<u32>) {
        let plan = PlanDocument::new(BOOT, changes.to_vec(), Vec::new());
        let options = ApplyOptions { keep_going: true, stop: &|| false, started: &|_| Ok(()) };
        self.run(crash, |kernel, store| apply(kernel, store, opened(for_some_time), plan, &options).unwrap());
    }

    fn apply(&mut self, changes: &[PlannedChange]) {
        self.apply_until(changes, true, None);
    }

    fn undo(&mut self, which: Which) -> Result<UndoResult> {
        undo(&mut self.kernel, &mut self.store, &which, BOOT, false)
    }

    fn expire(&mut self, id: &str) -> Expired {
        expire(&mut self.kernel, &mut self.store, id, BOOT).unwrap()
    }

    fn value(&self, key: &str) -> String {
        self.kernel.read(&key.parse().unwrap()).known().cloned().unwrap()
    }

    fn states(&self, id: &str) -> Vec<ChangeState> {
        let entry = read_entry(&self.store, id).unwrap().unwrap();
        let document = status(&self.kernel, &[entry], BOOT, 0, true);
        document.changes.iter().map(|change| change.state).collect()
    }
}

#[test]
fn an_entry_says_when_it_undoes_itself_and_what_undoing_restored() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10")]);
    let at = |boot_ns| {
        let document = status(&bench.kernel, &entries(&bench.store).unwrap(), BOOT, boot_ns, false);
        (document.changes[0].undone_in_ns, document.changes[0].state)
    };
    assert_eq!(at(0), (Some(1), ChangeState::Applied));
    assert_eq!(at(5), (None, ChangeState::Overdue));
    let undone = bench.undo(Which::Last).unwrap();
    assert_eq!(undone.document.changes[0].before, "60");
}

#[test]
fn unconfirmed_entries_are_undone_without_those_that_stay() {
    let mut bench = Bench::new();
    // It stays: nothing was to end it.
    bench.apply_until(&[set(INTERVAL, "120")], false, None);
    bench.apply(&[set(SWAPPINESS, "10")]);
    let undone = bench.undo(Which::Unconfirmed).unwrap();
    let keys: Vec<String> =
        undone.document.changes.iter().map(|change| change.setting.key.to_string()).collect();
    assert_eq!(keys, [SWAPPINESS]);
    assert_eq!((bench.value(SWAPPINESS).trim(), bench.value(INTERVAL).trim()), ("60", "120"));
    assert!(bench.undo(Which::Unconfirmed).unwrap().document.changes.is_empty());
}

#[test]
fn a_confirmed_entry_is_not_unconfirmed() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10")]);
    let id = entry_ids_of(&bench);
    host::settings::Journal::resume(&mut bench.store, &id)
        .and_then(|mut journal| journal.note(&host::settings::JournalRecord::Confirmed))
        .unwrap();
    assert!(bench.undo(Which::Unconfirmed).unwrap().document.changes.is_empty());
    assert_eq!(bench.value(SWAPPINESS).trim(), "10");
}

fn entry_ids_of(bench: &Bench) -> String {
    entries(&bench.store).unwrap()[0].opened.id.clone()
}

/// Settings that isolate two CPUs on the machine of the bench.
fn isolation() -> Vec<PlannedChange> {
    let file = |(path, text): (&str, &str)| {
        (format!("/sys/fs/cgroup/{path}"), host::access::Access::File(text.as_bytes().to_vec()))
    };
    let files = [("cgroup.controllers", "cpuset cpu\n"), ("cpuset.cpus.isolated", "\n")];
    let files = host::MachineFiles::in_memory(files.into_iter().map(file).collect());
    let groups = facts::groups::read_groups(&files).known().unwrap().clone();
    let cpus = CpuSet::parse("2-3").unwrap();
    let settings = rules::partition::of_groups(&groups, &cpus, &CpuSet::default()).unwrap();
    settings.into_iter().map(|setting| PlannedChange::new(setting, "", "")).collect()
}

#[test]
fn the_mask_of_workqueues_comes_back_where_it_was_set_while_cpus_were_isolated() {
    const WORKQUEUES: &str = "sysfs:devices/virtual/workqueue/cpumask";
    let mut bench = Bench::new();
    let before = bench.value(WORKQUEUES);
    bench.apply(&isolation());
    let isolated = bench.value(WORKQUEUES);
    assert_ne!(isolated, before, "the kernel takes isolated CPUs out");
    let only_first = Setting { readback: Comparison::Mask, ..set(WORKQUEUES, "1").setting };
    bench.apply(&[PlannedChange::new(only_first, "", "")]);
    bench.undo(Which::Last).unwrap();
    assert_eq!(bench.value(WORKQUEUES), isolated);
    let undone = bench.undo(Which::All).unwrap();
    assert_eq!(bench.value(WORKQUEUES), before, "{undone:?}");
}

#[test]
fn what_expires_below_a_later_entry_waits_for_that_one() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10"), set(INTERVAL, "120")]);
    bench.apply(&[set(SWAPPINESS, "5")]);
    assert_eq!(bench.expire("1"), Expired::Waits);
    assert_eq!((bench.value(SWAPPINESS), bench.value(INTERVAL)), ("5".to_owned(), "1".to_owned()));
    assert_eq!(bench.states("1"), [ChangeState::Applied, ChangeState::Undone]);
    bench.undo(Which::Last).unwrap();
    assert_eq!(bench.value(SWAPPINESS), "10");
    assert_eq!(bench.expire("1"), Expired::Done);
    assert_eq!(bench.value(SWAPPINESS), "60");
}

#[test]
fn what_a_killed_command_left_below_a_later_entry_waits_too() {
    let mut bench = Bench::new();
    bench.apply_until(&[set(SWAPPINESS, "10"), set(INTERVAL, "120")], false, Some(9));
    let key: Key = SWAPPINESS.parse().unwrap();
    assert_eq!((bench.value(SWAPPINESS), bench.states("1").len()), ("10".to_owned(), 1));
    bench.kernel.refuse(&key, Some(libc_eio()));
    undo_abandoned(&mut bench.kernel, &mut bench.store, BOOT).unwrap();
    bench.kernel.refuse(&key, None);
    bench.apply(&[set(SWAPPINESS, "5")]);
    undo_abandoned(&mut bench.kernel, &mut bench.store, BOOT).unwrap();
    assert_eq!(bench.value(SWAPPINESS), "5");
    let undone = bench.undo(Which::All).unwrap();
    assert!(!undone.left_something(), "{:?}", undone.document.changes);
    assert_eq!(bench.value(SWAPPINESS), "60");
}

/// EIO.
fn libc_eio() -> i32 {
    5
}

#[test]
fn an_undo_that_was_cut_short_is_finished_after_what_was_set_over_it() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10")]);
    // The decision is on the disk, but the value is not written.
    for crash in 0..12 {
        let mut bench = Bench { kernel: bench.kernel.clone(), store: bench.store.clone(), ..Bench::new() };
        bench.store.countdown = bench.countdown.clone();
        bench.run(Some(crash), |kernel, store| undo(kernel, store, &Which::Last, BOOT, false).map(drop));
        bench.apply(&[set(SWAPPINESS, "5")]);
        let undone = bench.undo(Which::All).unwrap();
        assert!(!undone.left_something(), "{crash}: {:?}", undone.document.changes);
        assert_eq!(bench.value(SWAPPINESS), "60", "{crash}");
    }
}

#[test]
fn an_entry_below_another_is_not_undone_by_its_id() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10")]);
    bench.apply(&[set(INTERVAL, "120")]);
    bench.apply(&[set(SWAPPINESS, "5")]);
    let refused = bench.undo(Which::Id("1".to_owned())).unwrap_err();
    assert_eq!(refused.exit, Exit::Usage);
    assert!(
        refused.message.contains(
            "entry 3 has changed sysctl:vm.swappiness after entry 1: run `onbeat tune undo 3` first"
        )
    );
    bench.undo(Which::Id("2".to_owned())).unwrap();
    bench.undo(Which::Id("3".to_owned())).unwrap();
    bench.undo(Which::Id("1".to_owned())).unwrap();
    assert_eq!((bench.value(SWAPPINESS), bench.value(INTERVAL)), ("60".to_owned(), "1".to_owned()));
    assert_eq!(bench.undo(Which::Id("9".to_owned())).unwrap_err().exit, Exit::Usage);
}

/// A key of a kind unknown to this version, in an entry of this boot or another.
#[test]
fn records_that_are_not_understood_are_named() {
    for (boot, is_named) in [(BOOT, true), (OTHER_BOOT, false)] {
        let mut bench = Bench::new();
        bench.apply(&[set(SWAPPINESS, "10"), set(INTERVAL, "120")]);
        let text = String::from_utf8(bench.store.read("1.jsonl").unwrap()).unwrap();
        let text = text.replace(INTERVAL, "novelty:vm.stat_interval").replace(BOOT, boot);
        bench.store.put("1.jsonl", text.as_bytes());
        let document = status(&bench.kernel, &entries(&bench.store).unwrap(), BOOT, 0, false);
        assert_eq!(document.left_out.len(), usize::from(is_named));
        for which in [Which::Last, Which::All, Which::Id("1".to_owned())] {
            let undone = bench.undo(which).unwrap();
            assert_eq!(undone.left_something(), is_named, "{undone:?}");
            let named = undone.document.left_out.iter().map(|left| left.why.as_str()).collect::<Vec<_>>();
            let expected = ["1 of its records is not understood by this version"];
            assert_eq!(named, if is_named { &expected[..] } else { &[] });
        }
        assert_eq!(bench.value(SWAPPINESS), if is_named { "60" } else { "10" });
        remove_spent(&mut bench.store, BOOT).unwrap();
        assert_eq!(bench.store.names().unwrap(), ["1.jsonl"]);
    }
}

#[test]
fn an_entry_that_another_version_began_does_not_outlive_its_boot() {
    let mut bench = Bench::new();
    let begun = |boot| format!("{{\"fact\":\"opened\",\"id\":\"1\",\"boot\":\"{boot}\",\"pid\":\"x\"}}\n");
    bench.store.put("1.jsonl", begun(OTHER_BOOT).as_bytes());
    assert!(!bench.undo(Which::All).unwrap().left_something());
    bench.store.put("1.jsonl", begun(BOOT).as_bytes());
    assert!(bench.undo(Which::All).unwrap().left_something());
    bench.store.put("1.jsonl", b"\x7fELF\n");
    let refused = bench.undo(Which::All).unwrap_err();
    assert!(refused.message.contains("entry 1 of the journal") && refused.message.contains("1.jsonl away"));
}

#[test]
fn the_list_of_what_was_done_has_a_bound() {
    let mut bench = Bench::new();
    bench.apply(&[set(SWAPPINESS, "10")]);
    bench.apply(&[set(INTERVAL, "120")]);
    bench.kernel.write(&INTERVAL.parse().unwrap(), Some("7")).unwrap();
    bench.undo(Which::Id("2".to_owned())).unwrap();
    for _ in 0..110 {
        bench.apply(&[set("sysctl:kernel.timer_migration", "0")]);
        bench.undo(Which::Last).unwrap();
    }
    let ids = entry_ids(&bench.store).unwrap();
    // One in force, one kept for another program, a hundred undone ones, and the last.
    assert_eq!((ids.len(), ids[0].as_str(), ids[1].as_str(), ids[2].as_str()), (103, "1", "2", "12"));
    assert_eq!(ids.last().unwrap(), "112");
    bench.undo(Which::All).unwrap();
    assert_eq!((bench.value(SWAPPINESS), bench.value(INTERVAL)), ("60".to_owned(), "7".to_owned()));
    // After the next boot all of them are spent.
    remove_spent(&mut bench.store, OTHER_BOOT).unwrap();
    assert_eq!(entry_ids(&bench.store).unwrap().len(), 100);
    assert_eq!(entry_ids(&bench.store).unwrap().last().unwrap(), "112");
}

#[derive(Clone, Debug)]
enum Act {
    Apply { keys: Vec<(usize, u32)>, crash: Option<u32> },
    Undo { crash: Option<u32> },
    UndoId(prop::sample::Index),
    Expire { entry: prop::sample::Index, crash: Option<u32> },
    Confine { crash: Option<u32> },
    Refuse(usize),
}

const KEYS: [&str; 4] = [SWAPPINESS, INTERVAL, "sysctl:net.core.busy_poll", "hold:cpu_dma_latency"];

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let crash = || prop_oneof![1 => Just(None), 1 => (0..40_u32).prop_map(Some)];
    let index = any::<prop::sample::Index>;
    let keys = prop::collection::vec((0..KEYS.len(), 2..50_u32), 1..4);
    let act = prop_oneof![
        4 => (keys, crash()).prop_map(|(keys, crash)| Act::Apply { keys, crash }),
        2 => crash().prop_map(|crash| Act::Undo { crash }),
        1 => index().prop_map(Act::UndoId),
        2 => (index(), crash()).prop_map(|(entry, crash)| Act::Expire { entry, crash }),
        1 => crash().prop_map(|crash| Act::Confine { crash }),
        1 => (0..KEYS.len()).prop_map(Act::Refuse),
    ];
    prop::collection::vec(act, 1..12)
}

fn act(bench: &mut Bench, act: &Act) {
    let id = |bench: &Bench, at: &prop::sample::Index| {
        let ids = entry_ids(&bench.store).unwrap();
        (!ids.is_empty()).then(|| at.get(&ids).clone())
    };
    match act {
        Act::Apply { keys, crash } => {
            // Like `tune apply` at its start.
            undo_abandoned(&mut bench.kernel, &mut bench.store, BOOT).unwrap();
            let changes: Vec<_> = keys.iter().map(|(at, value)| set(KEYS[*at], &value.to_string())).collect();
            bench.apply_until(&changes, true, *crash);
        }
        Act::Undo { crash } => {
            bench.run(*crash, |kernel, store| drop(undo(kernel, store, &Which::Last, BOOT, false)));
        }
        Act::UndoId(at) => {
            if let Some(id) = id(bench, at) {
                // Refused if a later one has a key of it; empty if it was interrupted at once.
                let _ = bench.undo(Which::Id(id));
            }
        }
        Act::Expire { entry, crash } => {
            if let Some(id) = id(bench, entry) {
                bench.run(*crash, |kernel, store| drop(expire(kernel, store, &id, BOOT)));
            }
        }
        Act::Confine { crash } => {
            bench.run(*crash, |kernel, store| drop(undo_abandoned(kernel, store, BOOT)));
        }
        Act::Refuse(at) => bench.kernel.refuse(&KEYS[*at].parse().unwrap(), Some(libc_eio())),
    }
}

/// After any commands, interrupted at any step, undoing everything restores the initial state,
/// because no other program has changed a value.
#[test]
fn entries_over_each_other_are_undone_to_the_beginning() {
    let config = ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(14),
        ..ProptestConfig::default()
    };
    let law = |acts: Vec<Act>| {
        let mut bench = Bench::new();
        let before = bench.kernel.snapshot();
        for one in &acts {
            act(&mut bench, one);
            let stubborn = matches!(one, Act::Refuse(_));
            for key in KEYS.iter().filter(|_| !stubborn) {
                bench.kernel.refuse(&key.parse().unwrap(), None);
            }
            for id in entry_ids(&bench.store).unwrap() {
                let rest = read_entry(&bench.store, &id).unwrap();
                let has_step = rest.is_some_and(|entry| entry.steps.iter().any(|step| step.is_kept()));
                prop_assert!(!has_step, "entry {} took ours for another's after {:?}", id, one);
            }
        }
        for key in KEYS {
            bench.kernel.refuse(&key.parse().unwrap(), None);
        }
        let undone = bench.undo(Which::All).unwrap();
        prop_assert!(!undone.left_something(), "{:?}", undone.document.changes);
        prop_assert_eq!(&before, &bench.kernel.snapshot());
        Ok(())
    };
    TestRunner::new(config).run(&acts(), law).unwrap_or_else(|error| panic!("{error}"));
}
