//! Priority inversion: a thread waits for one of lower priority, and others go before that one.
//!
//! What the waker of a thread did while that one slept: it ran, or was runnable while another
//! thread had its CPU, or slept in its turn until a third one woke it, whose time is then looked
//! at. Without inheritance (`sched_pi_setprio`) any thread may go between; with it, only one of a
//! higher priority than the sleeper.
//!
//! Sources: kernel/locking/rtmutex.c, Documentation/locking/rt-mutex-design.rst.

use std::collections::HashMap;

use super::case::{Case, Cause};
use super::spans::Spans;
use super::tasks::{Tasks, who};
use crate::event::{Named, Task, What};
use model::slice::SliceKind;
use model::units::Cpu;

/// Threads that wait for one another, beyond which a chain is not followed.
const MAX_LINKS: usize = 8;

/// Sleeps of a chain that are looked into.
const MAX_SLEEPS: usize = 64;

/// What the thread that a sleeper waits for did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meanwhile {
    /// It had a CPU.
    Ran,
    /// It was runnable, and this thread had its CPU.
    Kept(Task),
    /// It slept, for a reason that no other thread's waking shows.
    Slept,
    /// No event shows it.
    Unknown,
}

/// A part of a sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub start: i64,
    pub end: i64,
    /// The thread that was waited for, and the one that waited for it.
    pub holder: Task,
    pub waiter: Task,
    pub what: Meanwhile,
}

/// A sleep that a thread ended: who slept, who woke it, from when to when.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub waiter: Task,
    pub holder: Task,
    pub from: i64,
    pub to: i64,
}

/// The parts of a sleep, from events in order of time, without a gap.
pub(super) fn parts(ordered: &[&Named], tasks: &Tasks, wait: Wait) -> Vec<Part> {
    let (mut sleeps, mut all) = (MAX_SLEEPS, Vec::new());
    follow(ordered, tasks, wait, &mut vec![wait.waiter.pid], &mut sleeps, &mut all);
    all
}

fn follow(
    ordered: &[&Named],
    tasks: &Tasks,
    wait: Wait,
    chain: &mut Vec<i32>,
    sleeps: &mut usize,
    all: &mut Vec<Part>,
) {
    let Wait { waiter, holder, from, to } = wait;
    chain.push(holder.pid);
    for (start, end, state) in states(ordered, holder.pid, from, to) {
        let part = |what| Part { start, end, holder, waiter, what };
        let waker = match state {
            State::Slept(Some(pid)) if !chain.contains(&pid) => tasks.at(pid, end),
            _ => None,
        };
        match (state, waker) {
            (_, Some(next)) if chain.len() < MAX_LINKS && *sleeps > 0 => {
                *sleeps -= 1;
                let inner = Wait { waiter: holder, holder: next, from: start, to: end };
                follow(ordered, tasks, inner, chain, sleeps, all);
            }
            (State::Running, _) => all.push(part(Meanwhile::Ran)),
            (State::Runnable(Some(task)), _) => all.push(part(Meanwhile::Kept(task))),
            (State::Slept(_), _) => all.push(part(Meanwhile::Slept)),
            (State::Runnable(None) | State::Unknown, _) => all.push(part(Meanwhile::Unknown)),
        }
    }
    chain.pop();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unknown,
    Running,
    /// With the thread that has its CPU, if that is known and another.
    Runnable(Option<Task>),
    /// With the thread that ends it.
    Slept(Option<i32>),
}

/// What a thread did from `from` to `to`.
fn states(ordered: &[&Named], pid: i32, from: i64, to: i64) -> Vec<(i64, i64, State)> {
    let mut walk = Walk { pid, state: at_first(ordered, pid), cpu: None, current: HashMap::new() };
    let (mut made, mut since, mut slept) = (Vec::new(), from, None);
    let end = ordered.partition_point(|event| event.time.0 < to);
    for event in &ordered[..end] {
        let before = walk.now();
        walk.step(event);
        if walk.now() == before || event.time.0 < since {
            continue;
        }
        if since < event.time.0 {
            made.push((since, event.time.0, before));
        }
        if matches!(before, State::Slept(_)) {
            slept = made.last().filter(|part| part.1 == event.time.0).map(|_| made.len() - 1);
        }
        if let (Some(at), What::Waking { task, .. }) = (slept.take(), &event.what) {
            let by_thread = !event.context.hard_irq() && !event.context.soft_irq();
            if task.pid == pid && by_thread {
                made[at].2 = State::Slept(Some(event.pid));
            }
        }
        since = event.time.0;
    }
    if since < to {
        made.push((since, to, walk.now()));
    }
    made
}

/// What the thread did before the first of its events, by that one.
fn at_first(ordered: &[&Named], pid: i32) -> State {
    let first = ordered.iter().find_map(|event| match &event.what {
        What::Switch { next, .. } if next.pid == pid => Some(State::Unknown),
        What::Waking { task, .. } if task.pid == pid => Some(State::Slept(None)),
        _ if event.pid == pid => Some(State::Running),
        _ => None,
    });
    first.unwrap_or(State::Unknown)
}

struct Walk {
    pid: i32,
    state: State,
    /// The CPU that the thread has, or whose run queue it is in.
    cpu: Option<Cpu>,
    current: HashMap<Cpu, Task>,
}

impl Walk {
    fn now(&self) -> State {
        match self.state {
            State::Runnable(_) => {
                let current = self.cpu.and_then(|cpu| self.current.get(&cpu)).copied();
                State::Runnable(current.filter(|task| !task.idle() && task.pid != self.pid))
            }
            state => state,
        }
    }

