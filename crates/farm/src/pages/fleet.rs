//! The first page: all boards, each in a row.

use std::cmp::Ordering;

use maud::{Markup, html};
use model::units::Nanos;
use report::html::scroll;
use report::words::{UNKNOWN, duration, several, span, us, us_or_dash};
use schemars::JsonSchema;
use serde::Serialize;

use super::parts::{as_data, date, escaped, known};
use super::{Section, page};
use crate::board_settings::BoardState;
use crate::changes::{BoardLead, ChangeKind, SHOWN_DAYS};
use crate::pictures::spark;
use crate::records::FarmBoard;
use crate::refused::RefusedFolders;

/// Limit of sentences on changes that the page shows.
const MAX_LEADS: usize = 12;

/// Order of the boards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardOrder {
    #[default]
    Worst,
    Name,
    Last,
}

impl BoardOrder {
    const ALL: [(BoardOrder, &str, &str); 3] = [
        (BoardOrder::Worst, "worst", "largest latency"),
        (BoardOrder::Name, "name", "name"),
        (BoardOrder::Last, "last", "last seen"),
    ];

    /// Parses the word in an address.
    pub fn of_word(word: &str) -> Option<BoardOrder> {
        BoardOrder::ALL.into_iter().find(|known| known.1 == word).map(|known| known.0)
    }

    fn word(self) -> &'static str {
        BoardOrder::ALL.into_iter().find(|known| known.0 == self).map_or("", |known| known.1)
    }

    pub fn compare(self, a: &FarmBoard, b: &FarmBoard) -> Ordering {
        let first = match self {
            BoardOrder::Worst => b.max_ns.cmp(&a.max_ns),
            BoardOrder::Name => Ordering::Equal,
            BoardOrder::Last => b.last_seen().cmp(&a.last_seen()),
        };
        first.then_with(|| a.board.cmp(&b.board))
    }
}

/// A board of the list.
#[derive(Serialize, JsonSchema)]
pub struct ListedBoard {
    #[serde(flatten)]
    pub board: FarmBoard,
    /// The first second of the day with its largest latency.
    pub max_day: Option<i64>,
    /// Kinds of its changes that are not acknowledged, the gravest first.
    pub changes: Vec<ChangeKind>,
}

/// The boards, and what changed on them.
#[derive(Serialize, JsonSchema)]
pub struct FleetAnswer {
    pub schema: &'static str,
    /// Sentences on the boards with changes for the worse.
    pub lead: Vec<BoardLead>,
    /// Number of boards in which changes were not searched yet.
    pub unsearched: usize,
    /// The boards that pass the filter.
    pub boards: Vec<ListedBoard>,
    /// Number of boards without the filter, and of their runs.
    #[serde(skip)]
    pub of: usize,
    #[serde(skip)]
    pub runs: u64,
    /// Number of boards left out because their names are those of machines.
    #[serde(skip)]
    pub hidden: usize,
    /// First second of the last day that any of them has.
    #[serde(skip)]
    pub newest: i64,
    /// The board with the largest latency, except for quiet ones.
    #[serde(skip)]
    pub worst: Option<FarmBoard>,
}

/// Contents of the page.
pub struct Fleet<'a> {
    pub answer: &'a FleetAnswer,
    pub order: BoardOrder,
    pub filter: &'a str,
    /// State of the boards that are shown alone.
    pub state: Option<BoardState>,
    /// Seconds since 1970.
    pub now: i64,
    pub refused: &'a RefusedFolders,
    /// True if names of machines and kernels are omitted.
    pub unnamed: bool,
    /// True if the farm accepts data from boards.
    pub keeps: bool,
}

