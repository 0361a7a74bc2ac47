//! A spike of a hunt: its timeline, and the way to those next to it.

use maud::{Markup, html};
use report::html::PageParts;
use report::words::several;

use super::parts::{board_link, escaped, moment, same_again};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::records::FarmRun;

/// Spikes that a run's page names.
const NAMED: u64 = 24;

/// Page of one of that many stored spikes; `again` is the command that repeats such a run.
pub fn spike(
    of: &FarmRun,
    names: &BoardNames,
    number: u64,
    kept: u64,
    again: Option<&str>,
    parts: PageParts,
) -> String {
    let run = format!("/runs/{}", escaped(&of.id));
    let body = html! {
        p.path { (board_link(&of.board, names)) ", run " a href=(run) { (of.id) } ", "
            (moment(of.started)) " UTC" }
        ul.spans {
            @if number > 1 { li { a rel="prev" href={ (run) "/spike/" (number - 1) } { "the worse one" } } }
            @if number < kept {
                li { a rel="next" href={ (run) "/spike/" (number + 1) } { "the next" } }
            }
            li { a href={ "/v1" (run) "/perfetto.json" } { "the worst for Perfetto" } }
            li { a href={ "/v1" (run) "/spikes/" (number) } { "as JSON" } }
        }
        (parts.body)
        p { "In the unpacked archive of the run, " code { "onbeat explain " (of.id) }
            " prints this for every spike." }
        (same_again(again))
    };
    page(Some(Section::Runs), &parts.heading, body)
}

/// Links to a run's spikes, of which that many are stored; empty if it has none.
pub fn spikes(of: &FarmRun, kept: u64) -> Markup {
    html! {
        @if of.spikes > 0 {
            p {
                @if of.spikes == 1 && kept == 1 { "Its spike:" }
                @else { (several(of.spikes, "spike", "spikes"))
                    @if kept < of.spikes { ", of which " (several(kept, "is", "are")) " kept" }
                    @if kept > 0 { ", worst first:" } }
                @for number in 1..=kept.min(NAMED) { " "
                    a href={ "/runs/" (escaped(&of.id)) "/spike/" (number) } { (number) } }
                @if kept > NAMED { " and on" } ". As data: "
                a href={ "/v1/runs/" (escaped(&of.id)) "/spikes" } { "JSON" } ", "
                a href={ "/v1/runs/" (escaped(&of.id)) "/spikes.csv" } { "CSV" } "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_leads_to_its_run_and_to_those_next_to_it() {
        let of = FarmRun { id: "r1".into(), board: "a".into(), spikes: 3, ..FarmRun::default() };
        let parts = || PageParts { heading: "<i>".into(), body: html! {}, script: None };
        let names = BoardNames::from_iter([("a".to_owned(), "Press 2".to_owned())]);
        let first = spike(&of, &names, 1, 3, None, parts());
        let last = spike(&of, &names, 3, 3, Some("onbeat hunt -i 1ms"), parts());
        assert!(
            first.contains("/runs/r1/spike/2\"") && !first.contains("rel=\"prev\"") && !first.contains("<i>")
        );
        assert!(
            last.contains("/runs/r1/spike/2\"") && !last.contains("rel=\"next\"") && last.contains("/b/a")
        );
        assert!(last.contains("<code>onbeat hunt -i 1ms</code>") && !first.contains("The same again"));
        // Its board is shown by its name.
        assert!(first.contains("<p class=\"path\"><a href=\"/b/a\">Press 2</a>, run "), "{first}");
        // It is of a run, as the frame shows.
        assert!(first.contains("<a href=\"/runs\" aria-current=\"page\">"), "{first}");
        assert!(spikes(&of, 3).into_string().contains("<p>3 spikes, worst first: <a"));
        assert!(spikes(&FarmRun::default(), 0).into_string().is_empty());
        // A spike that was counted but not stored has no page.
        let part = spikes(&of, 2).into_string();
        assert!(part.contains("3 spikes, of which 2 are kept, worst first:"), "{part}");
        assert!(part.contains("/spike/2\"") && !part.contains("/spike/3\""), "{part}");
        assert!(!spike(&of, &names, 2, 2, None, parts()).contains("rel=\"next\""));
    }
}
