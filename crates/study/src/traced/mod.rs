//! Explanation of another tool's trace, as of a hunt: late wake-ups are found, then the events
//! around each are explained.

mod document;
#[cfg(test)]
mod tests;
mod traced_machine;
mod whole_events;
mod windows;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use self::document::TracedRun;
use self::traced_machine::TracedMachine;
use self::whole_events::WholeEvents;
use self::windows::{each_window, window};
use crate::explain::ExplainedRun;
use crate::findings::Findings;
use bundle::foreign_trace::facts::{TraceClock, TraceFacts};
use bundle::foreign_trace::{self, ForeignTrace, TraceError, TracePart, TraceStep};
use bundle::room::Room;
use model::error::{Exit, Failure, Result};
use model::run::{Host, Spike};
use model::text::{quoted, quoted_value, several};
use model::units::Nanos;
use model::vocabulary::Preempt;
use trace::late_wakeups::{LateWakeups, WantedThreads, WantedWakeups};
use trace::names::Names;
use trace::timeline::Cost;
use trace::window::Window;

/// Number of wake-ups that are explained if nothing defines which are late.
const LARGEST: usize = 10;

/// The most that are explained.
const MOST: usize = 2_000;

/// A note on a trace that has stacks.
const NO_CODE: &str = "the trace has no kernel code: a function that disabled interrupts is identified by \
                       name, or by three or more late interrupts at one of its instructions";

/// The part of a trace that is to be explained.
#[derive(Clone, Debug)]
pub struct TraceQuestion {
    pub threads: WantedThreads,
    pub wakeups: WantedWakeups,
}

/// Explains a file that another tool recorded; each window is handed on.
pub fn explain_trace(
    path: &Path,
    question: &TraceQuestion,
    mut each: impl FnMut(Window),
) -> Result<ExplainedRun> {
    let failed = |error: TraceError| match error {
        TraceError::Content(message) => Failure::usage(format!("{}: {message}", quoted(path))),
        TraceError::File(error) => Failure::of_call(
            format!("cannot read {}", quoted(path)),
            &error,
            Exit::Usage,
            "give a bundle of `onbeat hunt`, or a trace of trace-cmd, perf or ftrace",
        ),
    };
    let mut trace = foreign_trace::open(path).map_err(failed)?;
    let first = FirstPass::of(&mut *trace, question).map_err(failed)?;
    let facts = trace.facts();
    let found = first.late.found();
    let by_tool = if found.is_empty() { trace.explained() } else { Vec::new() };
    let took_apart = !by_tool.is_empty();
    if first.late.cpus().is_empty() && !took_apart {
        return Err(Failure::usage(format!("{}: {}", quoted(path), nothing(&facts, question))));
    }
    if let WantedWakeups::AtMark(text) = &question.wakeups {
        if found.is_empty() {
            return Err(Failure::usage(format!("{}: {}", quoted(path), no_mark(text, first.late.marks[0]))));
        }
    }
    let (mut findings, mut room, mut dropped) = (Findings::default(), Room::default(), 0);
    let mut names = trace.names();
    // Symbol names in text stand for whole functions.
    let has_addresses = names.symbols().is_some();
    let has_stacks = has_addresses && has(&facts, "ftrace:kernel_stack");
    let mut host = host_of(&facts, &names);
    if has_addresses {
        let known = TracedMachine::read(&mut *trace, &found, &mut names).map_err(failed)?;
        host.hz = known.tick.frequency();
        names.set_arrivals(known.arrivals);
    }
    let calls: BTreeMap<i64, String> =
        futex(&facts).map(|number| (number, "futex".to_owned())).into_iter().collect();
    let explained = each_window(&mut *trace, &found, &mut |_| {}, &mut |wakeup, recent| {
        let window = Window { calls: calls.clone(), ..window(wakeup, recent, &mut names) };
        let mut spike = Findings::explain(&window, &host, Cost::default());
        findings.add(&mut spike, &host);
        dropped += room.put(spike, 0);
        each(window);
    });
    explained.map_err(failed)?;
    if took_apart {
        for mut spike in wanted(by_tool, &question.wakeups) {
            why_unexplained(&mut spike);
            findings.add(&mut spike, &host);
            dropped += room.put(spike, 0);
        }
    }
    let mut spikes = room.into_list();
    spikes.iter_mut().for_each(|spike| findings.settle(&host, spike));
    let mut facts = trace.facts();
    if has_stacks {
        facts.notes.push(NO_CODE.to_owned());
    }
    let traced = TracedRun { facts: &facts, first: &first, question, took_apart, spikes, dropped };
    let (mut run, remarks) = traced.document(host);
    findings.conclude(&mut run);
    Ok(ExplainedRun { run, remarks })
}

