//! Property of the writer: after any attempts, interrupted anywhere, a complete undo leaves the
//! machine as it was.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::super::fake::{DEBIAN_6_1_RT, DEBIAN_6_12_RT};
use super::*;

/// A plan and the events around it, as numbers whose meaning depends on the machine.
#[derive(Clone, Debug)]
struct Case {
    old_kernel: bool,
    picks: Vec<(prop::sample::Index, prop::sample::Index)>,
    isolation: Isolation,
    /// Positions of the isolation's steps among the others.
    places: Vec<prop::sample::Index>,
    keep_going: bool,
    /// Number of kernel and disk steps after which the process ends; then its undo, twice.
    crashes: [Option<u32>; 3],
    power_loss: bool,
    /// The changes from this one on form a second entry.
    split: Option<prop::sample::Index>,
    /// This key refuses all writes during the undo, except the last one.
    stubborn: Option<prop::sample::Index>,
    /// Another program reads everything in between.
    looked_at: bool,
    /// Number of bytes of a line that are written, or on the disk.
    torn: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isolation {
    None,
    Nested,
    Direct,
}

const NESTED: &[(&str, &str)] = &[
    ("cgroup:cgroup.subtree_control", "+cpuset"),
    ("cgroup:onbeat/", "present"),
    ("cgroup:onbeat/cpuset.cpus.exclusive", "2-3"),
    ("cgroup:onbeat/cgroup.subtree_control", "+cpuset"),
    ("cgroup:onbeat/rt/", "present"),
    ("cgroup:onbeat/rt/cpuset.cpus.exclusive", "2-3"),
    ("cgroup:onbeat/rt/cpuset.cpus.partition", "isolated"),
];

const DIRECT: &[(&str, &str)] = &[
    ("cgroup:cgroup.subtree_control", "+cpuset"),
    ("cgroup:onbeat/", "present"),
    ("cgroup:onbeat/cpuset.cpus", "2-3"),
    ("cgroup:onbeat/cpuset.cpus.partition", "isolated"),
    ("cgroup:onbeat/cgroup.subtree_control", "+cpuset"),
    ("cgroup:onbeat/rt/", "present"),
];

fn cases() -> impl Strategy<Value = Case> {
    let index = any::<prop::sample::Index>;
    let isolation = prop_oneof![Just(Isolation::None), Just(Isolation::Nested), Just(Isolation::Direct)];
    let crash = |within: u32| prop_oneof![1 => Just(None), 4 => (0..within).prop_map(Some)];
    (
        any::<bool>(),
        prop::collection::vec((index(), index()), 0..8),
        isolation,
        prop::collection::vec(index(), 7),
        prop::bool::weighted(0.7),
        (crash(80), crash(60), crash(60)),
        prop::bool::weighted(0.15),
        (prop::option::of(index()), prop::option::weighted(0.3, index()), any::<bool>()),
        0_usize..2000,
    )
        .prop_map(
            |(old_kernel, picks, isolation, places, keep_going, crashes, power_loss, more, torn)| Case {
                old_kernel,
                picks,
                isolation,
                places,
                keep_going,
                crashes: [crashes.0, crashes.1, crashes.2],
                power_loss,
                split: more.0,
                stubborn: more.1,
                looked_at: more.2,
                torn,
            },
        )
}

impl Case {
    fn machine<'a>(&self, machines: &'a Machines) -> &'a Booted {
        if self.old_kernel { &machines.old } else { &machines.new }
    }

    fn plan(&self, choices: &[Choice]) -> Vec<PlannedChange> {
        let with = |choice: &Choice, wanted: &str| {
            planned(Setting { wanted: wanted.to_owned(), ..choice.setting.clone() })
        };
        let mut plan: Vec<PlannedChange> = Vec::new();
        for (choice, value) in &self.picks {
            let choice = choice.get(choices);
            plan.push(with(choice, &choice.values[value.index(choice.values.len())]));
        }
        let steps = match self.isolation {
            Isolation::None => &[],
            Isolation::Nested => NESTED,
            Isolation::Direct => DIRECT,
        };
        let mut at = 0;
        for ((key, wanted), place) in steps.iter().zip(&self.places) {
            let key: Key = key.parse().unwrap();
            // In order, with others in between.
            at += place.index(plan.len() + 1 - at);
            if let Some(choice) = choices.iter().find(|choice| choice.setting.key == key) {
                plan.insert(at, with(choice, wanted));
                at += 1;
            }
        }
        plan
    }
}

/// Machine after its boot.
struct Booted {
    kernel: FakeKernel,
    choices: Vec<Choice>,
    original: BTreeMap<String, String>,
}

impl Booted {
    fn new(machine: &FakeMachine) -> Booted {
        let kernel = FakeKernel::boot(machine);
        Booted { choices: kernel.choices(), original: kernel.snapshot(), kernel }
    }
}

struct Machines {
    old: Booted,
    new: Booted,
}

impl Machines {
    fn new() -> Machines {
        Machines { old: Booted::new(&DEBIAN_6_1_RT), new: Booted::new(&DEBIAN_6_12_RT) }
    }
}

impl Case {
    /// Error with the plan as text, and the journal.
    fn told(&self, error: &TestCaseError, machine: &Booted, bench: &Bench) -> TestCaseError {
        let plan = self.plan(&machine.choices);
        let stubborn = self.stubborn.map(|index| index.get(&plan_keys(&plan)).to_string());
        let mut told = format!("{error}\ncrashes {:?}, stubborn {stubborn:?}, plan:", self.crashes);
        for change in &plan {
            told += &format!("\n    {} = {:?}", change.setting.key, change.setting.wanted);
        }
        for name in bench.store.names().unwrap() {
            let text = bench.store.read(&name).unwrap();
            told += &format!("\n{name}:\n{}", String::from_utf8_lossy(&text));
        }
        TestCaseError::fail(told)
    }
}

