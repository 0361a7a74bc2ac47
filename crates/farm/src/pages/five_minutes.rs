//! Five minutes of a board: the latency of each CPU, victim and culprit, and links to related
//! pages.

use maud::{Markup, html};
use model::units::Cpu;
use report::html::{cards, figure, scroll};
use report::plot::latency;
use report::plot::line::PlotLine;
use report::plot::theme::PAGE;
use report::words::{several, span, us, us_or_dash};

use super::board_span::{BoardSpan, span_address};
use super::parts::{clock, date, escaped, known, moment, part_as_data, runs};
use super::{Section, page};
use crate::ingest::spikes::FarmSpike;
use crate::joined_slots::SlotSums;
use crate::pictures::cpu_lines::CpuLine;
use crate::pictures::long_term::{self, LongTerm};
use crate::records::{FarmBoard, FarmRun, FarmSlot, SLOT, SeriesKey, TierRow};

pub use crate::words::address;

/// Spikes that the page names.
const SPIKES: usize = 24;
/// Recordings that have a table of their CPUs.
const TABLES: usize = 24;

/// Contents of the page.
pub struct FiveMinutes<'a> {
    pub board: &'a FarmBoard,
    pub key: &'a SeriesKey,
    /// Under which conditions was measured, for people.
    pub words: &'a str,
    /// The first second of these minutes.
    pub t: i64,
    /// One per active recording.
    pub slots: &'a [FarmSlot],
    /// The one with the largest latency of these minutes, of all recordings.
    pub largest: Option<&'a FarmSlot>,
    pub sums: SlotSums,
    /// Number of rows of recordings that are missing in `slots`.
    pub left_out: u64,
    /// Histogram of all recordings, if it is still stored for these minutes.
    pub histogram: Option<&'a TierRow>,
    /// Previous and next five minutes whose largest latency exceeds the board's budget.
    pub over: [Option<i64>; 2],
    /// The worst ones of the day.
    pub worst: &'a [FarmSlot],
    /// Histograms of the day's hours; without rows if they are no longer stored.
    pub day: &'a LongTerm,
    pub runs: &'a [FarmRun],
    /// The spikes that hunts recorded in these minutes, the latest first.
    pub spikes: &'a [FarmSpike],
    /// Reason for which the spikes of a run are not among them.
    pub unread: Option<&'a str>,
}

/// The page.
pub fn five_minutes(of: &FiveMinutes) -> String {
    let board = of.board;
    let body = html! {
        p.path { a href={ "/b/" (escaped(&board.board)) } { (board.name) } ", " (of.key.series)
            @if !of.words.is_empty() { ": " (of.words) } }
        (answer(of))
        (steps(of))
        @if of.runs.is_empty() { (next(of)) }
        @for slot in of.slots.iter().take(TABLES) { (cpus(slot)) }
        (rest(of))
        (histogram(of))
        (spikes(of))
        @if let Some(why) = of.unread { p { "Spikes of a run are not shown: " (why) "." } }
        (data_links(of))
        h2 { "The day around it" }
        @if of.day.rows.is_empty() { p.muted { "This day has no hourly histograms." } } @else {
            (figure("Each column is an hour, all CPUs added up; the dots are the exact largest latencies.",
                |size| long_term::draw(of.day, size, &PAGE)))
            p { a href=(span_address(&board.board, of.key, BoardSpan::Day, Some(of.day.from))) {
                "The same day on the board's page" } "." }
        }
        (worst(of))
        h2 { "Runs at that time" }
        @if of.runs.is_empty() {
            p { "No run was active" @if of.largest.is_some() { "; the data above is from a recording" } "." }
        } @else {
            p { "The page of a run has the command that repeats it; that of a hunt also has the timeline of \
                 each spike." }
            (runs(of.runs, None))
        }
    };
    page(Some(Section::Boards), &format!("{}, {} UTC", board.name, moment(of.t)), body)
}

/// Hint on recording a timeline the next time, as there is none without a run.
fn next(of: &FiveMinutes) -> Markup {
    html! {
        @if let Some(max) = of.largest.and_then(|slot| slot.max_ns) {
            p.next { strong { "What to do next: " }
                code { "onbeat hunt --over " ((max.0 / 2_000).max(1)) "us -D 1h" }
                " on the board finds the culprit when a latency half as long occurs again." }
        }
    }
}