    fn step(&mut self, event: &Named) {
        match &event.what {
            What::Switch { prev, state, next } => {
                self.current.insert(event.cpu, *next);
                if prev.pid == self.pid {
                    let runnable = matches!(state, 0 | 256);
                    self.state = if runnable { State::Runnable(None) } else { State::Slept(None) };
                    self.cpu = Some(event.cpu);
                }
                if next.pid == self.pid {
                    (self.state, self.cpu) = (State::Running, Some(event.cpu));
                }
            }
            What::Waking { task, target } | What::Wakeup { task, target }
                if task.pid == self.pid && self.state != State::Running =>
            {
                (self.state, self.cpu) = (State::Runnable(None), Some(*target));
            }
            What::Migrate { pid, to, .. } if *pid == self.pid => self.cpu = Some(*to),
            _ => {}
        }
    }
}

/// The cause of a part in which another thread kept the holder from running; none where the
/// scheduler's order does not show why it went first.
pub(super) fn kept_by(part: &Part, victim: Task) -> Option<Cause> {
    let Meanwhile::Kept(task) = part.what else { return None };
    let Part { holder, waiter, .. } = part;
    let kind = match () {
        // It goes before the victim as well.
        () if task.not_below(victim.prio) => SliceKind::Preempted,
        // Fair threads take turns whatever their weight.
        () if task.not_below(holder.prio) || (!task.real_time() && !holder.real_time()) => {
            SliceKind::PriorityInversion
        }
        () => return None,
    };
    let evidence =
        format!("{} ran while {}, which {} waited for, was runnable", task.comm, holder.comm, waiter.comm);
    Some(Cause::new(kind, who(task), evidence))
}

/// Where the thread waited for a holder, and who ran.
pub(super) fn find(case: &Case<'_>, ordered: &[&Named]) -> Spans<Cause> {
    Spans::new(inverted(case, ordered).unwrap_or_default())
}

fn inverted(case: &Case<'_>, ordered: &[&Named]) -> Option<Vec<(i64, i64, Cause)>> {
    let victim = case.window.victim;
    let to = case.path.waking.filter(|&waking| waking > case.from)?;
    let (pid, true) = case.path.waker? else { return None };
    let holder = base(case, pid, to).filter(|task| task.prio > victim.prio && task.pid != 0)?;
    let from = blocked_since(case, to)?.max(case.from);
    let wait = Wait { waiter: victim, holder, from, to };
    let causes = parts(ordered, &case.tasks, wait).into_iter().filter_map(|part| {
        let held = || {
            let evidence = format!(
                "{} held what {} waited for: it woke it at the end",
                part.holder.comm, part.waiter.comm
            );
            Cause::new(SliceKind::PriorityInversion, who(part.holder), evidence)
        };
        let cause = match part.what {
            Meanwhile::Ran => Some(held()),
            _ => kept_by(&part, victim).filter(|cause| cause.kind == SliceKind::PriorityInversion),
        };
        cause.map(|cause| (part.start, part.end, cause))
    });
    Some(causes.collect())
}

/// The thread with the priority that it has by itself: an inherited one is given back at the
/// waking.
fn base(case: &Case<'_>, pid: i32, waking: i64) -> Option<Task> {
    let task = case.tasks.at(pid, waking)?;
    let lent = case.cpus.values().flatten().filter_map(|event| match event.what {
        What::Inherit { pid: of, old, new } if of == pid && new < old => Some(old),
        _ => None,
    });
    Some(Task { prio: lent.fold(task.prio, i32::max), ..task })
}

/// Since when the thread slept.
fn blocked_since(case: &Case<'_>, waking: i64) -> Option<i64> {
    let out = case.cpus.values().flatten().filter(|event| event.time.0 <= waking).filter_map(|event| {
        let What::Switch { prev, state, .. } = &event.what else { return None };
        // TASK_INTERRUPTIBLE or TASK_UNINTERRUPTIBLE: a stopped or traced thread does not wait for
        // a lock.
        let blocks = prev.pid == case.window.victim.pid && state & 3 != 0;
        blocks.then_some(event.time.0)
    });
    out.max()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, told, window};

    /// The thread waits for `low`, which `mid` keeps from running; then `low` wakes it.
    const EVENTS: &str = "
        -300 1 70 d  switch low/70/89 P rt/50/19
        -200 1 50 d  switch rt/50/19 S mid/60/49
        9000 1 60 d  switch mid/60/49 S low/70/89
        9500 1 70 d2 waking rt/50/19
        9501 1 70 d  switch low/70/89 P rt/50/19";

    fn with(events: &str) -> Vec<String> {
        let mut window = window(9_501.0, events);
        window.own = false;
        told(&explained_on(&host(), &window))
    }

    #[test]
    fn the_thread_that_ran_instead_of_the_holder_is_named() {
        assert_eq!(
            with(EVENTS),
            ["priority-inversion mid 9000", "priority-inversion low 500", "switch 1", "unexplained 0"]
        );
    }

    #[test]
    fn waiting_for_others_is_no_inversion() {
        let unexplained = ["switch 1", "unexplained 9500"];
        // Woken by a thread of higher priority, or by an interrupt without a timer event.
        assert_eq!(with(&EVENTS.replace("low/70/89", "low/70/9"))[..1], ["thread low 1"]);
        assert_eq!(
            with(&EVENTS.replace("d2 waking", "dh waking")).last().map(String::as_str),
            Some("unexplained 9500")
        );
        // The holder slept voluntarily while the other ran.
        let slept = EVENTS.replace("-300 1 70 d  switch low/70/89 P", "-300 1 70 d  switch low/70/89 S");
        assert_eq!(with(&slept), ["priority-inversion low 500", "switch 1", "unexplained 9000"]);
        // No thread waited: it was only preempted.
        let preempted = EVENTS.replace("rt/50/19 S mid", "rt/50/19 P mid");
        assert_eq!(with(&preempted), unexplained);
    }
}
