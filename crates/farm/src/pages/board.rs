//! A board: its properties, its latency over the years, its runs and its culprits.

use std::collections::BTreeMap;

use maud::{Markup, html};
use report::html::{figure, pairs, scroll};
use report::plot::theme::PAGE;
use report::words::{UNKNOWN, several, span, us_or_dash};

use super::audit::{self, BoardAudit};
use super::board_lines::{lines, worst_address};
use super::board_span::{BoardSpan, span_address};
use super::environments::count_of;
use super::five_minutes::address;
use super::fleet::left_out;
use super::parts::{culprits, date, environment_words, escaped, known, last_moment, moment, runs};
use super::{Section, page};
use crate::changes::{FarmChange, RateReach};
use crate::history::BoardEnvironment;
use crate::pictures::long_term::{self, LongTerm};
use crate::records::{DayMaximum, FarmBoard, FarmCulprit, FarmRun, FarmSlot, SeriesKey, SeriesOfBoard, Tier};
use crate::sides::FarmSide;

/// Series that the page names.
const SERIES: usize = 24;

/// The series with the largest latency of all, and its day.
pub fn worst_of(maxima: &BTreeMap<SeriesKey, DayMaximum>) -> Option<(&SeriesKey, DayMaximum)> {
    maxima.iter().map(|(key, day)| (key, *day)).max_by_key(|(_, day)| (day.max_ns, day.t))
}

/// Contents of the page.
pub struct BoardView<'a> {
    pub board: &'a FarmBoard,
    /// Day with the largest latency of each series in the displayed span, of data that count.
    pub maxima: &'a BTreeMap<SeriesKey, DayMaximum>,
    /// The worst five minutes of the worst of these days.
    pub worst: Option<&'a FarmSlot>,
    /// Changes for the worse.
    pub changes: &'a [FarmChange],
    pub series: &'a [SeriesOfBoard],
    pub chosen: &'a SeriesKey,
    pub span: BoardSpan,
    /// Last day of the span, by its first second, if one is requested.
    pub until: Option<i64>,
    pub long_term: &'a LongTerm,
    /// Detectable change in the rate of the chosen series.
    pub reach: &'a RateReach,
    pub runs: &'a [FarmRun],
    pub culprits: &'a [FarmCulprit],
    pub environments: &'a [BoardEnvironment],
    /// Audit of its settings, if a run contains it.
    pub audit: Option<&'a BoardAudit>,
    /// True if the visitor may set its properties.
    pub may_set: bool,
    /// True if names of machines, kernels and programs are omitted.
    pub unnamed: bool,
}

/// The page.
pub fn board(of: &BoardView) -> String {
    let board = of.board;
    let body = html! {
        (answer(of))
        (said(of))
        (profile(of))
        h2 { "Latency over time" }
        (choice(of))
        @if of.long_term.rows.is_empty() {
            p { "Nothing in this span." @if of.span.is_fine() {
                " A run of less than five minutes is only in the histograms of days, and those of hours and \
                 five minutes are kept for a shorter time." } }
        } @else {
            (figure(caption(of.long_term.tier), |size| long_term::draw(of.long_term, size, &PAGE)))
            p { (of.reach.says()) }
            (lines(board, of.chosen, of.long_term))
            (maxima(of))
        }
        p { "As data: " (data_links(of)) }
        @if !of.unnamed { p { a href=(comparison(of)) { "Compare spans of time of this board" } "." } }
        @if !of.culprits.is_empty() { h2 { "Culprits" } (culprits(of.culprits, false)) }
        h2 { "Runs" }
        (runs(of.runs, None))
        @if (of.runs.len() as u64) < board.runs {
            p.muted { "The last " (of.runs.len()) " of " (board.runs) " runs." }
        }
    };
    page(Some(Section::Boards), &board.name, body)
}

