//! Interactive part of a hunt's page: the element that the script fills, its data and, for print or
//! without a script, a table of all kept spikes.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::ask_data;
use super::flame::Flame;
use super::parts::by_latency;
use super::sentences;
use super::typical::{Involved, most_of};
use super::windows::KEPT_LANES;
use crate::html::{data, scroll};
use crate::input::Input;
use crate::plot::theme::{LINES, PAGE};
use crate::prose::prose;
use crate::words::{clean, several, span};
use model::run::Run;
use model::units::Cpu;
use rules::culprits::belonging::time_by_culprit;

/// Actions of the buttons, their signs, and names for signs that need one.
const TOOLS: [(&str, &str, Option<&str>); 7] = [
    ("in", "+", Some("zoom in")),
    ("out", "\u{2212}", Some("zoom out")),
    ("left", "\u{25c2}", Some("earlier")),
    ("right", "\u{25b8}", Some("later")),
    ("whole", "whole run", None),
    ("earlier", "previous spike", None),
    ("later", "next spike", None),
];

/// Data for the script; nothing for a run without spikes.
pub fn document(input: &Input, flame: &Flame, involved: &[Involved]) -> Markup {
    let document = ask_data::of(input, flame, involved);
    let json = document.map(|document| serde_json::to_string(&document).expect("numbers and texts alone"));
    html! { @if let Some(json) = json { (data("onbeat-spikes", &json)) } }
}

/// Section of the interactive pictures with its buttons; hidden until the script has filled it.
pub fn place(input: &Input) -> Markup {
    let run = input.run;
    let count = run.spikes.len();
    let lanes = if count > KEPT_LANES {
        format!(
            " Stacks and the activity of every CPU are stored for the {KEPT_LANES} latest and for one \
             typical spike of each culprit; slices and evidence for all. The run's document at the end of \
             this file has the slices of these {KEPT_LANES}; `onbeat report --json` writes all."
        )
    } else {
        String::new()
    };
    html! {
        section class="ask" id="ask" aria-label="Every spike over time" hidden {
            h2 { "The largest latency over time" }
            p class="muted" {
                "Every point is a spike: click one, or step through them with the arrow keys. "
                "Drag moves the time, Ctrl and the wheel zoom; so do W, A, S and D."
                (prose(&lanes))
                @if run.spikes_dropped > 0 {
                    " " (several(run.spikes_dropped, "more spike is", "more spikes are"))
                    " counted but not stored."
                }
            }
            p class="tools" {
                @for (act, sign, name) in TOOLS {
                    button type="button" data-act=(act) aria-label=[name] { (sign) }
                }
                (cpus(input))
            }
            div id="ask-time" {}
            p class="readout" id="ask-readout" { "\u{a0}" }
            p class="tools" id="ask-filter" hidden {
                span {}
                button type="button" data-act="unfilter" { "all culprits" }
                button type="button" data-act="typical" hidden { "a typical one" }
            }
            div class="spike" id="ask-spike" aria-live="polite" {}
        }
    }
}

/// Switch for each CPU, if there are several.
fn cpus(input: &Input) -> Markup {
    let mut cpus: BTreeSet<Cpu> = input.history.peaks().cpus().map(|(cpu, _)| cpu).collect();
    cpus.extend(input.run.spikes.iter().map(|spike| spike.cpu));
    let colour = |at: usize| PAGE.lines[if cpus.len() > LINES { 1 } else { at }];
    html! {
        @if cpus.len() > 1 {
            span class="cpus" role="group" aria-label="CPUs" {
                @for (at, cpu) in cpus.iter().enumerate() {
                    button type="button" class="cpu" data-cpu=(cpu) aria-pressed="true"
                        style={ "border-color:" (colour(at)) } { "CPU " (cpu) }
                }
                button type="button" data-act="all" { "all" }
                button type="button" data-act="none" { "none" }
            }
        }
    }
}

/// Table of all kept spikes; open, and closed by the script, which hides the rows that a filter
/// excludes.
pub fn table(run: &Run) -> Markup {
    let most = |at: usize| {
        let took = time_by_culprit(&run.culprits, &run.spikes[at]);
        most_of(&took)
            .map_or_else(|| sentences::classes(&run.spikes[at]), |place| clean(&run.culprits[place].name))
    };
    html! {
        details id="ask-list" open {
            summary {
                "All " (several(run.spikes.len() as u64, "kept spike", "kept spikes")) ", worst first"
            }
            (scroll("All kept spikes", html! {
                table {
                    thead { tr {
                        th { "spike" } th { "late" } th { "CPU" }
                        th class="left" { "when" } th class="left" { "most of it by" }
                    } }
                    tbody { @for (rank, at) in by_latency(run).into_iter().enumerate() {
                        @let spike = &run.spikes[at];
                        tr {
                            td { a href={ "#spike=" (rank + 1) } { (rank + 1) } }
                            td class="top" { (span(spike.latency_ns)) } td { (spike.cpu) }
                            td class="left" { (sentences::when(spike, run)) } td class="wrap" { (most(at)) }
                        }
                    } }
                }
            }))
        }
    }
}
