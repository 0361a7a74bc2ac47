//! Values that another program changed in between stay, are named, and come back with `--force`.

use super::super::fake::{DEBIAN_6_1_RT, DEBIAN_6_12_RT, FakeMachine, Reaction, Row, Traits};
use super::*;
use model::fact::errno_name;
use model::setting::{Comparison, TaskSetting};

/// Independent keys, each with the value to set and the one that another program sets then.
const APART: &[(&str, &str, &str, Comparison)] = &[
    ("sysctl:vm.stat_interval", "120", "7", Comparison::Number),
    ("sysctl:vm.swappiness", "0", "30", Comparison::Number),
    ("sysctl:kernel.timer_migration", "0", "0", Comparison::Number),
    ("sysctl:kernel.printk", "3 4 1 3", "7 4 1 7", Comparison::Exact),
    ("sysctl:kernel.watchdog_cpumask", "0,1", "0-2", Comparison::List),
    ("sysctl:net.core.busy_poll", "50", "60", Comparison::Number),
    ("sysfs:kernel/mm/transparent_hugepage/enabled", "never", "always", Comparison::Choice),
    ("sysfs:devices/virtual/workqueue/writeback/cpumask", "3", "7", Comparison::Mask),
    ("sysfs:devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "0", "5", Comparison::Number),
    ("irq:26", "0-1", "2", Comparison::Pending),
    ("irq:default", "3", "1", Comparison::Mask),
    ("task:500/50000", "0-1", "2", Comparison::List),
    ("task:502/50200/policy", "fifo 50", "rr 7", Comparison::Exact),
    ("hold:cpu_dma_latency", "20", "0", Comparison::Exact),
];

#[derive(Clone, Debug)]
struct Meddled {
    old_kernel: bool,
    /// Indices of the keys to set, in order.
    set: Vec<usize>,
    /// Indices of the keys that another program changes, among them some that were not set.
    theirs: Vec<usize>,
    crash: Option<u32>,
}

fn meddled() -> impl Strategy<Value = Meddled> {
    let some = || prop::sample::subsequence((0..APART.len()).collect::<Vec<_>>(), 0..=APART.len());
    let crash = prop_oneof![Just(None), (0_u32..120).prop_map(Some)];
    (any::<bool>(), some().prop_shuffle(), some(), crash)
        .prop_map(|(old_kernel, set, theirs, crash)| Meddled { old_kernel, set, theirs, crash })
}

fn setting(at: usize) -> Setting {
    let (key, wanted, _, readback) = APART[at];
    Setting { readback, ..Setting::new(key.parse().unwrap(), wanted) }
}

/// Keys whose writes were interrupted.
fn cut_short(bench: &Bench) -> Vec<Key> {
    let entries = entry_ids(&bench.store).unwrap().into_iter();
    let steps = entries.filter_map(|id| read_entry(&bench.store, &id).unwrap()).flat_map(|entry| entry.steps);
    steps.filter(|step| step.outcome.is_none()).map(|step| step.change.setting.key).collect()
}

fn theirs_stay(case: &Meddled) -> Result<(), TestCaseError> {
    let machine = if case.old_kernel { &DEBIAN_6_1_RT } else { &DEBIAN_6_12_RT };
    let mut bench = Bench::of(FakeKernel::boot(machine));
    let before = bench.kernel.snapshot();
    let plan: Vec<PlannedChange> = case.set.iter().map(|at| planned(setting(*at))).collect();
    bench.countdown.set(case.crash);
    bench.apply(&plan, true);
    bench.countdown.set(None);
    let ours = bench.kernel.clone();
    for at in &case.theirs {
        let (key, _, theirs, _) = APART[*at];
        bench.kernel.write(&key.parse().unwrap(), Some(theirs)).unwrap();
    }
    let now = bench.kernel.clone();
    let cut = cut_short(&bench);
    let restored = bench.undo(false).unwrap();
    let (meddled, after) = (now.snapshot(), bench.kernel.snapshot());
    let mut kept = 0;
    for at in 0..APART.len() {
        let setting = setting(at);
        let text = setting.key.to_string();
        let read = |kernel: &FakeKernel| kernel.read(&setting.key).known().cloned();
        let (is_set, is_theirs) = (case.set.contains(&at), read(&now) != read(&ours));
        let state = restored.iter().find(|one| one.change.setting.key == setting.key).map(|one| one.state);
        if cut.contains(&setting.key) {
            continue;
        }
        let reverted = before.get(&text) == meddled.get(&text);
        match (is_theirs, state) {
            (true, Some(state)) if !reverted => {
                kept += 1;
                prop_assert_eq!(state, ChangeState::Kept, "{}", text);
                prop_assert_eq!(read(&bench.kernel), read(&now), "{}", text);
            }
            (true, _) => prop_assert_eq!(read(&bench.kernel), read(&now), "{}", text),
            (false, state) => {
                prop_assert_eq!(before.get(&text), after.get(&text), "{}", text);
                prop_assert!(state.is_none_or(|state| state == ChangeState::Undone), "{} {:?}", text, state);
                prop_assert!(is_set || state.is_none());
            }
        }
    }
    prop_assert!(restored.iter().filter(|one| one.state == ChangeState::Kept).all(|one| !one.why.is_empty()));
    bench.writes = 0;
    bench.undo(false).unwrap();
    prop_assert_eq!(bench.writes, 0, "what is kept is left alone");
    let forced = bench.undo(true).unwrap();
    prop_assert!(forced.len() >= kept);
    let after = bench.kernel.snapshot();
    for one in &forced {
        let text = one.change.setting.key.to_string();
        prop_assert_eq!(one.state, ChangeState::Undone);
        prop_assert_eq!(before.get(&text), after.get(&text), "{}", text);
    }
    Ok(())
}

#[test]
fn what_another_program_has_changed_stays() {
    runner(1_000).run(&meddled(), |case| theirs_stay(&case)).unwrap_or_else(|error| panic!("{error}"));
}

fn isolated(bench: &mut Bench) {
    let choices = bench.kernel.choices();
    let steps = [
        ("cgroup:cgroup.subtree_control", "+cpuset"),
        ("cgroup:onbeat/", "present"),
        ("cgroup:onbeat/cpuset.cpus", "2-3"),
        ("cgroup:onbeat/cpuset.cpus.partition", "isolated"),
    ];
    let plan = steps.map(|(key, wanted)| {
        let key: Key = key.parse().unwrap();
        let choice = choices.iter().find(|choice| choice.setting.key == key).unwrap();
        planned(Setting { wanted: wanted.to_owned(), ..choice.setting.clone() })
    });
    bench.apply(&plan, false).unwrap().unwrap();
    assert_eq!(value(bench, "cgroup:onbeat/cpuset.cpus.partition"), "isolated");
}

fn value(bench: &Bench, key: &str) -> String {
    bench.kernel.read(&key.parse().unwrap()).known().cloned().unwrap_or_default()
}

fn set(bench: &mut Bench, key: &str, value: &str) {
    bench.kernel.write(&key.parse().unwrap(), Some(value)).unwrap();
}

fn states(restored: &[Restored]) -> Vec<ChangeState> {
    restored.iter().map(|one| one.state).collect()
}

#[test]
fn a_partition_that_a_neighbour_made_invalid_is_still_ours() {
    for machine in [&DEBIAN_6_1_RT, &DEBIAN_6_12_RT] {
        let mut bench = Bench::of(FakeKernel::boot(machine));
        let before = bench.kernel.snapshot();
        isolated(&mut bench);
        set(&mut bench, "cgroup:system.slice/cpuset.cpus", "0-3");
        assert!(value(&bench, "cgroup:onbeat/cpuset.cpus.partition").contains("invalid"));
        let restored = bench.undo(false).unwrap();
        let (partition, group) = (&restored[0], &restored[2]);
        assert_eq!((partition.state, group.state), (ChangeState::Undone, ChangeState::Undone));
        // The other group's present value is its own, and so is the controller.
        let after = bench.kernel.snapshot();
        assert_eq!(value(&bench, "cgroup:system.slice/cpuset.cpus"), "0-3");
        let kept = restored.iter().find(|one| one.state == ChangeState::Kept);
        assert_eq!(kept.is_some(), machine.traits.exclusive, "{restored:?}");
        assert!(kept.is_none_or(|kept| kept.why.contains("system.slice/cpuset.cpus")));
        let differ = difference(&before, &after);
        assert!(differ.iter().all(|one| one.starts_with("cgroup:")), "{differ:?}");
        assert!(differ.len() <= 2, "{differ:?}");
    }
}

#[test]
fn words_of_a_list_that_another_has_changed_stay() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let key = "cgroup:cgroup.subtree_control";
    let listed =
        Setting { readback: Comparison::Listed, ..Setting::new(key.parse().unwrap(), "+cpuset -io") };
    bench.apply(&[planned(listed)], false).unwrap().unwrap();
    set(&mut bench, key, "+hugetlb -cpu");
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone]);
    assert_eq!(value(&bench, key), "io memory hugetlb pids");
}