fn caption(tier: Tier) -> &'static str {
    match tier {
        Tier::Day => {
            "Each column is a day, all CPUs added up; the dots are the exact largest latencies. A run \
             without rows of five minutes counts on the day on which it began."
        }
        Tier::Hour => {
            "Each column is an hour, all CPUs added up; the dots are the exact largest latencies. A run \
             without rows of five minutes is not in it."
        }
        Tier::Slot => {
            "Each column is five minutes, all CPUs added up; the dots are the exact largest latencies. A \
             run without rows of five minutes is not in it."
        }
    }
}

/// The largest latency, its culprit, and the changes.
fn answer(of: &BoardView) -> Markup {
    let board = &of.board.board;
    let within = of.span.within(of.until, of.long_term.to);
    html! {
        @match worst_of(of.maxima) {
            Some((key, day)) => p.lead { "The largest latency " (within) ": " (at_worst(of, key, day)) "." },
            None if of.long_term.rows.is_empty() => p.lead { "Nothing was measured in this span." },
            None => p.lead { "Nothing valid was measured in this span." },
        }
        @for one in of.changes.iter().take(3) {
            p { span class="badge high" { (one.kind.words()) } " " (one.says) " "
                a href={ "/changes?board=" (escaped(board)) } { "Evidence" } }
        }
    }
}

/// The largest latency with its time and culprit, and its series if there are several.
fn at_worst(of: &BoardView, key: &SeriesKey, day: DayMaximum) -> Markup {
    let board = &of.board.board;
    let series = of.series.iter().find(|one| one.key == *key).filter(|_| of.series.len() > 1);
    html! {
        @match of.worst {
            Some(slot) => {
                a href=(address(board, key, slot.t)) {
                    strong { (slot.max_ns.map(span).unwrap_or_default()) } }
                @if let Some(cpu) = slot.max_cpu { " on CPU " (cpu.to_string()) } ", " (moment(slot.t)) " UTC"
                @if !slot.culprit.is_empty() { ", most of it taken by " (slot.culprit) }
            },
            None => { strong { (span(day.max_ns)) } ", " (date(day.t)) },
        }
        @if let Some(one) = series { "; series: " (series_words(one)) }
    }
}

/// Properties set by users.
fn said(of: &BoardView) -> Markup {
    let settings = &of.board.settings;
    let since = date(settings.state_since);
    html! {
        @if settings.state.is_quiet() {
            p.next { "This board is " strong { (settings.state.words()) } " since " (since)
                ": its changes are not reported." }
        } @else if let Some(since) = settings.hardware_since() {
            p.next { "Its hardware was replaced on " (date(since))
                ": changes are judged by the data since then." }
        }
        @if let Some(limit) = settings.budget_ns {
            @let last24 = settings.max24_ns.map_or_else(|| UNKNOWN.to_owned(), span);
            p { "Its budget is " strong { (span(limit)) } ", " (settings.budget_words()) "; the largest \
             latency of the 24 hours up to its last sample is " strong.alarm[settings.is_over()] { (last24) }
                @if settings.is_over() { ", over it" } "." }
        }
        @if !settings.tags.is_empty() {
            p { "Tags: " @for (at, tag) in settings.tags.iter().enumerate() { @if at > 0 { ", " }
                a href={ "/?q=" (escaped(tag)) } { (tag) } } "." }
        }
        @if of.may_set {
            p { a href={ "/admin/boards/" (escaped(&of.board.board)) } { "Set state, tags and budget" } "." }
        }
    }
}

fn profile(of: &BoardView) -> Markup {
    let board = of.board;
    let environments = several(count_of(of.environments), "environment", "environments");
    let mut facts = vec![
        ("machine", known(&board.model).to_owned()),
        ("kernel", known(&board.release).to_owned()),
        ("preemption", known(&board.preempt).to_owned()),
    ];
    if of.unnamed {
        facts.clear();
    }
    facts.extend([
        ("runs", board.runs.to_string()),
        ("last run (UTC)", last_moment(board.last)),
        ("last five minutes (UTC)", last_moment(board.last_slot)),
    ]);
    html! {
        (pairs(&facts))
        @if of.unnamed { (left_out()) } @else {
            p { a href={ "/b/" (escaped(&board.board)) "/env" } { (environments) }
                @if let Some(now) = of.environments.first() { ", now " (environment_words(now)) } "." }
            @if let Some(audit) = of.audit { (audit::line(audit)) }
        }
    }
}

