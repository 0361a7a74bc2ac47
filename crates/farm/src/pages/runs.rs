//! Runs of all boards or of one, by their labels.

use maud::{Markup, html};
use model::text::several;

use super::parts::{self, escaped};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::records::{FarmRun, RunFilter};

/// Contents of the page.
pub struct RunsView<'a> {
    pub filter: &'a RunFilter,
    pub runs: &'a [FarmRun],
    /// Displayed names of their boards.
    pub names: &'a BoardNames,
    /// True if there are older ones.
    pub more: bool,
}

/// The page.
pub fn runs(of: &RunsView) -> String {
    let filter = of.filter;
    let body = html! {
        form.line action="/runs" method="get" {
            label { "Board " input name="board" value=[filter.board.as_deref()] maxlength="64" size="12"; }
            @for label in texts(filter).into_iter().chain([String::new()]) {
                label { "Label " input name="label" value=(label) placeholder="build=123" size="16"
                    maxlength="300" autocapitalize="none"; }
            }
            button type="submit" { "Show" }
        }
        @if of.runs.is_empty() {
            p.lead {
                @if *filter == RunFilter::default() { "No run is here yet." }
                @else { "No run of this board has these labels." }
            }
        } @else {
            p.lead { (answer(of)) }
            (parts::runs(of.runs, Some(of.names)))
        }
        p { a href=(address("/v1/runs.csv", filter, None)) { "As CSV" } ", "
            a href=(address("/v1/runs", filter, None)) { "as JSON" }
            @if let Some(last) = of.runs.last().filter(|_| of.more) { ", "
                a href=(address("/runs", filter, Some(last))) { "older runs" } } "." }
        p.muted { "Labels are set when a run is measured: "
            code { "onbeat measure --label build=123" } "." }
    };
    page(Some(Section::Runs), "Runs", body)
}

/// Number of runs, and their largest latency.
fn answer(of: &RunsView) -> Markup {
    let n = of.runs.len() as u64;
    let runs = match (of.filter.before.is_some(), of.more) {
        (true, _) => format!("{} before that time, the latest first", several(n, "run", "runs")),
        (false, true) => format!("The latest {}", several(n, "run", "runs")),
        (false, false) => format!("{}, the latest first", several(n, "run", "runs")),
    };
    let worst = of.runs.iter().filter(|run| run.max_ns.is_some()).max_by_key(|run| run.max_ns);
    html! {
        (runs)
        @if let Some((max, board)) = worst.and_then(|run| Some((run.max_ns?, &run.board))) {
            "; the largest latency is " (max.spaced()) ", on " (parts::board_link(board, of.names))
        }
        "."
    }
}

fn texts(filter: &RunFilter) -> Vec<String> {
    filter.labels.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn address(path: &str, filter: &RunFilter, before: Option<&FarmRun>) -> String {
    let board = filter.board.iter().map(|board| format!("board={}", escaped(board)));
    let labels = texts(filter).into_iter().map(|label| format!("label={}", escaped(&label)));
    let before = before.map(|run| format!("before={}&before_run={}", run.started, escaped(&run.id)));
    let parts: Vec<String> = board.chain(labels).chain(before).collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn runs_lead_to_their_labels_and_to_older_ones() {
        let labels = [("build".to_owned(), "<1>&2".to_owned())];
        let filter = RunFilter { board: Some("a".into()), labels: labels.to_vec(), ..RunFilter::default() };
        let run = FarmRun {
            id: "r".into(),
            board: "a".into(),
            started: 7,
            max_ns: Some(Nanos(9_000)),
            labels: labels.into_iter().collect(),
            ..FarmRun::default()
        };
        let names: BoardNames = [("a".to_owned(), "Press <a>".to_owned())].into_iter().collect();
        let text = runs(&RunsView { filter: &filter, runs: &[run], names: &names, more: true });
        let link = "<a href=\"/b/a\">Press &lt;a&gt;</a>";
        assert!(text.contains(&format!("the largest latency is 9 us, on {link}.")), "{text}");
        assert_eq!(text.matches(link).count(), 2, "{text}");
        let query = "board=a&amp;label=build%3D%3C1%3E%262";
        assert!(
            text.contains("The latest 1 run; ")
                && text.contains(&format!("/v1/runs.csv?{query}"))
                && text.contains("before=7&amp;before_run=r"),
            "{text}"
        );
        assert!(text.contains("/runs?label=build%3D%3C1%3E%262") && !text.contains("<1>"));
        let none = runs(&RunsView { filter: &RunFilter::default(), runs: &[], names: &names, more: false });
        assert!(none.contains("No run is here yet") && !none.contains("before="));
        let asked = runs(&RunsView { filter: &filter, runs: &[], names: &names, more: false });
        assert!(asked.contains("has these labels"));
    }
}
