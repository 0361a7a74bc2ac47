//! Activity of the holder of a lock while a thread waited for it.
//!
//! The holder is the thread that released the lock. While it waits for a lock itself, the thread
//! that releases that one is followed, and so on. The last of them ran, was runnable while another
//! thread had its CPU, or slept; any time without proof is unknown.
//!
//! A wait for a futex without its call may be one for a lock or for a condition. It counts as one
//! for a lock only if the thread that ended it, or the last in its chain, was not asleep when the
//! wait began: the holder has the lock by then, while the sender of a signal is often still asleep.
//!
//! Sources: kernel/locking/{mutex,rwsem,rtmutex,percpu-rwsem}.c, kernel/futex/waitwake.c,
//! Documentation/locking/rt-mutex-design.rst.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::locks::{LockProof, kind_of, proof};
use super::presence::{Presence, Presences};
use super::tasks::Tasks;
use super::woken::{SleepEnd, stack_of};
use crate::event::{Named, Task, What};
use crate::window::Window;

/// Activity of the thread that a sleeper waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meanwhile {
    /// It had a CPU.
    Ran,
    /// It was runnable while this thread had its CPU.
    Kept(Task),
    /// It slept, but not for a lock that another thread is known to have held.
    Slept,
    /// No event shows its activity.
    Unknown,
}

/// Part of a sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WaitPart {
    pub start: i64,
    pub end: i64,
    /// Thread that `waiter` waited for.
    pub holder: Task,
    pub waiter: Task,
    pub what: Meanwhile,
}

/// Limit of threads in a chain of waits.
const MAX_CHAIN: usize = 8;

/// Wait of a thread for something that another thread holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockWait {
    pub waiter: Task,
    /// Thread that released it.
    pub holder: i32,
    pub proof: LockProof,
    pub from: i64,
    pub to: i64,
}

/// First thread of a chain of waits, with the start of its wait.
#[derive(Clone, Copy)]
struct FirstWaiter {
    pid: i32,
    since: i64,
}

impl From<&LockWait> for FirstWaiter {
    fn from(wait: &LockWait) -> FirstWaiter {
        FirstWaiter { pid: wait.waiter.pid, since: wait.from }
    }
}

/// Threads of a window, as holders of locks.
pub(super) struct Holders<'c, 'w> {
    window: &'w Window,
    ordered: &'c [&'w Named],
    tasks: &'c Tasks,
    presences: Presences<'w>,
    /// Threads for which sleeps waited, by number of the sleep.
    links: RefCell<HashMap<usize, Option<i32>>>,
}

