//! Record as a page: the answer, T above W over time, the histogram with its worst marked, and
//! below it, in the same colours, the table of the worst.

use std::borrow::Cow;

use maud::{Markup, html};

use super::blamed::{bars, next_step};
use super::summary::{PlacedWorst, SeriesTotals, WatchSummary};
use super::words::{answer, culprit, losses, parts, priority, task, times, when};
use crate::boundary::for_viewer;
use crate::html::{cards, document, figure, next, page_of, pairs, scroll};
use crate::plot::latency::{self, LatencyMark};
use crate::plot::line::PlotLine;
use crate::plot::svg::Picture;
use crate::plot::svg::Size;
use crate::plot::theme::{PAGE, PAPER, Theme};
use crate::plot::watch_over_time::{self, MARKED, colour_of_worst, coloured};
use crate::prose::prose;
use crate::words::{UNKNOWN, clean, or_dash, several, span, us, us_or_dash};
use model::error::{Result, json};
use model::histogram::quantile;
use model::units::Cpu;

/// Limit of the worst in the page's list.
const WORST: usize = 20;

/// Columns of a series.
const COLUMNS: [&str; 9] = ["wake-ups", "missed", "early", "min", "mean", "p50", "p99", "p99.99", "max"];

const NUMBERS: &str = "For the numbers see the table below.";
const PARTS: &str = "T: lateness of the timer. W: time that the thread then waited for its CPU.";
const WITH_SWITCH: &str = "T: lateness of the timer. W: time that the thread then waited for its CPU. S: the \
                           switch to it.";
const OWN_MATTER: &str = "Threads of the application that waited for each other: caused by the application, \
                          not a latency of the system.";

/// Page of a record.
pub fn html(of: &WatchSummary) -> Result<String> {
    let json = json(of)?;
    let answer = answer(of);
    let (first, rest) = answer.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    Ok(page_of(
        &format!("Wake-ups of real-time threads: {}", clean(&of.title)),
        html! {
            p class="lead" { (prose(first)) }
            @for remark in &of.remarks { div class="banner" role="alert" { (prose(remark)) } }
            (bars(of))
            (next(&[next_step(of)]))
            @for line in rest { p { (prose(line)) } }
            details {
                summary { "Recording: times, length, kernel" }
                (conditions(of))
            }
            @for line in losses(of) { p { (prose(&line)) } }
            h2 { "Over time" }
            (figure("", |size| watch_over_time::draw(of, size, &PAGE)))
            @if let Some(main) = of.main() {
                h2 { "Number of wake-ups by duration" }
                @let caption = format!("{}, of threads that waited for the system. {NUMBERS}", main.series);
                (figure(&caption, |size| Some(histogram(of, main, size, &PAGE))))
            }
            (list("The worst", if has_switch(&of.worst) { WITH_SWITCH } else { PARTS }, of, &of.worst))
            (list("Behind the same or a higher priority", OWN_MATTER, of, &of.worst_by_priority))
            (list("Kernel threads", "", of, &of.worst_of_kernel_threads))
            (stacks(of))
            @for totals in &of.series { (series(totals)) }
            (marks(of))
            (environments(of))
            footer class="muted" { p { "Written by onbeat " (env!("CARGO_PKG_VERSION")) "." } }
            (document(&json))
        },
    ))
}

/// Histogram alone, as a standalone file.
pub fn svg(of: &WatchSummary) -> String {
    let picture = match of.main() {
        Some(main) => histogram(of, main, Size::Wide, &PAPER),
        None => latency::draw(&[], None, &[], Size::Wide, &PAPER),
    };
    let (width, height) = (picture.width, picture.height);
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(picture.label) {
            rect width="100%" height="100%" fill=(PAPER.background) {}
            (picture.body)
        }
    };
    for_viewer(document.into_string())
}