/// Selects the requested wake-ups among those that the tool explained itself.
fn wanted(mut spikes: Vec<Spike>, wakeups: &WantedWakeups) -> Vec<Spike> {
    match wakeups {
        WantedWakeups::Over(over) => spikes.retain(|spike| spike.latency_ns > *over),
        _ => {
            spikes.sort_by_key(|spike| std::cmp::Reverse(spike.latency_ns));
            spikes.truncate(LARGEST);
        }
    }
    spikes
}

fn why_unexplained(spike: &mut Spike) {
    if spike.unexplained_ns.0 * 10 >= spike.latency_ns.0 {
        spike.unexplained_why = "it cannot be told: the tool that analysed it does not state it".to_owned();
    }
    spike.classes = trace::timeline::classes(spike);
}

/// The reason for which there is nothing to explain.
fn nothing(facts: &TraceFacts, question: &TraceQuestion) -> String {
    let has = |event: &str| has(facts, event);
    if !has("sched:sched_switch") || !has("sched:sched_waking") && !has("sched:sched_wakeup") {
        return "invalid trace: expected the events sched_switch and sched_waking, which show wake-ups; \
                record all CPUs, with `trace-cmd record -e sched` or `perf record -a -e sched:*`"
            .to_owned();
    }
    match &question.threads {
        WantedThreads::RealTime => {
            "it contains no wake-up of a real-time thread: choose another thread with --victim NAME|TID"
                .to_owned()
        }
        WantedThreads::Thread(tid) => {
            format!("it contains no wake-up of thread {tid}: choose a recorded thread")
        }
        WantedThreads::Named(name) => {
            format!("it contains no wake-up of a thread '{name}': choose a recorded thread")
        }
    }
}

/// The reason for which no mark selects a wake-up.
fn no_mark(text: &str, marks: u64) -> String {
    let text = quoted_value(text);
    match marks {
        0 => format!(
            "it contains no mark with {text}: write it to trace_marker while recording, with the event \
             ftrace:print, or choose another text"
        ),
        _ => format!(
            "{} with {text} without a wake-up in the second before: choose the thread with --victim, or \
             another text",
            several(marks, "mark", "marks")
        ),
    }
}

fn has(facts: &TraceFacts, event: &str) -> bool {
    facts.events.iter().any(|own| own == event)
}

/// PREEMPT_RT has separate spinlocks (kernel/locking/spinlock_rt.c).
fn host_of(facts: &TraceFacts, names: &Names) -> Host {
    let rt = names.symbols().is_some_and(|symbols| symbols.address_of("rt_spin_lock").is_some());
    let preempt = if rt { Preempt::Rt } else { Preempt::Unknown };
    Host { preempt: preempt.into(), ..facts.host.clone() }
}

/// The number of the futex system call on the machine that the trace is of
/// (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
fn futex(facts: &TraceFacts) -> Option<i64> {
    match facts.host.machine.as_str() {
        "x86_64" => Some(202),
        "aarch64" | "riscv64" => Some(98),
        _ => None,
    }
}

/// Result of the first pass over the whole trace.
pub struct FirstPass {
    pub late: LateWakeups,
    pub began: Option<Nanos>,
    pub ended: Nanos,
    /// Events that were lost within it.
    pub lost: u64,
}

impl FirstPass {
    fn of(
        trace: &mut dyn ForeignTrace,
        question: &TraceQuestion,
    ) -> std::result::Result<FirstPass, TraceError> {
        let most = match question.wakeups {
            WantedWakeups::Largest => LARGEST,
            WantedWakeups::Over(_) | WantedWakeups::AtMark(_) => MOST,
        };
        let facts = trace.facts();
        let monotonic = facts.clock == TraceClock::Monotonic;
        let late = LateWakeups::new(question.threads.clone(), question.wakeups.clone(), most, monotonic);
        let mut first =
            FirstPass { late: late.with_futex(futex(&facts)), began: None, ended: Nanos(0), lost: 0 };
        let mut whole = WholeEvents::unknown();
        trace.each(TracePart::Wakeups, &mut |step| {
            match step {
                TraceStep::Event(event) => {
                    first.began.get_or_insert(event.time);
                    first.ended = event.time;
                    whole.each(event, &mut |event| first.late.observe(event));
                }
                TraceStep::Lost(_, _, count) => {
                    first.late.forget();
                    first.lost = first.lost.saturating_add(count);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(first)
    }
}
