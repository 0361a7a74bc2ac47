//! Threads that a hunt followed, and their cycles: the answer first, then a table.

use std::fmt::Write;

use maud::{Markup, html};

use super::cycle_rows::{self, CycleRow};
use super::parts::worst;
use super::program;
use super::windows::KEPT;
use crate::html::{figure, scroll};
use crate::palette::{BOLD, Palette, RED};
use crate::plot::latency;
use crate::plot::line::PlotLine;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, or_dash, several, span, us_or_dash, wrapped};
use model::histogram::{Bucket, quantile};
use model::run::{Recorder, Run, Spike, ThreadRun};
use model::sort::CompactSort;

/// Columns of the table; `WIDTHS` has the widths of all but the first.
const COLUMNS: [&str; 10] =
    ["thread, in us", "policy", "period", "cycles", "late", "own p50", "own max", "p50", "p99", "worst"];
const WIDTHS: [usize; 9] = [9, 9, 9, 7, 8, 8, 8, 8, 8];

/// Columns that are dropped on a narrow terminal, in this order.
const LEFT_OUT: [usize; 7] = [5, 7, 1, 6, 8, 2, 3];

/// Limit of threads in the table; the others are counted.
const THREADS: usize = 20;

const OF_HISTOGRAMS: &str = "Response: from the release to the end. Execution: on a CPU, interrupts on \
                             top included. The count is logarithmic.";

const OF_ROWS: &str = "The latest cycles, each from its release on: strokes where it first ran and where it \
                       finished, dashed its deadline. A row leads to its parts.";

/// Limit of threads whose cycles are drawn.
const PICTURES: usize = 4;

/// Threads with cycles, those with late ones and the worst first.
fn ranked(run: &Run) -> Vec<&ThreadRun> {
    let mut all: Vec<&ThreadRun> = run.threads.iter().filter(|thread| thread.cycles > 0).collect();
    all.compact_sort_by_key(|thread| std::cmp::Reverse((thread.late.unwrap_or(0), thread.worst_ns)));
    all
}

/// Sums over the threads with cycles, and the one with the worst response.
struct FollowedSums<'a> {
    threads: u64,
    cycles: u64,
    /// Cycles that had a deadline; `late` counts those that missed it.
    judged: u64,
    late: u64,
    worst: &'a ThreadRun,
}

impl FollowedSums<'_> {
    /// Sums of a run; none without a cycle.
    fn of(run: &Run) -> Option<FollowedSums<'_>> {
        let all = ranked(run);
        let sum =
            |of: fn(&ThreadRun) -> u64| all.iter().map(|thread| of(thread)).fold(0, u64::saturating_add);
        Some(FollowedSums {
            threads: all.len() as u64,
            cycles: sum(|thread| thread.cycles),
            judged: sum(|thread| thread.judged),
            late: sum(|thread| thread.late.unwrap_or(0)),
            worst: all.iter().max_by_key(|thread| thread.worst_ns)?,
        })
    }
}

/// Answer: the number of late cycles, and the worst response.
pub fn answer(run: &Run) -> Option<String> {
    let FollowedSums { threads, cycles: count, judged, late, worst } = FollowedSums::of(run)?;
    let of = several(threads, "thread", "threads");
    // The first cycles of a thread come before its period is known.
    let unjudged = count.saturating_sub(judged);
    let judged_cycles = match unjudged {
        0 => cycles(judged),
        more => format!("{} (not counting {more} before the period was known)", cycles(judged)),
    };
    let worst = format!(
        "the worst observed response is {} of {} ({})",
        worst.worst_ns.map_or_else(|| "not known".to_owned(), span),
        name(worst),
        clean(&worst.worst_culprit)
    );
    Some(match (judged, late) {
        (0, _) => format!("No cycle of {of} had a known deadline; {worst}."),
        (_, 0) => format!("None of {judged_cycles} of {of} missed its deadline; {worst}."),
        (_, 1) => format!("1 of {judged_cycles} of {of} missed its deadline; {worst}."),
        (_, _) => format!("{late} of {judged_cycles} of {of} missed their deadline; {worst}."),
    })
}

