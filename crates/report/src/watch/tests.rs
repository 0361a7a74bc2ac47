//! Synthetic record as text and as a page.

use super::fixture::{summary, worst};
use super::summary::*;
use super::{csv, page, text, words};
use crate::plot::svg::Size;
use crate::plot::theme::PAPER;
use crate::plot::watch_over_time::{self, coloured};
use model::units::Nanos;
use model::watch::*;

#[test]
fn the_answer_comes_first_and_unknown_is_said() {
    let mut of = summary(2);
    let text = text::render(&of, 100, false);
    let first = "The longest wake-up in 24 h: 340 ns on CPU 1 (its timer was 40 ns late, it waited 300 ns \
                 for its CPU), 2026-03-03 02:12:30 UTC.";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(first), "{text}");
    assert!(words.contains("control (701, rt 80) waited; the culprit is unknown."), "{text}");
    of.worst[0].wakeup.culprit.name = "nvme".into();
    assert!(text::render(&of, 100, false).contains("culprit is nvme."));
    of.worst.clear();
    assert!(text::render(&of, 100, false).starts_with("No wake-up of a program's real-time thread in 24 h."));
}

#[test]
fn every_culprit_of_the_worst_has_a_bar_and_a_next_step() {
    let mut of = summary(2);
    let mut named = of.worst[1].clone();
    named.wakeup.culprit.name = "a device's interrupt: edu".into();
    named.wakeup.culprit.rule = Some("device-interrupt".into());
    of.worst.extend([named.clone(), named]);
    let html = page::html(&of).unwrap();
    assert_eq!(html.matches("class=\"bar\"").count(), 2);
    assert!(html.contains("2 of 4</span><span class=\"who\">not known"), "{html}");
    assert!(html.contains("2 of 4</span><span class=\"who\">a device's interrupt: edu"), "{html}");
    assert!(html.contains("<code>onbeat rules device-interrupt</code>"));
    for step in html.split("class=\"cure\">").skip(1) {
        assert!(!step.starts_with("</p>"), "{step:.80}");
    }
    let at = |what: &str| html.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(at("class=\"bars") < at("What to do next") && at("What to do next") < at("Over time"));
    of.worst.truncate(2);
    let text = text::render(&of, 80, false);
    assert!(text.contains("next    onbeat hunt -D 60s --victim control"), "{text}");
    of.worst.clear();
    assert!(text::render(&of, 80, false).contains("next    Start the application"));
}

#[test]
fn stretches_of_own_work_that_overlap_are_one() {
    let mut of = summary(1);
    let mark = |from, to| PlacedMark {
        from: Nanos(from),
        to: Nanos(to),
        time: String::new(),
        mark: WatchMark { kind: WatchMarkKind::Measure.into(), detail: "a".into(), ..WatchMark::default() },
    };
    of.marks = vec![mark(0, 40), mark(20, 60), mark(80, 90)];
    let picture = watch_over_time::draw(&of, Size::Wide, &PAPER).unwrap().body.into_string();
    assert_eq!(picture.matches("fill-opacity=\"0.10\"").count(), 2, "{picture}");
}

#[test]
fn what_others_named_is_harmless_in_it() {
    use crate::fixture::{ATTACK, poison};
    let mut of = summary(1);
    for worst in &mut of.worst {
        let mut value = serde_json::to_value(&worst.wakeup).unwrap();
        poison(&mut value, ATTACK);
        worst.wakeup = serde_json::from_value(value).unwrap();
        worst.wakeup.culprit.rule = Some(ATTACK.into());
        worst.wakeup.culprit.name = ATTACK.into();
    }
    of.title = ATTACK.into();
    let html = page::html(&of).unwrap();
    assert!(!html.contains("<img") && html.matches("</script>").count() == 1);
    assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}'));
    assert!(!text::render(&of, 80, false).contains('\u{1b}'));
}

#[test]
fn a_narrow_terminal_leaves_columns_out_and_never_the_latencies() {
    let of = summary(2);
    let head = |columns| {
        let text = text::render(&of, columns, false);
        text.lines().find(|line| line.starts_with("victim")).unwrap().to_owned()
    };
    assert!(head(140).ends_with("total           when (UTC)        sleeps in"), "{}", head(140));
    assert!(head(60).ends_with("total") && head(60).contains("culprit"), "{}", head(60));
}

