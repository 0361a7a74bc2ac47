//! Report as a page: one file without external references, for `file://`, print, small screens,
//! light and dark settings; that of a hunt has a script, and is complete without it.
//!
//! The page also holds the runs as JSON, in an element that browsers do not execute.

use maud::{Markup, html};

use super::differing::conditions_that_differ;
use super::json::json_compact;
use super::{probes, section, table};
use crate::html::{PageParts, document, figure, next, scroll};
use crate::hunt::threads;
use crate::input::Input;
use crate::plot::overlay;
use crate::plot::overlay::RunGroup;
use crate::plot::{exceedance, latency, line, shift, theme};
use crate::prose::prose;
use crate::script::PageScript;
use crate::totals::largest;
use crate::words::{capitalised, clean, several, span, us_or_dash};
use model::error::Result;
use model::sort::CompactSort;
use model::units::Nanos;
use model::vocabulary::Command;
use stats::compare::secondary;
use stats::pair::unit::ComparedUnit;
use stats::pair::verdict::Design;

/// Next step with several runs.
const COMPARED: &str = "`onbeat compare A... -- B...` decides whether one configuration is better, from six \
                        runs of each, made alternately. Each run is shown separately below.";

/// Runs as one page.
pub fn html(inputs: &[Input]) -> Result<String> {
    Ok(parts(inputs)?.page())
}

/// Parts of that page.
pub fn parts(inputs: &[Input]) -> Result<PageParts> {
    let json = json_compact(inputs)?;
    let heading = match inputs {
        // For a followed program the cycles are the answer.
        [one] if threads::answer(one.run).is_some() => format!("Cycles of a program: {}", clean(one.title)),
        [one] if probes::definition(one.run).is_some() => {
            format!("{}: {}", capitalised(probes::sample(one.run).1), clean(one.title))
        }
        [one] => format!("Wake-up latency: {}", clean(one.title)),
        several => format!("Wake-up latency of {} runs", several.len()),
    };
    // Pages of several runs have no script: the URL could not tell their spikes apart.
    let asked = matches!(inputs, [one] if one.run.command == Command::Hunt && !one.run.spikes.is_empty());
    let body = html! {
            @if inputs.len() == 1 { (section::run(&inputs[0], None)) } @else { (overview(inputs)) }
            footer class="muted" { p { "Written by onbeat " (env!("CARGO_PKG_VERSION")) ". " (measured_quantity(inputs)) } }
            (document(&json))
    };
    Ok(PageParts { heading, body, script: asked.then_some(PageScript::Ask) })
}

/// Definition of what the runs measured; none for several of which some are probes.
fn measured_quantity(inputs: &[Input]) -> String {
    if let [one] = inputs
        && let Some(definition) = probes::definition(one.run)
    {
        return format!("{}.", capitalised(&definition));
    }
    if inputs.iter().any(|one| one.run.probe().is_some()) {
        return String::new();
    }
    "All latencies are wake-up latencies: from the requested wake-up time of a thread to the time it ran."
        .to_owned()
}

/// Several runs: side by side first, then one by one.
fn overview(inputs: &[Input]) -> Markup {
    let lines = line::of_runs(inputs.iter().map(|input| (input.title, input.run)));
    html! {
        p class="lead" { (prose(&latest(inputs))) }
        (next(&[COMPARED.into()]))
        (side_by_side(inputs))
        (differences(inputs))
        h2 { "Latency of all runs" }
        (figure("Sum over all CPUs of a run.", |size| Some(latency::draw(&lines, None, &[], size, &theme::PAGE))))
        h3 { "Exceedance" }
        (figure("", |size| exceedance::draw(&lines, size, &theme::PAGE)))
        (maxima(inputs))
        @for (i, input) in inputs.iter().enumerate() { (section::run(input, Some(i + 1))) }
    }
}

