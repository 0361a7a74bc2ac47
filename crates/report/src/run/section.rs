//! Part of the page for one run: conditions, integrity entries, the table, the pictures, the rest.

use maud::{Markup, html};

use super::pictures::pictures;
use super::what_next::what_next;
use super::{answer as last_words, conditions, next_steps, probes, sentences, table, verdicts};
use crate::bounds::section as bounds_section;
use crate::bounds::sentences::verdict;
use crate::html::{next, pairs, scroll};
use crate::hunt;
use crate::input::Input;
use crate::prose::prose;
use crate::words::{MachineClock, UNKNOWN, capitalised, clean, or_dash, several, span, us, us_or_dash};
use model::run::{CpuRun, Run, Worst};
use model::sort::CompactSort;
use model::vocabulary::Command;

/// Limit of worst wake-ups in the list.
const WORST: usize = 20;
/// Limit of remarks on the measurement that are not folded.
const REMARKS: usize = 2;
/// Limit of CPUs with a row each; beyond it the worst have one, and the full list is folded.
const ROWS: usize = 16;
/// Number of the worst CPUs among many.
const WORST_CPUS: usize = 4;

/// Section of a run; with a number if it is one of several.
pub fn run(input: &Input, number: Option<usize>) -> Markup {
    let run = input.run;
    html! {
        section class="run" id=[number.map(|n| format!("run-{n}"))] {
            @if let Some(n) = number { h2 class="name" { (n) ". " (clean(input.title)) } }
            (answer(input))
            (hunt::section::section(input))
            h2 { "Latency per " (row_noun(run)) }
            (cpus(run))
            @for note in sentences::oddities(run) { p { (note) } }
            // The section on bounds ends with the same statement.
            @if let Some(sentence) = sentences::limits(run).filter(|_| input.bounds.is_none()) { p class="muted" { (sentence) } }
            h2 { "Pictures" }
            (pictures(input))
            @if let Some(bounds) = input.bounds { (bounds_section::section(input.title, bounds)) }
            (worst(run))
            (beyond(run))
            h2 { "Method" }
            (measured(input))
            (rest(run))
        }
    }
}

/// First screen: the lateness, its reliability, and the culprits.
fn answer(input: &Input) -> Markup {
    let run = input.run;
    let outlook = next_steps::outlook(run);
    html! {
        @if let Some(sentence) = hunt::outside::sentence(run) {
            div class="banner" role="alert" { (sentence) }
        }
        (banners(input))
        (hunt::section::banner(run))
        // For a followed program its cycles are the answer.
        @let cycles = hunt::threads::answer(run);
        @if let Some(cycles) = &cycles { p class="lead" { (prose(cycles)) } }
        p class=[cycles.is_none().then_some("lead")] { (sentences::verdict(run)) }
        @if let Some(verdict) = verdicts::verdict(run) { p { strong { (capitalised(&verdict)) "." } } }
        @if run.command == Command::Hunt { p { (prose(&hunt::sentences::found(run))) } }
        @if let Some((bounds, claim)) = input.bounds.and_then(|bounds| Some((bounds, bounds.claim.as_ref()?))) {
            p { strong { (verdict(bounds, claim)) } }
        }
        // The largest values of a hunt are not those of the machine alone.
        @if run.command == Command::Measure && !outlook.is_empty() { p { (prose(&outlook.join(" "))) } }
        (hunt::answer::bars(run))
        (next(&what_next(input)))
        (integrity(input))
        (hunt::section::remark(run))
        @if run.command == Command::Hunt { p class="muted" { (prose(&hunt::sentences::armed(run))) } }
    }
}

/// Conditions and the recorder's account: details to defend a number.
fn measured(input: &Input) -> Markup {
    let run = input.run;
    let (known, unknown) = conditions::known_conditions(run);
    html! {
        details {
            summary { "Conditions: kernel, clock, policy, interval, memory" }
            (pairs(&known))
            @if !unknown.is_empty() { p { "Not known: " (unknown.join(", ")) "." } }
            @for note in &run.plan.notes { p class="muted" { (prose(note)) } }
        }
        (hunt::section::account(run))
    }
}

