//! Tests of the writer on fake machines: no test changes the machine that it runs on.

mod disk;
mod law;
mod others;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use model::plan::{ChangeState, PlannedChange};
use model::setting::{Key, Setting};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use super::fake::{Choice, Countdown, Crash, Crashing, FakeKernel, FakeMachine, MemoryStore};
use super::*;

const BOOT: &str = "6c1f1f1e-0000-4000-8000-000000000001";

fn opened() -> Opened {
    Opened {
        id: String::new(),
        boot: BOOT.to_owned(),
        pid: 4242,
        start: 77,
        version: "0.1.0".to_owned(),
        real_ns: 1_760_000_000_000_000_000,
        command: "tune apply".to_owned(),
        cpus: "2-3".to_owned(),
        undo_at_boot_ns: None,
        confirmable: false,
        with_process: false,
    }
}

fn planned(setting: Setting) -> PlannedChange {
    PlannedChange::new(setting, "", "")
}

fn change(key: &str, wanted: &str) -> PlannedChange {
    planned(Setting::new(key.parse().unwrap(), wanted))
}

/// Fake machine with its disk.
struct Bench {
    kernel: FakeKernel,
    store: MemoryStore,
    countdown: Countdown,
    /// Number of writes to the kernel since this was set to 0.
    writes: u32,
}

/// Actions of the program, which may be interrupted at any step.
impl Bench {
    fn of(kernel: FakeKernel) -> Bench {
        let countdown = Countdown::default();
        let mut store = MemoryStore::default();
        store.countdown = countdown.clone();
        Bench { kernel, store, countdown, writes: 0 }
    }

    /// Runs a function that may be interrupted at any step; none if it was.
    fn run<T>(&mut self, what: impl FnOnce(&mut Crashing, &mut MemoryStore) -> T) -> Option<T> {
        let countdown = self.countdown.clone();
        let mut kernel = Crashing { kernel: &mut self.kernel, countdown, writes: 0 };
        let store = &mut self.store;
        let done = catch_unwind(AssertUnwindSafe(|| what(&mut kernel, store)));
        self.writes += kernel.writes;
        match done {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Crash>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Makes the changes as `tune apply` does: the first refusal undoes all of them.
    fn apply(&mut self, changes: &[PlannedChange], keep_going: bool) -> Option<io::Result<Vec<Applied>>> {
        self.run(|kernel, store| applied(kernel, store, changes, keep_going))
    }

    /// Undoes all entries, the last first.
    fn undo(&mut self, force: bool) -> Option<Vec<Restored>> {
        self.run(|kernel, store| undone(kernel, store, force))
    }

    fn live(&self) -> Vec<String> {
        let ids = entry_ids(&self.store).unwrap().into_iter();
        ids.filter(|id| read_entry(&self.store, id).unwrap().is_some_and(|entry| entry.is_live())).collect()
    }
}

fn applied(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    changes: &[PlannedChange],
    keep_going: bool,
) -> io::Result<Vec<Applied>> {
    let mut entry = Entry::begin(kernel, store, opened())?;
    let id = entry.id().to_owned();
    let mut all = Vec::new();
    let mut failed = Ok(());
    for change in changes {
        match entry.make(change) {
            Ok(made) => all.push(made),
            Err(error) => failed = Err(error),
        }
        let refused = matches!(all.last(), Some(Applied::Refused(_))) && !change.setting.optional;
        if failed.is_err() || (refused && !keep_going) {
            drop(entry);
            if let Some(entry) = read_entry(store, &id)? {
                let _ = restore(kernel, store, &entry, false);
            }
            return failed.map(|()| all);
        }
    }
    if let Err(error) = entry.complete() {
        if let Some(entry) = read_entry(store, &id)? {
            let _ = restore(kernel, store, &entry, false);
        }
        return Err(error);
    }
    Ok(all)
}

fn undone(kernel: &mut dyn Kernel, store: &mut dyn Store, force: bool) -> Vec<Restored> {
    let ids = entry_ids(store).unwrap();
    let entries: Vec<EntryRecords> =
        ids.iter().rev().filter_map(|id| read_entry(store, id).unwrap()).collect();
    restore_all(kernel, store, &entries.iter().collect::<Vec<_>>(), &[], force).0.concat()
}

/// Differences between two snapshots, as text.
fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differ.map(|key| format!("{key}: {:?} -> {:?}", before.get(key), after.get(key))).collect()
}

/// Runner with a fixed seed; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` override seed and number.
fn runner(cases: u32) -> TestRunner {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(14);
    }
    config.cases = config.cases.max(cases);
    eprintln!("PROPTEST_RNG_SEED={:?}", config.rng_seed);
    TestRunner::new(config)
}
