//! Attribution of a stretch of time: by the context that ran, and the progress of the wake-up.
//!
//! The running context is to blame only if it may delay the victim: a hard interrupt always, a
//! softirq from the timer's interrupt on and on PREEMPT_RT by its thread's priority alone, a thread
//! with at least the victim's priority, the stopper, any thread before a fair one. Any other thread
//! there was not preempted, and the cause is what prevented that.

use super::case::{Case, Cause, Phase};
use super::spans::Spans;
use super::state::{RunningContext, Stretch};
use super::tasks::{is_stopper, runs_softirqs, who};
use super::{
    hard_irq, idle, inherited, outside, precedence, preempt_off, spinning, starved, stopper, switch_to_user,
};
use crate::event::{Task, What};
use crate::kernel_functions::{is_timer_softirq, named, softirq};
use model::run::Who;
use model::slice::SliceKind;
use model::units::Cpu;
use model::vocabulary::Preempt;

/// Causes on top of the contexts of a CPU.
pub(super) struct Over {
    pub nmi: Spans<Cause>,
    /// Locks that a thread spins for: its ID, and true if interrupts were off.
    pub spins: Spans<(i32, bool)>,
    /// Exits from idle states.
    pub idle: Spans<Cause>,
    /// Sleeps and page faults of the thread between its switch and its end; none for a sleep for
    /// another reason.
    pub waits: Spans<Option<Cause>>,
    /// Disabled preemption, if events record it.
    pub preempt_off: Spans<Cause>,
}

impl Over {
    /// Collects them for one CPU.
    pub(super) fn new(case: &Case<'_>, cpu: Cpu) -> Over {
        let (nmi, spins) = (nmi(case, cpu), spins(case, cpu));
        let preempt_off = preempt_off::toggled(case, cpu);
        Over { nmi, spins, idle: idle::find(case), waits: switch_to_user::find(case), preempt_off }
    }

    /// Start and end times of all of them.
    pub(super) fn edges(&self) -> impl Iterator<Item = i64> + '_ {
        let (nmi, spins, idle) = (self.nmi.edges(), self.spins.edges(), self.idle.edges());
        nmi.chain(spins).chain(idle).chain(self.waits.edges()).chain(self.preempt_off.edges())
    }
}

/// Non-maskable interrupts, whose events record their duration at the end.
fn nmi(case: &Case<'_>, cpu: Cpu) -> Spans<Cause> {
    let all = case.events(cpu).iter().filter_map(|event| match &event.what {
        What::Nmi { handler, ns } => {
            let who = named(Who { irq: "nmi".to_owned(), ..Who::default() }, handler);
            let evidence = format!("nmi_handler tells that {handler} took {} ns", ns.0);
            let start = event.time.0.saturating_sub(ns.0.max(0));
            Some((start, event.time.0, Cause::new(SliceKind::Nmi, who, evidence)))
        }
        _ => None,
    });
    Spans::new(all.collect())
}

fn spins(case: &Case<'_>, cpu: Cpu) -> Spans<(i32, bool)> {
    let mut open: Option<(u64, i64, i32, bool)> = None;
    let mut found = Vec::new();
    for event in case.events(cpu) {
        match event.what {
            What::ContentionBegin { lock, flags } if flags & 1 != 0 => {
                open = Some((lock, event.time.0, event.pid, event.context.irqs_off()));
            }
            What::ContentionEnd { lock } => {
                let begun = open.filter(|&(of, _, pid, _)| of == lock && pid == event.pid);
                found.extend(begun.map(|(_, start, pid, off)| (start, event.time.0, (pid, off))));
                open = open.filter(|_| begun.is_none());
            }
            What::Switch { .. } => open = None,
            _ => {}
        }
    }
    Spans::new(found)
}

/// Cause of a piece of a stretch; none if no event proves it.
pub(super) fn cause(case: &Case<'_>, over: &Over, cpu: Cpu, piece: &Stretch<'_>) -> Option<Cause> {
    if case.lost_from.is_some_and(|torn| piece.start >= torn) {
        return None;
    }
    outside::instead_of(case, piece, ran(case, over, cpu, piece))
}

/// Cause that ran on top of a thread, whichever thread it was.
pub(super) fn on_top(case: &Case<'_>, over: &Over, cpu: Cpu, piece: &Stretch<'_>) -> Option<Cause> {
    if let Some((.., nmi)) = over.nmi.at(piece.start) {
        return Some(nmi.clone());
    }
    match &piece.top {
        RunningContext::Hard(interrupt) => Some(hard_irq::cause(case, cpu, interrupt)),
        RunningContext::Call { function, entry } => Some(hard_irq::call(case, cpu, function, *entry)),
        RunningContext::Soft { vec, function } => {
            let irq = softirq(*vec).to_owned();
            let evidence = format!("the softirq {irq}, from its entry to its exit");
            let who = named(Who { irq, ..Who::default() }, function);
            Some(Cause::new(SliceKind::Softirq, who, evidence))
        }
        RunningContext::Unknown | RunningContext::Work(_) | RunningContext::Thread => None,
    }
}