impl<'c, 'w> Holders<'c, 'w> {
    /// Uses all events of a window, in order of time.
    pub(super) fn new(window: &'w Window, ordered: &'c [&'w Named], tasks: &'c Tasks) -> Holders<'c, 'w> {
        let missing = lacks_events(window) || window.begins_late;
        let complete = (!missing).then_some(window.expected_ns.0);
        let presences = Presences::new(ordered, complete);
        Holders { window, ordered, tasks, presences, links: RefCell::default() }
    }

    /// Parts of a wait without gaps; none if it is not known to be for a lock, or if events are
    /// missing.
    pub(super) fn parts(&self, wait: &LockWait) -> Option<Vec<WaitPart>> {
        if lacks_events(self.window) || wait.holder == wait.waiter.pid || !self.is_for_a_lock(wait) {
            return None;
        }
        let changes = |event: &&&Named| {
            use What::{Inherit, Migrate, Switch, Wakeup, Waking};
            matches!(
                event.what,
                Switch { .. } | Waking { .. } | Wakeup { .. } | Migrate { .. } | Inherit { .. }
            )
        };
        let begin = self.ordered.partition_point(|event| event.time.0 <= wait.from);
        let within = self.ordered[begin..].iter().take_while(|event| event.time.0 < wait.to);
        let mut edges: BTreeSet<i64> = within.filter(changes).map(|event| event.time.0).collect();
        edges.insert(wait.to);
        let mut parts: Vec<WaitPart> = Vec::new();
        let mut start = wait.from;
        for end in edges.into_iter().filter(|&end| end > wait.from) {
            let next = self.part(wait, start, end)?;
            match parts.last_mut().filter(|last| WaitPart { start, end, ..**last } == next) {
                Some(last) => last.end = end,
                None => parts.push(next),
            }
            start = end;
        }
        Some(parts)
    }

    fn is_for_a_lock(&self, wait: &LockWait) -> bool {
        match wait.proof {
            LockProof::Plain | LockProof::Inheriting => true,
            LockProof::Open => self.is_at_work(wait.holder, wait.from, wait.into(), 0),
            LockProof::Unseen | LockProof::None => false,
        }
    }

    /// Part for the last thread of the chain at a time; none if no event names it.
    fn part(&self, wait: &LockWait, start: i64, end: i64) -> Option<WaitPart> {
        let (chain, there) = self.chain(wait.holder, start, wait.into(), 0);
        let named = |pid: i32| self.tasks.at(pid, start);
        let holder = named(*chain.last()?)?;
        let before = chain.len().checked_sub(2).and_then(|at| named(chain[at]));
        let waiter = before.filter(|_| chain.len() > 2).unwrap_or(wait.waiter);
        let what = match there {
            Presence::Running => Meanwhile::Ran,
            Presence::Asleep(_) => Meanwhile::Slept,
            Presence::Unknown => Meanwhile::Unknown,
            Presence::Ready(cpu) => {
                let runner = self.presences.current(cpu, start).and_then(named);
                // With inheritance only threads of at least that priority can preempt the holder.
                let lends = holder.pid == wait.holder && wait.proof == LockProof::Inheriting;
                let may = |task: &Task| {
                    !task.idle()
                        && ![holder.pid, wait.waiter.pid].contains(&task.pid)
                        && (!lends || task.not_below(wait.waiter.prio))
                };
                runner.filter(may).map_or(Meanwhile::Unknown, Meanwhile::Kept)
            }
        };
        Some(WaitPart { start, end, holder, waiter, what })
    }

    /// Chain of waits at a time, and the presence of its last thread.
    fn chain(&self, holder: i32, time: i64, of: FirstWaiter, depth: usize) -> (Vec<i32>, Presence) {
        let mut chain = vec![of.pid];
        let mut pid = holder;
        loop {
            chain.push(pid);
            let there = self.presences.at(pid, time);
            let Presence::Asleep(number) = there else { return (chain, there) };
            match self.link(number, of, depth).filter(|next| !chain.contains(next)) {
                Some(next) if chain.len() <= MAX_CHAIN => pid = next,
                _ => return (chain, there),
            }
        }
    }

    fn is_at_work(&self, holder: i32, time: i64, of: FirstWaiter, depth: usize) -> bool {
        let (_, there) = self.chain(holder, time, of, depth);
        matches!(there, Presence::Running | Presence::Ready(_))
    }

    /// Thread for which a sleep waited, if it was for a lock.
    fn link(&self, number: usize, of: FirstWaiter, depth: usize) -> Option<i32> {
        if depth > MAX_CHAIN {
            return None;
        }
        let known = self.links.borrow().get(&number).copied();
        if let Some(known) = known {
            return known;
        }
        // A chain that returns to this sleep ends here.
        self.links.borrow_mut().insert(number, None);
        let sleep = self.presences.sleep(number)?;
        let stack = sleep.switch.map_or(&[][..], |switch| stack_of(self.ordered, switch));
        let kind = kind_of(stack);
        let (slept, woken) = (sleep.switch, sleep.waking);
        let end = SleepEnd::of(self.window, self.ordered, self.tasks, kind, slept, woken);
        let proof = proof(self.window, self.ordered, sleep.switch, stack);
        let since = sleep.switch.map_or(of.since, |switch| switch.time.0);
        let open = matches!(proof, LockProof::Open | LockProof::Unseen);
        let proven = |&holder: &i32| !open || self.is_at_work(holder, since, of, depth + 1);
        let holder = end.holder(proof).filter(proven);
        self.links.borrow_mut().insert(number, holder);
        holder
    }
}

fn lacks_events(window: &Window) -> bool {
    window.events_lost > 0 || window.left_out > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    use super::super::explain_response;
    use super::super::fixture::{adds_up, host, slice_lines, window};
    use super::super::own::Cost;
    use crate::window::Window;
    use model::run::Spike;
    use model::slice::SliceKind;
    use model::units::Nanos;

    const FUTEX: &str = "futex_do_wait,futex_wait,do_futex";
    const RELEASE: &str = "
        -500 1 50 d  switch rt/50/19 S swapper/1/0/120
        1    1 0  dh waking rt/50/19
        8    1 0  d  switch swapper/1/0/120 R rt/50/19\n";

    fn of(before: &str, sleep: &str, lost: u64) -> Spike {
        let window = Window {
            own: false,
            deadline_ns: Some(Nanos(50_000)),
            events_lost: lost,
            calls: [(202, "futex".to_owned())].into(),
            ..window(10_100.0, &format!("{before}\n{RELEASE}{sleep}"))
        };
        let spike = explain_response(&window, &host(), Cost::default());
        adds_up(&spike);
        spike
    }

    fn lines(spike: &Spike) -> Vec<String> {
        let own = ["own", "switch", "syscall", "unexplained"];
        let other = |line: &String| !own.iter().any(|kind| line.starts_with(kind));
        slice_lines(spike).into_iter().filter(other).collect()
    }

    /// `planner` preempts `datalog` for 9 ms, whose earlier state is `before`.
    fn inversion_lines(before: &str, call: &str, stack: &str, lost: u64) -> Vec<String> {
        let woken = if before == ASLEEP { "500 1 60 . waking datalog/70/89" } else { "" };
        let sleep = format!(
            "{call}
             20    1 50 d  switch rt/50/19 S planner/60/59
             20    1 50 d  stack {stack}
             {woken}
             9020  1 60 d  switch planner/60/59 S datalog/70/89
             10000 1 70 .  waking rt/50/19
             10001 1 70 d  switch datalog/70/89 P rt/50/19"
        );
        lines(&of(before, &sleep, lost))
    }

    const PREEMPTED: &str = "-700 1 70 d switch datalog/70/89 P rt/50/19";
    const ASLEEP: &str = "-700 1 70 d switch datalog/70/89 S rt/50/19";
    const MUTEX: &str = "15 1 50 . enter 202 5 128 2";
    const CONDITION: &str = "15 1 50 . enter 202 5 137 0";
    const READERS: &str = "15 1 50 . enter 202 5 137 3";

    #[test]
    fn a_lock_is_told_from_a_condition() {
        let runner = "priority-inversion planner 9000";
        let split = [runner, "blocked futex_do_wait/datalog 980"];
        assert_eq!(inversion_lines(PREEMPTED, MUTEX, FUTEX, 0), split);
        assert_eq!(inversion_lines(PREEMPTED, READERS, FUTEX, 0), split);
        assert_eq!(inversion_lines(PREEMPTED, "", FUTEX, 0), split);
        let whole = ["blocked futex_do_wait/datalog 9980"];
        for (before, call) in [(PREEMPTED, CONDITION), (ASLEEP, CONDITION), (ASLEEP, READERS), (ASLEEP, "")] {
            assert_eq!(inversion_lines(before, call, FUTEX, 0), whole, "{before} {call}");
        }
        // For a mutex it is the holder even if it slept at first.
        let slept = ["blocked futex_do_wait/datalog 480", "priority-inversion planner 8520", split[1]];
        assert_eq!(inversion_lines(ASLEEP, MUTEX, FUTEX, 0), slept);
        // A word that has had other values is not a mutex.
        let counter = format!("10 1 50 . enter 202 5 128 7\n12 1 50 . leave 202\n{MUTEX}");
        assert_eq!(inversion_lines(PREEMPTED, &counter, FUTEX, 0), whole);
    }

    #[test]
    fn locks_of_the_kernel_have_holders_and_pipes_have_none() {
        for stack in [
            "schedule,__mutex_lock.constprop.0,vfs_read",
            "trace_event_raw_event_sched_switch,__schedule,rwsem_down_read_slowpath,down_read",
        ] {
            assert_eq!(
                inversion_lines(PREEMPTED, "", stack, 0)[0],
                "priority-inversion planner 9000",
                "{stack}"
            );
        }
        for stack in [
            "schedule,pipe_read,vfs_read",
            "eventfd_read,vfs_read",
            "wq_sleep,do_mq_timedreceive",
            "do_epoll_wait",
            "futex_do_wait,futex_wait_requeue_pi,do_futex",
            "__down_common,down,vfs_read",
        ] {
            let all = inversion_lines(PREEMPTED, "", stack, 0);
            assert!(all.len() == 1 && all[0].starts_with("blocked") && all[0].ends_with("9980"), "{all:?}");
        }
        // The contention event identifies the lock without the stack.
        let begin = |flags: u32| format!("15 1 50 . spin+ 9 33\n16 1 50 . spin+ 9 {flags}");
        assert_eq!(
            inversion_lines(PREEMPTED, &begin(32), "vfs_read", 0)[0],
            "priority-inversion planner 9000"
        );
        assert_eq!(inversion_lines(PREEMPTED, &begin(8), "vfs_read", 0).len(), 1);
        assert_eq!(
            inversion_lines(PREEMPTED, "15 1 50 . spin+ 9 32\n16 1 50 . spin- 9", "vfs_read", 0).len(),
            1
        );
    }

    #[test]
    fn where_events_are_missing_no_runner_is_named() {
        let whole = ["blocked futex_do_wait/datalog 9980"];
        assert_eq!(inversion_lines(PREEMPTED, MUTEX, FUTEX, 3), whole);
        // A switch to the holder was lost, so the start of its run is unknown.
        let sleep = |more: &str| {
            format!(
                "20    1 50 d  switch rt/50/19 S planner/60/59
                 20    1 50 d  stack {FUTEX}
                 {more}
                 10000 1 70 .  waking rt/50/19
                 10001 1 70 d  switch datalog/70/89 P rt/50/19"
            )
        };
        assert_eq!(lines(&of(PREEMPTED, &sleep(""), 0)), whole);
        // It was queued on another CPU, which no event shows.
        let elsewhere =
            "9020 0 9 d switch x/9/120 P datalog/70/89\n9030 1 60 d switch planner/60/59 S y/8/59";
        assert!(!lines(&of(PREEMPTED, &sleep(elsewhere), 0)).iter().any(|line| line.contains("planner")));
    }

    #[test]
    fn a_holder_that_has_no_event_until_it_runs_was_ready_since_events_are_complete() {
        let runner = "priority-inversion planner 9000";
        assert_eq!(inversion_lines("", "", FUTEX, 0)[0], runner);
        assert_eq!(inversion_lines("-700 0 70 d switch datalog/70/89 P x/9/120", "", FUTEX, 0)[0], runner);
        let moved = "30 0 9 d migrate 70 0 1";
        let whole =
            ["blocked futex_do_wait/datalog 10", runner.replace("9000", "8990").as_str()].map(String::from);
        let sleep = format!(
            "20    1 50 d  switch rt/50/19 S planner/60/59
             20    1 50 d  stack {FUTEX}
             {moved}
             9020  1 60 d  switch planner/60/59 S datalog/70/89
             10000 1 70 .  waking rt/50/19
             10001 1 70 d  switch datalog/70/89 P rt/50/19"
        );
        assert_eq!(lines(&of("", &sleep, 0))[..2], whole);
    }

    #[test]
    fn several_runners_have_a_slice_each_and_an_idle_cpu_none() {
        let sleep = format!(
            "20    1 50 d  switch rt/50/19 S planner/60/59
             20    1 50 d  stack {FUTEX}
             1020  1 60 d  switch planner/60/59 S vision/61/49
             2000  1 61 .  migrate 70 1 0
             2500  0 0  d  switch swapper/0/0/120 R high/62/9
             3500  0 62 d  switch high/62/9 S datalog/70/89
             4000  0 70 .  waking rt/50/19
             4010  1 61 d  switch vision/61/49 P rt/50/19"
        );
        let idle = format!("{PREEMPTED}\n-90 0 0 . idle 1");
        let expected = [
            "priority-inversion planner 1000",
            "priority-inversion vision 980",
            "blocked futex_do_wait/datalog 500",
            "preempted high 1000",
            "blocked futex_do_wait/datalog 500",
        ];
        assert_eq!(lines(&of(&idle, &sleep, 0))[..5], expected);
    }

    /// A chain is followed only through waits that can be for locks as well.
    #[test]
    fn a_chain_of_three_is_followed_and_one_that_ends_in_a_pipe_or_itself_is_not() {
        let before = |stack: &str| {
            format!(
                "-900 1 72 d switch third/72/91 P second/71/90
                 -850 1 71 d switch second/71/90 S first/70/89
                 -850 1 71 d stack {stack}
                 -800 1 70 d switch first/70/89 S third/72/91
                 -800 1 70 d stack {FUTEX}
                 -700 1 72 d switch third/72/91 P rt/50/19"
            )
        };
        let sleep = |second: &str| {
            format!(
                "20   1 50 d  switch rt/50/19 S planner/60/59
                 20   1 50 d  stack {FUTEX}
                 5020 1 60 d  switch planner/60/59 S third/72/91
                 5520 1 72 .  waking {second}
                 5530 1 72 d  switch third/72/91 P second/71/90
                 6000 1 71 .  waking first/70/89
                 6010 1 71 d  switch second/71/90 P first/70/89
                 7000 1 70 .  waking rt/50/19
                 7001 1 70 d  switch first/70/89 P rt/50/19"
            )
        };
        let spike = of(&before(FUTEX), &sleep("second/71/90"), 0);
        let all = ["priority-inversion planner 5000", "blocked futex_do_wait/first 1980"];
        assert_eq!(lines(&spike)[..2], all);
        let inversion = spike.slices.iter().find(|slice| slice.kind == SliceKind::PriorityInversion).unwrap();
        assert!(
            inversion.evidence.starts_with("planner ran while third, which second waited for, was runnable")
        );
        let none = ["blocked futex_do_wait/first 6980"];
        assert_eq!(lines(&of(&before("pipe_read,vfs_read"), &sleep("second/71/90"), 0))[..1], none);
        // Both wait for each other: no event shows what ends that.
        let around = sleep("second/71/90").replace("1 72 .  waking second", "1 70 .  waking second");
        assert!(!lines(&of(&before(FUTEX), &around, 0)).is_empty());
    }

    #[test]
    fn who_gives_a_contended_lock_free_is_its_holder() {
        let sleep = |lock: u32| {
            format!(
                "15   1 50 .  spin+ 9 8
                 20   1 50 d  switch rt/50/19 S planner/60/9
                 20   1 50 d  stack rt_mutex_schedule,rt_mutex_slowlock,vfs_read
                 5020 1 60 d  switch planner/60/9 S datalog/70/89
                 6000 1 70 d  release {lock}
                 6001 1 70 .  waking rt/50/19
                 6002 1 70 d  switch datalog/70/89 P rt/50/19"
            )
        };
        let spike = of(PREEMPTED, &sleep(9), 0);
        let blocked = spike.slices.iter().find(|slice| slice.kind == SliceKind::Blocked).unwrap();
        assert_eq!(
            (lines(&spike)[0].as_str(), blocked.who.comm.as_str()),
            ("preempted planner 5000", "datalog")
        );
        let other = of(PREEMPTED, &sleep(8), 0);
        assert!(other.slices.iter().all(|slice| slice.who.comm != "planner"), "{:?}", lines(&other));
    }

    /// Machine with two CPUs and a thread `datalog` (70) that other threads preempt.
    #[derive(Debug)]
    struct Machine {
        text: String,
        current: [i32; 2],
        queued: usize,
        asleep: bool,
        inverted_ns: BTreeMap<i32, i64>,
    }

    const PRIOS: [(i32, i32); 4] = [(60, 59), (61, 49), (62, 9), (63, 100)];

    impl Machine {
        fn task(pid: i32) -> String {
            match pid {
                0 => "swapper/0/120".to_owned(),
                70 => "datalog/70/89".to_owned(),
                _ => format!("t{pid}/{pid}/{}", PRIOS.iter().find(|known| known.0 == pid).unwrap().1),
            }
        }

        fn pass(&mut self, us: i64) {
            let runner = self.current[self.queued];
            let ready = !self.asleep && !self.current.contains(&70);
            if ready && PRIOS.iter().any(|&(pid, prio)| pid == runner && (20..=89).contains(&prio)) {
                *self.inverted_ns.entry(runner).or_default() += us * 1_000;
            }
        }

        fn act(&mut self, at: i64, cpu: usize, what: usize) {
            let (prev, next) = (self.current[cpu], [60, 61, 62, 63, 70, 0][what % 6]);
            match what {
                0..6 if prev != next && (next == 0 || !self.current.contains(&next)) => {
                    if next == 70 && (self.asleep || self.queued != cpu) {
                        return;
                    }
                    let (from, to) = (Self::task(prev), Self::task(next));
                    let state = if prev == 70 && at % 3 == 0 { "S" } else { "P" };
                    self.text += &format!("{at} {cpu} {prev} d switch {from} {state} {to}\n");
                    if prev == 70 {
                        self.asleep = state == "S";
                    }
                    self.current[cpu] = next;
                }
                6 if self.asleep => {
                    self.text += &format!("{at} {cpu} {prev} dh waking datalog/70/89 {}\n", self.queued);
                    self.asleep = false;
                }
                7 if !self.asleep && !self.current.contains(&70) && self.queued != cpu => {
                    self.text += &format!("{at} {cpu} {prev} d migrate 70 {} {cpu}\n", self.queued);
                    self.queued = cpu;
                }
                _ => {}
            }
        }
    }

    proptest! {
        #[test]
        fn who_kept_the_holder_and_how_long_is_what_the_machine_did(
            steps in prop::collection::vec((1..200i64, 0..2usize, 0..8usize), 0..60),
        ) {
            let mut machine = Machine {
                text: String::new(),
                current: [0, 60],
                queued: 1,
                asleep: false,
                inverted_ns: BTreeMap::new(),
            };
            let mut at = 20;
            for (us, cpu, what) in steps {
                machine.pass(us);
                at += us;
                machine.act(at, cpu, what);
            }
            if machine.asleep || !machine.current.contains(&70) {
                let cpu = machine.queued;
                machine.pass(1);
                at += 1;
                machine.act(at, cpu, 6);
                machine.pass(1);
                at += 1;
                machine.act(at, cpu, 4);
            }
            let cpu = machine.current.iter().position(|&pid| pid == 70).unwrap();
            let (before, end) = (format!("-100 0 0 . idle 1\n{PREEMPTED}"), at + 1);
            let sleep = format!(
                "{MUTEX}
                 20 1 50 d switch rt/50/19 S t60/60/59
                 20 1 50 d stack {FUTEX}
                 {}{end} {cpu} 70 . waking rt/50/19",
                machine.text
            );
            let spike = of(&before, &sleep, 0);
            let mut inverted_ns: BTreeMap<i32, i64> = BTreeMap::new();
            for slice in spike.slices.iter().filter(|slice| slice.kind == SliceKind::PriorityInversion) {
                *inverted_ns.entry(slice.who.pid).or_default() += slice.ns.0;
            }
            prop_assert_eq!(&inverted_ns, &machine.inverted_ns, "{}", sleep);
        }

        /// For any order of events the sums hold, and a thread that never had a CPU is not named.
        #[test]
        fn who_never_ran_is_not_named(
            steps in prop::collection::vec((0..400i64, 0..12usize), 0..60),
        ) {
            let lines = [
                "1 50 d switch rt/50/19 S t60/60/59", "1 60 d switch t60/60/59 S datalog/70/89",
                "1 70 d switch datalog/70/89 P t60/60/59", "1 70 d switch datalog/70/89 S t61/61/49",
                "1 61 d switch t61/61/49 P rt/50/19", "0 61 d switch t61/61/49 S datalog/70/89",
                "1 70 . waking rt/50/19", "0 70 . waking rt/50/19", "1 60 . waking datalog/70/89 0",
                "0 9 d migrate 70 1 0", "0 63 . waking t64/64/39", "1 50 d stack futex_do_wait,futex_wait",
            ];
            let (mut at, mut text) = (9, String::new());
            for (us, line) in steps {
                at += us;
                text += &format!("{at} {}\n", lines[line]);
            }
            let spike = of(PREEMPTED, &text, 0);
            for slice in spike.slices.iter().filter(|slice| slice.kind == SliceKind::PriorityInversion) {
                prop_assert!([60, 61].contains(&slice.who.pid), "{:?}", slice);
                prop_assert!(text.contains(&format!("t{0}/{0}/", slice.who.pid)), "{:?}", slice);
            }
        }
    }
}
