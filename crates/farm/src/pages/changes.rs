//! Changes of boards, newest first, each with its evidence.

use maud::{Markup, html};
use model::text::clean;
use model::units::Nanos;
use model::wall_time::wall_time;
use report::words::several;

use super::parts::{as_data, board_link, date, escaped, moment};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::changes::{
    ChangeIdentity, ChangeKind, ChangesScope, FarmChange, JudgedEnvironments, JudgedSeries, MOST_SERIES,
    MOST_STEPS, NotedChanges, SHOWN_DAYS,
};
use crate::store::FoundChange;

/// Settings that are listed of a change.
const MOST_SETTINGS: usize = 12;
/// Changes on a page.
const MOST: usize = 200;

/// Contents of the page.
pub struct ChangesView<'a> {
    pub all: &'a [FarmChange],
    /// Number of the requested boards.
    pub boards: usize,
    /// Series and environments of these boards.
    pub scope: ChangesScope,
    /// The requested board; `""` for all.
    pub board: &'a str,
    /// Displayed names of boards.
    pub names: &'a BoardNames,
    pub only: ChangesShown,
    /// True if the visitor may acknowledge changes.
    pub may_acknowledge: bool,
}

/// Selection of changes to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangesShown {
    /// Changes that are not acknowledged.
    #[default]
    Open,
    Acknowledged,
    All,
}

impl ChangesShown {
    const ALL: [(ChangesShown, &str, &str); 3] = [
        (ChangesShown::Open, "", "open"),
        (ChangesShown::Acknowledged, "acknowledged", "acknowledged"),
        (ChangesShown::All, "all", "all"),
    ];

    /// True if a change is among those shown.
    pub fn has(self, one: &FarmChange) -> bool {
        match self {
            ChangesShown::Open => one.is_open(),
            ChangesShown::Acknowledged => one.acknowledged.is_some(),
            ChangesShown::All => true,
        }
    }

    /// Parses the word in an address.
    pub fn of_word(word: &str) -> Option<ChangesShown> {
        ChangesShown::ALL.into_iter().find(|known| known.1 == word).map(|known| known.0)
    }
}

/// The page.
pub fn changes(of: &ChangesView) -> String {
    let body = html! {
        p.lead { (lead(of)) }
        (choice(of))
        @if !of.all.is_empty() { h2 { "The latest first" } }
        @for one in of.all.iter().take(MOST) { (change(one, of)) }
        @if of.all.len() > MOST {
            p.muted { (of.all.len() - MOST) " more are in " a href={ "/v1/changes?" (query(of)) } {
                "the list as JSON" } "." }
        }
        (how(of))
    };
    page(Some(Section::Changes), "Changes", body)
}