/// Cause from the context that ran on the CPU.
fn ran(case: &Case<'_>, over: &Over, cpu: Cpu, piece: &Stretch<'_>) -> Option<Cause> {
    if let Some((.., nmi)) = over.nmi.at(piece.start) {
        return Some(nmi.clone());
    }
    match &piece.top {
        RunningContext::Unknown => None,
        RunningContext::Hard(interrupt) => Some(hard_irq::cause(case, cpu, interrupt)),
        RunningContext::Call { function, entry } => Some(hard_irq::call(case, cpu, function, *entry)),
        RunningContext::Soft { vec, .. } if !softirq_may(case, piece) => {
            thread(case, over, piece).map(|cause| in_softirq(cause, *vec))
        }
        RunningContext::Soft { vec, function } => Some(soft(case, piece, *vec, function)),
        RunningContext::Work(_) | RunningContext::Thread => thread(case, over, piece),
    }
}

/// Names the softirq in which interrupts or preemption were off.
fn in_softirq(cause: Cause, vec: u8) -> Cause {
    match cause.kind {
        SliceKind::IrqsOff | SliceKind::PreemptOff => {
            Cause { who: Who { irq: softirq(vec).to_owned(), ..cause.who }, ..cause }
        }
        _ => cause,
    }
}

/// True if a softirq may delay the wake-up: interrupts do not wait for softirqs, and with
/// preemptible ones (PREEMPT_RT) a runnable thread waits for them only by priority.
fn softirq_may(case: &Case<'_>, piece: &Stretch<'_>) -> bool {
    let victim = case.window.victim;
    match case.phase(piece.start) {
        Phase::Before => false,
        Phase::Runnable if case.host.preempt == Preempt::Rt && victim.real_time() => {
            case.current(piece).is_none_or(|current| current.not_below(victim.prio))
        }
        _ => true,
    }
}

fn soft(case: &Case<'_>, piece: &Stretch<'_>, vec: u8, function: &str) -> Cause {
    let irq = softirq(vec).to_owned();
    let phase = case.phase(piece.start);
    let thread = case.current(piece).filter(runs_softirqs).map(who).unwrap_or_default();
    let own = matches!(phase, Phase::Raised | Phase::Expiring) && is_timer_softirq(vec);
    let kind = if own { SliceKind::TimerSoftirq } else { SliceKind::Softirq };
    let evidence = format!("the softirq {irq}, from its entry to its exit");
    Cause::new(kind, named(Who { irq, ..thread }, function), evidence)
}

fn thread(case: &Case<'_>, over: &Over, piece: &Stretch<'_>) -> Option<Cause> {
    match case.phase(piece.start) {
        Phase::Unknown => case.inverted.at(piece.start).map(|found| found.2.clone()),
        Phase::Before => before(case, over, piece),
        Phase::Raised | Phase::Expiring => expiring(case, piece),
        Phase::Runnable => runnable(case, over, piece),
    }
}

/// Cause of the delay of the timer's interrupt.
fn before(case: &Case<'_>, over: &Over, piece: &Stretch<'_>) -> Option<Cause> {
    let off = case.irqs_off.at(piece.start).map(|found| found.2.clone());
    let current = case.current(piece);
    if let Some(&(.., (pid, irqs_off))) = over.spins.at(piece.start) {
        if piece.pid == Some(pid) && (irqs_off || off.is_some()) {
            let thread = current.map(who).unwrap_or_default();
            let stack = off.map(|off| off.stack).unwrap_or_default();
            let how = "the kernel's events of contention enclose it, with interrupts off";
            return Some(spinning::cause(case, &thread, how, &stack, piece.start, piece.end));
        }
    }
    let stopper =
        || current.filter(is_stopper).map(|task| stopper::cause(case, task, piece.start, piece.end));
    let idle = || over.idle.at(piece.start).filter(|_| piece.pid == Some(0)).map(|found| found.2.clone());
    off.or_else(stopper).or_else(idle)
}

