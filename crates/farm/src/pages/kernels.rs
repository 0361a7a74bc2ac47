//! Kinds of machines and kernels: latencies of each in runs and in recordings, and the possible
//! comparisons.

use maud::{Markup, html};
use model::units::Nanos;
use report::html::cards;
use report::words::{duration, span, us_or_dash};

use super::five_minutes::address;
use super::parts::{LEAST_P9999, as_data, escaped, known};
use super::{Section, page};
use crate::records::{KernelRecord, SeriesKey};
use crate::sides::FarmSide;

/// The page; the records come by machine, series and kernel.
pub fn kernels(all: &[KernelRecord]) -> String {
    let mut groups: Vec<&[KernelRecord]> =
        all.chunk_by(|a, b| (&a.model, &a.series) == (&b.model, &b.series)).collect();
    // Comparable ones are first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let first_of_runs = groups.iter().position(|group| !is_recorded(group));
    let body = html! {
        (lead(all))
        @for (at, group) in groups.iter().enumerate() {
            (machine(group))
            @if Some(at) == first_of_runs { p.muted {
                "p99.99 is that of the median run, and of a run the largest of its CPUs; for fewer \
                 than " (LEAST_P9999) " wake-ups, it is the maximum." } }
        }
        p.muted { "Runs are included if they have ended and are valid; of recorders, all days of a board \
                   with a kernel, except those on which its environment changed. A largest latency grows \
                   with the time observed, and boards of the same machine may differ. A verdict needs runs \
                   of the same board, made in turns, or many days: " a href="/compare" { "compare" } "." }
        @if all.iter().any(KernelRecord::is_mixed) {
            p.muted { "A row may combine runs with different intervals, policies, loads and numbers of CPUs; \
                       a comparison run by run uses equal ones." }
        }
        (as_data("/v1/kernels", ""))
    };
    page(Some(Section::Kernels), "Kernels", body)
}

fn lead(all: &[KernelRecord]) -> Markup {
    let Some(worst) = all.iter().filter(|one| one.max_ns.is_some()).max_by_key(|one| one.max_ns) else {
        return html! { p.lead { "No valid run is here yet, and no recorder that names its kernel." } };
    };
    html! {
        p.lead { "The largest latency of all of these runs and days: "
            a href=(worst_address(worst)) { (worst.max_ns.map(span).unwrap_or_default()) }
            " with " (known(&worst.release)) " on " a href={ "/b/" (escaped(&worst.worst_board)) } {
            (worst.worst_board) } "." }
    }
}

fn is_recorded(group: &[KernelRecord]) -> bool {
    group.first().is_some_and(KernelRecord::is_recorded)
}

/// The way to the largest latency: its run, or the worst five minutes of a recorder's day.
fn worst_address(of: &KernelRecord) -> String {
    if of.is_recorded() {
        let key = SeriesKey { series: of.series.clone(), plan: of.worst_plan.clone() };
        address(&of.worst_board, &key, of.worst_day) + "&worst=day"
    } else {
        format!("/runs/{}", escaped(&of.worst_run))
    }
}

fn machine(group: &[KernelRecord]) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    let recorded = first.is_recorded();
    html! {
        h2 { (known(&first.model)) ", " (first.series) }
        (cards(&format!("Kernels of {}, {}", known(&first.model), first.series), html! {
            table {
                thead { tr { th.left { "kernel" } th.left.more { "preemption" } th { "boards" }
                    @if recorded { th { "days" } } @else {
                        th.more { "runs" } th.more { "measured" } th { "p99.99, us" } }
                    th { "max, us" } th.left { "compare" } } }
                tbody { @for (at, one) in group.iter().enumerate() { tr {
                    th.left { (known(&one.release)) } td.left.more { (known(&one.preempt)) }
                    td data-of="boards" { (one.boards) }
                    @if recorded { td data-of="days" { (one.days) } } @else {
                        td.more { (one.runs) }
                        td.more { (duration(Nanos(i64::try_from(one.length_ns).unwrap_or(i64::MAX)))) }
                        td data-of="p99.99, us" { (us_or_dash(one.median_p9999())) }
                    }
                    td.top data-of="max, us" { a href=(worst_address(one)) { (us_or_dash(one.max_ns)) } }
                    td.left { @if let Some(before) = at.checked_sub(1).and_then(|at| group.get(at)) {
                        (compared(before, one)) } }
                } } }
            }
        }))
    }
}

