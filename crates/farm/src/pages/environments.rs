//! Environments of a board, and the changes from each to the next.

use std::collections::BTreeSet;

use maud::{Markup, html};
use model::text::excerpt;
use report::html::cards;
use report::words::several;

use super::audit::{to_audit, to_difference};
use super::parts::{as_data, environment_words, escaped, moment};
use super::{Section, page};
use crate::history::BoardEnvironment;
use crate::records::FarmBoard;
use crate::setting_changes::changed;
use crate::sides::FarmSide;

/// Limit of the rows in a table of differences, and of environments; the rest is counted.
const MOST: usize = 100;
/// Size of a page, in bytes, beyond which no further environment is added.
const MOST_BYTES: usize = 1 << 20;

/// Number of distinct environments of a board.
pub fn count_of(all: &[BoardEnvironment]) -> u64 {
    let each: BTreeSet<&String> = all.iter().map(|one| &one.record.digest).collect();
    each.len() as u64
}

/// Number of environments, and of changes if one occurred again.
fn lead(all: &[BoardEnvironment]) -> String {
    let (each, changes) = (count_of(all), all.len().saturating_sub(1) as u64);
    let again = if changes >= each && each > 0 {
        format!(" with {} from one to another", several(changes, "change", "changes"))
    } else {
        String::new()
    };
    format!("{}{again}, the latest first.", several(each, "environment", "environments"))
}

/// The page; environments are latest first, and earlier ones are counted. `audited` has those of
/// their runs that may have an audit.
pub fn environments(
    board: &FarmBoard,
    all: &[BoardEnvironment],
    left_out: u64,
    audited: &BTreeSet<String>,
) -> String {
    let mut shown = Vec::new();
    let mut bytes = 0;
    for (at, one) in all.iter().enumerate().take(MOST) {
        let section = section(board, all.get(at + 1), one, audited);
        bytes += section.0.len();
        shown.push(section);
        if bytes > MOST_BYTES {
            break;
        }
    }
    let more = left_out + (all.len() - shown.len()) as u64;
    let body = html! {
        p.path { a href={ "/b/" (escaped(&board.board)) } { (board.name) } }
        p.lead { (lead(all)) }
        (as_data(&format!("/v1/boards/{}/environments", escaped(&board.board)), ""))
        @for section in &shown { (section) }
        @if more > 0 { p.muted { (more) " earlier ones are not shown." } }
    };
    page(Some(Section::Boards), &format!("Environments of {}", board.name), body)
}

/// Section of one environment, with the changes since the previous one.
fn section(
    board: &FarmBoard,
    before: Option<&BoardEnvironment>,
    one: &BoardEnvironment,
    audited: &BTreeSet<String>,
) -> Markup {
    let is_audited = |one: &BoardEnvironment| audited.contains(&one.example);
    html! { section {
        h2 { (environment_words(one)) }
        p { "Known from " time { (moment(one.first)) } " to " time { (moment(one.last)) } " UTC, by "
            @if one.runs == 0 { "the board's recorder." } @else {
                (several(one.runs, "run", "runs")) ", one of them "
                a href={ "/runs/" (escaped(&one.example)) } { (one.example) }
                @if is_audited(one) { ", with its " (to_audit(&one.example, "audit")) } "." } }
        @if one.damaged { p {
            "Its settings in the store are damaged, so changes of them are unknown: restore a \
             backup; " code { "onbeat-farm check" } " lists them." } }
        @match before {
            Some(before) => {
                (difference(before, one))
                p { a href=(comparison(board, before, one)) {
                    "Compare its days with those of the previous environment" }
                    @if is_audited(before) && is_audited(one) {
                        ". " (to_difference(&before.example, &one.example)) } "." }
            },
            None => p.muted { "The first known environment." },
        }
    } }
}

/// Address of a comparison between a board's days in one environment and in the other.
fn comparison(board: &FarmBoard, before: &BoardEnvironment, after: &BoardEnvironment) -> String {
    let side = |of: &BoardEnvironment| FarmSide {
        board: board.board.clone(),
        environment: of.record.digest.clone(),
        ..FarmSide::default()
    };
    format!("/compare?{}&{}", side(before).query("a"), side(after).query("b"))
}