/// The page.
pub fn fleet(of: &Fleet) -> String {
    let FleetAnswer { of: all, runs, hidden, newest, .. } = *of.answer;
    let body = html! {
        @if all == 0 && hidden == 0 { (nothing(of.keeps)) }
        @if all > 0 {
            (changed(of.answer))
            (largest(of.answer))
            (form(of))
            (table(of))
            p.muted { (several(all as u64, "board", "boards")) ", " (several(runs, "run", "runs"))
                ". Maximum over the last 30 days; invalid runs excluded. Each bar is a day up to "
                (date(newest))
                    ", its height the logarithm of the largest latency; the line across is at 100 us." }
            (as_data("/v1/boards", &query(of)))
        }
        @if of.unnamed { (left_out()) }
        @if hidden > 0 {
            p.muted { (several(hidden as u64, "board is", "boards are"))
                " named after the machine and not shown: " code { "DIR/BOARD/RUN" }
                " gives a board its own name." }
        }
        (refused(of.refused))
    };
    page(Some(Section::Boards), "Boards", body)
}

/// Note for public readers.
pub fn left_out() -> Markup {
    html! {
        p.muted { "To see names of machines, kernels and programs, "
            a href="/login" { "log in" } "." }
    }
}

/// Instructions for the first run.
fn nothing(keeps: bool) -> Markup {
    html! {
        p.lead { "No run is here yet." }
        @if keeps {
            p { "A board sends its data once it is enrolled: "
                code { "onbeat-farm enrol --store URL" } ", with the " code { "--store" }
                " of the server, prints a code for " code { "onbeat-push enrol" } " on the board." }
        }
        p { "If the server was started with " code { "--runs DIR" }
            ", it finds runs there within a minute: make one on a board with "
            code { "onbeat measure -D 1m -o RUN" } ", and copy its folder there as "
            code { "DIR/BOARD/RUN" } "." }
    }
}

/// Changes for the worse, one sentence per board.
fn changed(of: &FleetAnswer) -> Markup {
    let unsearched = several(of.unsearched as u64, "board is", "boards are");
    html! {
        @if of.lead.is_empty() && of.unsearched == 0 {
            p.lead { "No board got worse in the last " (SHOWN_DAYS) " days." }
        } @else if !of.lead.is_empty() {
            p.lead { (several(of.lead.len() as u64, "board needs", "boards need")) " a look:" }
            ul.changed { @for one in of.lead.iter().take(MAX_LEADS) {
                li { strong { (one.name) } ": " a href=(one.address) { (one.claim) } " since "
                    time { (date(one.from)) } (one.rest) "." }
            } }
            @if of.lead.len() > MAX_LEADS {
                p { a href="/changes" { (of.lead.len() - MAX_LEADS) " more boards" } "." }
            }
        }
        @if of.unsearched > 0 {
            p { (unsearched) " still being searched for changes: load this page again in a minute." }
        }
    }
}

/// The largest latency of all boards.
fn largest(of: &FleetAnswer) -> Markup {
    html! {
        @if let Some((board, max_ns)) = of.worst.as_ref().and_then(|board| Some((board, board.max_ns?))) {
            @let name = html! { a href={ "/b/" (escaped(&board.board)) } { (board.name) } };
            @match board.worst_day() {
                Some(day) => p { "The largest latency of the last 30 days: "
                    a href=(day_address(&board.board, day.t)) { (span(max_ns)) } " on " (name) ", "
                    time { (date(day.t)) } "." },
                None => p { "The largest latency: " (span(max_ns)) " on " (name)
                    ", in a run without a date." },
            }
        }
    }
}

/// The worst five minutes of a day of a board.
pub fn day_address(board: &str, t: i64) -> String {
    format!("/b/{}/at/{t}?worst=day", escaped(board))
}

/// The gravest open change of a board, with a link to all of its changes.
fn state(of: &ListedBoard) -> Markup {
    let state = of.board.settings.state;
    html! {
        @if state.is_quiet() {
            span.muted { (state.words()) }
        } @else if let Some(kind) = of.changes.first() {
            a href={ "/changes?board=" (escaped(&of.board.board)) } { (kind.words()) }
            @if of.changes.len() > 1 { ", +" (of.changes.len() - 1) }
        }
    }
}