#[test]
fn the_switch_has_a_column_and_a_table_where_it_is_known() {
    let mut of = summary(2);
    let heads = |of: &WatchSummary| {
        let text = text::render(of, 160, false);
        let head = text.lines().find(|line| line.starts_with("victim")).unwrap();
        (head.split_whitespace().collect::<Vec<_>>().join(" "), text)
    };
    let (plain, _) = heads(&of);
    assert!(plain.starts_with("victim CPU culprit on T W total when"), "{plain}");
    assert!(!page::html(&of).unwrap().contains(">S</th>"));
    of.worst[1].wakeup.switch_ns = Some(Nanos(2_100));
    of.worst[1].total_ns = of.worst[1].wakeup.total();
    let totals = of.series[0].cpus.clone();
    for (series, cpus) in [(WatchSeries::Switch, totals.clone()), (WatchSeries::TimerWakeupSwitch, totals)] {
        let (class, threads) = (WaitClass::System.into(), Vec::new());
        of.series.push(SeriesTotals { series: series.into(), class, cpus, threads });
    }
    let (with, text) = heads(&of);
    assert!(with.starts_with("victim CPU culprit on T W S total when"), "{with}");
    assert!(text.contains("timer+wakeup of all wake-ups") && text.contains("S, the switch to"), "{text}");
    let narrow = text::render(&of, 60, false);
    let head = narrow.lines().find(|line| line.starts_with("victim")).unwrap();
    assert!(head.contains(" S ") && head.ends_with("total"), "{head}");
    let html = page::html(&of).unwrap();
    assert!(html.contains(">S</th>") && html.contains("Totals: switch, system"));
    assert!(html.contains("Totals: timer+wakeup+switch, system"));
    assert!(html.contains("S: the switch to it"));
    let table = csv::csv(&of);
    assert!(table.contains(",switch/system/cpu0,") && table.contains(",timer+wakeup+switch/system/cpu1"));
    let json = serde_json::to_value(&of).unwrap();
    assert_eq!(json["worst"][1]["switch_ns"], 2_100);
    assert_eq!(json["worst"][0]["switch_ns"], serde_json::Value::Null);
}

#[test]
fn coverage_is_a_share_or_unknown() {
    let mut of = summary(1);
    of.coverage = WatchCoverage { recorded: 1, collisions: 2, ..WatchCoverage::default() };
    assert_eq!(
        words::coverage(&of),
        "1 switch to real-time threads recorded; the total is unknown; 2 threads were not recorded because \
         of hash collisions."
    );
    of.coverage_share = Some(0.5);
    of.coverage.voluntary = Some(2);
    assert!(words::coverage(&of).starts_with(
        "Of the switches to real-time threads 50 % were recorded (1 of 2, without threads that began or \
         ended within an interval);"
    ));
}

#[test]
fn no_more_is_recorded_than_there_was() {
    let mut of = summary(1);
    of.coverage = WatchCoverage { recorded: 5845, voluntary: Some(5844), ..WatchCoverage::default() };
    of.coverage_share = of.coverage.share();
    let text = words::coverage(&of);
    assert!(text.contains("100.0 % were recorded (5844 of 5844,"), "{text}");
}

#[test]
fn behind_a_higher_priority_only_who_had_the_cpu_for_long_is_said_to_have_kept_it() {
    let sentence = |held, name: &str| {
        let mut of = summary(1);
        let mut behind = worst(50, 0, 40, 300);
        behind.wakeup.previous.comm = "migration/0".into();
        behind.wakeup.held_ns = held;
        behind.wakeup.culprit.name = name.into();
        of.worst_by_priority = vec![behind];
        words::answer(&of)[1].rsplit_once("; ").unwrap().1.to_owned()
    };
    assert_eq!(sentence(Some(Nanos(280)), "hog"), "hog had the CPU.");
    let some = "migration/0 had the CPU at the end and for 10 ns of W, the rest is unknown.";
    assert_eq!(sentence(Some(Nanos(10)), ""), some);
    assert_eq!(sentence(Some(Nanos(300)), ""), "migration/0 had the CPU for all of W.");
    assert_eq!(sentence(None, ""), "migration/0 had the CPU at the end, for an unknown time.");
}