fn data_links(of: &FiveMinutes) -> Markup {
    let (series, plan) = (escaped(&of.key.series), escaped(&of.key.plan));
    let query = format!("series={series}&plan={plan}&from={}&to={}", of.t, of.t + SLOT);
    let base = format!("/v1/boards/{}", escaped(&of.board.board));
    let whole = format!("{base}/at/{}", of.t);
    html! {
        p { "All of this as " a href={ (whole) "?series=" (series) "&plan=" (plan) } { "JSON" }
            @if !of.spikes.is_empty() { ", its spikes as "
                a href={ (whole) "/spikes.csv?series=" (series) "&plan=" (plan) } { "CSV" } } "." }
        (part_as_data("The largest latency of these five minutes", &format!("{base}/slots"), &query))
        @if of.histogram.is_some() {
            (part_as_data("The histogram", &format!("{base}/histograms"), &format!("tier=5m&{query}")))
        }
    }
}

/// Notes on rows and recordings that the tables omit.
fn rest(of: &FiveMinutes) -> Markup {
    let recordings = of.slots.len().saturating_sub(TABLES) as u64;
    html! {
        @if recordings > 0 { p.muted { (several(recordings, "recording has", "recordings have"))
            " no table here." } }
        @if of.left_out > 0 { p.muted {
            (several(of.left_out, "row of recordings is", "rows of recordings are"))
            " not in these tables; the largest latency above includes them." } }
    }
}

fn answer(of: &FiveMinutes) -> Markup {
    let Some(slot) = of.largest else {
        return html! { p.lead { "Nothing was measured in these five minutes." } };
    };
    let missed = of.sums.missed;
    html! {
        p.lead { "The largest latency was " strong { (slot.max_ns.map(span).unwrap_or_default()) }
            @if let Some(cpu) = slot.max_cpu { " on CPU " (cpu.to_string()) }
            @if let Some(at) = slot.max_at { " at " (clock(at)) } ". " (blame(slot))
            @if slot.invalid { " It is of an invalid run." }
            @if let Some(spike) = of.spikes.iter().find(|spike| is_of(spike, slot)) { " "
                a href=(spike_address(spike)) { "Its timeline" } "." } }
        @if missed > 0 { p.banner { (several(missed, "wake-up was", "wake-ups were"))
            " missed: how late " @if missed == 1 { "it" } @else { "these" }
            " would have been is unknown." } }
    }
}

/// True if a spike is the largest latency of a recording, which is counted by its own clock.
fn is_of(spike: &FarmSpike, slot: &FarmSlot) -> bool {
    let is_then = slot.max_at.is_some_and(|at| at.abs_diff(spike.at) < 1_000_000);
    (Some(spike.cpu), Some(spike.latency_ns)) == (slot.max_cpu, slot.max_ns) && is_then
}

fn spike_address(spike: &FarmSpike) -> String {
    format!("/runs/{}/spike/{}", escaped(&spike.run), spike.number)
}

/// Spikes that hunts recorded in these minutes, each with links to its timeline and its run, which
/// may be of a series other than that of the page.
fn spikes(of: &FiveMinutes) -> Markup {
    let all = of.spikes;
    html! {
        @if !all.is_empty() {
            h2 { "Spikes in these five minutes" }
            (cards("Recorded spikes, latencies in us", html! {
                table {
                    thead { tr { th.left { "at (UTC)" } th { "late, us" } th { "CPU" } th.left { "taken by" }
                        th.left { "recorded by" } th.left.more { "late" } } }
                    tbody { @for one in all.iter().take(SPIKES) { tr {
                        th.left.when { a href=(spike_address(one)) { (clock(one.at)) } }
                        td.top data-of="late, us" { (us(one.latency_ns)) }
                        td data-of="CPU" { (one.cpu.to_string()) }
                        td.left.name data-of="taken by" { (known(&one.culprit)) }
                        td.left.name data-of="recorded by" { (one.key.series) " "
                            a href={ "/runs/" (escaped(&one.run)) } { (one.run) }
                            @if one.key != *of.key { " " span.muted { "not the series of this page" } } }
                        td.left.name.more { (known(&one.victim)) }
                    } } }
                }
            }))
            p.muted { "Each links to its timeline."
                @if all.len() > SPIKES { " " (all.len() - SPIKES)
                    " smaller ones are on the pages of their runs." } }
        }
    }
}