/// Sentence on the run with the largest latency, and on that with the least.
fn latest(inputs: &[Input]) -> String {
    let mut known: Vec<(Nanos, &Input)> =
        inputs.iter().filter_map(|input| Some((largest(input.run)?, input))).collect();
    known.compact_sort_by_key(|(worst, _)| *worst);
    let (Some((least, first)), Some((most, last))) = (known.first(), known.last()) else {
        return "The largest latency of these runs is not known.".to_owned();
    };
    let missing = match inputs.len() - known.len() {
        0 => String::new(),
        n => format!(" That of {} is not known.", several(n as u64, "run", "runs")),
    };
    let (most, least) = (span(*most), span(*least));
    if most == least {
        format!("The largest latency of each run is {most}.{missing}")
    } else {
        format!(
            "The largest latency is {most}, in {}; that of {} is {least}.{missing}",
            clean(last.title),
            clean(first.title)
        )
    }
}

/// Block maxima of all runs over each other; for two, also their difference.
fn maxima(inputs: &[Input]) -> Markup {
    let groups: Vec<RunGroup> = inputs
        .iter()
        .map(|input| RunGroup {
            name: clean(input.title),
            series: vec![input.series],
            unit: ComparedUnit::Run,
        })
        .collect();
    let with_blocks: Vec<&Input> = inputs.iter().filter(|input| !input.series.blocks.is_empty()).collect();
    // Limit that all runs share.
    let limit = inputs
        .first()
        .and_then(Input::limit)
        .filter(|limit| inputs.iter().all(|input| input.limit() == Some(*limit)));
    let shifts = match (inputs, with_blocks.len()) {
        ([a, b], 2) => secondary::quantiles(&[a.series], &[b.series], Design::Unpaired),
        _ => Vec::new(),
    };
    html! {
        @if !with_blocks.is_empty() {
            h3 { "How often a latency is reached" }
            (figure("For each latency: the number of blocks per hour that reach it.", |size| {
                overlay::draw(&groups, limit, size, &theme::PAGE)
            }))
        }
        @if let ([a, b], false) = (inputs, shifts.is_empty()) {
            h3 { "By how much the second run is later, quantile by quantile" }
            (figure("", |size| shift::draw(&shifts, ComparedUnit::Run, size, &theme::PAGE)))
            p { "A is " (clean(a.title)) ", B is " (clean(b.title)) ". One run each allows no verdict, because two runs of one configuration differ too; " code { "onbeat compare" } " compares several of each." }
        }
    }
}

fn side_by_side(inputs: &[Input]) -> Markup {
    scroll(
        "The runs side by side",
        html! {
            table {
                thead { tr {
                    th class="left" { "run" } th class="left more" { "kernel" } th class="more" { "cycles" }
                    th { "missed" }
                    th class="more" { "p50" } th class="more" { "p99.99" } th { "max" }
                    th class="left" { "on" } th class="left" { "state" }
                } }
                tbody {
                    @for (i, input) in inputs.iter().enumerate() {
                        @let sum = table::sum(input.run);
                        @let worst = input.run.primary().max_by_key(|cpu| cpu.max_ns);
                        tr {
                            th class="left" { a href={ "#run-" (i + 1) } { (clean(input.title)) } }
                            td class="left more" { (clean(&input.run.host.release)) }
                            td class="more" { (sum[1]) } td { (sum[2]) } td class="more" { (sum[5]) }
                            td class="more" { (sum[8]) }
                            td class="top" { (us_or_dash(worst.and_then(|cpu| cpu.max_ns))) }
                            td class="left" { @if let Some(cpu) = worst { (cpu.name()) } }
                            td class="left" { (state(input)) }
                        }
                    }
                }
            }
            p class="muted" { "Latencies in us." }
        },
    )
}

fn state(input: &Input) -> String {
    let invalid = input.run.integrity.iter().filter(|entry| entry.invalidates).count();
    match (input.run.complete, invalid) {
        (true, 0) => "complete".into(),
        (true, n) => format!("invalid: {}", several(n as u64, "reason", "reasons")),
        (false, 0) => "incomplete".into(),
        (false, n) => format!("incomplete, invalid: {}", several(n as u64, "reason", "reasons")),
    }
}