/// The changes as an Atom feed (RFC 4287), with the address below which the others are. An entry
/// has the id and the time of its first report, so that a reader shows it once.
pub fn feed(all: &[FarmChange], names: &BoardNames, found: &NotedChanges<FoundChange>, site: &str) -> String {
    let time = |t: i64| wall_time(Nanos(t.saturating_mul(Nanos::SECOND.0)));
    let entry = |one: &FarmChange| {
        let of = ChangeIdentity::of(one);
        let known = found.find(&of);
        (known.map_or_else(|| of.id(), |known| known.id.clone()), known.map_or(one.t, |known| known.at))
    };
    let shown: Vec<_> = all.iter().take(MOST).map(|one| (entry(one), one)).collect();
    let updated = shown.iter().map(|((_, at), _)| *at).max().unwrap_or_default();
    let markup = html! {
        feed xmlns="http://www.w3.org/2005/Atom" xml:base=(site) {
            id { (site) "changes" }
            title { "onbeat farm: changes" }
            updated { (time(updated)) }
            author { name { "onbeat-farm" } }
            link href="/changes" {}
            link rel="self" href="/v1/changes.atom" {}
            @for ((id, at), one) in shown { entry {
                id { (site) "changes#" (id) }
                title { (clean(names.of(&one.board))) ": " (one.kind.words()) }
                updated { (time(at)) }
                link href=(one.address) {}
                category term=(one.kind.keyword()) {}
                content { (clean(&one.says)) @for line in &one.evidence { " " (clean(line)) } }
            } }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{}\n", markup.into_string())
}

/// Number of open changes, and of their boards, in words.
pub fn lead_words(all: &[FarmChange]) -> String {
    let bad: Vec<&FarmChange> = all.iter().filter(|one| one.is_open()).collect();
    let mut boards: Vec<&str> = bad.iter().map(|one| one.board.as_str()).collect();
    boards.sort_unstable();
    boards.dedup();
    format!(
        "{} on {} in the last {SHOWN_DAYS} days.",
        several(bad.len() as u64, "open change", "open changes"),
        several(boards.len() as u64, "board", "boards")
    )
}

fn lead(of: &ChangesView) -> Markup {
    let whose = html! { @if !of.board.is_empty() { " of " (board_link(of.board, of.names)) } };
    html! {
        @match (of.all.len(), of.only) {
            (0, ChangesShown::All) => { "No change" (whose) " in the last " (SHOWN_DAYS) " days." }
            (0, ChangesShown::Open) => {
                "No open change" (whose) " in the last " (SHOWN_DAYS) " days."
            }
            (0, ChangesShown::Acknowledged) => { "No change" (whose) " is acknowledged." }
            (count, ChangesShown::Acknowledged) => {
                (several(count as u64, "change", "changes")) " of the last " (SHOWN_DAYS)
                " days acknowledged."
            }
            _ => { (lead_words(of.all)) }
        }
    }
}

fn choice(of: &ChangesView) -> Markup {
    let board = if of.board.is_empty() { String::new() } else { format!("board={}&", escaped(of.board)) };
    html! {
        ul.spans {
            @for (only, word, words) in ChangesShown::ALL {
                li { a href={ "/changes?" (board) "only=" (word) }
                    aria-current=[(only == of.only).then_some("true")] { (words) } }
            }
            @if !of.board.is_empty() { li { a href="/changes" { "of all boards" } } }
        }
    }
}

fn change(one: &FarmChange, of: &ChangesView) -> Markup {
    let badge = match one.kind {
        ChangeKind::Silent | ChangeKind::Worse | ChangeKind::MoreOften | ChangeKind::OverBudget => {
            "badge high"
        }
        ChangeKind::NewCulprit => "badge medium",
        _ => "badge",
    };
    let finding = if one.is_open() { "finding high" } else { "finding" };
    html! {
        section class=(finding) id=(ChangeIdentity::of(one).id()) {
            h3 { span class=(badge) { (one.kind.words()) } " "
                (board_link(&one.board, of.names)) " " span.muted { (date(one.t)) } }
            p { (one.says) }
            @if !one.evidence.is_empty() || one.p.is_some() {
                ul.plain { @for line in &one.evidence { li { (line) } }
                    @if let Some(p) = one.p { li { (chance(p)) } } }
            }
            (settings(one))
            @if let Some(way) = way(one) { p { a href=(one.address) { (way) } } }
            (looked_at(one, of.may_acknowledge))
        }
    }
}

/// Acknowledgement of a change, and the form for it.
fn looked_at(one: &FarmChange, may_acknowledge: bool) -> Markup {
    let hidden = html! {
        input type="hidden" name="board" value=(one.board);
        input type="hidden" name="subject" value=(one.subject);
        input type="hidden" name="t" value=(one.t);
    };
    html! {
        @if let Some(by) = &one.acknowledged {
            p { strong { "Acknowledged" } @if !by.who.is_empty() { " by " (by.who) }
                ", " (moment(by.at)) " UTC" @if !by.note.is_empty() { ": " (by.note) } @else { "." } }
            @if may_acknowledge {
                form.line action="/changes/acknowledge" method="post" {
                    (hidden)
                    button type="submit" name="reopen" value="yes" { "Reopen" }
                }
            }
        } @else if may_acknowledge && one.kind.is_bad() {
            details {
                summary { "Acknowledge" }
                form.fields action="/changes/acknowledge" method="post" {
                    (hidden)
                    label { "Cause, or action taken "
                        textarea name="note" rows="3" maxlength="1000" {} }
                    p { button type="submit" { "Acknowledge" } }
                }
            }
        }
    }
}

/// Target of a change's link, if it differs from that of the board's name.
fn way(one: &FarmChange) -> Option<&'static str> {
    match one.kind {
        ChangeKind::MoreOften | ChangeKind::LessOften => Some("The worst five minutes of its first day"),
        ChangeKind::Worse | ChangeKind::Better | ChangeKind::Environment => {
            Some("All environments of the board")
        }
        ChangeKind::NewCulprit if one.address.starts_with("/runs/") => Some("The first run with it"),
        ChangeKind::NewCulprit => Some("The first five minutes with it"),
        ChangeKind::OverBudget => Some("The worst five minutes since then"),
        ChangeKind::Silent => None,
    }
}

fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "The probability by chance is below 1 in 1,000.".to_owned(),
        p => format!("Probability by chance: p {p:.3}, adjusted for the number of series or changes."),
    }
}

