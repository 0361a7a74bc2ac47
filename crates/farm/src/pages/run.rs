//! A run: its labels, the command that repeats it, and the report of its bundle.

use maud::{Markup, html};
use report::html::PageParts;

use super::audit::to_audit;
use super::parts::{board_link, escaped, labels, moment, same_again};
use super::spike::spikes;
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::records::FarmRun;
use crate::users::Role;

/// Actions and links on a run's page next to its report.
#[derive(Clone, Debug, Default)]
pub struct RunWays {
    /// Role of the visitor.
    pub by: Option<Role>,
    /// True if its machine may have an audit.
    pub audit: bool,
    /// Number of its spikes that have a page.
    pub kept_spikes: u64,
    /// Reason for which its files are incomplete, if they are.
    pub lacking: Option<String>,
}

/// The page, with the report inside; `again` is the command that makes such a run once more.
pub fn run(of: &FarmRun, names: &BoardNames, again: Option<&str>, ways: RunWays, parts: PageParts) -> String {
    let PageParts { heading, body, script } = parts;
    let body = html! {
        p.path { (board_link(&of.board, names)) ", "
            @if of.started == 0 { "at an unknown time" } @else { (moment(of.started)) " UTC" } }
        @if !of.labels.is_empty() { p { "Labels: " (labels(&of.labels)) "." } }
        (ways_on(of, &ways))
        (same_again(again))
        (spikes(of, ways.kept_spikes))
        (kept(of, ways.by >= Some(Role::Operator)))
        @if ways.by == Some(Role::Admin) && !of.pinned { (removed(of)) }
        (body)
        @if let Some(script) = script { (script.element()) }
    };
    page(Some(Section::Runs), &heading, body)
}

/// Retention of the run, and the parts that are no longer stored.
fn kept(of: &FarmRun, may_pin: bool) -> Markup {
    let gone = match of.thinned.as_str() {
        "" => None,
        "blocks" => Some("The records of its seconds"),
        "windows" => Some("The traces around most of its spikes"),
        _ => Some("The records of its seconds, and the traces around most of its spikes,"),
    };
    html! {
        @if let Some(gone) = gone { p.muted { (gone) " were deleted because of its age." } }
        @if may_pin {
            form.line action={ "/runs/" (escaped(&of.id)) "/pin" } method="post" {
                @if of.pinned {
                    "It is pinned and stays in full. "
                    button type="submit" name="remove" value="1" { "Unpin" }
                } @else {
                    label { "Keep it in full, because " input name="note" maxlength="200"
                        placeholder="before the new kernel"; }
                    button type="submit" { "Pin" }
                }
            }
        } @else if of.pinned { p.muted { "It is pinned and stays in full." } }
    }
}

/// Form that removes the run; its consequences are explained next to the button.
fn removed(of: &FarmRun) -> Markup {
    html! {
        details {
            summary { "Remove this run" }
            form.line action={ "/runs/" (escaped(&of.id)) "/remove" } method="post" {
                "Its samples, maxima, spikes and files are deleted. It will not be stored again. "
                button type="submit" { "Remove" }
            }
        }
    }
}

fn ways_on(of: &FarmRun, ways: &RunWays) -> Markup {
    html! {
        p { a href={ "/v1/runs/" (escaped(&of.id)) } { "As JSON" } ", its report as "
            a href={ "/v1/runs/" (escaped(&of.id)) "/report.json" } { "JSON" } " and "
            a href={ "/v1/runs/" (escaped(&of.id)) "/report.csv" } { "CSV" } ", "
            @if ways.audit { (to_audit(&of.id, "audit of its machine")) ", " }
            a href={ "/b/" (escaped(&of.board)) "/env" } { "environments of the board" } ", "
            a href={ "/compare?a=" (escaped(&of.id)) } { "compare with another run" } ". Its files: "
            @if ways.lacking.is_none() {
                a href={ "/v1/runs/" (escaped(&of.id)) ".tar" } { "all in an archive" }
            } @else { "not all can be had" }
            @if of.spikes > 0 { ", "
                a href={ "/v1/runs/" (escaped(&of.id)) "/perfetto.json" } {
                    "its worst spikes for Perfetto" } } "." }
        @if let Some(why) = &ways.lacking {
            p.banner { "Its files cannot be archived, because some are missing: " (why) "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_on_its_page_as_text() {
        let parts = || PageParts { heading: "h".into(), body: html! {}, script: None };
        let of = FarmRun { id: "r1".into(), board: "a".into(), ..FarmRun::default() };
        let names = BoardNames::default();
        let again = Some("onbeat measure -i 1ms --label 'a=<b>'");
        let text = run(&of, &names, again, RunWays::default(), parts());
        assert!(text.contains("The same again: <code>onbeat measure -i 1ms --label 'a=&lt;b&gt;'</code>"));
        assert!(!text.contains("/audit\""));
        let audited = run(&of, &names, None, RunWays { audit: true, ..RunWays::default() }, parts());
        assert!(!audited.contains("The same again") && audited.contains("href=\"/runs/r1/audit\""));
    }

    #[test]
    fn a_board_is_called_by_its_name_where_a_run_says_where_it_belongs() {
        let parts = PageParts { heading: "h".into(), body: html! {}, script: None };
        let of = FarmRun { id: "r1".into(), board: "b-1".into(), ..FarmRun::default() };
        let names = BoardNames::from_iter([("b-1".to_owned(), "Press <2>".to_owned())]);
        let text = run(&of, &names, None, RunWays::default(), parts);
        let path = "<p class=\"path\"><a href=\"/b/b-1\">Press &lt;2&gt;</a>, ";
        assert!(text.contains(path), "{text}");
    }

    #[test]
    fn an_archive_that_would_lack_files_is_not_offered_and_the_page_says_why() {
        let parts = || PageParts { heading: "h".into(), body: html! {}, script: None };
        let of = FarmRun { id: "r1".into(), ..FarmRun::default() };
        let names = BoardNames::default();
        let shown = |lacking| run(&of, &names, None, RunWays { lacking, ..RunWays::default() }, parts());
        let whole = shown(None);
        assert!(whole.contains("/v1/runs/r1.tar") && !whole.contains("cannot be archived"));
        let lacking = shown(Some("its host/<x> cannot be read".into()));
        assert!(!lacking.contains("r1.tar") && lacking.contains("its host/&lt;x&gt; cannot be read."));
    }

    #[test]
    fn an_admin_may_remove_a_run_and_an_operator_pin_it() {
        let parts = || PageParts { heading: "h".into(), body: html! {}, script: None };
        let of = FarmRun { id: "r1".into(), ..FarmRun::default() };
        let shown = |of: &FarmRun, by| {
            let names = BoardNames::default();
            let text = run(of, &names, None, RunWays { by, ..RunWays::default() }, parts());
            (text.contains("action=\"/runs/r1/pin\""), text.contains("action=\"/runs/r1/remove\""))
        };
        for (by, may) in [
            (None, (false, false)),
            (Some(Role::Viewer), (false, false)),
            (Some(Role::Operator), (true, false)),
            (Some(Role::Admin), (true, true)),
        ] {
            assert_eq!(shown(&of, by), may, "{by:?}");
        }
        let pinned = FarmRun { pinned: true, ..of };
        assert_eq!(shown(&pinned, Some(Role::Admin)), (true, false));
    }
}