fn difference(before: &BoardEnvironment, after: &BoardEnvironment) -> Markup {
    let changes = changed(before, after);
    let value = |text: &str| if text.is_empty() { "(none)".to_owned() } else { excerpt(text) };
    html! {
        (cards(&format!("What changed until {}", moment(after.first)), html! {
            table {
                thead { tr { th.left { "what changed" } th.left { "before" } th.left { "then" } } }
                tbody { @for one in changes.iter().take(MOST) { tr {
                    th.left.name { (excerpt(&one.what)) }
                    td.wrap data-of="before" { (value(&one.before)) }
                    td.wrap data-of="then" { (value(&one.after)) }
                } } }
            }
        }))
        @if changes.len() > MOST { p.muted { (changes.len() - MOST) " more changed." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::EnvironmentRecord;
    use std::sync::Arc;

    fn environment(settings: &str) -> BoardEnvironment {
        let digest = format!("d{}", settings.len());
        let record = EnvironmentRecord { digest, settings: settings.into(), ..EnvironmentRecord::default() };
        let (record, example) = (Arc::new(record), "r".into());
        BoardEnvironment { record, first: 1, last: 2, runs: 1, example, ..Default::default() }
    }

    #[test]
    fn only_what_differs_is_listed() {
        let before = r#"{"a":"1","b":"2","cmdline quiet":"given"}"#;
        let after = r#"{"a":"1","b":"3","cmdline isolcpus":"<b>"}"#;
        let board = FarmBoard { board: "a".into(), ..FarmBoard::default() };
        let text = environments(&board, &[environment(after), environment(before)], 0, &BTreeSet::new());
        let (a, b) = (before.len(), after.len());
        let way = format!("?a_board=a&amp;a_environment=d{a}&amp;b_board=a&amp;b_environment=d{b}\"");
        assert_eq!(text.matches(&way).count(), 1, "{text}");
        assert!(!text.contains("/audit"));
        assert!(text.contains("<td class=\"wrap\" data-of=\"then\">3</td>"), "{text}");
        assert!(
            !text.contains("<b>") && text.contains("(none)") && text.contains("The first known environment")
        );
        let other = BoardEnvironment { example: "q".into(), ..environment(after) };
        let audited = BTreeSet::from(["q".to_owned(), "r".to_owned()]);
        let text = environments(&board, &[other, environment(before)], 0, &audited);
        assert!(text.contains("/runs/q/audit?before=r\"") && text.contains("/runs/r/audit\""), "{text}");
        let recorded = BoardEnvironment { runs: 0, example: String::new(), ..environment(before) };
        let text = environments(&board, &[recorded], 0, &BTreeSet::new());
        assert!(text.contains("by the board's recorder.") && !text.contains("/runs/\""), "{text}");
        assert!(!text.contains("damaged"), "{text}");
        let damaged = BoardEnvironment { damaged: true, ..environment(before) };
        let text = environments(&board, &[damaged], 0, &BTreeSet::new());
        assert!(text.contains("Its settings in the store are damaged"), "{text}");
    }

    #[test]
    fn one_that_a_board_had_again_is_counted_once() {
        let (a, b) = (environment(r#"{"a":"1"}"#), environment(r#"{"a":"1","b":"2"}"#));
        let lead = |all: &[&BoardEnvironment]| lead(&all.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(lead(&[]), "0 environments, the latest first.");
        assert_eq!(lead(&[&a]), "1 environment, the latest first.");
        assert_eq!(lead(&[&b, &a]), "2 environments, the latest first.");
        let again = "2 environments with 2 changes from one to another, the latest first.";
        assert_eq!(lead(&[&a, &b, &a]), again);
        let board = FarmBoard::default();
        let all: Vec<BoardEnvironment> = (0..150).flat_map(|_| [a.clone(), b.clone()]).collect();
        let text = environments(&board, &all, 0, &BTreeSet::new());
        assert_eq!(text.matches("<p>Known from ").count(), MOST);
        assert!(text.contains("with 299 changes") && text.contains("200 earlier ones are not shown."));
    }
}
