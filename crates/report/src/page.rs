//! One run's part of the page: conditions, what was in the way, the table, the pictures, the rest.

use maud::{Markup, html};

use super::line::{self, sum_rows};
use super::marks::Marks;
use super::prose::prose;
use super::svg::{Picture, Size};
use super::theme::PAGE;
use super::words::{self, UNKNOWN, clean, duration, or_dash, span, us, us_or_dash, verdict};
use super::{
    Input, clock, conditions, exceedance, heatmap, hunt, latency, peaks, rates, supports, table, timeline,
};
use model::histogram::Bucket;
use model::run::{CpuRun, Run, Worst};
use model::units::{Cpu, Nanos};
use model::vocabulary::Command;

/// So many of the worst wake-ups are listed.
const WORST: usize = 20;
/// So many rows has the table beside the maximum over time.
const TIMES: usize = 24;

/// A run; with a number where it is one of several.
pub fn run(input: &Input, number: Option<usize>) -> Markup {
    let run = input.run;
    html! {
        section class="run" id=[number.map(|n| format!("run-{n}"))] {
            @if let Some(n) = number { h2 class="name" { (n) ". " (clean(input.title)) } }
            @if let Some(sentence) = hunt::outside::sentence(run) { div class="banner" role="alert" { (sentence) } }
            p class="lead" { (verdict(input)) }
            (banners(input))
            h2 { "Conditions" }
            @let (known, unknown) = conditions::known_conditions(run);
            (pairs(&known))
            @if !unknown.is_empty() { p { "Not known: " (unknown.join(", ")) "." } }
            @for note in &run.plan.notes { p class="muted" { (prose(note)) } }
            h2 { "Was the measurement fair?" }
            (integrity(input))
            h2 { "Latency per CPU" }
            (cpus(run))
            (hunt::section::section(run, input.windows))
            @for note in words::oddities(run) { p { (note) } }
            // What a run supports ends with the same in other words.
            @if let Some(sentence) = words::limits(run).filter(|_| input.bounds.is_none()) { p class="muted" { (sentence) } }
            @if let Some(bounds) = input.bounds { (supports::section(input.title, bounds)) }
            h2 { "Pictures" }
            (pictures(input))
            (worst(run))
            (beyond(run))
            (rest(run))
        }
    }
}

/// What must be known before any number is read.
fn banners(input: &Input) -> Markup {
    let invalid: Vec<String> =
        input.run.integrity.iter().filter(|entry| entry.invalidates).map(words::integrity).collect();
    html! {
        @if let Some(sentence) = words::incomplete(input.run) { div class="banner" role="alert" { (sentence) } }
        @if !invalid.is_empty() {
            div class="banner" role="alert" {
                "INVALID: the run does not measure what it says it does."
                ul { @for sentence in &invalid { li { (prose(sentence)) } } }
            }
        }
    }
}

fn integrity(input: &Input) -> Markup {
    let entries = &input.run.integrity;
    html! {
        @if entries.is_empty() && input.run.command == Command::Import {
            p { "Not known: the imported file does not say." }
        } @else if entries.is_empty() {
            p { "Nothing was found that speaks against it." }
        } @else {
            ul { @for entry in entries {
                li { @if entry.invalidates { strong { "invalidates the run: " } } (prose(&words::integrity(entry))) }
            } }
        }
        @for remark in input.remarks { p { "Reading the bundle: " (prose(remark)) } }
    }
}