/// Counts of events, so that a property without cases is noticed.
#[derive(Default)]
struct Seen {
    crashed: Cell<u32>,
    crashed_again: Cell<u32>,
    power_lost: Cell<u32>,
    isolated: Cell<u32>,
    changed: Cell<u32>,
}

fn more(count: &Cell<u32>) {
    count.set(count.get() + 1);
}

fn holds(case: &Case, machine: &Booted, bench: &mut Bench, seen: &Seen) -> Result<(), TestCaseError> {
    let plan = case.plan(&machine.choices);
    bench.store.torn = case.torn;
    bench.countdown.set(case.crashes[0]);
    let (first, second) = plan.split_at(case.split.map_or(plan.len(), |split| split.index(plan.len() + 1)));
    let mut ended = bench.apply(first, case.keep_going).is_none();
    if !second.is_empty() {
        ended |= bench.apply(second, case.keep_going).is_none();
    }
    bench.countdown.set(None);
    let now = bench.kernel.snapshot();
    if now != machine.original {
        more(&seen.changed);
    }
    if now.values().any(|value| value == "isolated") {
        more(&seen.isolated);
    }
    if ended {
        more(&seen.crashed);
    }
    if ended && case.power_loss {
        more(&seen.power_lost);
        return after_power_loss(bench, case, machine);
    }
    // Reading a switch that is off turns off its parts; the other machine starts in that state.
    if case.looked_at && !case.old_kernel {
        bench.kernel.look();
    }
    let stubborn = case.stubborn.map(|index| index.get(&plan_keys(&plan)).clone());
    if let Some(key) = &stubborn {
        bench.kernel.refuse(key, Some(libc::EIO));
    }
    for crash in &case.crashes[1..] {
        bench.countdown.set(*crash);
        if bench.undo(false).is_none() {
            more(&seen.crashed_again);
        }
        bench.countdown.set(None);
    }
    if let Some(key) = &stubborn {
        bench.kernel.refuse(key, None);
    }
    let last = bench.undo(false).unwrap();
    let left: Vec<&Restored> = last.iter().filter(|one| one.state != ChangeState::Undone).collect();
    prop_assert!(left.is_empty(), "left: {left:?}");
    prop_assert_eq!(bench.live(), Vec::<String>::new());
    prop_assert_eq!(difference(&machine.original, &bench.kernel.snapshot()), Vec::<String>::new());
    bench.writes = 0;
    bench.undo(false).unwrap();
    prop_assert_eq!(bench.writes, 0, "what is undone is written again");
    prop_assert!(is_none_kept(bench), "no other program was there");
    Ok(())
}

/// Keys that the plan writes, and their partners.
fn plan_keys(plan: &[PlannedChange]) -> Vec<Key> {
    let of = |change: &PlannedChange| {
        let setting = &change.setting;
        [vec![setting.key.clone()], setting.partners.clone()].concat()
    };
    let keys: Vec<Key> = plan.iter().flat_map(of).collect();
    if keys.is_empty() { vec![Key::IrqDefault] } else { keys }
}

fn is_none_kept(bench: &Bench) -> bool {
    let entries = entry_ids(&bench.store).unwrap().into_iter();
    let mut entries = entries.filter_map(|id| read_entry(&bench.store, &id).unwrap());
    entries.all(|entry| !entry.steps.iter().any(EntryStep::is_kept))
}

/// After a loss of power the machine is in the state of its boot; the journal has what was flushed,
/// and its next entry gets a new ID.
fn after_power_loss(bench: &mut Bench, case: &Case, machine: &Booted) -> Result<(), TestCaseError> {
    let before = bench.store.names().unwrap();
    bench.store.lose_power(case.torn % 500);
    bench.kernel = machine.kernel.clone();
    for id in entry_ids(&bench.store).unwrap() {
        let entry = read_entry(&bench.store, &id).unwrap();
        prop_assert!(entry.is_none_or(|entry| entry.opened.boot == BOOT));
    }
    let there = bench.store.names().unwrap();
    prop_assert!(there.iter().all(|name| before.contains(name)));
    bench.apply(&[change("sysctl:vm.swappiness", "10")], false).unwrap().unwrap();
    let now = bench.store.names().unwrap();
    prop_assert_eq!(now.len(), there.len() + 1);
    Ok(())
}

#[test]
fn undone_to_the_end_a_machine_is_as_it_was() {
    let seen = Seen::default();
    let machines = Machines::new();
    let law = |case: Case| {
        let machine = case.machine(&machines);
        let mut bench = Bench::of(machine.kernel.clone());
        holds(&case, machine, &mut bench, &seen).map_err(|error| case.told(&error, machine, &bench))
    };
    let thousands = if option_env!("ONBEAT_NIGHT").is_some() { 10 } else { 2 };
    runner(thousands * 1_000).run(&cases(), law).unwrap_or_else(|error| panic!("{error}"));
    for (what, count, least) in [
        ("changed", &seen.changed, 600),
        ("ended", &seen.crashed, 400),
        ("ended again", &seen.crashed_again, 200),
        ("without power", &seen.power_lost, 50),
        ("isolated", &seen.isolated, 80),
    ] {
        eprintln!("{what}: {}", count.get());
        assert!(count.get() >= least * thousands, "{what}: only {}", count.get());
    }
}
