//! Culprits over all boards, and the page of one of them.

use maud::{Markup, html};
use model::units::Nanos;
use report::html::{cards, pairs};
use report::prose::prose;
use report::words::several;

use super::parts::{as_data, board_link, culprits as table, date, escaped, known, runs};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::records::{CulpritDay, FarmBoard, FarmCulprit, FarmRun};
use crate::store::CulpritDaysFrom;

/// All culprits, or those of a board.
pub fn culprits(all: &[FarmCulprit], board: Option<&FarmBoard>) -> String {
    let query = board.map_or_else(String::new, |board| format!("board={}", escaped(&board.board)));
    let body = html! {
        form.line action="/culprits" method="get" {
            label { "Board "
                input name="board" value=[board.map(|board| &board.board)] maxlength="64" size="12"; }
            button type="submit" { "Show" }
        }
        @if all.is_empty() {
            p.lead { @if board.is_some() { "No run and no recorder of this board has named a culprit yet." }
                @else { "No run and no recorder has named a culprit yet." } }
            p { code { "onbeat hunt --over 100us -D 10m" }
                " on a board names culprits; its runs appear here, and those that " code {
                    "onbeat watch" } " names on boards that send its record." }
        } @else {
            p.lead { "Culprits of late wake-ups, "
                @if let Some(board) = board {
                    "on " a href={ "/b/" (escaped(&board.board)) } { (board.name) } }
                @else { "over all boards" } ", the largest first." }
            (table(all, board.is_none()))
            p.muted { "Runs of " code { "onbeat hunt" } " name culprits of spikes. " code { "onbeat watch" }
                " names one for each CPU's largest latency of five minutes, however small. Times are of \
                 these wake-ups only." }
            (as_data("/v1/culprits", &query))
        }
    };
    page(Some(Section::Culprits), "Culprits", body)
}

/// Contents of a culprit's page.
pub struct CulpritView<'a> {
    pub of: &'a FarmCulprit,
    /// The latest runs with it.
    pub runs: &'a [FarmRun],
    /// Latest days on which recorders named it.
    pub days: &'a [CulpritDay],
    /// Number of earlier days.
    pub days_left_out: u64,
    /// Displayed names of boards.
    pub names: &'a BoardNames,
}

/// Page of a culprit, with its runs and the days on which recorders named it.
pub fn culprit(view: &CulpritView) -> String {
    let of = view.of;
    let took = ms(of.total_ns);
    let lead = format!("It took {took} ms of {} on {}.", late(of), several(of.boards, "board", "boards"));
    let facts = [
        ("kind", known(&of.kind).to_owned()),
        ("rule", known(&of.rule).to_owned()),
        ("first and last seen", format!("{}, {}", date(of.first), date(of.last))),
    ];
    let body = html! {
        p.lead { (lead) }
        (pairs(&facts))
        @if !of.remedy.is_empty() { p.next { strong { "What to do: " } (prose(&of.remedy)) } }
        @if !view.runs.is_empty() {
            h2 { "Runs that show it" }
            (runs(view.runs, Some(view.names)))
        }
        @if !view.runs.is_empty() || view.days.is_empty() { (runs_left_out(view)) }
        @if !view.days.is_empty() {
            h2 { "Days on which recorders name it" }
            (days(view.days, view.names))
            (days_left_out(view))
        }
        p { "This as " a href={ "/v1/culprits/" (escaped(&of.fingerprint)) } { "JSON" } "." }
    };
    page(Some(Section::Culprits), known(&of.name), body)
}

fn runs_left_out(view: &CulpritView) -> Markup {
    let left_out = view.of.runs.saturating_sub(view.runs.len() as u64);
    html! {
        @if left_out > 0 {
            p.muted { (several(left_out, "earlier run is", "earlier runs are"))
                " not shown: the latest 1,000 are in the JSON." }
        }
    }
}

fn days_left_out(view: &CulpritView) -> Markup {
    let next = view.days.last().filter(|_| view.days_left_out > 0).map(CulpritDaysFrom::after);
    let address = |next: CulpritDaysFrom| {
        let (of, board) = (escaped(&view.of.fingerprint), escaped(&next.before_board));
        format!("/culprits/{of}?before={}&before_board={board}", next.before)
    };
    html! {
        @if let Some(next) = next.map(address) {
            p.muted { (several(view.days_left_out, "more day of a board is", "more days of boards are"))
                " not shown: " a href=(next) { "the next of them" } "." }
        }
    }
}

fn ms(of: Nanos) -> String {
    format!("{:.3}", of.0 as f64 / 1e6)
}