fn form(of: &Fleet) -> Markup {
    html! {
        form.line action="/" method="get" {
            label { "Boards with " input type="search" name="q" value=(of.filter) maxlength="64"; }
            label { "which are "
                select name="state" {
                    option value="" selected[of.state.is_none()] { "in any state" }
                    @for state in BoardState::ALL {
                        option value=(state.word()) selected[of.state == Some(state)] { (state.words()) }
                    }
                }
            }
            label { "ordered by "
                select name="sort" {
                    @for (order, word, name) in BoardOrder::ALL {
                        option value=(word) selected[order == of.order] { (name) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
        @if !of.filter.is_empty() || of.state.is_some() {
            p.muted { (of.answer.boards.len()) " of " (of.answer.of) " boards." }
        }
    }
}

/// The request as a query: as data, boards have a different default order.
fn query(of: &Fleet) -> String {
    let state = of.state.map_or("", BoardState::word);
    let texts = [("q", of.filter), ("state", state), ("sort", of.order.word())];
    let parts = texts.into_iter().filter(|(_, value)| !value.is_empty());
    parts.map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&")
}

/// Time of the last data of a board, and its age.
fn last_seen(board: &FarmBoard, now: i64) -> Markup {
    let seen = board.last_seen();
    html! {
        @if seen == 0 {
            @if board.last_day > 0 { (date(board.last_day)) } @else { "none" }
        } @else {
            (date(seen)) br; span.muted { (ago(now, seen)) }
        }
    }
}

/// Age of a time, in words.
pub fn ago(now: i64, t: i64) -> String {
    match now.saturating_sub(t) {
        // A board's clock may be ahead of the farm's.
        ..60 => "just now".to_owned(),
        seconds => format!("{} ago", duration(Nanos(seconds.saturating_mul(Nanos::SECOND.0)))),
    }
}

/// The last 24 hours against the budget.
fn budget(board: &FarmBoard) -> Markup {
    let settings = &board.settings;
    html! {
        @if let Some(limit) = settings.budget_ns {
            td.more.flag[settings.is_over()] title={ "the budget is " (settings.budget_words()) } {
                (us_or_dash(settings.max24_ns)) " / " (us(limit)) }
        } @else { td.more { (UNKNOWN) } }
    }
}

fn table(of: &Fleet) -> Markup {
    let listed = &of.answer.boards;
    let budgets = listed.iter().any(|one| one.board.settings.budget_ns.is_some());
    scroll(
        "Boards",
        html! {
            table {
                thead { tr {
                    th.left { "board" } th { "max, us" } @if budgets { th.more { "24 h / budget, us" } }
                    th.left { "changed" } th.left.more { "30 days" }
                    @if !of.unnamed { th.left.more { "kernel" } th.left.more { "machine" } }
                    th.more { "runs" }
                    th.left { "last (UTC)" }
                } }
                tbody { @for one in listed { @let board = &one.board; tr {
                    th.left.name { a href={ "/b/" (escaped(&board.board)) } { (board.name) } }
                    td.top { @match board.worst_day() {
                        Some(day) => a href=(day_address(&board.board, day.t)) { (us(day.max_ns)) },
                        None => (us_or_dash(board.max_ns)),
                    } }
                    @if budgets { (budget(board)) }
                    td.left.flag { (state(one)) }
                    td.left.more { (spark::days(&board.days, of.answer.newest)) }
                    @if !of.unnamed {
                        td.left.name.more { (known(&board.release)) }
                        td.left.name.more { (known(&board.model)) }
                    }
                    td.more { (board.runs) }
                    td.left.when { (last_seen(board, of.now)) }
                } } }
            }
        },
    )
}

fn refused(of: &RefusedFolders) -> Markup {
    html! {
        @if of.all > 0 {
            h2 { "Not shown" }
            p { (several(of.all as u64, "folder holds", "folders hold"))
                " items that could not be read completely:" }
            ul.plain { @for one in of.kept.iter().take(50) { li { code { (one.place) } ": " (one.reason) } } }
            @if of.kept.len() > 50 { p.muted { (of.kept.len() - 50) " more are in " a href="/v1/refused" {
                "the list as JSON" }
                @if of.left_out() > 0 { ", and " (of.left_out()) " not listed until some of these are gone" }
                "." } }
        }
    }
}

/// True if a board has a text in its name, kernel, machine, preemption or tags.
pub fn matches(board: &FarmBoard, text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let parts = [&board.name, &board.board, &board.release, &board.model, &board.preempt];
    let mut all = parts.into_iter().chain(&board.settings.tags);
    text.is_empty() || all.any(|part| part.to_lowercase().contains(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board_names::BoardNames;
    use crate::changes::made::made_change;
    use crate::changes::{FarmChange, lead};
    use crate::records::DayMaximum;
    use crate::refused::RefusedBundle;

    fn board(name: &str, max: i64, last: i64) -> FarmBoard {
        FarmBoard {
            board: name.into(),
            name: name.into(),
            max_ns: Some(Nanos(max)),
            last,
            ..FarmBoard::default()
        }
    }

    /// The answer of these boards, all without changes.
    fn answer(boards: impl IntoIterator<Item = FarmBoard>) -> FleetAnswer {
        let list = |board: FarmBoard| ListedBoard { max_day: None, changes: Vec::new(), board };
        let boards: Vec<ListedBoard> = boards.into_iter().map(list).collect();
        FleetAnswer {
            schema: "",
            lead: Vec::new(),
            unsearched: 0,
            of: boards.len(),
            runs: 1,
            hidden: 0,
            newest: 1,
            worst: None,
            boards,
        }
    }

    #[test]
    fn boards_are_ordered_and_filtered() {
        let mut boards = vec![board("b", 5, 30), board("a", 9, 10), board("c", 7, 20)];
        let names = |boards: &[FarmBoard]| boards.iter().map(|one| one.name.clone()).collect::<String>();
        for (word, wanted) in [("worst", "acb"), ("name", "abc"), ("last", "bca"), ("worst", "acb")] {
            let order = BoardOrder::of_word(word).unwrap();
            boards.sort_by(|a, b| order.compare(a, b));
            assert_eq!(names(&boards), wanted, "{word}");
        }
        assert_eq!((BoardOrder::of_word("?"), BoardOrder::of_word("")), (None, None));
        assert!(matches(&boards[0], " A ") && !matches(&boards[0], "zz") && matches(&boards[0], ""));
    }

    #[test]
    fn the_largest_latency_leads_to_its_day_unless_its_run_has_no_date() {
        let day = DayMaximum { t: 86_400, max_ns: Nanos(5_000) };
        for (max, link) in [(5_000, true), (7_000, false)] {
            let worst = FarmBoard { days: vec![day], ..board("a", max, 60) };
            let of = FleetAnswer { worst: Some(worst.clone()), ..answer([worst]) };
            let text = largest(&of).into_string();
            assert_eq!(text.contains("/b/a/at/86400"), link, "{text}");
            assert_eq!(text.contains("in a run without a date"), !link, "{text}");
            assert!(text.contains(&span(Nanos(max))), "{text}");
        }
    }

    #[test]
    fn the_last_of_a_board_is_its_run_or_its_rows_and_how_long_ago_they_came() {
        let rows = FarmBoard { last_slot: 86_700, last_day: 86_400, ..board("a", 1, 60) };
        let days = FarmBoard { last_slot: 0, last_day: 86_400, ..board("a", 1, 0) };
        assert_eq!((rows.last_seen(), days.last_seen()), (86_700, 0));
        let text = last_seen(&rows, 90_300).into_string();
        assert!(text.contains("1970-01-02<br>") && text.contains("1 h ago"), "{text}");
        assert_eq!(last_seen(&days, 90_300).into_string(), "1970-01-02");
        let none = FarmBoard { last_day: 0, ..days };
        assert_eq!(last_seen(&none, 90_300).into_string(), "none");
        assert_eq!(
            (ago(5, 9), ago(60, 1), ago(i64::MAX, 0).ends_with(" ago")),
            ("just now".into(), "just now".into(), true)
        );
    }

    #[test]
    fn names_stay_text_and_an_empty_farm_says_what_to_do() {
        let hostile = answer([board("<img onerror=x>", 1, 1)]);
        let refused = vec![RefusedBundle { place: "/x/<script>".into(), reason: "no".into() }];
        let refused = RefusedFolders::of(refused, 1);
        let of = Fleet {
            answer: &hostile,
            order: BoardOrder::Name,
            filter: "\"><b>",
            state: Some(BoardState::Retired),
            now: 7_261,
            refused: &refused,
            unnamed: false,
            keeps: false,
        };
        let text = fleet(&of);
        assert!(!text.contains("<img") && !text.contains("<script>") && !text.contains("<b>"));
        assert!(text.contains("kernel") && !text.contains("log in"));
        assert!(text.contains("<option value=\"retired\" selected>") && text.contains("1 of 1 boards"));
        assert!(text.contains("/v1/boards.csv?q=%22%3E%3Cb%3E&amp;state=retired&amp;sort=name\""), "{text}");
        assert!(fleet(&Fleet { order: BoardOrder::Worst, ..of }).contains("state=retired&amp;sort=worst\""));
        assert!(text.contains("1970-01-01<br><span class=\"muted\">2 h 1 min ago<"), "{text}");
        let public = fleet(&Fleet { unnamed: true, ..of });
        assert!(!public.contains(">kernel<") && public.contains("log in"));
        let nothing = FleetAnswer { hidden: 2, ..answer([]) };
        let hidden = fleet(&Fleet { answer: &nothing, unnamed: true, ..of });
        assert!(hidden.contains("2 boards are named after") && !hidden.contains("onbeat measure"));
        let none = RefusedFolders::default();
        let empty = Fleet { answer: &answer([]), filter: "", refused: &none, ..of };
        let text = fleet(&empty);
        assert!(text.contains("onbeat measure") && !text.contains("enrol"), "{text}");
        let text = fleet(&Fleet { keeps: true, ..empty });
        assert!(
            text.contains("onbeat-farm enrol --store URL") && text.contains("onbeat-push enrol"),
            "{text}"
        );
    }

    #[test]
    fn the_page_begins_with_what_changed_and_says_so_as_its_data_do() {
        let silent = FarmChange { claim: "silent".into(), ..made_change("mill", ChangeKind::Silent, 86_400) };
        let names: BoardNames = [("mill".to_owned(), "Mill <1>".to_owned())].into_iter().collect();
        let found = lead(&[silent], &names, false);
        let mut all = answer([board("mill", 900, 9)]);
        all.worst = Some(FarmBoard {
            days: vec![DayMaximum { t: 0, max_ns: Nanos(900) }],
            ..all.boards[0].board.clone()
        });
        let none = RefusedFolders::default();
        let show = |answer: &FleetAnswer| {
            fleet(&Fleet {
                answer,
                order: BoardOrder::Name,
                filter: "",
                state: None,
                now: 9,
                refused: &none,
                unnamed: false,
                keeps: true,
            })
        };
        let text = show(&all);
        assert!(text.contains("No board got worse in the last 90 days."), "{text}");
        all.unsearched = 1;
        let text = show(&all);
        assert!(text.contains("1 board is still being searched") && !text.contains("No board got"), "{text}");
        all.lead = vec![found[0].clone(); MAX_LEADS + 2];
        all.boards[0].changes = vec![ChangeKind::Silent, ChangeKind::OverBudget];
        let text = show(&all);
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
        let sentence = format!(
            "<li><strong>Mill &lt;1&gt;</strong>: <a href=\"{}\">silent</a> since \
             <time>1970-01-02</time>.</li>",
            found[0].address
        );
        assert!(at(&sentence) < at("The largest latency of the last 30 days"), "{text}");
        assert!(at("2 more boards</a>") > at("14 boards need a look:"));
        assert!(at("\"/changes?board=mill\">silent</a>, +1") > at("<tbody>"));
        let plain = sentence.replace("&lt;", "<").replace("&gt;", ">");
        assert!(plain.contains(&found[0].claim) && found[0].says == "Mill <1>: silent since 1970-01-02.");
    }
}
