//! The document of a trace that another tool recorded, and remarks on missing events.

use super::{FirstPass, TraceQuestion};
use bundle::foreign_trace::facts::{TraceClock, TraceFacts};
use model::run::{Host, Recorder, Run, SCHEMA, Spike};
use model::spike::OVER_ASKED;
use model::text::several;
use model::units::Nanos;
use model::vocabulary::{Command, Expiry};
use trace::late_wakeups::{WantedThreads, WantedWakeups};

/// Events, any of which is sufficient evidence, and the consequence if all are missing.
const EVIDENCE: &[(&[&str], &str)] = &[
    (&["timer:hrtimer_start"], "when a timer was due: lateness counts from the waking"),
    (&["timer:hrtimer_expire_exit"], "the duration of timer functions"),
    (&["irq:irq_handler_exit"], "the duration of device interrupts"),
    (&["timer:hrtimer_expire_entry"], "when a timer expired: lateness counts from the waking"),
    (&["irq:irq_handler_entry"], "device interrupts"),
    (&["irq:softirq_entry"], "softirqs"),
    (&["irq_vectors:local_timer_entry", "ipi:ipi_entry"], "the timer's interrupt and those of other CPUs"),
    (
        &["ftrace:kernel_stack"],
        "the functions that had interrupts or preemption off: trace-cmd records it with `-T`",
    ),
    (&["sched:sched_waking"], "the start of wake-ups: they count from the run queue"),
];

/// Names of threads in a sentence; the others are counted.
const THREADS: usize = 8;

/// The parts of which the document is made.
pub struct TracedRun<'a> {
    pub facts: &'a TraceFacts,
    pub first: &'a FirstPass,
    pub question: &'a TraceQuestion,
    /// The tool itself took its wake-ups apart.
    pub took_apart: bool,
    /// Spikes in the order of time.
    pub spikes: Vec<Spike>,
    /// Spikes for which the list had no room.
    pub dropped: u64,
}

impl TracedRun<'_> {
    /// The run, without its culprits, and remarks on what the trace lacks.
    pub fn document(self, host: Host) -> (Run, Vec<String>) {
        let TracedRun { facts, first, question, took_apart, spikes, dropped } = self;
        let remarks = lacking(facts, first, question, took_apart);
        let mut run = Run {
            schema: SCHEMA.into(),
            command: Command::Hunt.into(),
            complete: true,
            version: env!("CARGO_PKG_VERSION").into(),
            host,
            elapsed_ns: first.began.filter(|_| !took_apart).map(|began| first.ended - began),
            checkpoint_mono_ns: first.began.map(|_| first.ended),
            cpus: first.late.cpus(),
            ..Run::default()
        };
        run.plan.cpus = run.cpus.iter().filter_map(|cpu| cpu.cpu).collect();
        run.plan.expiry = Expiry::Unknown.into();
        let own = || "threads of timerlat, as analysed by the tool".to_owned();
        let followed = if took_apart { own() } else { followed(first, question) };
        run.plan.notes.push(format!("following {followed}"));
        let found = spikes.len() as u64;
        let latency: i64 = spikes.iter().fold(0, |sum, spike| spike.latency_ns.0.saturating_add(sum));
        let unexplained = spikes.iter().fold(0, |sum, spike| spike.unexplained_ns.0.saturating_add(sum));
        let least = spikes.iter().map(|spike| spike.latency_ns).min();
        let (over_ns, over_why) = threshold(first, question, least);
        let left = match question.wakeups {
            WantedWakeups::Over(_) => first.late.matching.saturating_sub(found + dropped),
            _ => 0,
        };
        run.spikes_dropped = dropped + left;
        run.recorder = Some(Recorder {
            over_ns,
            over_why,
            events: facts.events.clone(),
            missing: missing(facts).filter(|_| !took_apart).map(|(events, _)| events[0].to_owned()).collect(),
            spikes_passed_over: left,
            events_overwritten: facts.lost.max(first.lost),
            windows_lost: spikes.iter().filter(|spike| spike.events_lost > 0).count() as u64,
            latency_ns: Nanos(latency),
            unexplained_ns: Nanos(unexplained),
            agreeing: found,
            notes: [vec![format!("read from {}", facts.source)], remarks.clone()].concat(),
            ..Recorder::default()
        });
        run.spikes = spikes;
        (run, remarks)
    }
}

fn threshold(first: &FirstPass, question: &TraceQuestion, least: Option<Nanos>) -> (Option<Nanos>, String) {
    let all: u64 = first.late.cpus().iter().filter_map(|cpu| cpu.cycles).sum();
    let below = least.map(|least| Nanos(least.0 - 1));
    match &question.wakeups {
        WantedWakeups::Over(over) => (Some(*over), OVER_ASKED.to_owned()),
        WantedWakeups::Largest => (below, format!("the largest of {}", several(all, "wake-up", "wake-ups"))),
        WantedWakeups::AtMark(text) => {
            (below, format!("at the marks with {}", model::text::quoted_value(text)))
        }
    }
}

/// The threads in a sentence.
fn followed(first: &FirstPass, question: &TraceQuestion) -> String {
    let threads = first.late.threads();
    let mut names: Vec<String> = threads.iter().map(|task| format!("{}:{}", task.comm, task.pid)).collect();
    let more = names.len().saturating_sub(THREADS);
    names.truncate(THREADS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match (&question.threads, names.is_empty()) {
        (WantedThreads::RealTime, true) => "real-time threads, of which none woke".to_owned(),
        (_, true) => "a thread that did not wake".to_owned(),
        (_, false) => format!("{}{more}", names.join(", ")),
    }
}

fn missing(facts: &TraceFacts) -> impl Iterator<Item = &'static (&'static [&'static str], &'static str)> {
    let has = |event: &str| facts.events.iter().any(|own| own == event);
    // If the event's start is missing too, only that is reported.
    let begins = move |event: &str| event.strip_suffix("_exit").is_none_or(|of| has(&format!("{of}_entry")));
    EVIDENCE.iter().filter(move |(events, _)| !events.iter().any(|event| has(event)) && begins(events[0]))
}

/// Notes on missing events, a sentence each.
fn lacking(facts: &TraceFacts, first: &FirstPass, question: &TraceQuestion, took_apart: bool) -> Vec<String> {
    let mut lines = facts.notes.clone();
    for (events, what) in missing(facts).filter(|_| !took_apart) {
        lines.push(format!("the trace has no {}, which shows {what}", events[0]));
    }
    if facts.clock == TraceClock::Unknown && facts.events.iter().any(|event| event.starts_with("timer:")) {
        lines.push(
            "the trace does not state its clock: the clock of timers was derived from their expiries"
                .to_owned(),
        );
    }
    let lost = facts.lost.max(first.lost);
    if lost > 0 {
        lines.push(format!(
            "{} lost during recording: late wake-ups may be missing",
            several(lost, "event was", "events were")
        ));
    }
    if facts.unread > 0 {
        lines.push(format!("{} could not be read", several(facts.unread, "record", "records")));
    }
    if first.late.threads_dropped > 0 {
        let threads = several(first.late.threads_dropped, "thread", "threads");
        lines.push(format!("{threads} not followed: there were too many"));
    }
    let [_, unseen] = first.late.marks;
    if matches!(question.wakeups, WantedWakeups::AtMark(_)) && unseen > 0 {
        lines.push(format!("{} without a wake-up in the second before", several(unseen, "mark", "marks")));
    }
    lines
}
