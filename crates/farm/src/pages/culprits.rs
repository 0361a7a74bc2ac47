//! Who took the time, over all boards; and one of them.

use maud::html;
use report::html::pairs;
use report::prose::prose;
use report::words::several;

use super::parts::{culprits as table, date, known, runs};
use super::{Section, page};
use crate::records::{FarmCulprit, FarmRun};

/// All culprits.
pub fn culprits(all: &[FarmCulprit]) -> String {
    let body = html! {
        @if all.is_empty() {
            p.lead { "No run has named a culprit yet." }
            p { code { "onbeat hunt --over 100us -D 10m" } " on a board names who took the time; its \
             runs show up here." }
        } @else {
            p.lead { "Who took the time of late wake-ups, over all boards, those that took most first." }
            (table(all, true))
            p.muted { "Only runs of " code { "onbeat hunt" } " name culprits. Times are of late wake-ups \
             alone." }
        }
    };
    page(Some(Section::Culprits), "Culprits", body)
}

/// One, with the runs that saw it.
pub fn culprit(of: &FarmCulprit, seen: &[FarmRun]) -> String {
    let took = format!("{:.3} ms", of.total_ns.0 as f64 / 1e6);
    let lead = format!(
        "It took {took} of {} on {}.",
        several(of.spikes, "spike", "spikes"),
        several(of.boards, "board", "boards")
    );
    let facts = [
        ("kind", known(&of.kind).to_owned()),
        ("rule", known(&of.rule).to_owned()),
        ("first and last seen", format!("{}, {}", date(of.first), date(of.last))),
    ];
    let body = html! {
        p.lead { (lead) }
        (pairs(&facts))
        @if !of.remedy.is_empty() { p.next { strong { "What to do: " } (prose(&of.remedy)) } }
        h2 { "Runs that show it" }
        (runs(seen, true))
    };
    page(Some(Section::Culprits), known(&of.name), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        let one = FarmCulprit { name: "<b>irq".into(), fingerprint: "ab".into(), ..FarmCulprit::default() };
        let text = culprits(std::slice::from_ref(&one));
        assert!(!text.contains("<b>") && text.contains("/culprits/ab"));
        assert!(!culprit(&one, &[]).contains("<b>") && culprits(&[]).contains("onbeat hunt"));
    }
}