/// Short answer, for below a table that has the rest.
pub fn short_answer(run: &Run) -> Option<String> {
    let FollowedSums { cycles: count, judged, late, worst, .. } = FollowedSums::of(run)?;
    let took = worst.worst_ns.map_or_else(|| "an unknown time".to_owned(), span);
    let least = if run.unseen_wakeups().is_some() { "at least " } else { "" };
    let worst = format!("the worst took {least}{took} ({})", name(worst));
    Some(match judged {
        0 => format!("{} without a known deadline; {worst}.", cycles(count)),
        _ => format!("{late} of {} late; {worst}.", cycles(judged)),
    })
}

fn cycles(count: u64) -> String {
    several(count, "cycle", "cycles")
}

fn name(thread: &ThreadRun) -> String {
    format!("{}:{}", clean(&thread.comm), thread.tid)
}

/// Renders the answer as a heading, and a row per thread.
pub fn render(page: &mut String, run: &Run, width: usize, palette: Palette) {
    let Some(answer) = answer(run) else { return };
    let mut text = String::new();
    wrapped(&mut text, &answer, width);
    let late = run.threads.iter().any(|thread| thread.late.is_some_and(|late| late > 0));
    let _ = writeln!(page, "{}\n", palette.paint(if late { RED } else { BOLD }, text.trim_end()));
    let all = ranked(run);
    let mut columns: Vec<usize> = (1..COLUMNS.len()).collect();
    for column in LEFT_OUT {
        if 20 + columns.iter().map(|at| 1 + WIDTHS[at - 1]).sum::<usize>() > width {
            columns.retain(|&at| at != column);
        }
    }
    let line = |cells: [String; COLUMNS.len()]| {
        let mut text = format!("{:<20}", cells[0]);
        for &at in &columns {
            let _ = write!(text, " {:>width$}", cells[at], width = WIDTHS[at - 1]);
        }
        text
    };
    let _ = writeln!(page, "{}", line(COLUMNS.map(str::to_owned)));
    for thread in all.iter().take(THREADS) {
        let _ = writeln!(page, "{}", line(cells(thread)));
    }
    if all.len() > THREADS {
        let _ =
            writeln!(page, "and {}", several((all.len() - THREADS) as u64, "more thread", "more threads"));
    }
    for line in remarks(run) {
        wrapped(page, &line, width);
    }
    page.push('\n');
}

/// Row of a thread.
fn cells(thread: &ThreadRun) -> [String; COLUMNS.len()] {
    let of = |rows: &[Bucket], max, per_million| us_or_dash(quantile(rows, max, per_million));
    let policy = match thread.policy.as_str() {
        "fifo" | "rr" => format!("{} {}", thread.policy, thread.priority),
        other => clean(other),
    };
    let execution_max = thread.execution.last().map(|row| row.upper);
    [
        name(thread),
        policy,
        us_or_dash(thread.period_ns),
        thread.cycles.to_string(),
        or_dash(thread.late),
        of(&thread.execution, execution_max, 500_000),
        us_or_dash(execution_max),
        of(&thread.response, thread.worst_ns, 500_000),
        of(&thread.response, thread.worst_ns, 990_000),
        us_or_dash(thread.worst_ns),
    ]
}

