//! The first page: all boards, each in a row.

use maud::{Markup, html};
use model::units::Nanos;
use report::html::scroll;
use report::words::{UNKNOWN, duration, several, span, us, us_or_dash};

use super::parts::{as_data, board_link, date, escaped, known};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::board_settings::BoardState;
use crate::changes::{ChangeKind, FarmChange, SHOWN_DAYS};
use crate::pictures::spark;
use crate::records::FarmBoard;

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

    pub fn sort(self, boards: &mut [FarmBoard]) {
        match self {
            BoardOrder::Worst => boards.sort_by(|a, b| (b.max_ns, &a.board).cmp(&(a.max_ns, &b.board))),
            BoardOrder::Name => boards.sort_by(|a, b| a.board.cmp(&b.board)),
            BoardOrder::Last => {
                boards.sort_by(|a, b| (b.last_seen(), &a.board).cmp(&(a.last_seen(), &b.board)));
            }
        }
    }
}

/// A folder that holds no run which can be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RefusedBundle {
    pub place: String,
    pub reason: String,
}

/// Refused folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedFolders {
    /// The first of them.
    pub kept: Vec<RefusedBundle>,
    /// Total number.
    pub all: usize,
}

impl RefusedFolders {
    /// The first of these alone.
    pub fn of(mut all: Vec<RefusedBundle>, most: usize) -> RefusedFolders {
        let count = all.len();
        all.truncate(most);
        RefusedFolders { kept: all, all: count }
    }

    /// Number of further ones that are not listed.
    pub fn left_out(&self) -> usize {
        self.all - self.kept.len()
    }
}

/// Contents of the page.
pub struct Fleet<'a> {
    pub boards: &'a [FarmBoard],
    /// Number of boards without the filter.
    pub of: usize,
    pub runs: u64,
    pub order: BoardOrder,
    pub filter: &'a str,
    /// State of the boards that are shown alone.
    pub state: Option<BoardState>,
    /// Seconds since 1970.
    pub now: i64,
    pub refused: &'a RefusedFolders,
    /// The board with the largest latency, except for quiet ones.
    pub worst: Option<&'a FarmBoard>,
    /// First second of the last day that any of them has.
    pub newest: i64,
    /// Changes on them.
    pub changes: &'a [FarmChange],
    /// Displayed names of boards.
    pub names: &'a BoardNames,
    /// True if names of machines and kernels are omitted.
    pub unnamed: bool,
    /// Number of boards hidden for that reason.
    pub hidden: usize,
    /// True if the farm accepts data from boards.
    pub keeps: bool,
}

/// The page.
pub fn fleet(of: &Fleet) -> String {
    let boards = several(of.of as u64, "board", "boards");
    let runs = several(of.runs, "run", "runs");
    let body = html! {
        @if of.of == 0 && of.hidden == 0 { (nothing(of.keeps)) }
        @if of.of > 0 {
            (answer(of))
            (form(of))
            (table(of))
            p.muted { (boards) ", " (runs) ". The maximum is of the last 30 days of a board, without runs \
             that do not count. Each bar is a day up to " (date(of.newest)) ", its height the logarithm of \
             the largest latency: the line across is 100 us." }
            (as_data("/v1/boards", &query(of)))
        }
        @if of.unnamed { (left_out()) }
        @if of.hidden > 0 {
            p.muted { (several(of.hidden as u64, "board is", "boards are")) " called after the machine, and \
             left out: " code { "DIR/BOARD/RUN" } " gives a board its own name." }
        }
        (refused(of.refused))
    };
    page(Some(Section::Boards), "Boards", body)
}

/// Note for public readers.
pub fn left_out() -> Markup {
    html! {
        p.muted { "Names of machines, kernels and programs are for those who "
            a href="/login" { "log in" } "." }
    }
}

/// Instructions for the first run.
fn nothing(keeps: bool) -> Markup {
    html! {
        p.lead { "No run is here yet." }
        @if keeps {
            p { "A board sends what it has once it is enrolled: "
                code { "onbeat-farm enrol --store URL" } ", with the " code { "--store" }
                " of the server, prints a code for " code { "onbeat-push enrol" } " on the board." }
        }
        p { "Where the server was started with " code { "--runs DIR" }
            ", it finds a run there within a minute: make one on a board with "
            code { "onbeat measure -D 1m -o RUN" } ", and put its folder there as "
            code { "DIR/BOARD/RUN" } "." }
    }
}

/// The largest latency, and the boards that need attention.
fn answer(of: &Fleet) -> Markup {
    let open = || of.changes.iter().filter(|one| one.is_open());
    let silent: Vec<&FarmChange> = open().filter(|one| one.kind == ChangeKind::Silent).collect();
    let other = open().filter(|one| one.kind != ChangeKind::Silent).count();
    html! {
        @if let Some((board, day)) = of.worst.and_then(|board| Some((board, board.worst_day()?))) {
            p.lead { "The largest latency of the last 30 days: "
                a href=(day_address(&board.board, day.t)) { (span(day.max_ns)) } " on "
                a href={ "/b/" (escaped(&board.board)) } { (board.name) } ", " time { (date(day.t)) } "." }
        }
        @if !silent.is_empty() {
            p { strong { (several(silent.len() as u64, "board is", "boards are")) " silent: " }
                @for (at, one) in silent.iter().take(8).enumerate() { @if at > 0 { ", " }
                    (board_link(&one.board, of.names)) " since " time { (date(one.from)) } }
                @if silent.len() > 8 { ", and " (silent.len() - 8) " more" } "." }
        }
        @if other > 0 {
            // Other than those that are named.
            @let (one, more) = match silent.is_empty() {
                true => ("change", "changes"), false => ("other change", "other changes"),
            };
            p { a href="/changes" { (several(other as u64, one, more)) " to look at" }
                " in the last " (SHOWN_DAYS) " days." }
        }
    }
}