fn pairs(pairs: &[(&'static str, String)]) -> Markup {
    html! { dl { @for (name, value) in pairs { div { dt { (name) } dd { (prose(value)) } } } } }
}

/// A table that may be wider than the page.
pub fn scroll(name: &str, table: Markup) -> Markup {
    html! { div class="scroll" role="region" aria-label=(name) tabindex="0" { (table) } }
}

fn cpus(run: &Run) -> Markup {
    let mut types: Vec<&str> = Vec::new();
    for cpu in &run.cpus {
        if !types.contains(&cpu.core_type.as_str()) {
            types.push(&cpu.core_type);
        }
    }
    if run.cpus.is_empty() {
        return html! { p { "No CPU was measured." } };
    }
    let heads = ["cycles", "missed", "early", "min", "mean", "p50", "p99", "p99.9", "p99.99", "max"];
    scroll(
        "Latency per CPU, in us",
        html! {
            table {
                thead { tr { th { "CPU" } @for head in heads { th { (head) } } th class="left" { "when (UTC)" } } }
                tbody {
                    @for core_type in &types {
                        @if types.len() > 1 {
                            @let name = if core_type.is_empty() { "other" } else { core_type };
                            tr class="group" { th colspan="12" { (clean(name)) " cores" } }
                        }
                        @for cpu in run.cpus.iter().filter(|cpu| cpu.core_type == **core_type) { (cpu_row(cpu, run)) }
                    }
                    @if run.cpus.len() > 1 {
                        @let sum = table::sum(run);
                        @let early: Option<u64> = run.cpus.iter().try_fold(0u64, |sum, cpu| Some(sum.saturating_add(cpu.early?)));
                        tr class="sum" {
                            th { "all" } td { (sum[1]) } td { (sum[2]) } td { (or_dash(early)) }
                            @for cell in &sum[3..10] { td { (cell) } }
                            td class="left" { (sum[10]) }
                        }
                    }
                }
            }
            p class="muted" { "Latencies in us. Quantiles are upper edges of rows that are at most 1.6 % wide; min and max are exact." }
        },
    )
}

fn cpu_row(cpu: &CpuRun, run: &Run) -> Markup {
    let values = [cpu.min_ns, cpu.mean_ns, cpu.p50_ns, cpu.p99_ns, cpu.p999_ns, cpu.p9999_ns];
    let when = cpu.worst.first().filter(|worst| worst.latency_ns == cpu.max_ns);
    html! {
        tr {
            th scope="row" { (cpu.cpu) }
            td { (cpu.cycles) } td { (or_dash(cpu.missed)) } td { (or_dash(cpu.early)) }
            @for value in values { td { (us_or_dash(value)) } }
            td class="top" { (us_or_dash(cpu.max_ns)) }
            td class="left" { @if let Some(worst) = when { (words::time_of_day(&worst.time, &run.started)) } }
        }
    }
}

/// A picture in both sizes, of which one is shown, and what it does not draw.
pub fn figure(caption: &str, draw: impl Fn(Size) -> Option<Picture>) -> Markup {
    let (Some(wide), Some(narrow)) = (draw(Size::Wide), draw(Size::Narrow)) else { return html! {} };
    html! {
        figure {
            (wide.inline("wide"))
            (narrow.inline("narrow"))
            figcaption { (caption) @for note in &wide.notes { " " (note) } }
        }
    }
}

fn pictures(input: &Input) -> Markup {
    let (run, history) = (input.run, input.history);
    let lines = line::of_run(run);
    let floor = run.cpus.iter().filter_map(|cpu| cpu.min_ns).map(|min| min.0).min();
    let modes = peaks::of(&lines);
    let marks = Marks(input.bounds.map(|bounds| &bounds.structure));
    html! {
        h3 { "How many wake-ups had which latency" }
        (figure("The count is logarithmic; triangles mark each line's largest value.", |size| {
            Some(latency::draw(&lines, input.limit(), &modes, size, &PAGE))
        }))
        @if line::extent(&lines).is_some() {
            h3 { "Which share of the wake-ups reached a latency" }
            (figure("Read upwards from a latency: the share of wake-ups that were at least so late.", |size| {
                exceedance::draw(&lines, size, &PAGE)
            }))
            (levels(run))
        }
        @if let Some(bounds) = input.bounds {
            @if !input.series.blocks.is_empty() {
                h3 { "How often a latency is reached" }
                (figure("Read upwards from a latency: how many blocks an hour have it or a larger one.", |size| {
                    rates::draw(input.series, bounds, size, &PAGE)
                }))
            }
        }
        @if !history.is_empty() {
            h3 { "The largest latency over time" }
            (figure("", |size| timeline::draw(history, marks, size, &PAGE)))
            (times(input))
            @for period in input.bounds.iter().flat_map(|bounds| &bounds.structure.periods).take(clock::MOST) {
                h3 { (clock::heading(period)) }
                (figure("", |size| clock::draw(period, input.series, size, &PAGE)))
            }
            h3 { "All latencies over time" }
            (figure("A cell is a stretch of time and of latency. The eight largest of each second have their own cells; of the others only the band between two levels is known.", |size| {
                heatmap::draw(history, floor, size, &PAGE)
            }))
        }
    }
}

/// How many samples lie in rows that begin at or above a level.
fn at_or_above(rows: &[Bucket], level: i64) -> u64 {
    rows.iter().filter(|row| row.lower.0 >= level).fold(0, |sum, row| sum.saturating_add(row.count))
}

/// The exceedance curve as a table, for all CPUs together.
fn levels(run: &Run) -> Markup {
    let rows = sum_rows(run.cpus.iter().map(|cpu| cpu.histogram.as_slice()));
    let beyond = run.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.overflows.unwrap_or(0)));
    let total = at_or_above(&rows, i64::MIN).saturating_add(beyond);
    let digits = (0..16).flat_map(|power| [1, 2, 5].map(|digit: i64| digit * 10i64.pow(power)));
    let top = rows.last().map_or(0, |row| row.lower.0);
    // A row across the level is not counted whole: the next edge is what the count is exact for.
    let edge = |level: i64| rows.iter().map(|row| row.lower.0).find(|&lower| lower >= level);
    let levels: Vec<(i64, u64)> = digits
        .filter(|&level| level <= top && rows.first().is_some_and(|row| level > row.lower.0))
        .filter_map(|level| Some((edge(level)?, at_or_above(&rows, level).saturating_add(beyond))))
        .collect();
    html! {
        details {
            summary { "The same as a table" }
            (scroll("Wake-ups at or above a latency", html! {
                table {
                    thead { tr { th { "at least, in us" } th { "wake-ups" } th { "share" } } }
                    tbody { @for (level, n) in levels {
                        tr { td { (us(Nanos(level))) } td { (n) } td { (format!("{:.2e}", n as f64 / total.max(1) as f64)) } }
                    } }
                }
            }))
        }
    }
}

