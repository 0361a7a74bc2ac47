//! Files of tests/fixtures/foreign from rt-tests' programs, against the facts in their README: the
//! tool's statements in its JSON or its last line.

use super::*;
use model::run::Run;
use model::sort::CompactSort;
use model::units::Nanos;
use model::vocabulary::{IdleStates, Policy, Preempt, Quantity};
use proptest::prelude::*;

#[allow(clippy::disallowed_methods)] // Tests read the files of the repository.
fn file(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/foreign/");
    std::fs::read_to_string(format!("{root}{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn import_as(text: &str, format: Option<&str>) -> Result<Run, String> {
    let options = ImportOptions { format: format.map(str::to_owned), ..ImportOptions::default() };
    let mut results = import(text.as_bytes(), &options).map_err(|error| error.0)?;
    assert_eq!(results.len(), 1, "{text}");
    let run = results.remove(0).run;
    assert_eq!(run.check(), Ok(()));
    Ok(run)
}

/// Samples, least, mean and largest in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Truth {
    cycles: Option<u64>,
    min: i64,
    max: i64,
    avg: f64,
}

/// Facts in a cell of a README: `T0 cpu 1: 0/1.04/12059, rows sum 27; T1: 15 cycles, 3/4/5`.
fn truths(cell: &str) -> Vec<Truth> {
    let of = |part: &str| {
        let words: Vec<&str> = part.split([' ', ',']).collect();
        let triple = words.iter().find(|word| word.matches('/').count() == 2)?;
        let mut numbers = triple.split('/');
        let mut next = || numbers.next().unwrap().parse::<f64>().unwrap();
        let (min, avg, max) = (next() as i64, next(), next() as i64);
        let at = |name: &str| words.iter().position(|word| *word == name);
        let cycles = at("cycles").map(|at| words[at - 1]).or(at("sum").map(|at| words[at + 1]));
        Some(Truth { cycles: cycles.map(|n| n.parse().unwrap()), min, max, avg })
    };
    cell.split(';').filter_map(of).collect()
}

/// Name and facts of each row of a README.
fn rows(folder: &str) -> Vec<(String, Vec<Truth>)> {
    let readme = file(&format!("{folder}/README.md"));
    let rows: Vec<_> = readme
        .lines()
        .filter(|line| line.starts_with("| 2."))
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ");
            (cells.next().unwrap().trim().to_owned(), truths(cells.last().unwrap()))
        })
        .collect();
    assert!(!rows.is_empty(), "{readme}");
    rows
}

fn truth_of(run: &Run) -> Vec<Truth> {
    let us = |ns: Option<Nanos>| ns.map_or(-1, |ns| ns.0 / 1000);
    let of = |cpu: &model::run::CpuRun| Truth {
        cycles: cpu.cycles,
        min: us(cpu.min_ns),
        max: us(cpu.max_ns),
        avg: cpu.mean_ns.map_or(-1.0, |mean| mean.0 as f64 / 1000.0),
    };
    run.cpus.iter().map(of).collect()
}

fn by_size(mut list: Vec<Truth>) -> Vec<Truth> {
    list.compact_sort_by_key(|one| (one.max, one.min));
    list
}

/// Format of a text that does not name its program.
fn format_of(name: &str) -> Option<String> {
    let tool = name.split('-').nth(1)?.trim_end_matches(".txt");
    let unnamed = ["ptsematest", "svsematest", "sigwaittest"].contains(&tool) && name.ends_with(".txt");
    unnamed.then(|| format!("{tool}-text"))
}

