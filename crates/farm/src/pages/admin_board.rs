//! Settings of a board by users.

use maud::{Markup, html};
use report::html::pairs;
use report::words::{several, span};

use super::admin::bytes;
use super::parts::{date, escaped, last_moment, moment};
use super::{Section, page};
use crate::board_settings::{BoardState, budget_text};
use crate::records::{BoardRefusal, FarmBoard};
use crate::store::BoardBytes;

/// Contents of the page.
pub struct BoardSettingsView<'a> {
    pub board: &'a FarmBoard,
    pub is_admin: bool,
    /// Number of its valid tokens.
    pub tokens: u64,
    pub refusals: &'a [BoardRefusal],
    /// Number of its five-minute rows, and of missing ones between them.
    pub rows: u64,
    pub missing: u64,
    /// Bytes of its runs, of other data it sent, and the limit of the sum.
    pub sent_bytes: u64,
    pub stored: BoardBytes,
    pub quota: Option<u64>,
}

/// The page.
pub fn board_settings(of: &BoardSettingsView) -> String {
    let board = of.board;
    let settings = &board.settings;
    let body = html! {
        p.path { a href="/admin" { "Administration" } ", " a href={ "/b/" (escaped(&board.board)) } {
            "the board's page" } }
        p.lead { "It is " strong { (settings.state.words()) }
            @if settings.state != BoardState::Active { " since " time { (date(settings.state_since)) } }
            @match settings.budget_ns {
                Some(limit) => {
                    ", its budget is " strong { (span(limit)) } ", " (settings.budget_words()) "."
                }
                None => { " and has no budget." }
            } }
        (form(of))
        h2 { "Data that it sends" }
        (pairs(&facts(of)))
        p { a href={ "/v1/boards/" (escaped(&board.board)) "/sent" } { "This as JSON" } "." }
        @if !of.refusals.is_empty() {
            p { "Refused since the server was started, the latest first:" }
            ul { @for one in of.refusals {
                li { (several(one.count, "time", "times")) ", at last " (moment(one.t)) " UTC: "
                    (one.detail) }
            } }
        }
        (token(of))
    };
    page(Some(Section::Account), &format!("Settings of {}", board.name), body)
}

fn facts(of: &BoardSettingsView) -> Vec<(&'static str, String)> {
    let sum = bytes(of.sent_bytes.saturating_add(of.stored.all()));
    let sum = match of.quota {
        Some(quota) => format!("{sum} of {}", bytes(quota)),
        None => sum,
    };
    vec![
        ("rows of five minutes", of.rows.to_string()),
        ("rows between them that never arrived", of.missing.to_string()),
        ("runs that it sent", bytes(of.sent_bytes)),
        ("its rows and maxima", bytes(of.stored.rows)),
        ("its environments", bytes(of.stored.environments)),
        ("all of these", sum),
        ("last run (UTC)", last_moment(of.board.last)),
        ("last five minutes (UTC)", last_moment(of.board.last_slot)),
    ]
}

fn form(of: &BoardSettingsView) -> Markup {
    let (board, settings) = (of.board, &of.board.settings);
    let began = (settings.state_since > 0).then(|| date(settings.state_since));
    html! {
        form.fields action={ "/admin/boards/" (escaped(&board.board)) } method="post" {
            label { "Name " input name="name" value=(board.name) maxlength="64"; }
            label { "State "
                select name="state" {
                    @for state in BoardState::ALL {
                        option value=(state.word()) selected[state == settings.state] { (state.words()) }
                    }
                }
            }
            label { "Since, UTC "
                input type="date" name="since" value=[began.as_deref()]; }
            label { "Tags, separated by blanks "
                input name="tags" value=(settings.tags.join(" ")) maxlength="700" autocapitalize="none"; }
            label { "Its own budget "
                input name="budget" value=(settings.own_budget.map(budget_text).unwrap_or_default())
                    placeholder="none; 100us" maxlength="20"; }
            p { button type="submit" { "Set" } }
        }
        p.muted { "Changes on a board that is muted, in maintenance or retired are not reported. After its \
                   hardware was replaced, changes are judged by the data since then." }
    }
}

fn token(of: &BoardSettingsView) -> Markup {
    html! {
        @if of.tokens == 0 {
            p { "It has no token and cannot send." }
        } @else if of.is_admin {
            form.line action={ "/admin/boards/" (escaped(&of.board.board)) "/revoke" } method="post" {
                "It has a token."
                button type="submit" { "Revoke it" }
            }
        } @else {
            p { "It has a token." }
        }
    }
}
