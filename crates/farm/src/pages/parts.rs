//! Common parts of pages: times, tables of runs, addresses.

use maud::{Markup, html};
use model::labels::Labels;
use model::units::Nanos;
use report::html::cards;
use report::words::{UNKNOWN, duration, us_or_dash};

use crate::board_names::BoardNames;
use crate::history::BoardEnvironment;
use crate::records::{FarmCulprit, FarmRun};

pub use crate::words::{clock, date, escaped, known, last_moment, moment};

/// Links to the data of a page as JSON and as CSV, at its address with an extension.
pub fn as_data(path: &str, query: &str) -> Markup {
    part_as_data("This", path, query)
}

/// Links to the data of a named part of a page.
pub fn part_as_data(name: &str, path: &str, query: &str) -> Markup {
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    html! {
        p { (name) " as " a href={ (path) (query) } { "JSON" } ", "
            a href={ (path) ".csv" (query) } { "CSV" } "." }
    }
}

/// A board by its name, with the way to its page.
pub fn board_link(board: &str, names: &BoardNames) -> Markup {
    html! { a href={ "/b/" (escaped(board)) } { (names.of(board)) } }
}

/// Table of runs, the latest first, each with a link to its report; with the names of their boards
/// if there are several. Latency and validity are in the first columns: a table that is too wide
/// has its last columns out of sight.
pub fn runs(of: &[FarmRun], names: Option<&BoardNames>) -> Markup {
    if of.is_empty() {
        return html! {
            p { "No run is here yet: one that " code { "onbeat measure -o RUN" }
                " writes on the board appears once it is sent or imported." }
        };
    }
    let with_board = names.is_some();
    let with_labels = of.iter().any(|run| !run.labels.is_empty());
    // On a telephone, four more columns would break an id into syllables.
    cards(
        "Runs, latencies in us",
        html! {
            table.many {
                thead { tr {
                    th.left { "run" } @if with_board { th.left { "board" } }
                    th.left { "began (UTC)" } th { "max" } th.left { "state" } @if with_labels {
                        th.left { "labels" } }
                    th.more { "p99.99" } th.more { "missed" } th.more { "spikes" }
                    th.left.more { "command" }
                    th.more { "length" }
                    // A list of many boards is as wide as a page without it.
                    @if !with_board { th.more { "CPUs" } }
                    th.more { "wake-ups" }
                } }
                tbody { @for run in of { tr {
                    th.left.run { a href={ "/runs/" (escaped(&run.id)) } { (run.id) } }
                    @if let Some(names) = names {
                        td.left.name data-of="board" { (board_link(&run.board, names)) } }
                    td.left.when { (moment(run.started)) }
                    td.top data-of="max, us" { (us_or_dash(run.max_ns)) }
                    td.left.flag[!state(run).is_empty()] { (state(run)) }
                    @if with_labels { td.left.labels { (labels(&run.labels)) } }
                    td.more { (us_or_dash(p9999(run))) }
                    td.more { (run.missed.map_or_else(|| UNKNOWN.to_owned(), |n| n.to_string())) }
                    td.more { (run.spikes) }
                    td.left.more { (run.command) }
                    td.more { (run.length_ns.map_or_else(|| UNKNOWN.to_owned(), duration)) }
                    @if !with_board { td.more { (run.cpus) } }
                    td.more { (run.cycles) }
                } } }
            }
            p.muted { "Latencies in us. The p99.99 is the largest of a run's CPUs; it needs "
                (LEAST_P9999) " wake-ups on each." }
        },
    )
}

/// Number of wake-ups of a CPU of which one is above the p99.99.
pub const LEAST_P9999: u64 = 10_000;

/// Largest p99.99 of a run's CPUs, if all of them can have enough wake-ups for it: of fewer it
/// would be the maximum under another name.
fn p9999(run: &FarmRun) -> Option<Nanos> {
    run.p9999_ns.filter(|_| run.cycles >= run.cpus.max(1).saturating_mul(LEAST_P9999))
}

/// Labels, each with a link to the runs that have it; long ones are cut, and whole in the title.
pub fn labels(of: &Labels) -> Markup {
    const LONGEST: usize = 48;
    let texts = of.iter().map(|(name, value)| format!("{name}={value}"));
    html! {
        @for (at, text) in texts.enumerate() {
            @let cut = text.char_indices().nth(LONGEST).map(|(end, _)| &text[..end]);
            @if at > 0 { ", " }
            a href={ "/runs?label=" (escaped(&text)) } title=[cut.map(|_| &text)] {
                (cut.unwrap_or(&text)) @if cut.is_some() { "..." } }
        }
    }
}