fn choice(of: &BoardView) -> Markup {
    let address = |key: &SeriesKey, span: BoardSpan| span_address(&of.board.board, key, span, of.until);
    // Links to the adjacent days or weeks.
    let last = of.long_term.to - Tier::Day.seconds();
    let step = of.span.days() * Tier::Day.seconds();
    let beside = |until: i64| span_address(&of.board.board, of.chosen, of.span, Some(until));
    let name = if of.span == BoardSpan::Day { "day" } else { "week" };
    html! {
        @if of.series.len() > 1 {
            p.muted { "Histograms are added up only within the same series:" }
            ul.spans { @for one in of.series.iter().take(SERIES) {
                li { a href=(address(&one.key, of.span)) aria-current=[(one.key ==
                    *of.chosen).then_some("true")] {
                    (series_words(one))
                } " (" (several(one.days, "day", "days"))
                    @if let Some(day) = of.maxima.get(&one.key) { ", at most " (span(day.max_ns)) } ")" }
            } }
            @if of.series.len() > SERIES {
                p.muted { (of.series.len() - SERIES) " more are in the JSON of the board, below." }
            }
        } @else if let Some(one) = of.series.first() { p { (series_words(one)) "." } }
        ul.spans { @for (span, _, name) in BoardSpan::ALL {
            li { a href=(address(of.chosen, span)) aria-current=[(span == of.span).then_some("true")] {
                (name) } }
        } }
        // A board without samples has no day, and no adjacent ones.
        @if of.span.is_fine() && last > 0 { ul.spans {
            @if last > step { li { a rel="prev" href=(beside(last - step)) { "the " (name) " before" } } }
            li { a rel="next" href=(beside(last + step)) { "the " (name) " after" } }
        } }
    }
}

/// Name and conditions of a series, if known: rows without a run lack the latter.
fn series_words(of: &SeriesOfBoard) -> String {
    match of.words.as_str() {
        "" => of.key.series.clone(),
        words => format!("{}: {words}", of.key.series),
    }
}

/// The way to the form, with this board and series on both sides.
fn comparison(of: &BoardView) -> String {
    let side = FarmSide { board: of.board.board.clone(), ..FarmSide::default() };
    let (series, plan) = (escaped(&of.chosen.series), escaped(&of.chosen.plan));
    format!("/compare?{}&{}&series={series}&plan={plan}", side.query("a"), side.query("b"))
}

fn data_links(of: &BoardView) -> Markup {
    let query = format!("series={}&plan={}", escaped(&of.chosen.series), escaped(&of.chosen.plan));
    let base = format!("/v1/boards/{}", escaped(&of.board.board));
    let LongTerm { tier, from, to, .. } = of.long_term;
    let (tier, name, within) = match tier {
        Tier::Day => ("1d", "daily histograms", String::new()),
        Tier::Hour => ("1h", "the histograms of these hours", format!("&from={from}&to={to}")),
        Tier::Slot => ("5m", "the histograms of this day", format!("&from={from}&to={to}")),
    };
    html! {
        a href={ (base) "/slots.csv?" (query) } { "maxima of five minutes as CSV" } ", "
        a href={ (base) "/slots?" (query) } { "as JSON" } ", "
        a href={ (base) "/histograms?tier=" (tier) "&" (query) (within) } { (name) } ", "
        a href={ (base) "/histograms.csv?tier=" (tier) "&" (query) (within) } { "these as CSV" } ", "
        a href=(base) { "the board" } "."
    }
}