/// Victim and culprit, as far as known.
fn blame(slot: &FarmSlot) -> String {
    match (slot.culprit.as_str(), slot.victim.as_str()) {
        ("", "") => "The culprit was not recorded.".to_owned(),
        ("", victim) => format!("{victim} was late; the culprit is unknown."),
        (culprit, "") => format!("Main culprit: {culprit}."),
        (culprit, victim) => format!("{victim} was late; main culprit: {culprit}."),
    }
}

fn steps(of: &FiveMinutes) -> Markup {
    let to = |t: i64| address(&of.board.board, of.key, t);
    html! {
        ul.spans {
            li { a rel="prev" href=(to(of.t - SLOT)) { "the five minutes before" } }
            li { a rel="next" href=(to(of.t + SLOT)) { "the five minutes after" } }
            @if let Some(before) = of.over[0] {
                li { a href=(to(before)) { "the previous one over the budget" } }
            }
            @if let Some(after) = of.over[1] {
                li { a href=(to(after)) { "the next over the budget" } }
            }
            @if let Some(first) = of.worst.first().filter(|slot| slot.t != of.t) {
                li { a href=(to(first.t)) { "the worst of the day" } }
            }
        }
    }
}

/// Histogram of the latencies, and the quantiles of each CPU.
fn histogram(of: &FiveMinutes) -> Markup {
    let Some(row) = of.histogram else {
        return html! { @if !of.slots.is_empty() {
            p.muted { "The histogram of these five minutes has been deleted; hourly and daily histograms are \
                       kept for longer." }
        } };
    };
    let peaks = || of.slots.iter().flat_map(|slot| &slot.cpus);
    let max = |cpu: Cpu| peaks().filter(|peak| peak.cpu == cpu).filter_map(|peak| peak.max_ns).max();
    let lines = CpuLine::all(row, max);
    let plots: Vec<PlotLine> = lines.iter().map(CpuLine::plot).collect();
    let quantile = |line: &CpuLine, per_million| us_or_dash(line.quantile(per_million));
    html! {
        h2 { "How many wake-ups had which latency" }
        (figure("The count is logarithmic; triangles mark each line's largest value.", |size| {
            Some(latency::draw(&plots, None, &[], size, &PAGE))
        }))
        details {
            summary { "The same as a table" }
            (scroll("Quantiles of each CPU, in us", html! {
                table {
                    thead { tr { th { "CPU" } th.more { "wake-ups" } th { "p50" } th { "p99" }
                        th.more { "p99.9" } th { "p99.99" } th { "max" } } }
                    tbody { @for line in &lines { tr {
                        th { (line.cpu.to_string()) } td.more { (line.n) }
                        td { (quantile(line, 500_000)) } td { (quantile(line, 990_000)) }
                        td.more { (quantile(line, 999_000)) } td { (quantile(line, 999_900)) }
                        td.top { (us_or_dash(line.max_ns)) }
                    } } }
                }
                p.muted {
                    "Latencies in us. Quantiles are upper edges of buckets that are at most 3.2 % wide." }
            }))
        }
    }
}

fn cpus(slot: &FarmSlot) -> Markup {
    html! {
        (scroll("Each CPU, latencies in us", html! {
            table {
                thead { tr { th { "CPU" } th { "max, us" } th.left { "at (UTC)" } th.more { "wake-ups" }
                    th { "missed" } } }
                tbody { @for cpu in &slot.cpus { tr {
                    th { (cpu.cpu.to_string()) }
                    td.top[cpu.max_ns == slot.max_ns] { (us_or_dash(cpu.max_ns)) }
                    td.left.when { (cpu.max_at.map_or_else(|| "unknown".to_owned(), clock)) }
                    td.more { (cpu.n) } td.flag[cpu.missed > 0] { (cpu.missed) }
                } } }
            }
        }))
        p.muted { "Recorded by " (known(&slot.run)) @if slot.invalid { ", an invalid run" } "." }
    }
}