/// Remarks on what the table leaves out.
fn remarks(run: &Run) -> Vec<String> {
    let sum = |of: fn(&ThreadRun) -> u64| run.threads.iter().map(of).fold(0u64, u64::saturating_add);
    let mut lines = Vec::new();
    let (untold, overrun) = (sum(|thread| thread.untold), sum(|thread| thread.overrun));
    if overrun > 0 {
        let many = several(overrun, "expiry", "expiries");
        lines.push(format!(
            "{many} of a thread's timer came while its previous cycle was running, and started no new cycle."
        ));
    }
    if untold > 0 {
        let many = several(untold, "sleep", "sleeps");
        let recorded =
            |recorder: &Recorder| recorder.events.iter().any(|event| event == "raw_syscalls:sys_enter");
        let hint = if run.recorder.as_ref().is_some_and(recorded) {
            ""
        } else {
            " --syscalls distinguishes waiting for a mutex from waiting for the next cycle."
        };
        lines.push(format!(
            "{many} may or may not have ended a cycle, because no event shows it, or events were lost: they \
             belong to no cycle.{hint}"
        ));
    }
    let unseen = sum(|thread| thread.unseen_switches);
    if unseen > 0 {
        let many = several(unseen, "switch", "switches");
        lines.push(format!(
            "The kernel did not record {many} to a thread, as happens when a virtual CPU leaves its idle \
             state: the responses of these cycles are correct, and the thread's own time in them is an upper \
             bound."
        ));
    }
    let without = run.threads.iter().filter(|thread| thread.cycles == 0).count() as u64;
    if without > 0 {
        let many = several(without, "followed thread", "followed threads");
        lines.push(format!("{many} had no complete cycle."));
    }
    let yields = |thread: &&ThreadRun| thread.cycles == 0 && thread.policy == "deadline";
    if let Some(thread) = run.threads.iter().find(yields) {
        lines.push(format!("Of {}: {}: {}.", name(thread), program::YIELDS, program::SLEEP));
    }
    if run.threads_dropped > 0 {
        let (one, many) = ("more real-time thread is", "more real-time threads are");
        let dropped = several(run.threads_dropped, one, many);
        lines.push(format!(
            "{dropped} not in this list: only those with the highest priorities are followed."
        ));
    }
    lines
}

/// Answer and table as a part of the run's page; nothing if no thread was followed.
pub fn section(run: &Run) -> Markup {
    let (all, end) = (ranked(run), program::ended(run));
    let Some(answer) = answer(run) else {
        return html! { @if let Some(end) = end { p { (prose(&end)) } } };
    };
    html! {
        h2 { "The threads and their cycles" }
        p { strong { (prose(&answer)) } @if let Some(end) = end { " " (prose(&end)) } }
        (scroll("Cycles by thread, times in microseconds", html! {
            table {
                thead { tr {
                    @for (at, name) in COLUMNS.iter().enumerate() {
                        th class=[(at == 0).then_some("left")] { (name) }
                    }
                } }
                tbody {
                    @for thread in all.iter().take(THREADS) {
                        tr { @for (at, cell) in cells(thread).iter().enumerate() {
                            td class=[(at == 0).then_some("left")] { (cell) }
                        } }
                    }
                }
            }
        }))
        @for line in remarks(run) { p class="muted" { (prose(&line)) } }
        @for thread in all.iter().take(PICTURES) { (pictures(thread, run)) }
        @if all.len() > PICTURES {
            p class="muted" { "The other threads are in the table alone." }
        }
    }
}

/// Histograms of a thread's cycles, and its latest cycles one by one.
fn pictures(thread: &ThreadRun, run: &Run) -> Markup {
    let line = |name: &str, rows: &'_ [Bucket], max| PlotLine {
        name: name.to_owned(),
        detail: String::new(),
        rows: rows.to_vec().into(),
        deadline: None,
        min: None,
        max,
        overflows: 0,
        beyond_from: None,
        early: 0,
        counted: "cycles",
    };
    let longest = thread.execution.last().map(|row| row.upper);
    let lines =
        [line("response", &thread.response, thread.worst_ns), line("execution", &thread.execution, longest)];
    let rows: Vec<CycleRow> = latest(thread, run);
    html! {
        h3 { "The cycles of " (name(thread)) }
        (figure(OF_HISTOGRAMS,
            |size| Some(latency::draw_cycles(&lines, thread.deadline_ns, size, &PAGE))))
        (figure(OF_ROWS,
            |size| cycle_rows::draw(&rows, size, &PAGE)))
    }
}