/// Number of spikes, and of five minutes, in which it had a part.
fn late(of: &FarmCulprit) -> String {
    let spikes = several(of.spikes, "spike", "spikes");
    let largest = format!("the largest latencies of {} five minutes", of.five_minutes);
    match (of.spikes, of.five_minutes) {
        (_, 0) => spikes,
        (0, _) => largest,
        _ => format!("{spikes} and {largest}"),
    }
}

fn days(of: &[CulpritDay], names: &BoardNames) -> Markup {
    cards(
        "Days on which recorders name it, the latest first",
        html! {
            table {
                thead { tr {
                    th.left { "day" } th.left { "board" } th { "five minutes" } th { "took, ms" }
                } }
                tbody { @for one in of { tr {
                    th.left { a href=(first_of(one)) { (date(one.t)) } }
                    td.left.name data-of="board" { (board_link(&one.board, names)) }
                    td data-of="five minutes" { (one.five_minutes) }
                    td.top data-of="took, ms" { (ms(one.total_ns)) }
                } } }
            }
        },
    )
}

fn first_of(one: &CulpritDay) -> String {
    format!("/b/{}/at/{}?series={}", escaped(&one.board), one.first, escaped(&one.series))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page of a culprit with that many earlier days.
    fn page_of(of: &FarmCulprit, days: &[CulpritDay], days_left_out: u64) -> String {
        let names: BoardNames = [("a b".to_owned(), "Press <b>".to_owned())].into_iter().collect();
        culprit(&CulpritView { of, runs: &[], days, days_left_out, names: &names })
    }

    #[test]
    fn names_stay_text() {
        let one = FarmCulprit { name: "<b>irq".into(), fingerprint: "ab".into(), ..FarmCulprit::default() };
        let text = culprits(std::slice::from_ref(&one), None);
        assert!(!text.contains("<b>") && text.contains("/culprits/ab"));
        assert!(page_of(&one, &[], 0).contains("/v1/culprits/ab\""));
        assert!(!page_of(&one, &[], 0).contains("<b>") && culprits(&[], None).contains("onbeat hunt"));
        let board = FarmBoard { board: "a\"<b>".into(), name: "Press <b>".into(), ..FarmBoard::default() };
        let of = culprits(std::slice::from_ref(&one), Some(&board));
        assert!(!of.contains("<b>") && of.contains("/v1/culprits.csv?board=a%22%3Cb%3E\""), "{of}");
        assert!(
            of.contains("on <a href=\"/b/a%22%3Cb%3E\">Press &lt;b&gt;</a>")
                && !of.contains("over all boards")
        );
        assert!(culprits(&[], Some(&board)).contains("recorder of this board has named a culprit"));
    }

    #[test]
    fn five_minutes_of_recorders_are_no_spikes() {
        let of = |spikes, five_minutes| FarmCulprit {
            name: "hog".into(),
            boards: 1,
            spikes,
            five_minutes,
            ..FarmCulprit::default()
        };
        let day =
            CulpritDay { board: "a b".into(), first: 600, series: "wakeup".into(), ..CulpritDay::default() };
        let text = page_of(&of(0, 12), std::slice::from_ref(&day), 0);
        assert!(text.contains("<a href=\"/b/a%20b\">Press &lt;b&gt;</a>"), "{text}");
        assert!(text.contains("of the largest latencies of 12 five minutes on 1 board"), "{text}");
        assert!(text.contains("/b/a%20b/at/600?series=wakeup") && !text.contains("Runs that show it"));
        assert!(
            page_of(&of(3, 12), &[], 0).contains("3 spikes and the largest latencies of 12 five minutes")
        );
        assert!(culprits(&[of(3, 1)], None).contains("data-of=\"five minutes\""));
        assert!(!culprits(&[of(3, 0)], None).contains("data-of=\"five minutes\""));
    }

    #[test]
    fn what_a_page_of_a_culprit_leaves_out_is_counted_with_the_way_to_it() {
        let one = FarmCulprit { fingerprint: "ab".into(), runs: 2, ..FarmCulprit::default() };
        let day = CulpritDay { board: "a b".into(), t: 86_400, ..CulpritDay::default() };
        let text = page_of(&one, std::slice::from_ref(&day), 1_678);
        assert!(text.contains("1678 more days of boards are not shown: "), "{text}");
        assert!(
            text.contains("\"/culprits/ab?before=86400&amp;before_board=a%20b\">the next of them"),
            "{text}"
        );
        assert!(!page_of(&one, &[day], 0).contains("not shown"));
        assert!(page_of(&one, &[], 0).contains("2 earlier runs are not shown: "));
    }
}