/// Conditions that differ between the runs.
fn differences(inputs: &[Input]) -> Markup {
    let rows = conditions_that_differ(inputs);
    html! {
        h2 { "What differs in the conditions" }
        @if inputs.is_empty() { p { "No runs." } }
        @else if rows.is_empty() { p { "No recorded condition." } }
        @else {
            (scroll("Conditions that differ", html! {
                table {
                    thead { tr {
                        th class="left" { "condition" }
                        @for input in inputs { th class="left" { (clean(input.title)) } }
                    } }
                    tbody {
                        @for row in &rows {
                            tr {
                                th class="left" { (row.name) }
                                @for value in &row.values { td class="wrap" { (value) } }
                            }
                        }
                    }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::run::standalone_svg;
    use model::run::Run;

    fn embedded(text: &str) -> &str {
        let start = text.find("id=\"onbeat-run\">").unwrap() + "id=\"onbeat-run\">".len();
        &text[start..start + text[start..].find("</script>").unwrap()]
    }

    #[test]
    fn every_kind_of_run_becomes_a_page() {
        for sample in fixture::all() {
            let text = html(&[sample.input()]).unwrap();
            assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"), "{}", sample.title);
            let run: Run = serde_json::from_str(embedded(&text)).unwrap();
            assert_eq!(run, sample.run);
            assert!(text.contains("aria-label"));
            for word in [["WC", "ET"].concat(), "guarantee".to_owned()] {
                assert!(!text.contains(word.as_str()));
            }
        }
    }

    #[test]
    fn nothing_is_loaded_and_nothing_runs() {
        for sample in [fixture::noisy(), fixture::many()] {
            let text = html(&[sample.input()]).unwrap();
            assert!(!text.contains("://") && !text.contains("src=\"") && !text.contains("url("));
            assert_eq!(text.matches("<script").count(), 1);
            assert!(text.len() < 1_000_000, "{}", text.len());
        }
    }

    #[test]
    fn attacks_stay_text() {
        let sample = fixture::hostile();
        for text in [
            html(&[sample.input()]).unwrap(),
            html(&[sample.input(), sample.input()]).unwrap(),
            standalone_svg::svg(&[sample.input()]),
        ] {
            assert!(!text.contains("<img") && !text.contains("<script>alert"), "an element got through");
            assert!(text.matches("<script").count() <= 1);
            assert!(!text.contains('\0') && !text.contains('\u{1b}'));
            // In an attribute the quote would end it.
            assert!(!text.contains("onerror=\"alert"));
        }
    }

    #[test]
    fn an_unfinished_or_invalid_run_is_marked_first() {
        let text = html(&[fixture::noisy().input()]).unwrap();
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("INCOMPLETE") < at("<dl"));
        assert!(at("the hypervisor took 1.21 s") < at("<dl"));
        assert!(text.contains("cut short and left out"));
    }

    #[test]
    fn several_runs_are_shown_side_by_side() {
        let (a, b) = (fixture::quiet(), fixture::noisy());
        let text = html(&[a.input(), b.input()]).unwrap();
        assert!(text.contains("href=\"#run-2\"") && text.contains("id=\"run-2\""));
        assert!(text.contains("What differs"));
        let (lead, next) =
            (text.find("The largest latency is ").unwrap(), text.find("onbeat compare A...").unwrap());
        assert!(lead < next && next < text.find("<table").unwrap(), "the answer comes before the tables");
        assert_eq!(serde_json::from_str::<Vec<Run>>(embedded(&text)).unwrap(), [a.run, b.run]);
        assert!(html(&[]).unwrap().contains("No runs"));
    }

    #[test]
    fn the_load_of_one_run_is_among_what_differs() {
        let (a, mut b) = (fixture::quiet(), fixture::quiet());
        b.run.loads = vec![model::load::LoadRun { spec: "cpu".into(), ..Default::default() }];
        b.run.plan.priority = Some(7);
        let text = html(&[a.input(), a.input(), b.input()]).unwrap();
        let table = &text[text.find("What differs").unwrap()..];
        let table = &table[..table.find("</table>").unwrap()];
        let row = |name: &str| format!("<th class=\"left\">{name}</th>");
        assert!(table.contains(&row("load")) && table.contains(&row("priority")), "{table}");
        assert_eq!((table.matches("(none)").count(), table.matches("<tr>").count()), (2, 3), "{table}");
    }

    #[test]
    fn the_limits_of_the_test_are_stated() {
        let text = html(&[fixture::spike().input()]).unwrap();
        assert!(text.contains("rarer than about once per 20 min ("), "{}", fixture::spike().title);
    }
}