/// Table of the picture: the worst columns, each with a link to its worst five minutes, and for a
/// day also to its picture.
fn maxima(of: &BoardView) -> Markup {
    let mut worst: Vec<_> = of.long_term.rows.iter().collect();
    worst.sort_by(|a, b| (b.max_ns, a.t).cmp(&(a.max_ns, b.t)));
    let tier = of.long_term.tier;
    let to = |t: i64| worst_address(&of.board.board, of.chosen, tier, t);
    let day = |t: i64| span_address(&of.board.board, of.chosen, BoardSpan::Day, Some(t));
    let (title, one) = match tier {
        Tier::Day => ("The worst days", "day"),
        Tier::Hour => ("The worst hours", "from (UTC)"),
        Tier::Slot => ("The worst five minutes", "from (UTC)"),
    };
    html! {
        h3 { (title) }
        (scroll(title, html! {
            table {
                thead { tr { th.left { (one) } th { "max, us" } th.more { "wake-ups" } th { "missed" } } }
                tbody { @for row in worst.iter().take(10) { tr {
                    th.left.when { @if tier == Tier::Day { a href=(day(row.t)) { (date(row.t)) } }
                        @else { (moment(row.t)) } (spoiled(of, row.t)) }
                    td.top { a href=(to(row.t)) { (us_or_dash(row.max_ns)) } }
                    td.more { (row.n) } td.flag[row.missed > 0] { (row.missed) }
                } } }
            }
        }))
    }
}