#[test]
fn a_partition_that_somebody_took_back_leaves_no_masks() {
    for machine in [&DEBIAN_6_1_RT, &DEBIAN_6_12_RT] {
        let mut bench = Bench::of(FakeKernel::boot(machine));
        let before = bench.kernel.snapshot();
        isolated(&mut bench);
        set(&mut bench, "cgroup:onbeat/cpuset.cpus.partition", "member");
        bench.undo(false).unwrap();
        assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
    }
}

#[test]
fn a_partition_that_was_invalid_before_is_so_again() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_1_RT));
    bench.kernel.write(&"cgroup:onbeat/".parse().unwrap(), Some("present")).unwrap();
    set(&mut bench, "cgroup:onbeat/cpuset.cpus", "1-2");
    set(&mut bench, "cgroup:onbeat/cpuset.cpus.partition", "isolated");
    let before = bench.kernel.snapshot();
    assert!(before["cgroup:onbeat/ is"].contains("invalid"));
    bench.apply(&[change("cgroup:onbeat/cpuset.cpus.partition", "member")], false).unwrap().unwrap();
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone]);
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}

#[test]
fn a_thread_whose_mask_another_has_set_keeps_it() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let before = bench.kernel.snapshot();
    isolated(&mut bench);
    set(&mut bench, "task:11/1100", "1");
    bench.kernel.start_thread(900, 500);
    bench.kernel.end_thread(12);
    let restored = bench.undo(false).unwrap();
    assert!(states(&restored).iter().all(|state| *state == ChangeState::Undone), "{restored:?}");
    assert_eq!(value(&bench, "task:11/1100"), "1");
    let gone_and_new = ["task:11/", "task:12/", "task:900/"];
    let differ = difference(&before, &bench.kernel.snapshot());
    assert!(differ.iter().all(|one| gone_and_new.iter().any(|key| one.starts_with(key))), "{differ:?}");
}

