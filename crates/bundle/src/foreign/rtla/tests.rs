//! Real output of rtla 6.12 and 7.3 against its totals.

use crate::foreign::rtla_shared::elapsed;
use crate::foreign::testing::import_one;
use crate::foreign::{ImportOptions, Imported, import};
use model::run::{CpuRun, Run};
use model::units::{Cpu, Nanos};
use model::vocabulary::{Ended, IdleStates, IntegrityKind, Quantity};
use proptest::prelude::*;

macro_rules! fixtures {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../../tests/fixtures/foreign/rtla/", $name, ".txt")))),*]
    };
}

/// Histograms with a summary.
const HISTS: &[(&str, &str)] = fixtures!(
    "6.12.117-osnoise-hist" "6.12.117-osnoise-hist-b10" "6.12.117-osnoise-hist-over" "6.12.117-timerlat-hist"
    "6.12.117-timerlat-hist-auto-hog" "6.12.117-timerlat-hist-b5" "6.12.117-timerlat-hist-cpu1"
    "6.12.117-timerlat-hist-k" "6.12.117-timerlat-hist-nano" "6.12.117-timerlat-hist-no-irq"
    "6.12.117-timerlat-hist-no-thread" "6.12.117-timerlat-hist-over" "6.12.117-timerlat-hist-threshold"
    "6.12.117-timerlat-hist-u" "6.12.117-timerlat-hist-u-over" "6.12.117-timerlat-hist-with-zeros"
    "7.3.4-osnoise-hist" "7.3.4-osnoise-hist-b10" "7.3.4-osnoise-hist-over" "7.3.4-timerlat-hist"
    "7.3.4-timerlat-hist-auto-hog" "7.3.4-timerlat-hist-auto-u" "7.3.4-timerlat-hist-b5"
    "7.3.4-timerlat-hist-cpu1" "7.3.4-timerlat-hist-k" "7.3.4-timerlat-hist-nano"
    "7.3.4-timerlat-hist-no-irq" "7.3.4-timerlat-hist-no-thread" "7.3.4-timerlat-hist-over"
    "7.3.4-timerlat-hist-threshold" "7.3.4-timerlat-hist-u" "7.3.4-timerlat-hist-u-over"
    "7.3.4-timerlat-hist-with-zeros"
);
const NO_SUMMARY: &[(&str, &str)] =
    fixtures!("6.12.117-timerlat-hist-no-summary" "7.3.4-timerlat-hist-no-summary");
const REFUSED: &[(&str, &str)] = fixtures!(
    "6.12.117-timerlat-hist-bare" "7.3.4-timerlat-hist-bare" "6.12.117-timerlat-hist-no-index"
    "7.3.4-timerlat-hist-no-index" "6.12.117-timerlat-top-aa-only" "7.3.4-timerlat-top-aa-only"
    "6.12.117-osnoise-top-stop" "7.3.4-osnoise-top-stop" "6.12.117-timerlat-hist-auto-u.stderr"
    "6.12.117-usage.stderr" "7.3.4-usage.stderr"
);
const TIMERLAT_TOPS: &[(&str, &str)] = fixtures!(
    "6.12.117-timerlat-top-auto" "6.12.117-timerlat-top-auto-hog" "6.12.117-timerlat-top-q"
    "6.12.117-timerlat-top-q-k" "6.12.117-timerlat-top-q-nano" "6.12.117-timerlat-top-screen"
    "6.12.117-timerlat-top-screen-u" "6.12.117-timerlat-top-threshold" "7.3.4-timerlat-top-auto"
    "7.3.4-timerlat-top-auto-hog" "7.3.4-timerlat-top-q" "7.3.4-timerlat-top-q-k"
    "7.3.4-timerlat-top-q-nano" "7.3.4-timerlat-top-screen" "7.3.4-timerlat-top-screen-u"
    "7.3.4-timerlat-top-threshold"
);
const OSNOISE_TOPS: &[(&str, &str)] = fixtures!(
    "6.12.117-hwnoise" "6.12.117-hwnoise-screen" "6.12.117-osnoise-top-q" "6.12.117-osnoise-top-screen"
    "7.3.4-hwnoise" "7.3.4-hwnoise-screen" "7.3.4-osnoise-top-q" "7.3.4-osnoise-top-screen"
);