fn worst(of: &FiveMinutes) -> Markup {
    html! {
        h3 { "The worst five minutes of " time { (date(of.t)) } }
        (slots(&of.board.board, of.key, of.worst))
    }
}

/// Five minutes each, with the way there.
pub fn slots(board: &str, key: &SeriesKey, all: &[FarmSlot]) -> Markup {
    cards(
        "Five minutes with the largest latencies",
        html! {
            table {
                thead { tr { th.left { "from (UTC)" } th { "max, us" } th { "CPU" } th.left { "taken by" }
                    th.left.more { "late" } } }
                tbody { @for slot in all { tr {
                    th.left { a href=(address(board, key, slot.t)) { (moment(slot.t)) }
                        @if slot.invalid { " " span.muted { "invalid run" } } }
                    td.top data-of="max, us" { (us_or_dash(slot.max_ns)) }
                    td data-of="CPU" { (slot.max_cpu.map_or_else(String::new, |cpu| cpu.to_string())) }
                    td.left.name data-of="taken by" { (known(&slot.culprit)) }
                    td.left.name.more { (known(&slot.victim)) }
                } } }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CpuRows, SlotPeak, Tier};
    use model::rows::{RowCounts, row_of};
    use model::units::Nanos;

    fn spike() -> FarmSpike {
        FarmSpike {
            run: "r 1".into(),
            key: SeriesKey { series: "hunt".into(), plan: "p".into() },
            number: 3,
            cpu: Cpu(2),
            at: 86_461_500_300_000,
            latency_ns: Nanos(9_400_000),
            culprit: "<b>irq".into(),
            victim: "plc".into(),
        }
    }

    #[test]
    fn the_largest_and_who_did_it_come_first_and_names_stay_text() {
        let board = FarmBoard { board: "a".into(), name: "<i>a".into(), ..FarmBoard::default() };
        let key = SeriesKey { series: "watch".into(), plan: "p".into() };
        let max_at = Some(86_461_500_000_000);
        let peak = SlotPeak { cpu: Cpu(2), n: 5, max_ns: Some(Nanos(9_400_000)), max_at, missed: 3 };
        let slot = FarmSlot {
            t: 86_400,
            n: 5,
            missed: 3,
            max_ns: peak.max_ns,
            max_cpu: Some(Cpu(2)),
            max_at,
            culprit: "<b>irq".into(),
            victim: "plc".into(),
            cpus: vec![peak],
            ..FarmSlot::default()
        };
        let day = LongTerm { tier: Tier::Hour, from: 86_400, to: 172_800, ..LongTerm::default() };
        let later = FarmSlot { t: 90_000, ..slot.clone() };
        let of = FiveMinutes {
            board: &board,
            key: &key,
            words: "every 1 ms",
            t: 86_400,
            slots: std::slice::from_ref(&slot),
            largest: Some(&slot),
            sums: SlotSums { count: 1, n: 5, missed: 3 },
            left_out: 0,
            histogram: None,
            over: [None, Some(90_000)],
            worst: &[later],
            day: &day,
            runs: &[],
            spikes: &[],
            unread: None,
        };
        let text = five_minutes(&of);
        assert!(!text.contains("<b>") && !text.contains("<i>"));
        for words in
            ["9.40 ms", "CPU 2", "00:01:01.5", "3 wake-ups were", "/b/a/at/90000?series=watch&amp;plan=p"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("Its timeline") && !text.contains("Spikes in these"));
        assert!(text.contains("has been deleted") && text.contains("the next over the budget"));
        assert!(!text.contains("the previous one over") && !text.contains("tier=5m"));
        let rows = RowCounts::of_rows([(row_of(Nanos(8_000)), 4), (row_of(Nanos(9_400_000)), 1)]);
        let cpus = vec![CpuRows { cpu: Cpu(2), rows }];
        let row = TierRow { t: 86_400, n: 5, max_ns: peak.max_ns, cpus, ..TierRow::default() };
        let kept = five_minutes(&FiveMinutes { histogram: Some(&row), ..of });
        for words in
            ["How many wake-ups had which latency", "CPU 2: 9.4", "histograms.csv?tier=5m", ">9400.0<"]
        {
            assert!(kept.contains(words), "{words}: {kept}");
        }
        let largest = "The largest latency of these five minutes as <a";
        for words in ["All of this as <a", largest, "The histogram as <a"] {
            assert_eq!(kept.matches(words).count(), 1, "{words}: {kept}");
        }
        assert!(!kept.contains("<p>This as"), "{kept}");
        let spike = spike();
        let other = FarmSpike { number: 4, latency_ns: Nanos(9_000_000), ..spike.clone() };
        let text = five_minutes(&FiveMinutes { spikes: &[other.clone(), spike.clone()], ..of });
        assert!(text.contains("<a href=\"/runs/r%201/spike/3\">Its timeline</a>") && !text.contains("<b>"));
        assert!(text.contains("/runs/r%201/spike/4\">00:01:01.500"), "{text}");
        // A hunt is of a series other than that of the recorder of these five minutes.
        let elsewhere = "hunt <a href=\"/runs/r%201\">r 1</a> <span class=\"muted\">not the series of this";
        assert_eq!(text.matches(elsewhere).count(), 2, "{text}");
        let own = FarmSpike { key: key.clone(), ..spike };
        assert!(!five_minutes(&FiveMinutes { spikes: &[own], ..of }).contains("not the series"));
        assert!(!five_minutes(&FiveMinutes { spikes: &[other], ..of }).contains("Its timeline"));
    }

    #[test]
    fn what_is_not_there_is_said_and_what_is_left_out_is_counted() {
        let (board, key, day) = (FarmBoard::default(), SeriesKey::default(), LongTerm::default());
        let slots = vec![FarmSlot { max_ns: Some(Nanos(9_000)), ..FarmSlot::default() }; TABLES + 2];
        let of = FiveMinutes {
            board: &board,
            key: &key,
            words: "",
            t: 600,
            slots: &slots[..1],
            largest: slots.first(),
            sums: SlotSums { count: 1, n: 0, missed: 2 },
            left_out: 0,
            histogram: None,
            over: [None, None],
            worst: &slots[..1],
            day: &day,
            runs: &[],
            spikes: &[],
            unread: None,
        };
        let text = five_minutes(&of);
        assert!(text.contains("2 wake-ups were missed: how late these would"), "{text}");
        assert!(!text.contains("not in these tables") && !text.contains("no table here"), "{text}");
        let one = SlotSums { count: 1, n: 0, missed: 1 };
        assert!(
            five_minutes(&FiveMinutes { sums: one, ..of }).contains("how late it would have been is unknown")
        );
        let text = five_minutes(&FiveMinutes { slots: &slots, left_out: 7, ..of });
        for words in ["2 recordings have no table here.", "7 rows of recordings are not in"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let text = five_minutes(&FiveMinutes { unread: Some("the bucket"), ..of });
        assert!(text.contains("shown: the bucket."), "{text}");
        let text = five_minutes(&FiveMinutes { slots: &[], largest: None, ..of });
        assert!(text.contains("Nothing was measured") && text.contains("No run was active.<"), "{text}");
        assert!(!text.contains("the data above"), "{text}");
        assert!(five_minutes(&of).contains("No run was active; the data above is from a recording.<"));
    }

    #[test]
    fn five_minutes_of_a_run_that_does_not_count_say_so() {
        let board = FarmBoard { board: "a".into(), ..FarmBoard::default() };
        let day = LongTerm::default();
        let shown = |invalid: bool| {
            let max_ns = Some(Nanos(9_000));
            let slots = [FarmSlot { t: 600, max_ns, run: "r".into(), invalid, ..FarmSlot::default() }];
            five_minutes(&FiveMinutes {
                board: &board,
                key: &SeriesKey::default(),
                words: "",
                t: 600,
                slots: &slots,
                largest: slots.first(),
                sums: SlotSums { count: 1, n: 0, missed: 0 },
                left_out: 0,
                histogram: None,
                over: [None, None],
                worst: &slots,
                day: &day,
                runs: &[],
                spikes: &[],
                unread: None,
            })
        };
        let text = shown(true);
        for words in ["It is of an invalid run.", "by r, an invalid run.", ">invalid run</span>"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!shown(false).contains("invalid run"));
    }
}