/// Warnings that must be read before any number.
fn banners(input: &Input) -> Markup {
    let invalid: Vec<String> =
        input.run.integrity.iter().filter(|entry| entry.invalidates).map(sentences::integrity).collect();
    html! {
        @if let Some(sentence) = sentences::incomplete(input.run) { div class="banner" role="alert" { (sentence) } }
        @if !invalid.is_empty() {
            div class="banner" role="alert" {
                "INVALID: the results cannot be trusted."
                ul { @for sentence in &invalid { li { (prose(sentence)) } } }
            }
        }
    }
}

fn integrity(input: &Input) -> Markup {
    let entries = &input.run.integrity;
    let list = html! {
        ul { @for entry in entries {
            li {
                @if entry.invalidates { strong { "invalidates the run: " } }
                (prose(&sentences::integrity(entry)))
            }
        } }
    };
    html! {
        // Same words as in the terminal's last lines.
        @let fair = capitalised(&last_words::fair(input.run).0);
        p { strong { "Reliability: " } (prose(&fair)) "." }
        @if !entries.is_empty() {
            details open[entries.len() <= REMARKS] {
                summary { (several(entries.len() as u64, "note", "notes")) " on the measurement" }
                (list)
            }
        }
        @for remark in input.remarks { p { "Reading the bundle: " (prose(remark)) } }
    }
}

fn cpus(run: &Run) -> Markup {
    if run.cpus.is_empty() {
        return html! { p { "No CPU was measured." } };
    }
    let all: Vec<&CpuRun> = run.cpus.iter().collect();
    let mut worst = all.clone();
    worst.compact_sort_by_key(|cpu| std::cmp::Reverse(cpu.max_ns));
    worst.truncate(WORST_CPUS);
    html! {
        @if all.len() > ROWS {
            (cpu_table(run, &worst))
            details {
                summary { "All " (all.len()) " CPUs" }
                (cpu_table(run, &all))
            }
        } @else {
            (cpu_table(run, &all))
        }
        p class="muted" { "Latencies in us. Quantiles are upper edges of histogram rows at most 1.6 % wide; min and max are exact." }
    }
}

/// Noun of the rows: threads that may run on several CPUs have one each.
fn row_noun(run: &Run) -> &'static str {
    let is_bound = run.primary().next().is_none_or(|cpu| cpu.cpu.is_some());
    if is_bound { "CPU" } else { "thread" }
}

fn cpu_table(run: &Run, cpus: &[&CpuRun]) -> Markup {
    let mut heads = HEADS.map(|head| head.0.to_owned());
    heads[..2].clone_from_slice(&table::heads(run)[1..3]);
    let mut types: Vec<&str> = Vec::new();
    for cpu in cpus {
        if !types.contains(&cpu.core_type.as_str()) {
            types.push(&cpu.core_type);
        }
    }
    scroll(
        &format!("Latency per {}, in us", row_noun(run)),
        html! {
            table {
                thead { tr {
                    th { (row_noun(run)) }
                    @for (head, (_, less)) in heads.iter().zip(HEADS) {
                        th class=[less.then_some("more")] { (head) }
                    }
                    th class="left" { "when (" (MachineClock::of(run).zone()) ")" }
                } }
                tbody {
                    @for core_type in &types {
                        @if types.len() > 1 {
                            @let name = if core_type.is_empty() { "other" } else { core_type };
                            tr class="group" { th colspan="12" { (clean(name)) " cores" } }
                        }
                        @for cpu in cpus.iter().filter(|cpu| cpu.core_type == **core_type) { (cpu_row(cpu, run)) }
                    }
                    @if run.cpus.len() > 1 { (sum_row(run)) }
                }
            }
        },
    )
}

/// Columns between the CPU and the time of its worst, and true if a narrow screen drops them.
const HEADS: [(&str, bool); 10] = [
    ("cycles", true),
    ("missed", false),
    ("early", true),
    ("min", true),
    ("mean", true),
    ("p50", true),
    ("p99", true),
    ("p99.9", true),
    ("p99.99", false),
    ("max", false),
];