fn of(list: &[(&str, &'static str)], name: &str) -> &'static str {
    list.iter().find(|file| file.0 == name).unwrap().1
}

fn imported(text: &str) -> Vec<Imported> {
    import(text.as_bytes(), &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    let error = import(text.as_bytes(), &ImportOptions::default()).expect_err(text).0;
    assert!(!error.contains('\n'), "{error}");
    error
}

fn entry(run: &Run, cpu: u32, quantity: Quantity) -> &CpuRun {
    let is = |entry: &&CpuRun| entry.cpu == Some(Cpu(cpu)) && entry.quantity() == quantity.name();
    run.cpus.iter().find(is).unwrap()
}

fn micros(us: i64) -> Option<Nanos> {
    Some(Nanos(us * 1000))
}

const TIME: &str = "\
  0 00:00:30   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\n";
const COLUMNS: &str = "\
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n";

/// Numbers after the first line with this label, as in the file.
fn line_of<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(label)).unwrap();
    line.split_ascii_whitespace().collect()
}

#[test]
fn histograms_have_the_numbers_of_their_summary() {
    for (name, text) in HISTS {
        let run = import_one(text);
        let unit = if text.contains("(ns)") { 1.0 } else { 1000.0 };
        let columns = line_of(text, "Index");
        assert_eq!(run.cpus.len(), columns.len(), "{name}");
        let [over, count, min, avg, max] =
            ["over:", "count:", "min:", "avg:", "max:"].map(|label| line_of(text, label));
        for (index, column) in columns.iter().enumerate() {
            let (kind, cpu) = column.split_once('-').unwrap();
            let quantity = match kind {
                "IRQ" => Quantity::Irq,
                "Thr" => Quantity::Wakeup,
                "Usr" => Quantity::User,
                _ => Quantity::Gap,
            };
            let entry = entry(&run, cpu.parse().unwrap(), quantity);
            let ns = |word: &str| Some(Nanos((word.parse::<f64>().unwrap() * unit).round() as i64));
            assert_eq!(entry.cycles, count[index].parse().ok(), "{name} {column}");
            assert_eq!(entry.overflows.unwrap_or(0), over[index].parse::<u64>().unwrap(), "{name} {column}");
            assert_eq!((entry.min_ns, entry.max_ns), (ns(min[index]), ns(max[index])), "{name} {column}");
            assert_eq!(entry.mean_ns, ns(avg[index]), "{name} {column}");
            // The mean lies between that of the buckets' edges, as far as these limit it.
            let edge = |edge: fn(&model::histogram::Bucket) -> i64| {
                entry.histogram.iter().map(|bucket| edge(bucket) as f64 * bucket.count as f64).sum::<f64>()
            };
            let beyond = entry.overflows.unwrap_or(0) as f64;
            let least =
                edge(|bucket| bucket.lower.0) + beyond * entry.overflows_from_ns.map_or(0.0, |n| n.0 as f64);
            let most = edge(|bucket| bucket.upper.0) + beyond * entry.max_ns.unwrap().0 as f64;
            let sum = entry.mean_ns.unwrap().0 as f64 * entry.cycles.unwrap() as f64;
            let slack = 2.0 * unit * entry.cycles.unwrap() as f64;
            assert!(least <= sum + slack && sum <= most + slack, "{name} {column}: {least} {sum} {most}");
        }
    }
}

#[test]
fn widths_are_those_of_the_commands() {
    for (name, width) in [
        ("6.12.117-timerlat-hist", 1_000),
        ("6.12.117-timerlat-hist-b5", 5_000),
        ("7.3.4-timerlat-hist-b5", 5_000),
        ("6.12.117-timerlat-hist-nano", 5),
        ("7.3.4-timerlat-hist-nano", 5),
        ("6.12.117-timerlat-hist-u-over", 2_000),
        ("7.3.4-timerlat-hist-u-over", 2_000),
        ("6.12.117-osnoise-hist-b10", 10_000),
        ("6.12.117-timerlat-hist-auto-hog", 100_000),
        ("7.3.4-timerlat-hist-auto-hog", 100_000),
        ("7.3.4-timerlat-hist-over", 1_000),
    ] {
        let run = import_one(of(HISTS, name));
        for bucket in run.cpus.iter().flat_map(|cpu| &cpu.histogram) {
            assert_eq!(bucket.upper.0 - bucket.lower.0, width, "{name}");
        }
    }
    let run = import_one(of(HISTS, "6.12.117-osnoise-hist-b10"));
    assert_eq!(run.cpus[0].overflows_from_ns, micros(1990));
    assert!(run.plan.notes.iter().any(|note| note.starts_with("buckets of 10 us")));
    assert!(run.plan.notes.iter().any(|note| note.contains("up to 9 us more")));
}

#[test]
fn a_command_line_gives_schedule_and_end() {
    let text = of(HISTS, "6.12.117-osnoise-hist-b10");
    let run = import_one(&format!("# rtla osnoise hist -b 10 -E 200 -p 500000 -d 3s\n{text}"));
    assert_eq!((run.cpus[0].overflows_from_ns, run.plan.interval_ns), (micros(2000), None));
    assert_eq!(run.plan.duration_ns, Some(Nanos(3 * Nanos::SECOND.0)));
    let text = of(HISTS, "7.3.4-timerlat-hist-u");
    let run = import_one(&format!("$ rtla timerlat hist -u -d 3s -p 5000\n{text}"));
    let user = entry(&run, 1, Quantity::User);
    assert_eq!((user.interval_ns, user.overflows_from_ns), (micros(5000), micros(256)));
    assert_eq!((run.plan.priority, run.plan.idle.clone()), (Some(95), IdleStates::AsIs.into()));
    // One that contradicts the rows belongs to another run.
    let run = import_one(&format!("$ rtla timerlat hist -b 50\n{text}"));
    assert_eq!((run.plan.interval_ns, run.plan.priority), (None, None));
    assert_eq!(import_one(text).plan.duration_ns, Some(Nanos(4 * Nanos::SECOND.0)));
}

#[test]
fn without_a_summary_rows_and_overflows_count() {
    for (name, text) in NO_SUMMARY {
        let run = import_one(text);
        let over = line_of(text, "over:");
        for (index, column) in line_of(text, "Index").iter().enumerate() {
            let quantity = if column.starts_with("IRQ") { Quantity::Irq } else { Quantity::Wakeup };
            let entry = entry(&run, column[4..].parse().unwrap(), quantity);
            assert_eq!(entry.overflows, over[index].parse().ok(), "{name}");
            let rows: u64 = entry.histogram.iter().map(|bucket| bucket.count).sum();
            assert_eq!(entry.cycles, Some(rows + entry.overflows.unwrap()), "{name}");
            assert_eq!((entry.min_ns, entry.max_ns, entry.mean_ns), (None, None, None), "{name}");
        }
    }
    let run = import_one(of(NO_SUMMARY, "7.3.4-timerlat-hist-no-summary"));
    assert_eq!(entry(&run, 1, Quantity::Wakeup).overflows, Some(25));
}

#[test]
fn what_does_not_say_what_it_is_is_refused_by_name() {
    for (name, text) in REFUSED {
        let error = refusal(text);
        let wanted = match *name {
            name if name.contains("bare") || name.contains("no-index") => "run rtla without --no-header",
            name if name.contains("aa-only") => "rtla auto-analysis: onbeat explain reads it",
            name if name.contains("stop") => "no CPU in the table",
            _ => "",
        };
        assert!(error.contains(wanted), "{name}: {error}");
    }
}

#[test]
fn displays_have_the_numbers_of_their_last_update() {
    for (name, text) in TIMERLAT_TOPS {
        let run = import_one(text);
        let unit = if text.contains("(ns)") { 1 } else { 1000 };
        let last = text.rsplit("CPU COUNT").next().unwrap();
        let rows: Vec<&str> = last.lines().skip(1).take_while(|line| !line.starts_with('-')).collect();
        let mut entries = 0;
        for row in rows {
            let mut parts = row.split('|');
            let head: Vec<&str> = parts.next().unwrap().split_ascii_whitespace().collect();
            for (group, quantity) in parts.zip([Quantity::Irq, Quantity::Wakeup, Quantity::User]) {
                let numbers: Vec<i64> =
                    group.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
                let entry = entry(&run, head[0].parse().unwrap(), quantity);
                let ns = |n: i64| Some(Nanos(n * unit));
                assert_eq!(entry.cycles, head[1][1..].parse().ok(), "{name}");
                assert_eq!((entry.min_ns, entry.mean_ns), (ns(numbers[1]), ns(numbers[2])), "{name}");
                assert_eq!((entry.max_ns, entry.histogram.len()), (ns(numbers[3]), 0), "{name}");
                entries += 1;
            }
        }
        assert!(entries > 0 && entries == run.cpus.len(), "{name}");
        let stopped = text.contains("hit stop tracing");
        assert_eq!(run.ended == Ended::Limit, stopped, "{name}");
    }
    let run = import_one(of(TIMERLAT_TOPS, "7.3.4-timerlat-top-screen-u"));
    assert_eq!(entry(&run, 0, Quantity::User).max_ns, micros(25_407));
    assert_eq!(run.plan.duration_ns, Some(Nanos(4 * Nanos::SECOND.0)));
}

#[test]
fn noise_displays_have_the_longest_gap_and_the_share() {
    for (name, text) in OSNOISE_TOPS {
        let run = import_one(text);
        let last = text.rsplit("CPU Period").next().unwrap();
        let rows: Vec<Vec<&str>> =
            last.lines().skip(1).map(|line| line.split_ascii_whitespace().collect()).collect();
        assert_eq!(run.cpus.len(), rows.len(), "{name}");
        for row in rows {
            let entry = entry(&run, row[0].parse().unwrap(), Quantity::Gap);
            assert_eq!(entry.max_ns, micros(row[6].parse().unwrap()), "{name}");
            assert_eq!((entry.cycles, entry.min_ns, entry.mean_ns), (None, None, None), "{name}");
            let lost = 1e6 - row[4].parse::<f64>().unwrap() * 1e4;
            assert!((entry.lost_ppm.unwrap() - lost).abs() < 0.2, "{name}: {lost}");
        }
    }
    let run = import_one(of(OSNOISE_TOPS, "6.12.117-osnoise-top-q"));
    let note = "noise by its source: 1023 hardware, 0 NMI, 614 interrupt, 0 softirq, 309 thread";
    assert_eq!(run.plan.notes, [note]);
    assert_eq!(import_one(of(OSNOISE_TOPS, "7.3.4-hwnoise")).plan.tool, "rtla hwnoise");
}

#[test]
fn several_results_of_a_log_are_told_apart() {
    let hist = of(HISTS, "7.3.4-timerlat-hist-threshold");
    let top = of(TIMERLAT_TOPS, "7.3.4-timerlat-top-q");
    let screen = of(TIMERLAT_TOPS, "7.3.4-timerlat-top-screen");
    let noise = of(OSNOISE_TOPS, "7.3.4-osnoise-top-screen");
    let log = format!("{hist}\n{top}{screen}$ next\n{noise}{hist}{top}");
    let runs = imported(&log);
    let tools: Vec<&str> = runs.iter().map(|one| one.run.plan.tool.as_str()).collect();
    let (hist_tool, top_tool) = ("rtla timerlat hist", "rtla timerlat top");
    assert_eq!(tools, [hist_tool, top_tool, top_tool, "rtla osnoise top", hist_tool, top_tool]);
    assert_eq!(runs[0].run.ended, Ended::Limit);
    let prefixed: String =
        hist.lines().enumerate().map(|(n, line)| format!("[{n:5}.123456] {line}\r\n")).collect();
    assert_eq!(import_one(&prefixed).cpus, runs[0].run.cpus);
}

#[test]
fn a_last_update_that_is_cut_off_leaves_the_one_before() {
    let text = of(TIMERLAT_TOPS, "6.12.117-timerlat-top-screen");
    let at = text.rfind("  1 #3940").unwrap();
    for end in [at, at + 20, at - 80, at - 200] {
        let results = imported(&text[..end]);
        assert_eq!(results.len(), 1);
        assert_eq!(entry(&results[0].run, 1, Quantity::Irq).cycles, Some(3940), "the same, printed twice");
        let cut = results[0].remarks.iter().filter(|remark| !remark.contains("within a line")).count();
        assert_eq!(cut, usize::from(end > at - 100), "{end}");
    }
}

#[test]
fn damage_names_the_line() {
    let hist = of(HISTS, "6.12.117-timerlat-hist-b5");
    for (from, to, wanted) in [
        ("count:     1986", "count:     1987", "count: says 1987 for IRQ-000"),
        ("over:       298", "over:       299", "count: says 1986"),
        ("over:       298", "over:      ", "expected 4 numbers after over:, found 3"),
        ("max:      18400", "max:         40", "line 94: the summary contradicts the rows"),
        ("min:          5", "min:         50", "line 94: the summary contradicts the rows"),
        ("avg:        661", "avg:      99661", "avg: of IRQ-000 is not between"),
        ("microseconds (us)", "microseconds (ns)", "line 2: invalid unit"),
        ("microseconds (us)", "milliseconds (ms)", "line 2: invalid unit"),
        ("timerlat histogram", "osnoise histogram", "not those of the heading"),
        ("Thr-000   IRQ-001", "Thr-000   IRQ-000", "not those of one run"),
        ("count:     3882", "count:     3883", "count: of ALL IRQ does not match its CPUs"),
        ("ALL:        IRQ       Thr", "ALL:        IRQ       Usr", "ALL: has other columns"),
    ] {
        assert!(hist.contains(from), "{from}");
        let error = refusal(&hist.replacen(from, to, 1));
        assert!(error.contains(": line ") && error.contains(wanted), "{to}: {error}");
    }
    for (name, text) in HISTS {
        let table = text.split("rtla timerlat hit").next().unwrap();
        let ends: Vec<usize> = table.match_indices('\n').map(|(at, _)| at).collect();
        for label in ["\nover:", "\nmin:", "\nmax:"] {
            let at = text.find(label).unwrap();
            let error = refusal(&text[..at]);
            assert!(error.contains("ends without"), "{name}: {error}");
            assert!(ends.contains(&at));
        }
    }
    let top = of(TIMERLAT_TOPS, "6.12.117-timerlat-top-q");
    for (from, to, wanted) in [
        ("  1 #2775 ", "  1 #2776 ", "the count of ALL"),
        ("26710 |      183", "26711 |      183", "the maximum of ALL"),
        ("        3       197", "        2       197", "the minimum of ALL"),
        ("        3       197", "        3         x", "invalid '1 #2775"),
        ("        3       197", "        3   9999197", "contradicts itself"),
        ("        3       202", "        3       302", "the average of ALL"),
        ("IRQ Timer Latency (us)", "IRQ Timer Latency (ns)", "line 2: invalid"),
    ] {
        assert!(top.contains(from), "{from}");
        let error = refusal(&top.replacen(from, to, 1));
        assert!(error.contains(": line ") && error.contains(wanted), "{to}: {error}");
    }
    let noise = of(OSNOISE_TOPS, "6.12.117-osnoise-top-q");
    for (from, to) in [("2684211", "2684311"), ("49785", "949785"), ("10.65147", "10.6514"), ("308", "3o8")] {
        let error = refusal(&noise.replacen(from, to, 1));
        assert!(error.starts_with("this is rtla osnoise top: line 4: "), "{error}");
    }
}

#[test]
fn what_the_tool_hides_is_unknown() {
    let loss = "12 (0.50%) events missed, results might not be accurate\n";
    let run = import_one(&format!("{}{loss}", of(HISTS, "6.12.117-timerlat-hist-k")));
    assert_eq!(run.integrity[0].kind, IntegrityKind::Lost);
    assert!(run.integrity[0].detail.contains("12 events"));
    // osnoise prints zeros for a missing row.
    let zeros = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:03\n\
        Index   CPU-000\nover: 0\ncount: 0\nmin: 0\navg: 0\nmax: 0\n";
    assert!(refusal(zeros).contains("repeat with a larger -E"));
    assert!(refusal(&zeros.replace("CPU-000", "CPU-000   CPU-001")).contains("repeat with a larger -E"));
    assert!(refusal(&zeros.replace("   CPU-000", "")).contains("no CPU has a sample"));
    // A CPU with only a counted interrupt.
    let partial = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   IRQ-000   Thr-000\n\
        5             1         0 \n7             1         0 \nover:         0         0 \n\
        count:        2         0 \nmin:          5         - \navg:          6         - \n\
        max:          7         - \n";
    let run = import_one(partial);
    let entries: Vec<_> = run.cpus.iter().map(|cpu| (cpu.cycles, cpu.max_ns)).collect();
    assert_eq!(entries, [(Some(2), micros(7)), (Some(0), None)]);
    let row =
        "  4 #0         |        -         -         -         - |        7         3         5         9\n";
    let run = import_one(&format!("  Timer Latency\n{TIME}{COLUMNS}{row}"));
    let entries: Vec<_> = run.cpus.iter().map(|cpu| (cpu.cycles, cpu.max_ns)).collect();
    assert_eq!(entries, [(Some(0), None), (None, micros(9))]);
}

#[test]
fn few_rows_leave_the_width_open() {
    let hist = |rows: &str, over: &str, max: &str| {
        format!(
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   Thr-002\n{rows}\
            over: {over}\ncount: 5\nmin: 412\navg: 500\nmax: {max}\n"
        )
    };
    // -b 1000 with everything in one bucket.
    let run = import_one(&hist("0 5\n", "0", "812"));
    assert_eq!((run.cpus[0].histogram[0].upper, run.cpus[0].max_ns), (Nanos(813_000), micros(812)));
    let run = import_one(&hist("0 4\n", "1", "81200"));
    assert_eq!((run.cpus[0].histogram.len(), run.cpus[0].cycles), (0, Some(5)));
    assert_eq!((run.cpus[0].max_ns, run.cpus[0].overflows), (micros(81_200), None));
    let run = import_one(&format!("rtla timerlat hist -b 1000\n{}", hist("0 4\n", "1", "281200")));
    assert_eq!((run.cpus[0].overflows, run.cpus[0].overflows_from_ns), (Some(1), micros(256_000)));
    assert!(refusal(hist("0 5\n", "0", "812").split("count").next().unwrap()).contains("--no-summary"));
}

#[test]
fn reported_histograms_are_read() {
    let hist = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 01:00:00\n\
        Index   IRQ-000   Thr-000   IRQ-001   Thr-001\n0       3599900         0   3599950         0\n\
        1            95   3599700        49   3599800\n2             4       270         2       190\n\
        3             1        22         0         3\n8             1         0         0         0\n\
        over:         0         9         0         8\ncount:  3600001   3600001   3600001   3600001\n\
        min:          0         1         0         1\navg:          0         1         0         1\n\
        max:          8      4721         0      3904\nALL:        IRQ       Thr\ncount:  7200002   7200002\n\
        min:          0         1\navg:          0         1\nmax:          8      4721\n";
    // As reported the IRQ column of CPU 1 has rows above its maximum.
    assert!(refusal(hist).contains("max: of IRQ-001 contradicts its rows"));
    let hist = hist.replace("max:          8      4721         0", "max:          8      4721         2");
    for (text, unit) in [(hist.clone(), 1000), (hist.replace("micro", "nano").replace("(us)", "(ns)"), 1)] {
        let run = import_one(&text);
        assert_eq!(run.samples(), Some(7_200_002));
        let thread = entry(&run, 0, Quantity::Wakeup);
        assert_eq!((thread.cycles, thread.overflows), (Some(3_600_001), Some(9)));
        assert_eq!((thread.min_ns, thread.max_ns), (Some(Nanos(unit)), Some(Nanos(4721 * unit))));
        assert_eq!(entry(&run, 1, Quantity::Wakeup).max_ns, Some(Nanos(3904 * unit)));
    }
    let rows = "\x20 2 #30000     |       1         0         1         9 |       4       2       3      23\n\
        \x20 3 #29998     |        1         0         1         7 |       5       2       3      18\n\
        ---------------|----------------------------------------|-------------------------------\n\
        ALL #59998  e0 |                  0         1         9 |               2       3      23\n";
    let run = import_one(&format!("                Timer Latency         \n{TIME}{COLUMNS}{rows}"));
    for (cpu, cycles, max) in [(2, 30_000, 23), (3, 29_998, 18)] {
        let thread = entry(&run, cpu, Quantity::Wakeup);
        assert_eq!((thread.cycles, thread.max_ns), (Some(cycles), micros(max)));
    }
}

#[test]
fn user_columns_are_a_quantity_of_their_own() {
    let hist = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\n\
        Index   IRQ-000   Thr-000   Usr-000   IRQ-001   Thr-001   Usr-001\n\
        0          8800         0         0      8700         0         0 \n\
        10          900      8900      7800       950      8600      7700 \n\
        20          250       900      1900       300      1000      1900 \n\
        30           40       150       240        40       350       330 \n\
        over:        10        50        60        10        50        70 \n\
        count:    10000     10000     10000     10000     10000     10000 \n\
        min:          1        12        14         1        11        13 \n\
        avg:          5        14        17         5        14        17 \n\
        max:       4100      4208      4250      3900      4001      4090 \n";
    let run = import_one(hist);
    assert_eq!((run.cpus.len(), run.samples()), (6, Some(20_000)));
    let user = entry(&run, 1, Quantity::User);
    assert_eq!((user.overflows, user.max_ns, user.mean_ns), (Some(70), micros(4090), micros(17)));
    // rtla accepts at least 10 buckets.
    assert_eq!((user.histogram[0].lower, user.histogram[0].upper), (Nanos(10_000), Nanos(20_000)));
    assert_eq!(user.overflows_from_ns, micros(100));
}

/// Shape of a printed histogram: kinds of columns, CPUs, width, buckets, zeros, ns, blanks.
#[derive(Clone, Debug)]
struct DocumentShape {
    kinds: Vec<&'static str>,
    cpus: Vec<u32>,
    width: u64,
    entries: u64,
    zeros: bool,
    nanoseconds: bool,
    blanks: bool,
}

fn shapes() -> impl Strategy<Value = DocumentShape> {
    let kinds = proptest::sample::select(vec![
        vec!["IRQ", "Thr", "Usr"],
        vec!["IRQ", "Thr"],
        vec!["Thr"],
        vec!["IRQ"],
        vec!["Thr", "Usr"],
    ]);
    let cpus = proptest::collection::btree_set(0u32..1200, 1..9).prop_map(|set| set.into_iter().collect());
    let width = proptest::sample::select(vec![1u64, 2, 5, 10, 100, 1000]);
    (kinds, cpus, width, 10u64..300, any::<(bool, bool, bool)>()).prop_map(
        |(kinds, cpus, width, entries, (zeros, nanoseconds, blanks))| DocumentShape {
            kinds,
            cpus,
            width,
            entries,
            zeros,
            nanoseconds,
            blanks,
        },
    )
}

/// Text that rtla prints for these samples, a list per column.
fn printed(shape: &DocumentShape, columns: &[Vec<u64>]) -> String {
    let blank = if shape.blanks { " " } else { "" };
    let unit = if shape.nanoseconds { "nanoseconds (ns)" } else { "microseconds (us)" };
    let mut text =
        format!("# RTLA timerlat histogram\n# Time unit is {unit}\n# Duration:   0 00:00:10\nIndex");
    for cpu in &shape.cpus {
        shape.kinds.iter().for_each(|kind| text += &format!("   {kind}-{cpu:03}"));
    }
    text.push('\n');
    let mut row = |head: String, numbers: Vec<String>| {
        let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:>9}")).collect();
        text += &format!("{head}{}{blank}\n", numbers.join(" "));
    };
    for bucket in 0..shape.entries {
        let within = |samples: &Vec<u64>| samples.iter().filter(|&&n| n / shape.width == bucket).count();
        let counts: Vec<usize> = columns.iter().map(within).collect();
        if shape.zeros || counts.iter().any(|&count| count > 0) {
            row(format!("{:<6}", bucket * shape.width), counts.iter().map(usize::to_string).collect());
        }
    }
    let each = |of: &dyn Fn(&[u64]) -> u64, lists: &[Vec<u64>]| {
        lists.iter().map(|list| of(list).to_string()).collect()
    };
    let end = shape.entries * shape.width;
    row("over: ".into(), each(&|list| list.iter().filter(|&&n| n >= end).count() as u64, columns));
    let kinds = shape.kinds.len();
    let all: Vec<Vec<u64>> = (0..kinds)
        .map(|kind| columns.iter().skip(kind).step_by(kinds).flatten().copied().collect())
        .collect();
    for lists in [columns, &all] {
        if lists.len() == all.len() && lists == all && lists.as_ptr() == all.as_ptr() {
            row("ALL:  ".into(), shape.kinds.iter().map(|kind| (*kind).to_owned()).collect());
        }
        row("count:".into(), each(&|list| list.len() as u64, lists));
        row("min:  ".into(), each(&|list| *list.iter().min().unwrap(), lists));
        row("avg:  ".into(), each(&|list| list.iter().sum::<u64>() / list.len() as u64, lists));
        row("max:  ".into(), each(&|list| *list.iter().max().unwrap(), lists));
    }
    text
}

/// Pieces of rtla's outputs.
const WORDS: &[&str] = &[
    "# RTLA timerlat histogram\n",
    "# RTLA osnoise histogram\n",
    "# Time unit is microseconds (us)\n",
    "# Time unit is nanoseconds (ns)\n",
    "# Duration:   0 00:00:02\n",
    "Index",
    "   IRQ-000",
    "   Thr-000",
    "   Usr-001",
    "   CPU-000",
    "\n",
    "\nover: ",
    "\ncount:",
    "\nmin:  ",
    "\navg:  ",
    "\nmax:  ",
    "\nALL: ",
    "      IRQ",
    "      Thr",
    " 0",
    " 1",
    " 5",
    " 5.25",
    " -",
    " 18446744073709551615",
    "\n0 ",
    "\n10 ",
    "\n20 ",
    "Timer Latency\n",
    "Operating System Noise\n",
    "Hardware-related Noise\n",
    TIME,
    COLUMNS,
    "duration:   0 00:00:01 | time is in us\n",
    "CPU Period   Runtime   Noise  % CPU Aval   Max Noise   Max Single   HW   NMI\n",
    "\n  1 #1   |  1  1  1  1 |  1  1  1  1\n",
    "\n  2 #3   |  1  0  1  4 |  1  1  1  1\n",
    "---|---\n",
    "ALL #1     e0 |   1   1   1 |   1   1   1\n",
    "\n  0 #2   2001028   1248512   37.60647   687186   144502   888   0 \n",
    "\nrtla timerlat hit stop tracing\n",
    "\n3 (1.00%) events missed, results might not be accurate\n",
    "\n## CPU 1 hit stop tracing, analyzing it ##\n",
    "\n$ rtla timerlat hist -b 10\n",
];

proptest! {
    #[test]
    fn any_histogram_that_rtla_prints_is_read(
        shape in shapes(),
        seeds in proptest::collection::vec(proptest::collection::vec(0u64..1_000_000, 1..40), 24),
        commanded in any::<bool>(),
    ) {
        let count = shape.cpus.len() * shape.kinds.len();
        let end = shape.entries * shape.width;
        let columns: Vec<Vec<u64>> = seeds.iter().take(count)
            .map(|seed| seed.iter().map(|n| n % (end + end / 8)).collect())
            .collect();
        let command = format!("$ rtla timerlat hist -b {} -E {} {}\n", shape.width, shape.entries,
            if shape.nanoseconds { "-n" } else { "" });
        let text = format!("{}{}", if commanded { &command } else { "" }, printed(&shape, &columns));
        let run = import_one(&text);
        prop_assert_eq!(run.cpus.len(), count);
        let unit = if shape.nanoseconds { 1 } else { 1000 };
        for (index, samples) in columns.iter().enumerate() {
            let quantity = match shape.kinds[index % shape.kinds.len()] {
                "IRQ" => Quantity::Irq,
                "Thr" => Quantity::Wakeup,
                _ => Quantity::User,
            };
            let entry = entry(&run, shape.cpus[index / shape.kinds.len()], quantity);
            let ns = |n: u64| Some(Nanos(n as i64 * unit));
            prop_assert_eq!(entry.cycles, Some(samples.len() as u64));
            prop_assert_eq!(entry.min_ns, ns(*samples.iter().min().unwrap()));
            prop_assert_eq!(entry.max_ns, ns(*samples.iter().max().unwrap()));
            let beyond = samples.iter().filter(|&&n| n >= end).count() as u64;
            if entry.histogram.is_empty() && entry.overflows.is_none() {
                continue;
            }
            prop_assert_eq!(entry.overflows.unwrap_or(0), beyond);
            if commanded {
                prop_assert!(beyond == 0 || entry.overflows_from_ns == ns(end));
            }
            for bucket in &entry.histogram {
                let edges = bucket.lower.0..bucket.upper.0;
                let within = |n: &&u64| edges.contains(&(**n as i64 * unit)) && **n < end;
                prop_assert_eq!(samples.iter().filter(within).count() as u64, bucket.count);
            }
        }
    }

    #[test]
    fn any_text_of_its_words_is_read_or_refused_in_one_line(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60),
    ) {
        let text = words.concat();
        match import(text.as_bytes(), &ImportOptions::default()) {
            Ok(results) => for one in results {
                prop_assert_eq!(one.run.check(), Ok(()));
            },
            Err(error) => prop_assert!(!error.0.contains('\n')),
        }
    }
}

#[test]
fn times_that_passed_are_read() {
    assert_eq!(elapsed(" 0 00:00:06"), Some(Nanos(6 * Nanos::SECOND.0)));
    assert_eq!(elapsed("2 01:00:01 | time"), Some(Nanos((2 * 86_400 + 3_601) * Nanos::SECOND.0)));
    for text in ["", "0", "0 00:00", "0 00:00:00", "x 00:00:01", "0 00:61:00", "999999999999999 00:00:01"] {
        assert_eq!(elapsed(text), None, "{text}");
    }
}
