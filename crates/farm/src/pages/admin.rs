//! Looking after the farm.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use report::html::{cards, scroll};
use report::words::{UNKNOWN, several, span};

use super::parts::{date, escaped, last_moment, moment};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::board_settings::{FarmBudgets, budget_text};
use crate::records::{BoardRefusal, FarmBoard};
use crate::store::AuditEntry;
use crate::users::{FarmUser, Role};

/// Contents of the page.
pub struct AdminView<'a> {
    /// Name of the visitor.
    pub visitor: &'a str,
    pub is_admin: bool,
    /// Title and lines of a one-time display.
    pub once: Option<(&'a str, &'a [String])>,
    pub boards: &'a [FarmBoard],
    /// Number of boards without the filter.
    pub of: usize,
    pub filter: &'a str,
    pub tokens: &'a BTreeMap<String, u64>,
    pub refusals: &'a [BoardRefusal],
    /// Displayed names of boards.
    pub names: &'a BoardNames,
    /// Fault of the bucket of bundles.
    pub bucket_trouble: Option<&'a str>,
    /// End of the certificate, in seconds since 1970; `None` without one.
    pub certificate_ends: Option<i64>,
    /// Folders that hold no run which can be read.
    pub folders_refused: usize,
    pub budgets: &'a FarmBudgets,
    pub users: &'a [FarmUser],
    pub open_codes: u64,
    /// True if the farm accepts data from boards.
    pub keeps: bool,
    pub database_bytes: Option<u64>,
    pub sent_bytes: u64,
    pub audit: &'a [AuditEntry],
}

/// The page.
pub fn admin(of: &AdminView) -> String {
    let body = html! {
        @if let Some((words, all)) = of.once {
            div.next role="status" { p { strong { (words) } }
                @for one in all { pre.copy { (one) } } }
        }
        p.lead { (several(of.of as u64, "board", "boards")) ", "
            (several(of.tokens.len() as u64, "may send", "may send")) ", "
            @match of.refusals.iter().map(|one| one.board.as_str()).collect::<BTreeSet<_>>().len() as u64 {
                0 => { "none had a request refused" }
                n => { (several(n, "had a request refused", "had requests refused")) }
            } "." }
        @if let Some(words) = of.bucket_trouble {
            div.next role="status" { p { strong { "Runs cannot be stored: " } (words) "." } }
        }
        @if let Some(t) = of.certificate_ends {
            p { "The farm's certificate ends on " (date(t)) "." }
        }
        h2 { "Boards" }
        (boards(of))
        h2 { "Refused" }
        (refused(of))
        h2 { "Budgets" }
        (budgets(of.budgets))
        @if of.is_admin {
            h2 { "Users" }
            (users(of))
            h2 { "Enrolment" }
            (codes(of))
        }
        h2 { "Storage" }
        (storage(of))
        h2 { "Audit log" }
        (audit(of.audit))
        (data_links(of))
    };
    page(Some(Section::Account), "Administration", body)
}

fn boards(of: &AdminView) -> Markup {
    html! {
        form.line action="/admin" method="get" {
            label { "Boards with " input type="search" name="q" value=(of.filter) maxlength="64"; }
            button type="submit" { "Show" }
        }
        (scroll("Boards and their settings", html! {
            table {
                thead { tr { th.left { "board" } th.left { "state" } th.left.more { "tags" } th { "budget" }
                    th.left.more { "may send" } th.left.more { "last run or row (UTC)" } } }
                tbody { @for board in of.boards { tr {
                    th.left.name { a href={ "/admin/boards/" (escaped(&board.board)) } { (board.name) } }
                    td.left { (board.settings.state.words()) }
                    td.left.name.more { (board.settings.tags.join(", ")) }
                    td { (board.settings.budget_ns.map_or_else(|| UNKNOWN.to_owned(), span)) }
                    td.left.more { @if of.tokens.contains_key(&board.board) { "yes" } @else { "no" } }
                    td.left.more.when { (last_moment(board.last_seen())) }
                } } }
            }
        }))
        @if of.boards.len() < of.of { p.muted { (of.boards.len()) " of " (of.of) " boards." } }
    }
}

fn refused(of: &AdminView) -> Markup {
    const MOST: usize = 200;
    html! {
        @if of.refusals.is_empty() {
            p { "No request of a board was refused since the server was started." }
        } @else {
            (cards("Refused requests of boards", html! {
                table {
                    thead { tr { th.left { "board" } th.left { "latest (UTC)" } th { "times" }
                        th.left { "why" } th.left.more { "request" } } }
                    tbody { @for one in of.refusals.iter().take(MOST) { tr {
                        th.left.name { a href={ "/admin/boards/" (escaped(&one.board)) } {
                            (of.names.of(&one.board)) } }
                        td.left.when { (moment(one.t)) } td data-of="times" { (one.count) }
                        td.wrap { (one.detail) }
                        td.wrap.more { (one.request) }
                    } } }
                }
            }))
            @if of.refusals.len() > MOST {
                p.muted { (of.refusals.len() - MOST) " earlier ones are on the pages of their boards." }
            }
            p.muted { "Since the server was started, the last 20 of each board; equal ones are counted. \
                       Items that "
                code { "import" } " skipped are below, in the audit log." }
        }
        @if of.folders_refused > 0 {
            p { a href="/v1/refused" { (several(of.folders_refused as u64, "folder", "folders")) }
                " with a run that could not be taken in." }
        }
    }
}