fn settings(one: &FarmChange) -> Markup {
    let value = |text: &str| if text.is_empty() { "(none)".to_owned() } else { clean(text) };
    // The sentence of another environment names up to three itself.
    let many = one.since.is_none() || one.settings.len() > 3;
    html! {
        @if many && !one.settings.is_empty() {
            details {
                summary { (several(one.settings.len() as u64, "setting", "settings")) " changed about then" }
                table {
                    thead { tr { th.left { "what changed" } th.left { "before" } th.left { "then" } } }
                    tbody { @for one in one.settings.iter().take(MOST_SETTINGS) { tr {
                        th.left { (clean(&one.what)) } td.wrap { (value(&one.before)) }
                        td.wrap { (value(&one.after)) }
                    } } }
                }
                @if one.settings.len() > MOST_SETTINGS {
                    p.muted { (one.settings.len() - MOST_SETTINGS) " more are on the page of the board's \
                     environments." }
                }
            }
        } @else if one.settings.is_empty() && one.kind == ChangeKind::MoreOften {
            p.muted { "No known setting of the board changed about then." }
        }
    }
}

/// The request, as a query for the addresses of the data.
fn query(of: &ChangesView) -> String {
    let only = ChangesShown::ALL.into_iter().find(|known| known.0 == of.only).map_or("", |known| known.1);
    let parts = [("board", of.board), ("only", only)].into_iter().filter(|(_, value)| !value.is_empty());
    parts.map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&")
}

fn how(of: &ChangesView) -> Markup {
    html! {
        h2 { "Detection" }
        ul.plain {
            li { "Late more or less often: the daily number of wake-ups above a latency that about ten a day \
                  reached in the first six weeks, compared with the days before; a doubling is detected \
                  within a week. " (judged(of)) }
            li { "Worse or better: intervals of five minutes of seven days before a new environment against \
                  those of seven days after it, for each series. A coincidence with a change does not prove \
                  that it is the cause."
                (environments(of.scope.environments)) }
            li { "New culprit: at least three spikes of a cause that ten hunts of the board did not see; or \
                  twelve intervals of five minutes for which its recorder names it, after ten days without \
                  it." }
            li { "Silent: no data for three times the usual gap of the board and at least two days; for a \
                  board with a token that sent on at most two days, or never since it was enrolled, three \
                  days." }
            li { "Over budget: a day of these " (SHOWN_DAYS) " whose largest latency exceeds the budget of \
                                                              the board, of one of its tags, or of all \
                                                              boards." }
            li { "Boards that are muted, in maintenance or retired are not included." }
        }
        (as_data("/v1/changes", &query(of)))
        p { "New changes: " a href={ "/v1/changes.atom?" (query(of)) } { "Atom feed" } "." }
    }
}

/// Number of changes of environment that were examined, and that were not.
fn environments(of: JudgedEnvironments) -> Markup {
    let changes =
        |count: usize| several(count as u64, "change of environment was", "changes of environment were");
    html! {
        @if of.looked_at > 0 { " " (changes(of.looked_at)) " examined." }
        @if of.left_out > 0 {
            " " strong { (changes(of.left_out)) " not examined" } ": of a board the latest "
            (MOST_STEPS) " are."
        }
    }
}

