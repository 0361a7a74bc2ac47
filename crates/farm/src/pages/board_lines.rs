//! A board's histograms as stacked lines, and the table of them.

use maud::{Markup, html};
use report::html::{figure, scroll};
use report::plot::theme::PAGE;
use report::words::us_or_dash;

use super::board_span::{BoardSpan, span_address};
use super::five_minutes::address;
use super::parts::{date, moment};
use crate::pictures::long_term::LongTerm;
use crate::pictures::periods::{BoardPeriod, BoardPeriods};
use crate::pictures::stacked;
use crate::records::{FarmBoard, SeriesKey, Tier};

/// The section; the rows are those of one series.
pub fn lines(board: &FarmBoard, key: &SeriesKey, rows: &LongTerm) -> Markup {
    let periods = BoardPeriods::of(rows);
    let limit = board.settings.budget_ns;
    let caption = format!(
        "One line per {}, the newest in front: its height is how many wake-ups had a latency, \
         logarithmic. The dots are the exact largest latencies, drawn on top of all lines.",
        periods.words()
    );
    html! {
        h3 { "Histograms, one behind the other" }
        (figure(&caption, |size| stacked::draw(&periods, limit, size, &PAGE)))
        details {
            summary { "The lines as a table" }
            (table(board, key, &periods, rows.tier))
        }
    }
}

fn table(board: &FarmBoard, key: &SeriesKey, of: &BoardPeriods, tier: Tier) -> Markup {
    let limit = board.settings.budget_ns;
    let worst = |one: &BoardPeriod| worst_address(&board.board, key, tier, one.worst_t);
    let is_over = |one: &BoardPeriod| limit.is_some_and(|limit| one.max_ns > Some(limit));
    let quantile = |one: &BoardPeriod, per_million| us_or_dash(one.quantile(per_million));
    scroll(
        "Lines, latencies in us",
        html! {
            table {
                thead { tr { th.left { (of.words()) " from (UTC)" } th { "p50" } th { "p99.99" } th { "max" }
                    th.more { "wake-ups" } th.more { "missed" } } }
                tbody { @for one in of.all.iter().rev() { tr {
                    th.left.when { (begin(board, key, of, one)) }
                    td { (quantile(one, 500_000)) } td { (quantile(one, 999_900)) }
                    td.top.alarm[is_over(one)] { a href=(worst(one)) { (us_or_dash(one.max_ns)) } }
                    td.more { (one.rows.total()) } td.more.flag[one.missed > 0] { (one.missed) }
                } } }
            }
            p.muted { "Latencies in us. A maximum leads to its five minutes, a day or a week to its own \
             picture." }
        },
    )
}

/// Start of a line, with a link: a day and a week have separate pictures.
fn begin(board: &FarmBoard, key: &SeriesKey, of: &BoardPeriods, one: &BoardPeriod) -> Markup {
    let day = Tier::Day.seconds();
    let span = match of.seconds {
        length if length < day => return html! { (moment(one.t)) },
        length if length == day => BoardSpan::Day,
        length if length == 7 * day => BoardSpan::Week,
        _ => return html! { (date(one.t)) },
    };
    let last = Some(one.t + of.seconds - day);
    html! { a href=(span_address(&board.board, key, span, last)) { (date(one.t)) } }
}

/// The way to the worst five minutes of a histogram.
pub fn worst_address(board: &str, key: &SeriesKey, tier: Tier, t: i64) -> String {
    address(board, key, t)
        + match tier {
            Tier::Day => "&worst=day",
            Tier::Hour => "&worst=hour",
            Tier::Slot => "",
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CpuRows, TierRow};
    use model::rows::{RowCounts, row_of};
    use model::units::{Cpu, Nanos};

    #[test]
    fn each_line_has_its_row_with_the_way_to_its_worst() {
        let mut board = FarmBoard { board: "a b".into(), ..FarmBoard::default() };
        board.settings.budget_ns = Some(Nanos(100_000));
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        let day = |at: i64, max: i64| {
            let rows = RowCounts::of_rows([(row_of(Nanos(8_000)), 10_000), (row_of(Nanos(max)), 1)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t: at * 86_400, n: 10_001, missed: 0, max_ns: Some(Nanos(max)), cpus }
        };
        let rows = vec![day(20_000, 30_000), day(20_001, 900_000)];
        let days = LongTerm {
            tier: Tier::Day,
            from: 20_000 * 86_400,
            to: 20_014 * 86_400,
            rows,
            spoiled: Default::default(),
        };
        let text = lines(&board, &key, &days).into_string();
        // The newest first; 2024-10-05 is day 20,001.
        let (newer, older) = (text.find("2024-10-05</a>").unwrap(), text.find("2024-10-04</a>").unwrap());
        assert!(newer < older && text.contains("One line per day"), "{text}");
        assert!(text.contains("/b/a%20b/at/1728086400?series=measure&amp;plan=p&amp;worst=day"), "{text}");
        let day = "/b/a%20b?series=measure&amp;plan=p&amp;span=day&amp;to=2024-10-05\">2024-10-05</a>";
        assert!(text.contains(day), "a day has a picture of its own: {text}");
        assert!(text.contains(">900.0</a>") && text.matches("class=\"top alarm\"").count() == 1, "{text}");
        assert!(text.contains(">8.1<") && text.contains("over the budget of 100 us"), "{text}");
        assert_eq!(text.matches("<svg").count(), 2);
        let hours = LongTerm { tier: Tier::Hour, to: 20_001 * 86_400, ..days };
        let text = lines(&board, &key, &hours).into_string();
        assert!(text.contains(">2024-10-04 00:00<") && text.contains("plan=p&amp;worst=hour\""), "{text}");
    }
}