#[test]
fn real_files_give_the_tools_own_totals() {
    let mut read = 0;
    for folder in ["oslat", "rt-tests"] {
        for (name, truths) in rows(folder) {
            let text = file(&format!("{folder}/{name}"));
            let run = import_as(&text, format_of(&name).as_deref());
            let is_refused = ["hackbench", "pi_stress", "ssdd", "rt-migrate-test"]
                .into_iter()
                .find(|tool| name.contains(tool));
            if let Some(tool) = is_refused {
                let error = run.unwrap_err();
                assert!(error.starts_with(&format!("this is {tool}")), "{name}: {error}");
                continue;
            }
            if truths.is_empty() {
                continue;
            }
            let run = run.unwrap_or_else(|error| panic!("{name}: {error}"));
            let (found, truths) = (by_size(truth_of(&run)), by_size(truths));
            assert_eq!(found.len(), truths.len(), "{name}");
            for (found, truth) in found.iter().zip(&truths) {
                assert_eq!((found.min, found.max), (truth.min, truth.max), "{name}");
                // A text has whole numbers, as the README of one file, and is of another moment
                // than the JSON.
                let is_text = name.ends_with(".txt");
                let slack = if is_text || name.contains("rt-guest") { (1.0, 2) } else { (0.006, 0) };
                assert!((found.avg - truth.avg).abs() <= slack.0, "{name}: {found:?}");
                let apart = |count: u64| found.cycles.unwrap().abs_diff(count);
                assert!(truth.cycles.is_none_or(|count| apart(count) <= slack.1), "{name}: {found:?}");
            }
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn each_is_its_own_kind_of_measurement() {
    for (name, tool, measures) in [
        ("oslat/2.10-two.json", "oslat 2.10", Quantity::Gap),
        ("oslat/2.4-two.txt", "oslat 2.40", Quantity::Gap),
        ("hwlatdetect/2.10-samples.txt", "hwlatdetect", Quantity::Gap),
        ("rt-tests/2.6-signaltest.json", "signaltest 2.60", Quantity::Signal),
        ("rt-tests/2.6-signaltest.txt", "signaltest", Quantity::Signal),
        ("rt-tests/2.10-sigwaittest.json", "sigwaittest 2.10", Quantity::Signal),
        ("rt-tests/2.10-pmqtest.txt", "pmqtest", Quantity::Ipc),
        ("rt-tests/2.10-ptsematest.json", "ptsematest 2.10", Quantity::Ipc),
        ("rt-tests/2.10-svsematest.json", "svsematest 2.10", Quantity::Ipc),
        ("rt-tests/2.10-cyclicdeadline-two.json", "cyclicdeadline 2.10", Quantity::Deadline),
        ("rt-tests/2.4-cyclicdeadline-two.txt", "cyclicdeadline", Quantity::Deadline),
        ("rt-tests/2.10-queuelat.txt", "queuelat", Quantity::Gap),
    ] {
        let run = import_as(&file(name), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(run.plan.tool, tool, "{name}");
        assert!(run.cpus.iter().all(|cpu| cpu.measures == measures), "{name}");
    }
}

#[test]
fn texts_that_three_programs_write_are_not_guessed() {
    let text = file("rt-tests/2.10-svsematest.txt");
    let error = import_as(&text, None).unwrap_err();
    assert!(
        error.contains("--as ptsematest-text or --as sigwaittest-text or --as svsematest-text"),
        "{error}"
    );
    let log = format!("board# svsematest -q -S -p 80 -i 1000 -D 2\n{text}");
    let run = import_as(&log, None).unwrap();
    assert_eq!((run.plan.tool.as_str(), run.plan.duration_ns), ("svsematest", Some(Nanos(2_000_000_000))));
    let cpus: Vec<_> = run.cpus.iter().map(|cpu| (cpu.cpu, cpu.cycles)).collect();
    let cpu = |n| Some(model::units::Cpu(n));
    assert_eq!(cpus, [(cpu(0), Some(1893)), (cpu(1), Some(1264))]);
    assert_eq!((run.plan.interval_ns, run.plan.distance_ns), (Some(Nanos(1_000_000)), Some(Nanos(500_000))));
    assert_eq!((run.plan.policy.clone(), run.plan.priority), (Policy::Fifo.into(), Some(80)));
}

#[test]
fn only_pinned_threads_have_a_cpu() {
    for (name, cpus) in [
        ("rt-tests/2.10-pmqtest.json", vec![Some(0), Some(1)]),
        ("rt-tests/2.10-pmqtest-one.json", vec![Some(1)]),
        ("rt-tests/2.10-pmqtest-screen.txt", vec![None, None]),
        ("rt-tests/2.10-sigwaittest-one.json", vec![None]),
        // The second thread's `cpu` is a copy of the first one's.
        ("rt-tests/2.10-signaltest.json", vec![None, Some(0)]),
        ("rt-tests/2.10-signaltest-pinned.json", vec![Some(1), Some(1)]),
        ("rt-tests/2.10-signaltest.txt", vec![None, None]),
        ("rt-tests/2.10-cyclicdeadline-two.json", vec![None, None]),
    ] {
        let run = import_as(&file(name), None).unwrap();
        let found: Vec<_> = run.cpus.iter().map(|cpu| cpu.cpu.map(|cpu| cpu.0)).collect();
        assert_eq!(found, cpus, "{name}");
    }
}

#[test]
fn what_surrounds_the_numbers_is_kept() {
    let run = import_as(&file("rt-tests/2.10-cyclicdeadline-rt-guest.json"), None).unwrap();
    assert_eq!(run.host.preempt, Preempt::Rt, "by the kernel's version: realtime is 0");
    assert_eq!(
        (run.plan.interval_ns, run.host.release.as_str()),
        (Some(Nanos(20_000_000)), "7.3.4+deb13-rt-amd64")
    );
    assert_eq!((run.plan.policy.as_str(), run.plan.priority), ("", None));
    let run = import_as(&file("rt-tests/2.10-signaltest.json"), None).unwrap();
    assert_eq!((run.plan.loops, run.plan.priority), (Some(1000), Some(80)));
    assert!(run.started.starts_with("2026-11-29T"));
    let run = import_as(&file("rt-tests/2.4-cyclicdeadline-two.txt"), None).unwrap();
    let intervals: Vec<_> = run.cpus.iter().map(|cpu| cpu.interval_ns).collect();
    assert_eq!(intervals, [Some(Nanos(5_000_000)), Some(Nanos(6_000_000))]);
}

#[test]
fn hwlatdetects_windows_keep_their_times() {
    let run = import_as(&file("hwlatdetect/2.10-samples.txt"), None).unwrap();
    let brief = |run: &Run| -> Vec<_> {
        run.cpus.iter().map(|cpu| (cpu.cpu.map(|c| c.0), cpu.cycles, cpu.max_ns)).collect()
    };
    let expected =
        [(Some(0), Some(2), Some(Nanos(278_891_000))), (Some(1), Some(5), Some(Nanos(282_225_000)))];
    assert_eq!(brief(&run), expected);
    let worst = &run.cpus[1].worst[0];
    assert_eq!(
        (worst.latency_ns, worst.time.as_str()),
        (Some(Nanos(282_225_000)), "2026-11-29T00:49:07.976440Z")
    );
    assert_eq!((run.plan.over_ns, run.plan.duration_ns), (Some(Nanos(10_000)), Some(Nanos(4_000_000_000))));
    assert!(
        run.plan.notes.iter().any(|note| note.starts_with("135 gaps in 7 windows")),
        "{:?}",
        run.plan.notes
    );
    let report = import_as(&file("hwlatdetect/2.10-samples.report"), None).unwrap();
    assert_eq!((brief(&report), report.plan.over_ns), (brief(&run), None));
    let watched = import_as(&file("hwlatdetect/2.10-watch.txt"), None).unwrap();
    assert_eq!(brief(&watched), [(Some(1), Some(6), Some(Nanos(228_244_000)))]);
    let debug = import_as(&file("hwlatdetect/2.10-debug.txt"), None).unwrap();
    assert_eq!(
        (brief(&debug), debug.plan.idle.clone()),
        (vec![(Some(1), Some(6), Some(Nanos(288_816_000)))], IdleStates::Held.into())
    );
    let older = import_as(&file("hwlatdetect/2.10-6.12-samples.txt"), None).unwrap();
    assert_eq!(older.cpus.iter().filter_map(|cpu| cpu.max_ns).max(), Some(Nanos(310_514_000)));
}

#[test]
fn no_gap_is_a_number() {
    let run = import_as(&file("hwlatdetect/2.10-none.txt"), None).unwrap();
    let cpu = &run.cpus[0];
    assert_eq!((run.cpus.len(), cpu.cpu, cpu.cycles, cpu.max_ns), (1, None, Some(0), None));
    let listed =
        file("hwlatdetect/2.10-none.txt").replace("CPU list:          None", "CPU list:          1,3");
    let run = import_as(&listed, None).unwrap();
    assert_eq!(
        run.cpus.iter().map(|cpu| (cpu.cpu.unwrap().0, cpu.cycles)).collect::<Vec<_>>(),
        [(1, Some(0)), (3, Some(0))]
    );
}

#[test]
fn queuelats_rows_stand_for_those_left_out() {
    for (name, rows, count, max) in [
        ("2.4-queuelat.txt", 1, 3412, 99),
        ("2.4-queuelat-late.txt", 5, 45_238 + 9 + 1 + 1 + 1, 36_799),
        ("2.6-queuelat.txt", 4, 34_621 + 2 + 1 + 1, 2599),
        ("2.6-queuelat-late.txt", 3, 47_131 + 10 + 1, 399),
        ("2.10-queuelat.txt", 1, 21_381, 99),
        ("2.10-queuelat-late.txt", 1, 38_687, 99),
    ] {
        let mut results =
            import(file(&format!("rt-tests/{name}")).as_bytes(), &ImportOptions::default()).unwrap();
        assert!(results[0].remarks[0].contains("while it sized its block"), "{name}");
        let run = results.remove(0).run;
        let cpu = &run.cpus[0];
        assert_eq!(
            (cpu.histogram.len(), cpu.cycles, cpu.max_ns),
            (rows, Some(count), Some(Nanos(max))),
            "{name}"
        );
    }
    // A run that ended by itself prints the sizing's rows first.
    let sized = "tsc_freq_ghz = 2.5, cycles_to_ns = 0.4\nmax_queue_len = 129\n\
        [0 - 99] = 5  packetfillrates=[0 - 0]\n[70000 - END] = 0\ndefault_n=9 nr_packets_drain_per_block=7\n\
        [0 - 99] = 3\n...\n[200 - 299] = 1\n...\n[70000 - END] = 2\n\n ---------------- \n\
        Min loop processing time: [0 - 99] = 3\nMax loop processing time: [70000 - 70099] = 2\n";
    // Omitted rows after 299 have the count of the last row.
    assert!(
        import_as(&format!("{sized}Avg loop processing time: 0\n"), None)
            .unwrap_err()
            .contains("do not match its rows")
    );
}

#[test]
fn damaged_texts_are_refused_with_the_line() {
    let oslat = "oslat/2.10-two.txt";
    let mut other = Vec::new();
    for (name, from, to, wanted) in [
        (oslat, "    Duration:\t 2.050 2.056 (sec)\n", "", "'Duration:'"),
        (oslat, "16229664 15363554", "16229664", "line 16: expected 2 numbers"),
        (oslat, "16229664", "1622x664", "line 16"),
        (oslat, "    003 (us)", "    002 (us)", "line 18"),
        (oslat, "Max-Min:\t 28072", "Max-Min:\t 28073", "Max-Min"),
        (oslat, " (including overflows)", "", "does not say (including overflows)"),
        (oslat, "Maximum:\t 28072 188040 (us)", "Maximum:\t 28072 188040 (ms)", "and (us)"),
        (oslat, "Core:\t 0 1", "Core:\t 0 x", "behind Core"),
        ("oslat/2.10-threshold.txt", "\n", "\n", "-T"),
        ("oslat/2.4-threshold.txt", "\n", "\n", "-T"),
        ("oslat/2.10-two.json", "\"max\": 28072", "\"max\": 2", "above the maximum"),
        ("oslat/2.10-two.json", "\"num_threads\": 2", "\"num_threads\": 3", "num_threads"),
        ("oslat/2.10-two.json", "\"1\": 16229664", "\"1us\": 16229664", "bucket in microseconds"),
        (
            "hwlatdetect/2.10-samples.txt",
            "Samples recorded: 7",
            "Samples recorded: 8",
            "Samples recorded says 8",
        ),
        ("hwlatdetect/2.10-samples.txt", "threshold: 135", "threshold: 136", "sum of the counts"),
        ("hwlatdetect/2.10-samples.txt", "Max Latency: 282225us", "Max Latency: 282225ms", "a number of us"),
        ("hwlatdetect/2.10-samples.txt", "Max Latency: 282225us", "Max Latency: 282226us", "Max Latency"),
        ("hwlatdetect/2.10-samples.txt", "inner:278891", "inner:2788z1", "line 18"),
        ("rt-tests/2.10-signaltest.txt", "Max:     226", "Max:     2x6", "line 1: expected T:"),
        ("rt-tests/2.10-signaltest.txt", "T: 0", "T: 2", "expected threads 0 to"),
        (
            "rt-tests/2.10-pmqtest.txt",
            "#3 -> #2, Min    3, Cur    4, Avg    4, Max   22\n",
            "",
            "line 3: expected #0:",
        ),
        ("rt-tests/2.10-pmqtest.txt", "Max   25", "Max   2z", "line 3: expected #0:"),
        ("rt-tests/2.10-pmqtest.json", "\"samples\": 1788,", "", "samples"),
        ("rt-tests/2.6-queuelat.txt", "[100 - 199] = 2", "[100 - 199] = 3000", "do not match its rows"),
        ("rt-tests/2.6-queuelat.txt", "Avg loop processing time: 99\n", "", "'Avg loop processing time:'"),
        ("rt-tests/2.6-queuelat.txt", "[100 - 199]", "[100 - 198]", "line 4: expected a row"),
    ] {
        let text = file(name);
        assert!(text.contains(from), "{name}: {from}");
        let error = import_as(&text.replacen(from, to, 1), None).expect_err(to);
        if !error.contains(wanted) || error.contains('\n') {
            other.push(format!("{name}, {to}: {error}"));
        }
    }
    assert_eq!(other, Vec::<String>::new());
}

#[test]
fn oslats_last_row_is_beyond_the_histogram() {
    for (name, end) in [("2.4-two", 32), ("2.6-two", 31), ("2.10-two", 31), ("2.10-bias", 15)] {
        let json = import_as(&file(&format!("oslat/{name}.json")), None).unwrap();
        let text = import_as(&file(&format!("oslat/{name}.txt")), None).unwrap();
        for (one, other) in json.cpus.iter().zip(&text.cpus) {
            assert_eq!(
                (one.cpu, one.overflows, &one.histogram),
                (other.cpu, other.overflows, &other.histogram),
                "{name}"
            );
            assert_eq!(one.overflows_from_ns, Some(Nanos(end * 1000)), "{name}");
        }
        assert!(json.elapsed_ns.is_some() && json.elapsed_ns == text.elapsed_ns, "{name}");
    }
    let run = import_as(&file("oslat/2.10-fifo.txt"), None).unwrap();
    assert_eq!((run.plan.policy.clone(), run.plan.priority), (Policy::Fifo.into(), Some(1)));
}

#[test]
fn results_as_reported_are_read() {
    let run = import_as(&file("reported/oslat.txt"), None).unwrap();
    let brief = |cpu: &model::run::CpuRun| (cpu.cpu.unwrap().0, cpu.cycles, cpu.max_ns, cpu.overflows);
    let five = (5, Some(51_200_172), Some(Nanos(9_000)), None);
    let six = (6, Some(51_179_643), Some(Nanos(2_000)), None);
    assert_eq!(run.cpus.iter().map(brief).collect::<Vec<_>>(), [five, six]);
    let run = import_as(&file("reported/oslat.json"), None).unwrap();
    assert_eq!(brief(&run.cpus[0]), (1, Some(56_072_217), Some(Nanos(15_000)), None));
    assert_eq!(run.elapsed_ns, Some(Nanos(2_006_000_000)));
    let run = import_as(&file("reported/hwlatdetect.txt"), None).unwrap();
    let cpu = &run.cpus[0];
    assert_eq!((cpu.cpu, cpu.cycles, cpu.max_ns), (None, Some(2), Some(Nanos(31_000))));
    assert_eq!(run.plan.duration_ns, Some(Nanos(60_000_000_000)));
    let run = import_as(&file("reported/signaltest.json"), None).unwrap();
    let brief = |cpu: &model::run::CpuRun| (cpu.cpu.map(|cpu| cpu.0), cpu.cycles, cpu.max_ns);
    let threads =
        [(Some(0), Some(2881), Some(Nanos(3_612_000))), (Some(1), Some(2881), Some(Nanos(12_090_000)))];
    assert_eq!(run.cpus.iter().map(brief).collect::<Vec<_>>(), threads, "they differ: each is its own");
    let run = import_as(&file("reported/pmqtest.json"), None).unwrap();
    assert_eq!(brief(&run.cpus[0]), (Some(0), Some(1859), Some(Nanos(98_000))));
}

#[test]
fn oslats_rows_have_any_width() {
    for (name, truth, lower, beyond) in [
        ("2.10-W500", (9_371_651, 20, 20_076_935), 500, 5_500),
        ("2.10-W1500", (9_939_844, 20, 20_062_469), 1_500, 16_500),
        ("2.10-W2000", (9_854_052, 0, 20_098_000), 2_000, 22_000),
        ("2.6-W500", (9_690_301, 21, 20_099_773), 500, 5_500),
    ] {
        for end in ["json", "txt"] {
            let run = import_as(&file(&format!("oslat-width/{name}.{end}")), None).unwrap();
            let cpu = &run.cpus[0];
            let found = (cpu.cycles, cpu.min_ns, cpu.max_ns);
            let (cycles, min, max) = truth;
            assert_eq!(found, (Some(cycles), Some(Nanos(min)), Some(Nanos(max))), "{name}.{end}");
            let second = cpu.histogram[1];
            assert_eq!((second.lower, second.upper), (Nanos(lower), Nanos(2 * lower)), "{name}.{end}");
            assert_eq!(cpu.overflows_from_ns, Some(Nanos(beyond)), "{name}.{end}");
            assert_eq!(cpu.mean_ns.is_some(), name == "2.10-W2000", "the other averages are wrong");
        }
    }
}

#[test]
fn rt_apps_files_are_refused() {
    for name in
        ["loops-twice-0.log", "one-thread0-0.log", "two-control-0.log", "1.0-one.txt", "1.0-loops.txt"]
    {
        let error = import_as(&file(&format!("rt-app/{name}")), None).unwrap_err();
        assert!(error.starts_with("this is rt-app's"), "{name}: {error}");
    }
    assert!(import_as(&file("reported/rt-app.log"), None).unwrap_err().starts_with("this is rt-app's log"));
}

#[test]
fn several_results_of_a_log_are_told_apart() {
    let log = [
        "oslat/2.10-two.txt",
        "rt-tests/2.10-signaltest.txt",
        "rt-tests/2.4-cyclicdeadline-two.txt",
        "hwlatdetect/2.10-none.txt",
        "rt-tests/2.10-pmqtest.txt",
        "rt-tests/2.6-signaltest.txt",
        "hwlatdetect/2.10-samples.txt",
        "hwlatdetect/2.10-samples.report",
        "rt-tests/2.6-queuelat.txt",
        "oslat/2.4-quiet.txt",
    ]
    .map(file)
    .join("$ next\n");
    let results = import(log.as_bytes(), &ImportOptions::default()).unwrap();
    let ended = format!("{}\n{log}", file("oslat/2.10-threshold.txt"));
    assert_eq!(
        import(ended.as_bytes(), &ImportOptions::default()).unwrap().len(),
        10,
        "one that ended hides none"
    );
    let tools: Vec<&str> = results.iter().map(|one| one.run.plan.tool.split(' ').next().unwrap()).collect();
    assert_eq!(
        tools,
        [
            "oslat",
            "signaltest",
            "cyclicdeadline",
            "hwlatdetect",
            "pmqtest",
            "signaltest",
            "hwlatdetect",
            "hwlatdetect",
            "queuelat",
            "oslat"
        ]
    );
    let stamped: String = log.lines().map(|line| format!("2026-09-10T12:00:03.123Z {line}\n")).collect();
    assert_eq!(import(stamped.as_bytes(), &ImportOptions::default()).unwrap().len(), 10);
}

const NUMBERS: [&str; 9] = ["0", "1", "31", "-1", "18446744073709551615", "1e400", "null", "\"x\"", "1.5"];

/// Lines of the tools' vocabulary, whole and cut, in any order.
fn lines() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "oslat V 2.10",
        "Total runtime: \t\t2 seconds",
        "        Core:\t 0 1",
        "        Core:\t 0",
        "Counter Freq:\t 2595 2597 (MHz)",
        "Counter Freq:\t 1 (MHz)",
        "    001 (us):\t 7 9",
        "    002 (us):\t 7",
        "    002 (us):\t 1 1 (including overflows)",
        "    ...",
        "     Minimum:\t 0 0 (us)",
        "     Minimum:\t 1 (us)",
        "     Average:\t 1.1 1.1 (us)",
        "     Maximum:\t 9 1 (us)",
        "     Maximum:\t 9 (us)",
        "     Max-Min:\t 9 1 (us)",
        "    Duration:\t 2.0 2.0 (sec)",
        "    Duration:\t 2.0 (sec)",
        "hwlatdetect:  test duration 4 seconds",
        "        CPU list:          1",
        "        Latency threshold: 10us",
        "test finished",
        "Max Latency: 31us",
        "Max Latency: Below threshold",
        "Samples recorded: 1",
        "Samples recorded: 0",
        "Samples exceeding threshold: 1",
        "ts: 1790000100.100000001, inner:31, outer:12",
        "ts: 1795913484.022306730, inner:1, outer:31, cpu:1, count:50",
        "T: 0 (19238) P:80 C:   1000 Min:     25 Act:   29 Avg:   37 Max:     226",
        "T: 1 (19239) P:80 C:      0 Min:1000000 Act:    0 Avg:    0 Max:-1000000",
        "T: 0 (2) I:5000 C:    401 Min:      4 Act:   70 Avg:   68 Max:    8429",
        "#0: ID19643, P80, CPU0, I1000; #1: ID19647, P80, CPU0, TO 0, Cycles 1788",
        "#1 -> #0, Min    3, Cur    4, Avg    4, Max   25",
        "#0: ID1, P80, CPU0, I1000; #1: ID2, P80, CPU1, Cycles 0",
        "#3 -> #2, Min   -1, Cur    0, Avg -2147483648, Max    0",
        "tsc_freq_ghz = 2.596142, cycles_to_ns = 0.385187",
        "[0 - 99] = 3412",
        "...",
        "[70000 - END] = 0",
        "[70000 - END] = 9",
        "default_n=1",
        "Min loop processing time: [0 - 99] = 3412",
        "Max loop processing time: [0 - 99] = 3412",
        "Avg loop processing time: 99",
        "#idx perf run period wu_lat",
        "hello 18446744073709551615",
    ]);
    let line = (words, 0usize..90, any::<bool>()).prop_map(|(line, cut, whole)| {
        if whole { line.to_owned() } else { line.chars().take(cut).collect() }
    });
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if option_env!("ONBEAT_NIGHT").is_some() { 3000 } else { 500 }))]

    #[test]
    fn any_arrangement_is_read_or_refused_in_one_line(text in lines()) {
        match import(text.as_bytes(), &ImportOptions::default()) {
            Ok(results) => results.iter().for_each(|one| assert_eq!(one.run.check(), Ok(()))),
            Err(error) => prop_assert!(!error.0.contains('\n'), "{error}"),
        }
    }

    #[test]
    fn any_thread_of_the_json_is_read_or_refused(
        program in prop::sample::select(vec!["oslat", "pmqtest", "signaltest", "cyclicdeadline"]),
        n in prop::collection::vec(prop::sample::select(NUMBERS.to_vec()), 12),
    ) {
        let count = format!(r#""cycles": {}, "cpu": {}"#, n[0], n[1]);
        let alone = format!(r#"{count}, "min": {}, "max": {}, "avg": {}"#, n[2], n[3], n[4]);
        let row = n[6].trim_matches('"');
        let rows = format!(r#""duration": {}, "histogram": {{"{row}": {}, "32": {}}}"#, n[5], n[7], n[8]);
        let sender = format!(r#""sender": {{"samples": {}, "cpu": 0}}"#, n[9]);
        let receiver = format!(r#""receiver": {{"min": {}, "max": {}}}"#, n[10], n[11]);
        let pair = if program == "pmqtest" { format!(", {sender}, {receiver}") } else { String::new() };
        let thread = format!(r#""thread": {{"0": {{{alone}, {rows}{pair}}}}}"#);
        let json = format!(r#"{{"cmdline:": "{program} -b 4", "num_threads": 1, {thread}}}"#);
        match import(json.as_bytes(), &ImportOptions::default()) {
            Ok(results) => results.iter().for_each(|one| assert_eq!(one.run.check(), Ok(()))),
            Err(error) => prop_assert!(!error.0.contains('\n'), "{error}"),
        }
    }
}

#[test]
fn a_thread_without_a_cpu_keeps_its_number() {
    // Of signaltest's two threads only the first one's CPU is known.
    let json = include_str!("../../../../tests/fixtures/foreign/rt-tests/2.10-signaltest.json");
    let cyclictest = include_str!("../../../../tests/fixtures/foreign/cyclictest/2.10-hist.json");
    let unpinned = cyclictest.replacen("\"cpu\": 1", "\"cpu\": -1", 1);
    for text in [json, &unpinned] {
        let run = import_as(text, None).unwrap();
        let unplaced: Vec<u32> =
            run.cpus.iter().filter(|cpu| cpu.cpu.is_none()).map(|cpu| cpu.thread).collect();
        assert_eq!(unplaced, [1]);
    }
}