/// The run that was on in a column and does not count.
fn spoiled(of: &BoardView, t: i64) -> Markup {
    html! {
        @if let Some(run) = of.long_term.spoiled.get(&t) {
            " " span.muted { "with " a href={ "/runs/" (escaped(run)) } { "an invalid run" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CpuRows, TierRow};
    use model::rows::RowCounts;
    use model::units::{Cpu, Nanos};

    /// A month of a board with two series, of which the calmer one is shown.
    fn with_view(look: impl FnOnce(BoardView<'_>)) {
        let board = FarmBoard { board: "a b".into(), name: "<i>a".into(), runs: 2, ..FarmBoard::default() };
        let key = |plan: &str| SeriesKey { series: "measure".into(), plan: plan.into() };
        let words = |plan: &str| format!("every 1 ms, {plan}");
        let one = |plan: &str| SeriesOfBoard { key: key(plan), words: words(plan), days: 1, last: 9 };
        let cpus = vec![CpuRows { cpu: Cpu(0), rows: RowCounts::of_rows([(200, 5)]) }];
        let rows = vec![TierRow { t: 86_400, n: 5, max_ns: Some(Nanos(9_000)), cpus, ..TierRow::default() }];
        let long_term = LongTerm { tier: Tier::Day, from: 0, to: 3 * 86_400, rows, ..LongTerm::default() };
        let slot = FarmSlot { t: 90_000, max_ns: Some(Nanos(70_000)), ..FarmSlot::default() };
        let maxima = BTreeMap::from([
            (key("p"), DayMaximum { t: 86_400, max_ns: Nanos(70_000) }),
            (key("q"), DayMaximum { t: 86_400, max_ns: Nanos(9_000) }),
        ]);
        look(BoardView {
            board: &board,
            maxima: &maxima,
            worst: Some(&slot),
            changes: &[],
            series: &[one("p"), one("q")],
            chosen: &key("q"),
            span: BoardSpan::Month,
            until: None,
            long_term: &long_term,
            reach: &RateReach { key: key("q"), days: 1, ..RateReach::default() },
            runs: &[],
            culprits: &[],
            environments: &[],
            audit: None,
            may_set: false,
            unnamed: false,
        });
    }

    #[test]
    fn a_board_shows_its_series_its_picture_and_its_data() {
        with_view(|view| {
            let text = super::board(&view);
            assert!(
                !text.contains("<i>")
                    && text.contains("/v1/boards/a%20b/slots.csv?series=measure&amp;plan=q")
            );
            assert!(text.contains("<svg") && text.contains("9.0") && text.contains("1970-01-02"));
            // The first line is of the worst series, which is not the one shown.
            assert!(
                text.contains("<a href=\"/b/a%20b/at/90000?series=measure&amp;plan=p\"><strong>70 us"),
                "{text}"
            );
            assert!(
                text.contains("series: measure: every 1 ms, p.") && text.contains("(1 day, at most 9 us)")
            );
            assert!(
                text.contains("cannot be judged yet: it has 1 day with samples; 56 are needed"),
                "{text}"
            );
            assert!(text.contains("One line per day") && text.matches("<svg").count() == 4);
            assert!(
                text.contains("&amp;span=day&amp;to=1970-01-02\">1970-01-02</a>"),
                "a day has its picture"
            );
        });
    }

    #[test]
    fn a_budget_says_whose_it_is_and_a_board_without_runs_how_it_gets_one() {
        with_view(|view| {
            let mut board = view.board.clone();
            (board.settings.budget_ns, board.settings.budget_of) = (Some(Nanos(100_000)), "fleet".into());
            let text = super::board(&BoardView { board: &board, ..view });
            assert!(text.contains("<strong>100 us</strong>, that of all boards; the largest"), "{text}");
            let runs = text.split("<h2>Runs</h2>").nth(1).unwrap();
            assert!(runs.contains("onbeat measure -o RUN") && !runs.contains("Latencies in us"), "{runs}");
        });
    }

    #[test]
    fn series_beyond_those_that_are_named_are_counted() {
        with_view(|view| {
            let series = vec![view.series[0].clone(); SERIES];
            assert!(!super::board(&BoardView { series: &series, ..view }).contains("more are in the JSON"));
        });
        with_view(|view| {
            let series = vec![view.series[0].clone(); SERIES + 3];
            let text = super::board(&BoardView { series: &series, ..view });
            assert!(text.contains("3 more are in the JSON of the board"), "{text}");
        });
    }

    #[test]
    fn a_week_has_hours_and_leads_to_the_next() {
        with_view(|view| {
            let hour = LongTerm { tier: Tier::Hour, to: 172_800, ..view.long_term.clone() };
            let fine = BoardView { span: BoardSpan::Week, until: Some(86_400), long_term: &hour, ..view };
            let text = super::board(&fine);
            for words in [
                "of the seven days up to 1970-01-02",
                "Each column is an hour",
                "/b/a%20b/at/86400?series=measure&amp;plan=q&amp;worst=hour",
                "span=week&amp;to=1970-01-09\">the week after",
                "tier=1h&amp;series=measure&amp;plan=q&amp;from=0&amp;to=172800",
                "span=year&amp;to=1970-01-02",
            ] {
                assert!(text.contains(words), "{words}: {text}");
            }
        });
    }

    #[test]
    fn what_does_not_count_and_what_is_not_there_is_said() {
        with_view(|view| {
            let long_term = view.long_term;
            let spoiled = LongTerm { spoiled: [(86_400, "r 1".to_owned())].into(), ..long_term.clone() };
            let none = BTreeMap::new();
            let marked = super::board(&BoardView { long_term: &spoiled, maxima: &none, worst: None, ..view });
            assert!(marked.contains("with <a href=\"/runs/r%201\">an invalid run</a>"), "{marked}");
            assert!(marked.contains("Nothing valid was measured in this span"), "{marked}");
            let nothing =
                LongTerm { tier: Tier::Slot, from: 0, to: 86_400, rows: Vec::new(), ..long_term.clone() };
            let unused = BoardView { span: BoardSpan::Day, long_term: &nothing, maxima: &none, ..view };
            let text = super::board(&unused);
            assert!(!text.contains("unknown\">") && !text.contains("rel=\"next\""), "{text}");
            let unkept = super::board(&BoardView { worst: None, ..view });
            assert!(!unkept.contains("invalid run"), "{unkept}");
            assert!(unkept.contains("<strong>70 us</strong>, 1970-01-02"), "{unkept}");
            let empty = LongTerm { rows: Vec::new(), ..long_term.clone() };
            assert!(
                super::board(&BoardView { long_term: &empty, maxima: &BTreeMap::new(), ..view })
                    .contains("Nothing in this span")
            );
        });
    }
}