fn budgets(of: &FarmBudgets) -> Markup {
    let known = of.tags.iter().map(|(tag, limit)| (tag.as_str(), Some(*limit)));
    html! {
        p { "The largest latency allowed: a board's own budget, else the smallest of its tags, else that of \
             all boards. An empty field means no budget." }
        @for (tag, limit) in [("", of.fleet)].into_iter().chain(known) {
            form.line action="/admin/budgets" method="post" {
                input type="hidden" name="tag" value=(tag);
                label { @if tag.is_empty() { "All boards " } @else { "Tag " strong { (tag) } " " }
                    input name="limit" value=(limit.map(budget_text).unwrap_or_default()) placeholder="100us"
                        maxlength="20" size="8"; }
                button type="submit" { "Set" }
            }
        }
        form.line action="/admin/budgets" method="post" {
            label { "Another tag " input name="tag" required maxlength="32" size="12"; }
            label { "budget " input name="limit" required placeholder="100us" maxlength="20" size="8"; }
            button type="submit" { "Set" }
        }
    }
}

fn role_choice(now: Role, also: Option<Role>) -> Markup {
    html! {
        select name="role" aria-label="role" {
            @for role in Role::ALL.into_iter().chain(also) {
                option value=(role.word()) selected[role == now] { (role.word()) }
            }
        }
    }
}

fn users(of: &AdminView) -> Markup {
    html! {
        p { "A viewer reads everything; an operator also sets states and budgets and acknowledges changes; \
             an admin also adds users and boards. A script can only read " code { "/v1" } " and "
            code { "/metrics" } ", with a token instead of a password: "
            code { "Authorization: Bearer TOKEN" } "." }
        @for user in of.users {
            form.line action={ "/admin/users/" (escaped(&user.name)) } method="post" {
                strong { (user.name) } @if user.name == of.visitor { " (you)" }
                span.muted { "since " (date(user.created)) }
                @if user.role == Role::Script { "script " } @else {
                    (role_choice(user.role, None))
                    button type="submit" name="what" value="role" { "Set role" }
                }
                button type="submit" name="what" value="password" { "New " (user.role.secret_name()) }
                button type="submit" name="what" value="remove" { "Remove" }
            }
        }
        form.line action="/admin/users" method="post" {
            label { "Add " input name="name" required maxlength="64" placeholder="name" autocapitalize="none"
                spellcheck="false"; }
            (role_choice(Role::Viewer, Some(Role::Script)))
            button type="submit" { "Add, with a new password or token" }
        }
    }
}

fn codes(of: &AdminView) -> Markup {
    html! {
        @if of.keeps {
            p { @match of.open_codes {
                0 => { "No unused code is valid." }
                n => { (several(n, "code is", "codes are")) " valid and unused." }
            } }
            form.line action="/admin/codes" method="post" {
                label { "Codes " input type="number" name="count" value="1" min="1" max="100" size="4"; }
                label { "Lab " input name="lab" maxlength="28" size="10" autocapitalize="none"; }
                button type="submit" { "Make" }
            }
            p.muted { "On the board: " code { "onbeat-push enrol URL CODE" } ". A token is revoked on the \
                                                                              page of its board. A known \
                                                                              board without a token enrols \
                                                                              with a code made for it: "
                code { "onbeat-farm enrol --name BOARD" } "." }
        } @else {
            p { "This farm has no store for data of boards: start it with "
                code { "--store sqlite:PATH" } "." }
        }
    }
}

/// A number of bytes for people.
pub fn bytes(n: u64) -> String {
    match n {
        0 => "nothing".to_owned(),
        n if n >= 1 << 30 => format!("{:.1} GiB", n as f64 / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.1} MiB", n as f64 / (1u64 << 20) as f64),
        n => format!("{:.1} KiB", n as f64 / 1024.0),
    }
}

fn storage(of: &AdminView) -> Markup {
    html! {
        p { "The database takes " (of.database_bytes.map_or_else(|| UNKNOWN.to_owned(), bytes))
            ", runs that boards sent take " (bytes(of.sent_bytes)) "." }
        p { "Maxima of five minutes, daily histograms, and each run with its own histogram are kept. "
            code { "onbeat-farm prune" } " deletes 5-minute histograms after 30 days and hourly histograms \
                                          after a year; their samples stay in the daily ones. It deletes the \
                                          seconds of a run after 30 days, and the traces around its spikes \
                                          after 90 days, except those of the first run that shows a culprit \
                                          and of a board's worst run of each week. Pinned runs stay in \
                                          full." }
    }
}

fn data_links(of: &AdminView) -> Markup {
    let all = [
        ("boards", "/v1/boards"),
        ("refused requests", "/v1/refused"),
        ("budgets", "/v1/budgets"),
        ("storage", "/v1/storage"),
        ("audit log", "/v1/audit"),
        ("users", "/v1/users"),
    ];
    let shown = if of.is_admin { all.len() } else { all.len() - 1 };
    html! {
        p { "As JSON: " @for (at, (name, address)) in all[..shown].iter().enumerate() {
            @if at > 0 { ", " } a href=(address) { (name) } } "." }
    }
}

fn audit(all: &[AuditEntry]) -> Markup {
    html! {
        @if all.is_empty() { p { "Nothing yet." } } @else {
            (cards("Actions, the latest first", html! {
                table {
                    thead { tr { th.left { "when (UTC)" } th.left { "who" } th.left { "what" } } }
                    tbody { @for one in all { tr {
                        td.left.when { (moment(one.t_ns.div_euclid(1_000_000_000))) }
                        td.left.who { (one.who) }
                        td.wrap { (one.what) }
                    } } }
                }
            }))
            p.muted { "The last 10,000 are kept; the last " (all.len()) " are shown." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_a_unit_that_suits_them() {
        let all = [0, 512, 3 << 20, 5 << 30].map(bytes);
        assert_eq!(all, ["nothing", "0.5 KiB", "3.0 MiB", "5.0 GiB"]);
    }
}