#[test]
fn a_stranger_is_moved_out_of_a_group_of_ours() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let before = bench.kernel.snapshot();
    isolated(&mut bench);
    set(&mut bench, "task:1/100/group", "/onbeat");
    bench.undo(false).unwrap();
    assert_eq!(bench.live(), Vec::<String>::new());
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}

#[test]
fn a_group_that_cannot_be_removed_is_left_and_tried_again() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let before = bench.kernel.snapshot();
    isolated(&mut bench);
    set(&mut bench, "cgroup:onbeat/theirs/", "present");
    let restored = bench.undo(false).unwrap();
    let left: Vec<&Restored> = restored.iter().filter(|one| one.state == ChangeState::Refused).collect();
    assert_eq!(left[0].change.setting.key.to_string(), "cgroup:onbeat/");
    assert!(left[0].why.contains(&errno_name(libc::EBUSY)), "{}", left[0].why);
    // Keys that the group depends on are not changed before it.
    assert_eq!(left[1].change.setting.key.to_string(), "cgroup:cgroup.subtree_control");
    bench.kernel.write(&"cgroup:onbeat/theirs/".parse().unwrap(), None).unwrap();
    bench.undo(false).unwrap();
    assert_eq!(bench.live(), Vec::<String>::new());
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}

#[test]
fn a_switch_comes_back_with_its_parts_after_somebody_has_looked() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let choices = bench.kernel.choices();
    let of = |key: &str| {
        let key: Key = key.parse().unwrap();
        choices.iter().find(|choice| choice.setting.key == key).unwrap().setting.clone()
    };
    let off = planned(Setting { wanted: "0".to_owned(), ..of("sysctl:kernel.watchdog") });
    bench.apply(std::slice::from_ref(&off), false).unwrap().unwrap();
    // The writer itself has not read it: writing 1 now switches it on.
    assert_eq!(bench.kernel.snapshot()["sysctl:kernel.soft_watchdog"], "1");
    bench.kernel.look();
    assert_eq!(bench.kernel.snapshot()["sysctl:kernel.soft_watchdog"], "0");
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone]);
    assert_eq!(value(&bench, "sysctl:kernel.watchdog"), "1");
    assert_eq!(value(&bench, "sysctl:kernel.soft_watchdog"), "1");
}