/// Late cycles of a thread, the longest first, with their anchors on the page.
fn latest<'a>(thread: &ThreadRun, run: &'a Run) -> Vec<CycleRow<'a>> {
    let latest = worst(run, KEPT);
    let link = |spike: &Spike| latest.iter().position(|one| *one == spike).map(|at| place_of(at + 1));
    let own = |spike: &&Spike| spike.deadline_ns.is_some() && spike.victim.pid == thread.tid;
    let mut own: Vec<&Spike> = run.spikes.iter().filter(own).collect();
    own.compact_sort_by_key(|spike| (std::cmp::Reverse(spike.latency_ns), spike.expected_ns));
    own.into_iter().take(cycle_rows::ROWS).map(|spike| CycleRow { spike, link: link(spike) }).collect()
}

/// Anchor of a spike on the page, which the page's script parses as well.
pub fn place_of(number: usize) -> String {
    format!("spike={number}")
}

/// Lateness for a spike's headline: for a cycle its response and its deadline.
pub fn late(spike: &Spike) -> String {
    let latency = span(spike.latency_ns);
    match spike.deadline_ns {
        Some(deadline) => format!("{latency} from release to end, deadline {}", span(deadline)),
        None => format!("{latency} late"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    fn thread(tid: i32, late: Option<u64>, worst: i64) -> ThreadRun {
        let rows = vec![Bucket::new(Nanos(worst - 5), Nanos(worst + 1), 10)];
        ThreadRun {
            tid,
            comm: "ctl".into(),
            policy: "fifo".into(),
            priority: 80,
            cycles: 10,
            late,
            judged: late.map_or(0, |_| 10),
            worst_ns: Some(Nanos(worst)),
            worst_culprit: "0.5 ms preempted by hog:9".into(),
            response: rows.clone(),
            execution: rows,
            ..ThreadRun::default()
        }
    }

    fn page(threads: Vec<ThreadRun>) -> String {
        let mut page = String::new();
        render(&mut page, &Run { threads, ..Run::default() }, 100, Palette(false));
        page
    }

    #[test]
    fn the_answer_comes_first_and_the_worst_thread_too() {
        let text = page(vec![thread(1, Some(0), 900_000), thread(2, Some(3), 700_000)]);
        assert!(text.starts_with("3 of 20 cycles of 2 threads missed their deadline"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("900 us of ctl:1 (0.5 ms preempted by hog:9)"), "{text}");
        assert!(text.find("\nctl:2") < text.find("\nctl:1"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 104), "{text}");
        assert!(page(vec![thread(1, Some(0), 9_000)]).starts_with("None of 10 cycles of 1 thread"));
        assert!(page(vec![thread(1, None, 9_000)]).starts_with("No cycle of 1 thread had a known deadline"));
        assert_eq!(page(vec![ThreadRun::default()]), "");
    }

    #[test]
    fn what_is_in_no_cycle_is_told() {
        let odd = ThreadRun { untold: 2, overrun: 1, unseen_switches: 3, ..thread(1, Some(0), 9_000) };
        let yields = ThreadRun { policy: "deadline".into(), ..ThreadRun::default() };
        let text = page(vec![odd, yields]).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["--syscalls", "1 expiry", "1 followed thread had no", "with sched_yield() neither"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let events = vec!["raw_syscalls:sys_enter".to_owned()];
        let recorder = Some(Recorder { events, ..Recorder::default() });
        let threads = vec![ThreadRun { untold: 2, ..thread(1, Some(0), 9_000) }];
        let lines = remarks(&Run { threads, recorder, ..Run::default() });
        assert!(lines[0].ends_with("to no cycle."), "{lines:?}");
    }
}