/// Number of series that were tested, and that were not.
fn judged(of: &ChangesView) -> Markup {
    let JudgedSeries { judged, too_few, left_out } = of.scope.series;
    let series = |count: usize| format!("{count} series {}", if count == 1 { "is" } else { "are" });
    let boards = several(of.boards as u64, "board", "boards");
    html! {
        "Of " (boards) " " (series(judged))
            " judged: over the whole fleet, at most one report in twenty is due to chance."
        @if too_few > 0 {
            " " (series(too_few)) " not judged: too few days with samples so far, or too few wake-ups."
        }
        @if left_out > 0 {
            " " strong { (series(left_out)) " not judged" } ": of a board the first " (MOST_SERIES)
                " are, also for effects of a new environment."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Acknowledgement;
    use crate::changes::made::made_change;
    use crate::setting_changes::SettingChange;

    #[test]
    fn changes_say_what_they_stand_on_and_names_stay_text() {
        let setting = SettingChange { what: "<b>x".into(), before: String::new(), after: "<i>".into() };
        let one = FarmChange {
            from: 0,
            says: "<script>".into(),
            evidence: vec!["12 a day".into()],
            p: Some(1e-5),
            settings: vec![setting],
            address: "/b/a".into(),
            subject: "x".into(),
            ..made_change("a<b>", ChangeKind::MoreOften, 86_400)
        };
        let name = |key: &str, name: &str| (key.to_owned(), name.to_owned());
        let names: BoardNames = [name("a<b>", "Mill <1>"), name("press", "Press 3")].into_iter().collect();
        let view = ChangesView {
            all: std::slice::from_ref(&one),
            boards: 3,
            scope: ChangesScope {
                series: JudgedSeries { judged: 9, too_few: 1, left_out: 2 },
                environments: JudgedEnvironments { looked_at: 20, left_out: 1 },
            },
            board: "",
            names: &names,
            only: ChangesShown::Open,
            may_acknowledge: false,
        };
        let text = changes(&view);
        assert!(!text.contains("<b>") && !text.contains("<i>") && !text.contains("<script>"));
        assert!(
            text.contains("1 open change on 1 board")
                && text.contains("1 in 1,000")
                && text.contains("12 a day")
        );
        let none = ChangesView { all: &[], board: "press", ..view };
        assert!(changes(&none).contains("No open change of <a href=\"/b/press\">Press 3</a> in the last"));
        assert!(text.contains("<a href=\"/b/a%3Cb%3E\">Mill &lt;1&gt;</a>"), "{text}");
        assert!(!text.contains("/changes/acknowledge"));
        assert!(
            text.contains("Of 3 boards 9 series are judged") && text.contains("1 series is not judged: too")
        );
        assert!(text.contains("<strong>2 series are not judged</strong>: of a board the first 32 are"));
        assert!(text.contains(" 20 changes of environment were examined. <strong>"), "{text}");
        assert!(text.contains("<strong>1 change of environment was not examined</strong>: of a board the"));
        let series = JudgedSeries { judged: 1, ..JudgedSeries::default() };
        let scope = ChangesScope { series, ..ChangesScope::default() };
        let whole = changes(&ChangesView { scope, ..view });
        assert!(whole.contains("Of 3 boards 1 series is judged") && !whole.contains("not judged"));
        assert!(!whole.contains("examined."), "{whole}");
        let many = vec![made_change("a", ChangeKind::Silent, 86_400); MOST + 1];
        let text = changes(&ChangesView { all: &many, board: "a", ..view });
        assert!(text.contains("1 more are in <a href=\"/v1/changes?board=a\">the list as JSON"), "{text}");
        let by = Acknowledgement { who: "ann".into(), note: "<b>seen".into(), at: 86_400 };
        let looked_at = [FarmChange { acknowledged: Some(by), ..one.clone() }];
        let view =
            ChangesView { all: &looked_at, only: ChangesShown::Acknowledged, may_acknowledge: true, ..none };
        let text = changes(&view);
        assert!(text.contains("by ann, 1970-01-02 00:00 UTC: &lt;b&gt;seen") && text.contains("reopen"));
        assert!(text.contains("1 change of the last 90 days acknowledged"));
    }
}