/// Cause after the softirq that expires the timer was raised, before it has woken the thread.
fn expiring(case: &Case<'_>, piece: &Stretch<'_>) -> Option<Cause> {
    let current = case.current(piece)?;
    if runs_softirqs(&current) {
        let evidence = format!("{} ran before the timer's expiry", current.comm);
        return Some(Cause::new(SliceKind::TimerSoftirq, who(current), evidence));
    }
    let expiry = case.path.expiry.as_ref()?;
    let server = case.tasks.at(expiry.pid, expiry.time).filter(runs_softirqs);
    let switch =
        || Cause::new(SliceKind::Switch, Who::default(), "between the interrupt and the timer's softirq");
    let Some(server) = server else { return Some(switch()) };
    if is_stopper(&current) {
        return Some(stopper::cause(case, current, piece.start, piece.end));
    }
    let shares = !server.real_time() && !current.idle();
    if shares || current.not_below(server.prio) && !current.idle() {
        let evidence = format!("it ran while {}, which expires the timer, was runnable", server.comm);
        return Some(
            work(piece, current).unwrap_or_else(|| Cause::new(SliceKind::Thread, who(current), evidence)),
        );
    }
    Some(preempt_off::before_softirq(case, piece, current).map_or_else(switch, |off| in_work(off, piece)))
}

/// Cause while the thread is in a run queue, or runs.
fn runnable(case: &Case<'_>, over: &Over, piece: &Stretch<'_>) -> Option<Cause> {
    if let Some((.., wait)) = over.waits.at(piece.start) {
        return wait.clone();
    }
    let current = case.current(piece)?;
    let victim = case.window.victim;
    if current.pid == victim.pid {
        return runs(case, piece, current);
    }
    if is_stopper(&current) {
        return Some(stopper::cause(case, current, piece.start, piece.end));
    }
    if let Some(cause) = starved::cause(case, piece, current) {
        return Some(cause);
    }
    let since_woken = case.runnable_since(piece.start).is_some_and(|since| piece.since > since);
    let switch = || {
        Cause::new(SliceKind::Switch, Who::default(), "from the waking to the switch, with nothing between")
    };
    if current.idle() {
        let exit = over.idle.at(piece.start).map(|found| found.2.clone());
        return exit.or_else(|| (!since_woken).then(switch));
    }
    if current.prio < 0 && current.comm.text().starts_with("sugov:") {
        let evidence = format!("{} sets the frequency", current.comm);
        return Some(Cause::new(SliceKind::Frequency, who(current), evidence));
    }
    // Fair threads share the CPU: the priority alone does not decide which of two runs.
    if current.not_below(victim.prio) || !victim.real_time() {
        return Some(work(piece, current).unwrap_or_else(|| precedence::thread(case, piece, current)));
    }
    // Its priority was changed without an event.
    if precedence::no_switch_due(case, piece, current) {
        let cause = work(piece, current).unwrap_or_else(|| precedence::thread(case, piece, current));
        let evidence =
            format!("{}; the scheduler had no switch due: its priority had been raised", cause.evidence);
        return Some(Cause { evidence, ..cause });
    }
    let gave_back = inherited::chosen(case, current, piece.since).not_below(victim.prio);
    if since_woken && !gave_back {
        return None;
    }
    let spins = over.spins.at(piece.start).is_some_and(|&(.., (pid, _))| pid == current.pid);
    if spins {
        let how = "the kernel's events of contention enclose it, with preemption off";
        return Some(spinning::cause(case, &who(current), how, &[], piece.start, piece.end));
    }
    let toggled = over.preempt_off.at(piece.start).map(|found| found.2.clone());
    let off = toggled.or_else(|| preempt_off::cause(case, piece, current));
    Some(off.map_or_else(switch, |off| in_work(off, piece)))
}

/// Cause while the thread itself runs.
fn runs(case: &Case<'_>, piece: &Stretch<'_>, victim: Task) -> Option<Cause> {
    let over = case.path.due_at_start.is_some_and(|over| over <= piece.start);
    let switched = case.path.switch.is_some_and(|switch| switch <= piece.start);
    if over && case.window.own {
        let evidence =
            "its timer was due when it was started: from there, without a sleep, to its clock read";
        Some(Cause::new(SliceKind::ReturnToUser, Who::default(), evidence))
    } else if !switched {
        Some(Cause::new(SliceKind::Thread, who(victim), "the thread itself ran and did not sleep"))
    } else if case.window.own {
        let evidence = "from the switch to the thread's own clock read";
        Some(Cause::new(SliceKind::ReturnToUser, Who::default(), evidence))
    } else {
        None
    }
}

/// Adds a work item to a section with preemption off; its function is named if no stack is closer.
fn in_work(cause: Cause, piece: &Stretch<'_>) -> Cause {
    let RunningContext::Work(function) = piece.top else { return cause };
    if cause.kind != SliceKind::PreemptOff {
        return cause;
    }
    let evidence = format!("{}; within the work item {function}", cause.evidence);
    let who = if cause.who.function.is_empty() { named(cause.who, function) } else { cause.who };
    Cause { who, evidence, ..cause }
}

fn work(piece: &Stretch<'_>, current: Task) -> Option<Cause> {
    let RunningContext::Work(function) = piece.top else { return None };
    let evidence = format!("{} executed the work item {function}", current.comm);
    Some(Cause::new(SliceKind::Workqueue, named(who(current), function), evidence))
}