/// The largest latency over time as a table, over all CPUs.
fn times(input: &Input) -> Markup {
    let history = input.history;
    let per_row = history.columns().div_ceil(TIMES).max(1);
    let row = |first: usize| {
        let columns = || {
            history.cpus().flat_map(move |(cpu, slots)| {
                slots.iter().skip(first).take(per_row).map(move |slot| (cpu, slot))
            })
        };
        let worst: Option<(Nanos, Cpu)> = columns().filter_map(|(cpu, slot)| Some((slot.max?.0, cpu))).max();
        let missed = columns().filter_map(|(_, slot)| slot.missed).reduce(u64::saturating_add);
        (Nanos(history.since_start(first).max(0.0) as i64), worst, missed)
    };
    html! {
        details {
            summary { "The same as a table" }
            (scroll("Largest latency over time", html! {
                table {
                    thead { tr { th { "from" } th { "largest, in us" } th { "CPU" } th { "missed" } } }
                    tbody { @for (from, worst, missed) in (0..history.columns()).step_by(per_row).map(row) {
                        tr {
                            td { (duration(from)) } td { (us_or_dash(worst.map(|worst| worst.0))) }
                            td { (or_dash(worst.map(|worst| worst.1))) } td { (or_dash(missed)) }
                        }
                    } }
                }
            }))
        }
    }
}

fn worst(run: &Run) -> Markup {
    let mut all: Vec<(&CpuRun, &Worst)> =
        run.cpus.iter().flat_map(|cpu| cpu.worst.iter().map(move |worst| (cpu, worst))).collect();
    // What an import counted without its value is not known to be among the worst.
    all.retain(|(_, worst)| worst.latency_ns.is_some());
    all.sort_by_key(|(_, worst)| std::cmp::Reverse(worst.latency_ns));
    if all.is_empty() {
        return html! {};
    }
    html! {
        h2 { "The worst wake-ups" }
        (scroll("The worst wake-ups", html! {
            table {
                thead { tr { th { "latency in us" } th { "CPU" } th { "cycle" } th class="left" { "when (UTC)" } } }
                tbody { @for (cpu, worst) in all.iter().take(WORST) {
                    tr {
                        td class="top" { (worst.latency_ns.map_or_else(|| "not known".into(), us)) }
                        td { (cpu.cpu) } td { (or_dash(worst.cycle)) }
                        td class="left" { (words::time_of_day(&worst.time, &run.started)) }
                    }
                } }
            }
        }))
        @if all.len() > WORST { p class="muted" { (all.len() - WORST) " more are in the data at the end of this file." } }
    }
}

/// The wake-ups that an import lists as beyond its histogram: the first of them, which are not the worst.
fn beyond(run: &Run) -> Markup {
    let listed = |cpu: &CpuRun| cpu.listed_overflows().count() as u64;
    if run.cpus.iter().all(|cpu| listed(cpu) == 0) {
        return html! {};
    }
    html! {
        h2 { "Wake-ups beyond the histogram's end" }
        @for cpu in run.cpus.iter().filter(|cpu| listed(cpu) > 0) {
            p {
                "CPU " (cpu.cpu) ": "
                @if let Some(from) = cpu.beyond_from() { "each at least " (span(from)) ", how late is not known. " }
                @if cpu.overflows.is_some_and(|all| all > listed(cpu)) {
                    "The first " (listed(cpu)) " of " (or_dash(cpu.overflows)) ", which are not the worst, by their cycle: "
                } @else {
                    "All " (listed(cpu)) " of them by their cycle: "
                }
                (cpu.listed_overflows().take(WORST).map(|cycle| cycle.to_string()).collect::<Vec<_>>().join(", "))
                @if listed(cpu) > WORST as u64 { "; " (listed(cpu) - WORST as u64) " more are in the data at the end of this file" }
                "."
            }
        }
    }
}

fn rest(run: &Run) -> Markup {
    let (overhead, environment) = (conditions::overhead(run), conditions::environment(run));
    html! {
        @if !overhead.is_empty() { h2 { "What the measurement itself cost" } (pairs(&overhead)) }
        @if !environment.is_empty() { h2 { "Environment" } (pairs(&environment)) }
        @if !run.host.unknown.is_empty() {
            p class="muted" { "Could not be read: " (run.host.unknown.iter().map(|what| clean(what)).collect::<Vec<_>>().join("; ")) }
        }
        p class="muted" { "Run " (if run.id.is_empty() { UNKNOWN.into() } else { clean(&run.id) }) ", made by onbeat " (clean(&run.version)) " (" (clean(run.command.as_str())) ")." }
    }
}