/// Histogram with a line per CPU, the worst marked by their numbers.
fn histogram(of: &WatchSummary, main: &SeriesTotals, size: Size, theme: &Theme) -> Picture {
    // CPUs of the picture over time come first, so that a colour has one meaning in both.
    let others = main
        .cpus
        .iter()
        .map(|cpu| cpu.cpu)
        .filter(|cpu| !of.columns.iter().any(|known| Some(known.cpu) == *cpu));
    let cpus: Vec<Option<Cpu>> = of.columns.iter().map(|known| Some(known.cpu)).chain(others).collect();
    let lines: Vec<PlotLine> = cpus
        .iter()
        .map(|cpu| {
            let totals = main.cpus.iter().find(|totals| totals.cpu == *cpu);
            PlotLine {
                name: format!("CPU {}", or_dash(*cpu)),
                detail: String::new(),
                rows: Cow::Borrowed(totals.map_or(&[], |totals| &totals.histogram)),
                deadline: None,
                min: totals.and_then(|totals| totals.min_ns),
                max: totals.and_then(|totals| totals.max_ns),
                overflows: 0,
                beyond_from: None,
                early: totals.map_or(0, |totals| totals.early),
                counted: "wake-ups",
            }
        })
        .collect();
    let mark = |(at, worst): (usize, &PlacedWorst)| {
        let line = cpus.iter().position(|cpu| *cpu == worst.wakeup.cpu)?;
        let latency = worst.wakeup.value(main.series.known()?)?;
        Some(LatencyMark { latency, name: format!("{}: {}", at + 1, span(latency)), line })
    };
    let marks: Vec<LatencyMark> = of.worst.iter().take(MARKED).enumerate().filter_map(mark).collect();
    latency::draw_marked(&lines, &coloured(of), &marks, None, &[], size, theme)
}

fn conditions(of: &WatchSummary) -> Markup {
    let times = if of.from.is_empty() { "the clock was not set".into() } else { times(of) };
    let kernels: Vec<String> =
        of.environments.iter().map(|environment| clean(&environment.release)).collect();
    pairs(&[
        ("when", times),
        ("recorded", crate::words::duration(of.recorded_ns)),
        ("intervals", of.intervals.to_string()),
        ("boots", of.boots.to_string()),
        ("kernel", if kernels.is_empty() { UNKNOWN.into() } else { kernels.join(", ") }),
        ("recording", clean(&of.recording)),
    ])
}

/// True if S is known for any of them.
fn has_switch(list: &[PlacedWorst]) -> bool {
    list.iter().take(WORST).any(|worst| worst.wakeup.switch_ns.is_some())
}

/// Table of the worst; the first ones have the colours of their marks in the pictures.
fn list(heading: &str, caption: &str, of: &WatchSummary, list: &[PlacedWorst]) -> Markup {
    let main = std::ptr::eq(list.as_ptr(), of.worst.as_ptr());
    let (coloured_cpus, switch) = (coloured(of), has_switch(list));
    html! {
        @if !list.is_empty() {
            h2 { (heading) }
            @if !caption.is_empty() {
                p class="muted" { (caption) " Latencies in us, times in " (of.clock().zone()) "." }
            }
            (cards(heading, html! {
                table {
                    thead { tr {
                        th { "#" }
                        th class="left" { "victim" } th class="more" { "pid" }
                        th class="left more" { "priority" }
                        th { "CPU" } th class="left" { "culprit" } th class="more" { "CPU" }
                        th class="more" { "T" } th class="more" { "W" } @if switch { th class="more" { "S" } }
                        th { "total" } th class="left" { "when" } th class="left more" { "sleeps in" }
                    } }
                    tbody { @for (at, worst) in list.iter().take(WORST).enumerate() {
                        tr {
                            th {
                                @if main && at < MARKED {
                                    (swatch(colour_of_worst(of, worst, &coloured_cpus, &PAGE))) " "
                                }
                                (at + 1)
                            }
                            (cells(worst, of, switch))
                        }
                    } }
                }
            }))
            @if list.len() > WORST {
                p class="muted" {
                    (several((list.len() - WORST) as u64, "more is", "more are"))
                    " in the data at the end of this page."
                }
            }
        }
    }
}

fn swatch(colour: &str) -> Markup {
    html! {
        svg class="swatch" viewBox="0 0 10 10" aria-hidden="true" {
            rect width="10" height="10" fill=(colour) {}
        }
    }
}