#[test]
fn what_was_merged_and_dropped_is_said() {
    let mut of = summary(1);
    assert!(words::losses(&of).is_empty());
    of.losses.rows_to_hours = 24;
    of.losses.rows_dropped = 1;
    of.losses.rows_dropped_ns = Nanos(300 * Nanos::SECOND.0);
    of.losses.cut_bytes = 9;
    let lines = words::losses(&of);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("24 intervals to hourly histograms"), "{lines:?}");
    assert!(lines[1].contains("the first 5 min (1 interval)"), "{lines:?}");
}

#[test]
fn a_colour_is_of_one_cpu_in_all_pictures_and_in_the_table() {
    let of = summary(12);
    let coloured_cpus = coloured(&of);
    assert!(
        coloured_cpus.contains(&11) && coloured_cpus.contains(&0),
        "those of the marked wake-ups: {coloured_cpus:?}"
    );
    let colour = PAPER.lines[coloured_cpus.iter().position(|cpu| *cpu == 11).unwrap()];
    assert_eq!(watch_over_time::colour_of_worst(&of, &of.worst[0], &coloured_cpus, &PAPER), colour);
    let picture = watch_over_time::draw(&of, Size::Wide, &PAPER).unwrap().body.into_string();
    assert!(picture.contains(&format!(
        "stroke=\"{colour}\" stroke-width=\"1.3\" stroke-linejoin=\"round\"><title>CPU 11"
    )));
    let svg = page::svg(&of);
    assert!(svg.contains(&format!(
        "stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"><title>CPU 11"
    )));
    assert!(svg.contains("1: 340 ns"), "the worst is marked by its number");
    let html = page::html(&of).unwrap();
    assert!(html.contains(&format!(
        "fill=\"var(--line{})\"",
        coloured_cpus.iter().position(|cpu| *cpu == 11).unwrap()
    )));
}

#[test]
fn own_work_is_marked_on_top() {
    let mut of = summary(2);
    let plain = watch_over_time::draw(&of, Size::Narrow, &PAPER).unwrap().body.into_string();
    assert!(!plain.contains("onbeat measured"));
    let mark = WatchMark { kind: WatchMarkKind::Measure.into(), ..WatchMark::default() };
    of.marks = vec![PlacedMark { from: Nanos(10), to: Nanos(30), time: String::new(), mark }];
    let marked = watch_over_time::draw(&of, Size::Narrow, &PAPER).unwrap().body.into_string();
    assert!(marked.contains("onbeat measured") && !marked.contains("onbeat loaded"));
}

#[test]
fn nothing_recorded_is_no_picture_and_a_page_all_the_same() {
    let of = WatchSummary::default();
    assert!(watch_over_time::draw(&of, Size::Wide, &PAPER).is_none());
    assert!(page::html(&of).unwrap().contains("No wake-up"));
    assert!(page::svg(&of).contains("no samples") && csv::csv(&of).contains("lower_ns"));
}

#[test]
fn names_of_threads_are_hostile_input() {
    let mut of = summary(1);
    let wakeup = &mut of.worst[0].wakeup;
    wakeup.victim.comm = "<script>\u{1b}[31m".into();
    wakeup.culprit.name = "=cmd()\n</script>".into();
    wakeup.stack = vec!["<b>".into()];
    wakeup.sleeps_in = "\u{202e}evil".into();
    of.title = "<i>".into();
    of.remarks = vec!["<u>\u{7}".into()];
    for page in [page::html(&of).unwrap(), page::svg(&of)] {
        let raw = ["<script>\u{fffd}", "<b>", "<i>", "<u>", "\u{1b}", "\u{202e}"];
        assert!(raw.iter().all(|text| !page.contains(text)), "{page}");
    }
    let plain = text::render(&of, 80, false) + &csv::csv(&of);
    assert!(!plain.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{plain:?}");
}