#[test]
fn a_key_changed_twice_goes_back_through_its_values() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let key = "sysctl:vm.swappiness";
    bench.apply(&[change(key, "10"), change(key, "0")], false).unwrap().unwrap();
    bench.apply(&[change(key, "5")], false).unwrap().unwrap();
    bench.kernel.refuse(&key.parse().unwrap(), Some(libc::EIO));
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Refused; 3]);
    bench.kernel.refuse(&key.parse().unwrap(), None);
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone; 3]);
    assert_eq!(value(&bench, key), "60");
}

#[test]
fn what_was_refused_and_has_changed_since_is_theirs() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let key = "sysctl:vm.swappiness";
    bench.apply(&[change(key, "10")], false).unwrap().unwrap();
    bench.kernel.refuse(&key.parse().unwrap(), Some(libc::EIO));
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Refused]);
    bench.kernel.refuse(&key.parse().unwrap(), None);
    set(&mut bench, key, "99");
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Kept]);
    assert_eq!(value(&bench, key), "99");
    assert_eq!(states(&bench.undo(true).unwrap()), [ChangeState::Undone]);
    assert_eq!(value(&bench, key), "60");
}

#[test]
fn an_old_value_that_waits_for_its_partner_is_written_again() {
    const KEY: &str = "sysctl:a.level";
    const ROWS: &[Row] = &[
        Row {
            key: KEY,
            value: "5",
            readback: Comparison::Number,
            reactions: &[Reaction::AtMost("sysctl:a.ceiling"), Reaction::SetsAll(&["sysctl:a.ceiling"])],
            tries: &["1"],
        },
        Row { key: "sysctl:a.ceiling", value: "9", readback: Comparison::Number, reactions: &[], tries: &[] },
    ];
    let traits = Traits { cpus: 1, exclusive: false, remembers_masks: false, workqueues_follow: None };
    let machine = FakeMachine { traits, files: ROWS, irqs: &[], threads: &[], groups: &[] };
    let mut bench = Bench::of(FakeKernel::boot(&machine));
    let before = bench.kernel.snapshot();
    let setting = bench.kernel.choices()[0].setting.clone();
    let plan = [planned(Setting { wanted: "1".to_owned(), ..setting })];
    bench.apply(&plan, false).unwrap().unwrap();
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone]);
    assert_eq!(difference(&before, &bench.kernel.snapshot()), Vec::<String>::new());
}

#[test]
fn a_thread_that_has_ended_took_its_change_along() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let key = Key::Task { tid: 502, start: 50_200, what: TaskSetting::Policy };
    let plan = [planned(Setting::new(key.clone(), "fifo 50")), planned(Setting::new(key, "fifo 60"))];
    bench.apply(&plan[..1], false).unwrap().unwrap();
    bench.kernel.end_thread(502);
    bench.kernel.start_thread(502, 500);
    assert_eq!(states(&bench.undo(false).unwrap()), [ChangeState::Undone]);
    assert_eq!(bench.kernel.snapshot()["task:502/1000502/policy"], "other 0");
    let made = bench.apply(&plan[1..], false).unwrap().unwrap();
    assert_eq!(made, [Applied::Gone]);
}