/// The worst five minutes of a day of a board.
pub fn day_address(board: &str, t: i64) -> String {
    format!("/b/{}/at/{t}?worst=day", escaped(board))
}

/// First open change of a board, with a link to all of its changes.
fn state(of: &Fleet, board: &FarmBoard) -> Markup {
    let bad: Vec<&FarmChange> =
        of.changes.iter().filter(|one| one.board == board.board && one.is_open()).collect();
    html! {
        @if board.settings.state.is_quiet() {
            span.muted { (board.settings.state.words()) }
        } @else if let Some(one) = bad.first() {
            a href={ "/changes?board=" (escaped(&board.board)) } { (one.kind.words()) }
            @if bad.len() > 1 { ", +" (bad.len() - 1) }
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
            p.muted { (of.boards.len()) " of " (of.of) " boards." }
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
    let budgets = of.boards.iter().any(|board| board.settings.budget_ns.is_some());
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
                tbody { @for board in of.boards { tr {
                    th.left.name { a href={ "/b/" (escaped(&board.board)) } { (board.name) } }
                    td.top { @match board.worst_day() {
                        Some(day) => a href=(day_address(&board.board, day.t)) { (us(day.max_ns)) },
                        None => (UNKNOWN),
                    } }
                    @if budgets { (budget(board)) }
                    td.left.flag { (state(of, board)) }
                    td.left.more { (spark::days(&board.days, of.newest)) }
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
                " what could not be taken in, or not all of it:" }
            ul.plain { @for one in of.kept.iter().take(50) { li { code { (one.place) } ": " (one.reason) } } }
            @if of.kept.len() > 50 { p.muted { (of.kept.len() - 50) " more are in " a href="/v1/refused" {
                "the list as JSON" }
                @if of.left_out() > 0 { ", and " (of.left_out()) " in no list until some of these are gone" }
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
    use crate::changes::made::made_change;

    fn board(name: &str, max: i64, last: i64) -> FarmBoard {
        FarmBoard {
            board: name.into(),
            name: name.into(),
            max_ns: Some(Nanos(max)),
            last,
            ..FarmBoard::default()
        }
    }

    #[test]
    fn boards_are_ordered_and_filtered() {
        let mut boards = vec![board("b", 5, 30), board("a", 9, 10), board("c", 7, 20)];
        let names = |boards: &[FarmBoard]| boards.iter().map(|one| one.name.clone()).collect::<String>();
        for (word, wanted) in [("worst", "acb"), ("name", "abc"), ("last", "bca"), ("worst", "acb")] {
            BoardOrder::of_word(word).unwrap().sort(&mut boards);
            assert_eq!(names(&boards), wanted, "{word}");
        }
        assert_eq!((BoardOrder::of_word("?"), BoardOrder::of_word("")), (None, None));
        assert!(matches(&boards[0], " A ") && !matches(&boards[0], "zz") && matches(&boards[0], ""));
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
        let hostile = [board("<img onerror=x>", 1, 1)];
        let refused = vec![RefusedBundle { place: "/x/<script>".into(), reason: "no".into() }];
        let refused = RefusedFolders::of(refused, 1);
        let of = Fleet {
            boards: &hostile,
            of: 1,
            runs: 1,
            order: BoardOrder::Name,
            filter: "\"><b>",
            state: Some(BoardState::Retired),
            now: 7_261,
            refused: &refused,
            worst: hostile.first(),
            newest: 1,
            changes: &[],
            names: &BoardNames::default(),
            unnamed: false,
            hidden: 0,
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
        let hidden = fleet(&Fleet { boards: &[], of: 0, unnamed: true, hidden: 2, ..of });
        assert!(hidden.contains("2 boards are called after") && !hidden.contains("onbeat measure"));
        let none = RefusedFolders::default();
        let empty = Fleet { boards: &[], of: 0, runs: 0, filter: "", refused: &none, ..of };
        let text = fleet(&empty);
        assert!(text.contains("onbeat measure") && !text.contains("enrol"), "{text}");
        let text = fleet(&Fleet { keeps: true, ..empty });
        assert!(
            text.contains("onbeat-farm enrol --store URL") && text.contains("onbeat-push enrol"),
            "{text}"
        );
        let names: BoardNames = [("mill".to_owned(), "Mill <1>".to_owned())].into_iter().collect();
        let silent = [made_change("mill", ChangeKind::Silent, 86_400)];
        let text = fleet(&Fleet { boards: &hostile, of: 1, changes: &silent, names: &names, ..empty });
        assert!(text.contains("<a href=\"/b/mill\">Mill &lt;1&gt;</a> since <time>1970-01-02<"), "{text}");
        let worse = made_change("mill", ChangeKind::Worse, 86_400);
        let [silent] = silent;
        for (changes, words) in [
            (vec![worse.clone()], ">1 change to look at<"),
            (vec![silent, worse], ">1 other change to look at<"),
        ] {
            let text = fleet(&Fleet { boards: &hostile, of: 1, changes: &changes, ..empty });
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
