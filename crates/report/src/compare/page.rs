//! Answer of `onbeat compare` as a page: the verdict first, then differing conditions, the runs,
//! the pictures.

use maud::{Markup, html};

use super::last_words;
use super::text::{MOST_SHOWN, alike, head, numbers, row, sentence};
use crate::condition_words;
use crate::html::{PageParts, document, figure, next, scroll};
use crate::hunt::next_step::full_stop;
use crate::plot::overlay;
use crate::plot::overlay::RunGroup;
use crate::plot::shift;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{capitalised, clean, or_dash, us};
use facts::differences::Difference;
use model::units::Nanos;
use stats::bounds::numbers::digits;
use stats::compare::{Compared, Unit};
use stats::pair::verdict::Verdict;
use stats::series::Series;

/// Content of the page.
pub struct Versus<'a> {
    pub compared: &'a Compared,
    /// Heading and basis of the verdict, if they differ from those of `compare`.
    pub texts: Option<VersusTexts<'a>>,
    /// Differing conditions; none if they are not recorded.
    pub differing: Option<&'a [Difference]>,
    /// Further remarks.
    pub remarks: &'a [String],
    /// Block maxima of A's runs.
    pub a: Vec<&'a Series>,
    /// Block maxima of B's runs.
    pub b: Vec<&'a Series>,
}

/// Heading and basis of a verdict.
#[derive(Clone, Copy)]
pub struct VersusTexts<'a> {
    pub heading: &'a str,
    pub verdict: &'a str,
    pub numbers: &'a [String],
    /// Next step, if it is more specific than that of the verdict.
    pub next: Option<&'a str>,
}

/// Page, which includes the answer as JSON.
pub fn html(versus: &Versus, json: &str) -> String {
    parts(versus, json).page()
}

/// Parts of that page.
pub fn parts(versus: &Versus, json: &str) -> PageParts {
    let compared = versus.compared;
    let (verdict, lines) = match versus.texts {
        Some(texts) => (texts.verdict.to_owned(), texts.numbers.to_vec()),
        None => (sentence(compared), numbers(compared)),
    };
    let side = |name: &str, units: &[Unit]| match units {
        [one] => format!("{name}: {}", clean(&one.title)),
        several => format!("{name}: {} {}", several.len(), compared.unit.many()),
    };
    let heading = match versus.texts {
        Some(texts) => clean(texts.heading),
        None => format!("{} against {}", side("B", &compared.b), side("A", &compared.a)),
    };
    let body = html! {
        p class="lead" { strong { (verdict) } }
        @let own = versus.texts.and_then(|texts| texts.next);
        @let usual = match compared.remedy.as_str() {
            "" => step(compared.verdict, versus.texts.is_some()).to_owned(),
            remedy => full_stop(&capitalised(remedy)),
        };
        (next(&[own.map_or(usual, str::to_owned)]))
        @if versus.texts.is_none() {
            @for line in last_words::sentences(compared) { p { (prose(&line)) } }
            details { summary { "Calculation" } (list(&lines)) }
        } @else { (list(&lines)) }
        @for remark in versus.remarks { p { (prose(remark)) } }
        h2 { "What differs in the conditions" }
        (differences(versus.differing))
        @if compared.a.len() + compared.b.len() > 0 {
            h2 { "The " (compared.unit.many()) }
            (units(compared))
        }
        (pictures(versus))
        (document(json))
    };
    PageParts { heading, body, script: None }
}

fn list(lines: &[String]) -> Markup {
    html! { ul { @for line in lines { li { (prose(line)) } } } }
}

/// Next step after a verdict; an experiment makes more pairs by itself.
fn step(verdict: Verdict, of_pairs: bool) -> &'static str {
    match verdict {
        Verdict::Better => {
            "Keep the change of B; `onbeat bounds`, with a run of B and your limit, computes what it supports, and for how long."
        }
        Verdict::Worse => "Revert the change of B; `onbeat hunt` with it names the culprits.",
        Verdict::Equivalent => {
            "Drop the change of B unless it serves another purpose: the difference is within the margin."
        }
        _ if of_pairs => {
            "More pairs may decide it: start a new experiment with larger `--pairs`, or add boots; \
             `--resume` continues an interrupted one."
        }
        _ => {
            "More runs may decide it; a verdict needs four of each, or six alternating pairs. If B differs \
             by a setting of the machine, `onbeat prove --change RULE=VALUE` makes the runs itself, and ends \
             as soon as they decide."
        }
    }
}

fn differences(differing: Option<&[Difference]>) -> Markup {
    let summary = alike(differing);
    let differing = differing.unwrap_or_default();
    let value = |one: &Difference, text: &str| condition_words::value(&one.what, text);
    html! {
        @if let Some(sentence) = summary { p { (sentence) } }
        @else {
            (scroll("Conditions that differ", html! {
                table {
                    thead { tr { th class="left" { "condition" } th class="left" { "A" } th class="left" { "B" } } }
                    tbody { @for one in differing.iter().take(MOST_SHOWN) {
                        tr {
                            th class="left" {
                                (condition_words::name(&one.what))
                                @if one.is_mixed() { " (mixed on both sides)" }
                            }
                            td class="wrap" { (value(one, &one.a)) } td class="wrap" { (value(one, &one.b)) }
                        }
                    } }
                }
            }))
            @if differing.len() > MOST_SHOWN {
                p class="muted" { (differing.len() - MOST_SHOWN) " more are in the data at the end of this file." }
            }
        }
    }
}