#[test]
fn what_cannot_be_moved_and_what_moves_later_are_told_apart() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let pending = |key: &str, wanted: &str| {
        planned(Setting {
            readback: Comparison::Pending,
            optional: true,
            ..Setting::new(key.parse().unwrap(), wanted)
        })
    };
    let plan = [
        pending("irq:25", "2-3"),
        pending("irq:26", "2-3"),
        pending("irq:27", "0-1"),
        pending("irq:99", "0"),
    ];
    let made = bench.apply(&plan, false).unwrap().unwrap();
    assert_eq!(made[0], Applied::Done(ChangeState::Pending));
    assert_eq!(made[1], Applied::Done(ChangeState::Applied));
    assert!(matches!(&made[2], Applied::Refused(why) if why.contains("EPERM")), "{made:?}");
    assert!(matches!(&made[3], Applied::Refused(why) if why.contains("does not exist")), "{made:?}");
    bench.kernel.interrupt(25);
    assert_eq!(bench.kernel.effective_affinity(25).known().unwrap(), "2");
    assert_eq!(states(&bench.undo(false).unwrap())[..2], [ChangeState::Undone; 2]);
    assert_eq!(value(&bench, "irq:25"), "0-3");
}

/// An announced write that was never made has no effect: its partner's value is not ours.
#[test]
fn a_write_that_was_not_made_has_no_claim_on_its_partner() {
    let mut unmade = 0;
    for crash in 0..12 {
        let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
        let (before, choices) = (bench.kernel.snapshot(), bench.kernel.choices());
        let key: Key = "sysctl:vm.dirty_bytes".parse().unwrap();
        let choice = choices.iter().find(|choice| choice.setting.key == key).unwrap();
        let wanted = Setting { wanted: "1048576".to_owned(), ..choice.setting.clone() };
        bench.countdown.set(Some(crash));
        bench.apply(&[planned(wanted)], false);
        bench.countdown.set(None);
        if bench.live().is_empty() || difference(&before, &bench.kernel.snapshot()) != Vec::<String>::new() {
            continue;
        }
        unmade += 1;
        set(&mut bench, "sysctl:vm.dirty_ratio", "33");
        bench.undo(false).unwrap();
        assert_eq!(value(&bench, "sysctl:vm.dirty_ratio"), "33", "{crash}");
    }
    assert!(unmade > 0);
}

/// Of two keys that exclude each other, the other program has set the one that we have not.
#[test]
fn a_partner_that_another_has_set_is_named() {
    let mut bench = Bench::of(FakeKernel::boot(&DEBIAN_6_12_RT));
    let key: Key = "sysctl:vm.dirty_bytes".parse().unwrap();
    let choice = bench.kernel.choices().into_iter().find(|choice| choice.setting.key == key).unwrap();
    let ours = planned(Setting { wanted: "1048576".to_owned(), ..choice.setting });
    bench.apply(&[ours], false).unwrap().unwrap();
    set(&mut bench, "sysctl:vm.dirty_ratio", "33");
    let restored = bench.undo(false).unwrap();
    assert_eq!(states(&restored), [ChangeState::Kept]);
    assert!(restored[0].why.contains("sysctl:vm.dirty_ratio is now 33"), "{}", restored[0].why);
    assert_eq!(value(&bench, "sysctl:vm.dirty_ratio"), "33");
    assert_eq!(states(&bench.undo(true).unwrap()), [ChangeState::Undone]);
    assert_eq!(value(&bench, "sysctl:vm.dirty_ratio"), "20");
}

/// Another program has taken CPUs from a group: the threads in it get theirs back as far as the
/// group has them.
#[test]
fn a_thread_that_its_group_limits_is_not_left_over() {
    for machine in [&DEBIAN_6_1_RT, &DEBIAN_6_12_RT] {
        let mut bench = Bench::of(FakeKernel::boot(machine));
        isolated(&mut bench);
        set(&mut bench, "cgroup:system.slice/cpuset.cpus", "0-1");
        let restored = bench.undo(false).unwrap();
        let refused = restored.iter().find(|one| one.state == ChangeState::Refused);
        assert_eq!(refused, None);
        assert_eq!(value(&bench, "cgroup:onbeat/"), "");
    }
}