/// Defect of a run, in a word; empty for a valid run.
fn state(run: &FarmRun) -> &'static str {
    match (run.complete, run.invalid) {
        (true, 0) => "",
        (false, 0) => "incomplete",
        (_, _) => "invalid",
    }
}

/// Culprits, those that took most first.
pub fn culprits(of: &[FarmCulprit], with_boards: bool) -> Markup {
    let recorded = of.iter().any(|one| one.five_minutes > 0);
    // A name may be a sentence: next to four numbers a telephone has room for a letter.
    cards(
        "Culprits, by the time they took",
        html! {
            table {
                thead { tr {
                    th.left { "culprit" } th.left.more { "kind" } @if with_boards { th { "boards" } }
                    th.more { "runs" } th { "spikes" } @if recorded { th { "five minutes" } }
                    th { "took, ms" }
                    th.left.more { "first" } th.left { "last" }
                } }
                tbody { @for one in of { tr {
                    th.left.name { a href={ "/culprits/" (escaped(&one.fingerprint)) } {
                        (known(&one.name)) } }
                    td.left.more { (one.kind) } @if with_boards { td data-of="boards" { (one.boards) } }
                    td.more { (one.runs) } td data-of="spikes" { (one.spikes) }
                    @if recorded { td data-of="five minutes" { (one.five_minutes) } }
                    td.top data-of="took, ms" { (format!("{:.3}", one.total_ns.0 as f64 / 1e6)) }
                    td.left.more { (date(one.first)) }
                    td.left.when data-of="last" { (date(one.last)) }
                } } }
            }
        },
    )
}

/// An environment in a line.
pub fn environment_words(of: &BoardEnvironment) -> String {
    let preempt = if of.record.preempt.is_empty() { "preemption unknown" } else { &of.record.preempt };
    format!("{}, {preempt}", known(&of.record.release))
}

/// Command that repeats a run; empty if its record lacks it.
pub fn same_again(command: Option<&str>) -> Markup {
    html! { @if let Some(command) = command { p { "The same again: " code { (command) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_of_too_few_wake_ups_is_not_shown_in_a_list() {
        let of = |cycles| FarmRun {
            cpus: 2,
            cycles,
            max_ns: Some(Nanos(190_000)),
            p9999_ns: Some(Nanos(181_700)),
            ..FarmRun::default()
        };
        let shown = |cycles| runs(&[of(cycles)], None).into_string();
        assert!(shown(20_000).contains(">181.7<") && !shown(19_999).contains(">181.7<"));
        assert!(shown(1).contains("the largest of a run's CPUs; it needs 10000 wake-ups on each"));
    }

    #[test]
    fn data_is_at_the_address_of_its_page() {
        let text = as_data("/v1/boards/a/slots", "from=1&to=2").into_string();
        assert!(
            text.contains("/v1/boards/a/slots?from=1&amp;to=2\"") && text.contains("/slots.csv?from=1&amp;")
        );
        assert!(as_data("/v1/kernels", "").into_string().contains("\"/v1/kernels.csv\""));
    }

    #[test]
    fn runs_say_first_how_late_they_were_and_whether_they_count() {
        let long = format!("note={}", "ä".repeat(60));
        let run = FarmRun {
            id: "r1".into(),
            board: "a".into(),
            invalid: 1,
            max_ns: Some(Nanos(9_000)),
            labels: Labels::parse(&["build=1".to_owned(), long.clone()]).unwrap(),
            ..FarmRun::default()
        };
        let text = runs(&[run], Some(&BoardNames::default())).into_string();
        let places = [">board<", ">max<", ">state<", ">labels<", ">p99.99<", ">command<", ">wake-ups<"]
            .map(|head| text.find(head).unwrap());
        assert!(places.is_sorted(), "{places:?}: {text}");
        let cells = [">9.0<", ">invalid<", "build=1</a>"].map(|cell| text.find(cell).unwrap());
        assert!(cells.is_sorted(), "{cells:?}: {text}");
        let cut = format!("title=\"{long}\">note={}...</a>", "ä".repeat(43));
        assert!(text.contains(&cut) && text.matches("title=").count() == 1, "{text}");
        let none = runs(&[], None).into_string();
        assert!(none.contains("onbeat measure -o RUN") && !none.contains("<table"), "{none}");
    }
}