fn units(compared: &Compared) -> Markup {
    let head = head(compared);
    let sides = [("A", &compared.a), ("B", &compared.b)];
    scroll(
        &format!("The {} of both sides, in us", compared.unit.many()),
        html! {
            table {
                thead { tr { @for (i, cell) in head.iter().enumerate() {
                    @if cell.is_empty() { td {} } @else { th class=[class_of(i)] { (cell) } }
                } } }
                tbody { @for (side, units) in sides { @for unit in units {
                    tr { @for (i, cell) in row(side, unit).iter().enumerate() { td class=[class_of(i)] {
                        @if i == 1 && !unit.address.is_empty() { a href=(unit.address) { (cell) } }
                        @else { (cell) }
                    } } }
                } } }
            }
            p class="muted" { "Latencies in us. A larger maximum alone means little: it may be chance." }
        },
    )
}

/// Class of a column: side and unit to the left; narrow screens show the tail only.
fn class_of(column: usize) -> Option<&'static str> {
    match column {
        0 | 1 => Some("left"),
        2..=6 => Some("more"),
        _ => None,
    }
}

fn pictures(versus: &Versus) -> Markup {
    let compared = versus.compared;
    let groups = [("A", &versus.a), ("B", &versus.b)].map(|(name, series)| RunGroup {
        name: name.into(),
        series: series.clone(),
        unit: compared.unit,
    });
    html! {
        @if compared.quantiles.iter().any(|one| one.difference_ns != 0.0 || one.ci.is_some()) {
            h2 { "By how much B is later, quantile by quantile" }
            (figure("In addition to the verdict, not part of it.", |size| shift::draw(&compared.quantiles, compared.unit, size, &PAGE)))
            (quantiles(compared))
        }
        @let rates = figure("For each latency: the number of blocks per hour that reach it.", |size| {
            overlay::draw(&groups, compared.limit_ns, size, &PAGE)
        });
        @if !rates.0.is_empty() {
            h2 { "How often a latency is reached" }
            (rates)
        }
    }
}

/// Shift function as a table.
fn quantiles(compared: &Compared) -> Markup {
    let at = |ns: f64| us(Nanos(ns.clamp(-9e18, 9e18) as i64));
    html! {
        details {
            summary { "The same as a table" }
            (scroll("Quantiles of the block maxima, in us", html! {
                table {
                    thead { tr { th { "quantile" } th { "A" } th { "B" } th { "B \u{2212} A" } th { "from" } th { "to" } th class="more" { "p by Holm" } } }
                    tbody { @for one in &compared.quantiles {
                        @let ends = one.ci.map(|ci| ci.map(at));
                        tr {
                            td { "p" (digits(one.q * 100.0)) } td { (at(one.a_ns)) } td { (at(one.b_ns)) }
                            td class="top" { (at(one.difference_ns)) }
                            td { (or_dash(ends.as_ref().map(|ends| &ends[0]))) } td { (or_dash(ends.as_ref().map(|ends| &ends[1]))) }
                            td class="more" { (or_dash(one.ci.map(|_| format!("{:.3}", one.p_holm)))) }
                        }
                    } }
                }
                p class="muted" { "Latencies in us; 95 % intervals over the " (compared.unit.many()) "." }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use stats::compare::{CompareQuestion, Metric, compare};
    use stats::pair::verdict::Design;

    #[test]
    fn the_verdict_comes_first_and_markup_is_escaped() {
        const ATTACK: &str = "</script><img src=x onerror=\"alert(1)\">\u{1b}[2J";
        let (a, b) = (fixture::quiet(), fixture::eight());
        let question =
            CompareQuestion { metric: Metric::Rate, limit: None, design: Design::Unpaired, margin: None };
        let mut compared = compare(&[&a.series], &[&b.series], &question);
        compared.a[0].title = ATTACK.into();
        compared.b[0].address = "/runs/r2\"><b>".into();
        let differing = [Difference { what: ATTACK.into(), a: String::new(), b: ATTACK.into() }];
        let remarks = [ATTACK.to_owned()];
        let json = serde_json::to_string(&compared).unwrap();
        let versus = Versus {
            compared: &compared,
            texts: None,
            differing: Some(&differing),
            remarks: &remarks,
            a: vec![&a.series],
            b: vec![&b.series],
        };
        let text = html(&versus, &json);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("Inconclusive") < at("(none)") && at("one run each") < at("<figure>"));
        assert!(
            at("onbeat prove <span class=\"flag\">--change</span>") < at("What differs"),
            "what to do next is beside the verdict"
        );
        assert!(at(" was reached in ") < at("Calculation"), "words come before the numbers");
        assert!(text.contains("<a href=\"/runs/r2&quot;&gt;&lt;b&gt;\">"), "what has a page leads to it");
        assert_eq!(text.matches("<svg").count(), 4);
        assert!(!text.contains("<img") && !text.contains('\u{1b}') && text.matches("</script>").count() == 1);
    }

    #[test]
    fn nothing_stands_under_a_heading_without_runs() {
        let (a, b) = (fixture::quiet(), fixture::eight());
        let question =
            CompareQuestion { metric: Metric::Rate, limit: None, design: Design::Unpaired, margin: None };
        let mut compared = compare(&[&a.series], &[&b.series], &question);
        (compared.a, compared.b, compared.quantiles) = (Vec::new(), Vec::new(), Vec::new());
        let versus = Versus {
            compared: &compared,
            texts: None,
            differing: None,
            remarks: &[],
            a: Vec::new(),
            b: Vec::new(),
        };
        let text = html(&versus, "{}");
        assert!(!text.contains("The runs") && !text.contains("How often"), "{text}");
    }
}