/// Links to comparisons of one kernel with the previous one.
fn compared(before: &KernelRecord, one: &KernelRecord) -> Markup {
    let by_days = of_days(before, one);
    let is_other = before.release != one.release;
    html! {
        @if one.is_recorded() {
            @if is_other { a href=(by_days) { "with " (known(&before.release)) } }
        } @else {
            @let by_runs = comparison(before, one);
            @if let Some(way) = &by_runs {
                a href=(way) { "with " (known(&before.release)) }
                @if is_other { ", " a href=(by_days) { "by days" } }
            } @else if is_other { a href=(by_days) { "by days with " (known(&before.release)) } }
        }
    }
}

/// The latest runs that both have under the same conditions, of those which both have most runs of;
/// others are refused there.
fn comparison(a: &KernelRecord, b: &KernelRecord) -> Option<String> {
    let count = |of: &KernelRecord, plan: &String| of.latest_plans.iter().filter(|one| *one == plan).count();
    let shared = b.latest_plans.iter().filter(|plan| a.latest_plans.contains(plan));
    // Of as many the latest, which come first.
    let plan = shared.rev().max_by_key(|plan| count(a, plan).min(count(b, plan)))?;
    let side = |name: &str, of: &KernelRecord| {
        let alike = of.latest.iter().zip(&of.latest_plans).filter(|(_, of_run)| *of_run == plan);
        alike.map(|(id, _)| format!("{name}={}", escaped(id))).collect::<Vec<_>>().join("&")
    };
    Some(format!("/compare?{}&{}", side("a", a), side("b", b)))
}

/// Comparison of all days of that machine with one kernel and with the other.
fn of_days(a: &KernelRecord, b: &KernelRecord) -> String {
    let side = |of: &KernelRecord| FarmSide {
        machine: of.model.clone(),
        kernel: of.release.clone(),
        ..FarmSide::default()
    };
    let series = escaped(&a.series);
    format!("/compare?{}&{}&series={series}", side(a).query("a"), side(b).query("b"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_a_machine_stand_together_and_lead_to_a_comparison() {
        let of = |model: &str, release: &str, max| KernelRecord {
            model: model.into(),
            release: release.into(),
            worst_run: "w".into(),
            runs: 3,
            length_ns: 125_000_000_000,
            max_ns: Some(Nanos(max)),
            p9999_ns: vec![Nanos(3_000), Nanos(1_000), Nanos(2_000)],
            latest: vec![format!("{release}-run"), format!("{release}-other")],
            latest_plans: vec!["p".into(), format!("{release} alone")],
            ..KernelRecord::default()
        };
        let all = [of("<b>", "6.1", 5_000), of("x", "6.1", 9_000), of("x", "6.12", 7_000)];
        let text = kernels(&all);
        assert!(!text.contains("<b>") && text.contains("/compare?a=6.1-run&amp;b=6.12-run"));
        assert!(text.contains("a_machine=x&amp;a_kernel=6.1&amp;b_machine=x&amp;b_kernel=6.12&amp;series="));
        assert!(text.contains("2.0") && text.find("<h2>x").unwrap() < text.find("<h2>&lt;b").unwrap());
        assert_eq!(text.matches("of the median run").count(), 1);
        assert!(text.contains(">2 min 5 s<") && !text.contains("hours"), "{text}");
        assert!(kernels(&[]).contains("No valid run"));
        // Runs of another method are not offered one by one.
        assert!(!text.contains("-other") && text.contains("A row may combine runs"), "{text}");
        let mut apart = all;
        for one in &mut apart {
            one.latest_plans = vec![one.release.clone(); 2];
        }
        let text = kernels(&apart);
        assert!(!text.contains("/compare?a=") && text.contains(">by days with 6.1</a>"), "{text}");
        assert!(!text.contains("A row may combine runs"), "{text}");
    }

    #[test]
    fn kernels_of_recorders_lead_to_their_worst_day() {
        let of = |release: &str, day: i64| KernelRecord {
            model: "x".into(),
            release: release.into(),
            series: "timer+wakeup".into(),
            boards: 2,
            days: 33,
            max_ns: Some(Nanos(9_000)),
            worst_board: "a b".into(),
            worst_day: day,
            worst_plan: "p".into(),
            ..KernelRecord::default()
        };
        let text = kernels(&[of("6.1", 86_400), of("6.12", 172_800)]);
        for words in [
            "The largest latency of all of these runs and days: <a",
            "of recorders, all days of a board with a kernel, except those on which its environment changed",
            "<h2>x, timer+wakeup</h2>",
            "/b/a%20b/at/172800?series=timer%2Bwakeup&amp;plan=p&amp;worst=day",
            ">33<",
            "a_kernel=6.1&amp;b_machine=x&amp;b_kernel=6.12&amp;series=timer%2Bwakeup\">with 6.1</a>",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("/runs/") && !text.contains("median run") && !text.contains("/compare?a="));
    }
}