fn sum_row(run: &Run) -> Markup {
    let sum = table::sum(run);
    let early: Option<u64> = run.cpus.iter().try_fold(0u64, |sum, cpu| Some(sum.saturating_add(cpu.early?)));
    let early = or_dash(early);
    let cells = [&sum[1], &sum[2], &early].into_iter().chain(&sum[3..10]);
    html! {
        tr class="sum" {
            th { "all" }
            @for (cell, (_, less)) in cells.zip(HEADS) { td class=[less.then_some("more")] { (cell) } }
            td class="left" { (sum[10]) }
        }
    }
}

fn cpu_row(cpu: &CpuRun, run: &Run) -> Markup {
    let values = [cpu.min_ns, cpu.mean_ns, cpu.p50_ns, cpu.p99_ns, cpu.p999_ns, cpu.p9999_ns, cpu.max_ns];
    let counts = [or_dash(cpu.cycles), or_dash(probes::beside(cpu)), or_dash(cpu.early)];
    let cells = counts.into_iter().chain(values.map(us_or_dash));
    let when = cpu.worst.first().filter(|worst| worst.latency_ns == cpu.max_ns);
    html! {
        tr {
            th scope="row" { (cpu.label()) }
            @for (cell, (head, less)) in cells.zip(HEADS) {
                td class=[less.then_some("more").or((head == "max").then_some("top"))] { (cell) }
            }
            td class="left" {
                @if let Some(worst) = when { (MachineClock::of(run).time_of_day(&worst.time)) }
            }
        }
    }
}

fn worst(run: &Run) -> Markup {
    let mut all: Vec<(&CpuRun, &Worst)> =
        run.cpus.iter().flat_map(|cpu| cpu.worst.iter().map(move |worst| (cpu, worst))).collect();
    // Wake-ups that an import counted without a value may not be among the worst.
    all.retain(|(_, worst)| worst.latency_ns.is_some());
    all.compact_sort_by_key(|(_, worst)| std::cmp::Reverse(worst.latency_ns));
    if all.is_empty() {
        return html! {};
    }
    html! {
        @let title = format!("The worst {}", probes::sample(run).1);
        h2 { (title) }
        (scroll(&title, html! {
            table {
                thead { tr {
                    th { "latency in us" } th { "CPU" } th { "cycle" }
                    th class="left" { "when (" (MachineClock::of(run).zone()) ")" }
                } }
                tbody { @for (cpu, worst) in all.iter().take(WORST) {
                    tr {
                        td class="top" { (worst.latency_ns.map_or_else(|| "not known".into(), us)) }
                        td { (cpu.label()) } td { (or_dash(worst.cycle)) }
                        td class="left" { (MachineClock::of(run).time_of_day(&worst.time)) }
                    }
                } }
            }
        }))
        @if all.len() > WORST { p class="muted" { (all.len() - WORST) " more are in the data at the end of this file." } }
    }
}

/// Wake-ups that an import lists as beyond its histogram: the first of them, which are not the
/// worst.
fn beyond(run: &Run) -> Markup {
    let listed = |cpu: &CpuRun| cpu.listed_overflows().count() as u64;
    if run.cpus.iter().all(|cpu| listed(cpu) == 0) {
        return html! {};
    }
    html! {
        h2 { "Wake-ups beyond the histogram's end" }
        @for cpu in run.cpus.iter().filter(|cpu| listed(cpu) > 0) {
            p {
                (cpu.name()) ": "
                @if let Some(from) = cpu.beyond_from().filter(|from| from.0 >= 0) { "each at least " (span(from)) ", exact values unknown. " }
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
        @if !overhead.is_empty() { h2 { "Cost of the measurement" } (pairs(&overhead)) }
        @if !environment.is_empty() { h2 { "Environment" } (pairs(&environment)) }
        @if !run.host.unknown.is_empty() {
            p class="muted" { "Could not be read: " (run.host.unknown.iter().map(|what| clean(what)).collect::<Vec<_>>().join("; ")) }
        }
        p class="muted" { "Run " (if run.id.is_empty() { UNKNOWN.into() } else { clean(&run.id) }) ", made by onbeat " (clean(&run.version)) " (" (clean(run.command.as_str())) ")." }
    }
}
