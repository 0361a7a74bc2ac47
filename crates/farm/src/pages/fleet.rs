//! The first page: all boards, each in a row.

use maud::{Markup, html};
use report::html::scroll;
use report::words::{several, us_or_dash};

use super::parts::{escaped, known, moment};
use super::{Section, page};
use crate::pictures::spark;
use crate::records::FarmBoard;

/// How the boards are ordered.
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
        (BoardOrder::Last, "last", "last run"),
    ];

    /// By its word in an address.
    pub fn of_word(word: &str) -> BoardOrder {
        BoardOrder::ALL.into_iter().find(|known| known.1 == word).map(|known| known.0).unwrap_or_default()
    }

    pub fn sort(self, boards: &mut [FarmBoard]) {
        match self {
            BoardOrder::Worst => boards.sort_by(|a, b| (b.max_ns, &a.board).cmp(&(a.max_ns, &b.board))),
            BoardOrder::Name => boards.sort_by(|a, b| a.board.cmp(&b.board)),
            BoardOrder::Last => boards.sort_by(|a, b| (b.last, &a.board).cmp(&(a.last, &b.board))),
        }
    }
}

/// A folder that holds no run which can be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RefusedBundle {
    pub place: String,
    pub reason: String,
}

/// What the page shows.
pub struct Fleet<'a> {
    pub boards: &'a [FarmBoard],
    /// How many there are without the filter.
    pub of: usize,
    pub runs: u64,
    pub order: BoardOrder,
    pub filter: &'a str,
    pub refused: &'a [RefusedBundle],
}

/// The page.
pub fn fleet(of: &Fleet) -> String {
    let boards = several(of.of as u64, "board", "boards");
    let runs = several(of.runs, "run", "runs");
    let body = html! {
        @if of.of == 0 { (nothing()) } @else {
            p.lead { (boards) ", " (runs) "." }
            (form(of))
            (table(of.boards))
            p.muted { "Latencies in us. The line and the maximum are of the last 30 days up to a board's \
             last run, over all its runs; each bar is a day." }
        }
        (refused(of.refused))
    };
    page(Some(Section::Boards), "Boards", body)
}

fn nothing() -> Markup {
    html! {
        p.lead { "No run is here yet." }
        p { "Make one on a board with " code { "onbeat measure -D 1m -o RUN" }
            ", and put its folder below the one that "
            code { "onbeat-farm serve --runs DIR" } " was given, as " code { "DIR/BOARD/RUN" }
                ". It is found within a minute." }
    }
}

fn form(of: &Fleet) -> Markup {
    html! {
        form.line action="/" method="get" {
            label { "Boards with " input type="search" name="q" value=(of.filter) maxlength="64"; }
            label { "ordered by "
                select name="sort" {
                    @for (order, word, name) in BoardOrder::ALL {
                        option value=(word) selected[order == of.order] { (name) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
        @if !of.filter.is_empty() { p.muted { (of.boards.len()) " of " (of.of) " boards." } }
    }
}

fn table(boards: &[FarmBoard]) -> Markup {
    scroll(
        "Boards",
        html! {
            table {
                thead { tr {
                    th.left { "board" } th { "max" } th.left.more { "30 days" } th.left { "kernel" }
                    th.left.more { "preemption" } th.left.more { "machine" } th.more { "runs" } th.left {
                        "last run (UTC)" }
                } }
                tbody { @for board in boards { tr {
                    th.left { a href={ "/b/" (escaped(&board.board)) } { (board.name) } }
                    td.top { (us_or_dash(board.max_ns)) }
                    td.left.more { (spark::days(&board.days, board.last)) }
                    td.left { (known(&board.release)) } td.left.more { (known(&board.preempt)) }
                    td.left.more { (known(&board.model)) } td.more { (board.runs) }
                    td.left { (moment(board.last)) }
                } } }
            }
        },
    )
}

fn refused(all: &[RefusedBundle]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Not shown" }
            p { (several(all.len() as u64, "folder holds", "folders hold"))
                " a run that could not be taken in:" }
            ul.plain { @for one in all.iter().take(50) { li { code { (one.place) } ": " (one.reason) } } }
            @if all.len() > 50 { p.muted { (all.len() - 50) " more are in " a href="/v1/refused" {
                "the list as JSON" } "." } }
        }
    }
}

/// Whether a board has a text in its name, kernel, machine or preemption.
pub fn matches(board: &FarmBoard, text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let parts = [&board.name, &board.board, &board.release, &board.model, &board.preempt];
    text.is_empty() || parts.iter().any(|part| part.to_lowercase().contains(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

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
        for (word, wanted) in [("worst", "acb"), ("name", "abc"), ("last", "bca"), ("?", "acb")] {
            BoardOrder::of_word(word).sort(&mut boards);
            assert_eq!(names(&boards), wanted, "{word}");
        }
        assert!(matches(&boards[0], " A ") && !matches(&boards[0], "zz") && matches(&boards[0], ""));
    }

    #[test]
    fn names_stay_text_and_an_empty_farm_says_what_to_do() {
        let hostile = [board("<img onerror=x>", 1, 1)];
        let refused = [RefusedBundle { place: "/x/<script>".into(), reason: "no".into() }];
        let of = Fleet {
            boards: &hostile,
            of: 1,
            runs: 1,
            order: BoardOrder::Name,
            filter: "\"><b>",
            refused: &refused,
        };
        let text = fleet(&of);
        assert!(!text.contains("<img") && !text.contains("<script>") && !text.contains("<b>"));
        let empty = Fleet { boards: &[], of: 0, runs: 0, filter: "", refused: &[], ..of };
        assert!(fleet(&empty).contains("onbeat measure"));
    }
}