fn cells(worst: &PlacedWorst, of: &WatchSummary, switch: bool) -> Markup {
    let wakeup = &worst.wakeup;
    let or_unknown = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { clean(text) };
    html! {
        td class="left" { (or_unknown(&wakeup.victim.comm)) }
        td class="more" { (or_dash(wakeup.victim.tid.or(wakeup.victim.pid))) }
        td class="left more" { (or_dash(priority(&wakeup.victim))) }
        td { (or_dash(wakeup.cpu)) }
        td class="left" { (culprit(&wakeup.culprit)) }
        td class="more" { (or_dash(wakeup.culprit.task.cpu)) }
        td class="more" { (us_or_dash(wakeup.timer_ns)) }
        td class="more" { (us_or_dash(wakeup.wakeup_ns)) }
        @if switch { td class="more" { (us_or_dash(wakeup.switch_ns)) } }
        td class="top" { (us(worst.total_ns)) }
        td class="left" { (when(worst, of)) }
        td class="left more" { (or_unknown(&wakeup.sleeps_in)) }
    }
}

/// Observations at the marked wake-ups, for further analysis.
fn stacks(of: &WatchSummary) -> Markup {
    html! {
        @for (at, worst) in of.worst.iter().take(MARKED).enumerate() {
            @let wakeup = &worst.wakeup;
            details {
                summary { "Observed at " (at + 1) ": " (parts(wakeup)) }
                p {
                    "Before it on the CPU: " (task(&wakeup.previous)) ". "
                    "Interrupted by its timer: " (task(&wakeup.interrupted)) "."
                }
                @if wakeup.stack.is_empty() {
                    p { "No stack was taken." }
                } @else {
                    p class="muted" { "Functions on the CPU, innermost first." }
                    pre { @for function in &wakeup.stack { (clean(function)) "\n" } }
                }
            }
        }
    }
}

/// Totals of a series, as numbers.
fn series(totals: &SeriesTotals) -> Markup {
    let name = format!("{}, {}", totals.series, totals.class);
    html! {
        @if totals.cpus.iter().chain(&totals.threads).any(|row| row.n > 0) {
            details {
                summary { "Totals: " (name) }
                (scroll(&name, html! {
                    table {
                        thead { tr { th class="left" { "of" } @for name in COLUMNS { th { (name) } } } }
                        tbody { @for row in totals.cpus.iter().chain(&totals.threads) {
                            @let at = |q| us_or_dash(quantile(&row.histogram, row.max_ns, q));
                            tr {
                                th class="left" {
                                    @match &row.thread {
                                        Some(thread) => (task(thread)),
                                        None => { "CPU " (or_dash(row.cpu)) },
                                    }
                                }
                                td { (row.n) } td { (row.missed) } td { (row.early) }
                                td { (us_or_dash(row.min_ns)) } td { (us_or_dash(row.mean_ns)) }
                                td { (at(500_000)) } td { (at(990_000)) } td { (at(999_900)) }
                                td class="top" { (us_or_dash(row.max_ns)) }
                            }
                        } }
                    }
                }))
            }
        }
    }
}

fn marks(of: &WatchSummary) -> Markup {
    let clock = of.clock();
    html! {
        @if !of.marks.is_empty() {
            details {
                summary {
                    (several(of.marks.len() as u64, "mark", "marks"))
                    ": events of the machine, and activity of onbeat itself"
                }
                ul { @for mark in &of.marks {
                    li {
                        @if !mark.time.is_empty() { (clock.minute(&mark.time)) " " (clock.zone()) ": " }
                        (mark.mark.kind) @if let Some(cpu) = mark.mark.cpu { ", CPU " (cpu) }
                        @if !mark.mark.detail.is_empty() { ", " (clean(&mark.mark.detail)) }
                    }
                } }
            }
        }
    }
}

fn environments(of: &WatchSummary) -> Markup {
    html! {
        @for environment in of.environments.iter().filter(|environment| !environment.settings.is_empty()) {
            details {
                summary { "Settings of " (clean(&environment.release)) }
                dl {
                    @for (name, value) in &environment.settings {
                        div { dt { (clean(name)) } dd { (clean(value)) } }
                    }
                }
            }
        }
    }
}
