//! Tests of all formats together: the format that claims a text, and the refusals.

use super::testing::{fixture, import_one};
use super::*;
use model::units::Nanos;
use proptest::prelude::*;

fn refusal(bytes: &[u8]) -> String {
    let error = import(bytes, &ImportOptions::default()).expect_err(&String::from_utf8_lossy(bytes));
    assert!(!error.0.contains('\n'), "{error}");
    error.0
}

#[test]
fn a_text_of_nanoseconds_is_read_as_one() {
    let text = "# Histogram\n000002 000003\n000005 000001\n# Total: 000000004\n# Min Latencies: 00002\n\
        # Avg Latencies: 00003\n# Max Latencies: 00005\n# Histogram Overflows: 00000\n";
    let options = ImportOptions { nanoseconds: true, ..ImportOptions::default() };
    let by_flag = import(text.as_bytes(), &options).unwrap().remove(0).run;
    let by_command = import_one(&format!("$ cyclictest -N -h 10 -q\n{text}"));
    let by_unit = import_one(&text.replacen('\n', "\n# latencies (ns)\n", 1));
    for run in [by_flag, by_command, by_unit] {
        let cpu = &run.cpus[0];
        assert_eq!((cpu.min_ns, cpu.max_ns, cpu.p50_ns), (Some(Nanos(2)), Some(Nanos(5)), Some(Nanos(3))));
    }
}

#[test]
fn what_is_no_result_is_refused_with_what_was_expected() {
    for (bytes, wanted) in [
        (&b""[..], "empty"),
        (b" \n\t", "empty"),
        (b"hello\n", "no result of a known tool"),
        (b"max_us (board 3)\n12\n15\n", "unknown heading 'max_us (board 3)'"),
        (b"000000 00001\n000001 00004\n", "--as cyclictest-text"),
        (b"{}", "unknown JSON"),
        (b"{\"cycles\": 4, \"other\":\"onbeat.run/1\"}", "--as cyclictest-json"),
        (b"{\n  \"schema\": \"onbeat.run/1\",", "a run of onbeat: report, bounds and compare read"),
        (b"{\"schema\":\"onbeat.audit/1\"}", "a document of onbeat"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03cut", "invalid gzip data"),
        (b"\0\0\0\0", "not text"),
        (b"# Histogram\n000001 000004\n000002 000009\n", "ends without '# Max Latencies:'"),
    ] {
        let error = refusal(bytes);
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn rows_alone_are_read_where_the_format_is_named() {
    let options = ImportOptions { format: Some("cyclictest-text".into()), ..ImportOptions::default() };
    let runs = import(b"000000 00001\n000001 00004\n", &options).unwrap();
    assert_eq!(runs[0].run.samples(), Some(5));
    let options = ImportOptions { format: Some("nothing".into()), ..ImportOptions::default() };
    assert!(import(b"000000 00001\n", &options).unwrap_err().0.contains("cyclictest-text, cyclictest-json"));
}

#[test]
fn a_file_for_another_command_is_named() {
    let named = |text: &str| known_file(text.as_bytes()).unwrap_or_default();
    assert_eq!(named(fixture("summary.txt")), "this is cyclictest's text: convert it with `onbeat import`");
    assert!(named("T: 0 ( 6596) P:80 I:500 C: 10 Min: 1 Act: 2 Avg: 2 Max: 9\n").contains("onbeat import"));
    assert!(named("#idx perf run period slack\n").contains("rt-app's log: "));
    assert!(named("{\"schema\": \"onbeat.capture/1\"}").contains("audit --bundle"));
    for list in ["max_us\n12\n15\n", "12\n15\nx\n", "12 3\n15 4\n", ""] {
        assert_eq!(named(list), "", "{list}");
    }
    let options = ImportOptions { format: Some("rtla-timerlat-hist".into()), ..ImportOptions::default() };
    let error = import(fixture("summary.txt").as_bytes(), &options).unwrap_err().0;
    assert!(error.contains("this is cyclictest's text: remove --as"), "{error}");
}

#[test]
fn a_log_of_json_lines_that_ends_with_a_line_is_not_cut() {
    let line = |open: &str, key: &str, n: u32| {
        format!(
            "{open}\"{key}\": \"T: {n} ( 343{n}) P:80 I:1000 C: 100000 Min:      5 Act:   10 Avg:   14 Max:      39\"}}\n"
        )
    };
    for (open, key) in [("{", "log"), ("- {\"dt\": \"2026-11-30T22:00:00.0\", ", "msg")] {
        let text = line(open, key, 0) + &line(open, key, 1);
        let imported = import(text.as_bytes(), &ImportOptions::default()).unwrap().remove(0);
        assert_eq!(imported.run.cpus.len(), 2);
        assert!(!imported.remarks.iter().any(|remark| remark.contains("cut")), "{:?}", imported.remarks);
    }
}

#[test]
fn rows_with_commas_are_those_of_the_histogram() {
    let text = fixture("single-H60-2.7.txt");
    let is_row = |line: &str| line.starts_with("0000");
    let lines = text.lines().map(|line| {
        if is_row(line) { line.split_whitespace().collect::<Vec<_>>().join(",") } else { line.to_owned() }
    });
    let with_commas = lines.collect::<Vec<_>>().join("\n") + "\n";
    assert_ne!(with_commas, text);
    assert_eq!(import_one(&with_commas).cpus, import_one(text).cpus);
}

#[test]
fn each_result_of_a_log_is_one() {
    let one = fixture("single-H60-2.7.txt");
    let log = format!("starting\n{one}\n$ next\n{}\n", fixture("summary.txt"));
    let runs = import(log.as_bytes(), &ImportOptions::default()).unwrap();
    assert_eq!(runs.iter().map(|one| one.run.cpus.len()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_interval_fills_only_what_is_unknown() {
    let text = fixture("single-H60-2.7.txt");
    let with = |interval| {
        let options = ImportOptions { interval: Some(Nanos(interval)), ..ImportOptions::default() };
        import(text.as_bytes(), &options).unwrap().remove(0).run
    };
    assert_eq!(import_one(text).plan.interval_ns, None);
    assert_eq!(with(250_000).cpus[0].interval_ns, Some(Nanos(250_000)));
    let text = fixture("summary.txt");
    let options = ImportOptions { interval: Some(Nanos(1)), ..ImportOptions::default() };
    let run = import(text.as_bytes(), &options).unwrap().remove(0).run;
    assert_eq!(run.plan.interval_ns, Some(Nanos::MILLI));
}

#[test]
fn quotes_are_short_and_plain() {
    assert_eq!(quoted("a\x1b\n"), "'a\\u{1b}\\n'");
    assert_eq!(quoted(&"x".repeat(90)).len(), 45);
}

#[test]
fn every_format_has_its_row() {
    let mut ids: Vec<&str> = FORMATS.iter().map(|format| format.id).collect();
    for format in FORMATS {
        let texts = [format.tool, format.versions, format.origin, format.carries];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", format.id);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), FORMATS.len());
}

/// Words of headings and units, of this field and of others, and numbers in any arrangement.
fn table() -> impl Strategy<Value = String> {
    let heading = proptest::sample::select(vec![
        "# Histogram of sizes",
        "max_us (board 3)",
        "# Total requests: 5",
        "CPU  min avg max",
        "bucket count",
        "Latency Distribution",
        "# Time unit is milliseconds (ms)",
        "Index A B C",
        "Percentile  Value",
        "# second maximum",
        "",
        "T: temperature",
        "over the limit",
        "Min Avg Max",
        "count:",
        "Index IRQ THR-1 Usr",
        "over: 3 4",
        "min: 1 2",
        "# Duration: 10 s",
        "Timer Latency in a forest",
        "CPU COUNT | cur min avg max",
        "CPU Period Length",
        "ALL: IRQ",
        "Core: 0 1",
        "Minimum Average Maximum",
        "Duration: 10 (sec)",
        "oslat results",
        "Samples recorded",
        "hwlatdetect windows",
        "T: P: C: Min: Act: Avg: Max:",
        "#0: a; #1: b, Cycles",
        "Avg loop time:",
        "[0 - 99] = bytes",
        "max_queue_len",
        "\"cpu\": {\"0\": 5}",
        "T: 0 A: 1",
        "stress-ng: the book",
        "cyclic: sched 5",
        "mean: 5 ns, mode: 4 ns",
        "RTT of the network",
        "HSD|",
        "---|--param|----range-|--samples",
        "== Sampling period:",
        "# min latency",
        "# clocksource: tsc",
        "servo min: max: sdev:",
        "rteval report",
    ]);
    let number =
        prop_oneof![(0u64..100_000).prop_map(|n| n.to_string()), (0u64..999).prop_map(|n| format!("{n:06}"))];
    let row = proptest::collection::vec(number, 1..5);
    let separator = proptest::sample::select(vec![" ", "\t", "  ", ",", ": "]);
    let rows = proptest::collection::vec(row, 0..20);
    (proptest::collection::vec(heading, 0..4), rows, separator).prop_map(|(headings, rows, separator)| {
        let rows = rows.iter().map(|row| row.join(separator));
        headings.iter().map(|text| (*text).to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if option_env!("ONBEAT_NIGHT").is_some() { 10_000 } else { 2_000 }))]

    #[test]
    fn texts_that_are_no_measurements_are_refused(text in table()) {
        prop_assert!(import(text.as_bytes(), &ImportOptions::default()).is_err());
    }
}

#[test]
fn a_summary_that_the_end_cuts_short_is_refused_or_said_to_be_cut() {
    macro_rules! texts {
        ($($name:literal)*) => {
            [$(($name, include_str!(concat!("../../../../tests/fixtures/foreign/", $name)))),*]
        };
    }
    for (name, text) in texts!(
        "cyclictest/2.4-quiet-other.txt"
        "cyclictest/2.10-screen.txt"
        "cyclictest/2.10-hist.txt"
        "rt-tests/2.10-signaltest-pinned.txt"
        "rt-tests/2.6-cyclicdeadline-two.txt"
        "jitterdebugger/0.3.1-two.txt"
    ) {
        let text = text.trim_end();
        let line = text.rfind('\n').map_or(0, |end| end + 1);
        assert!(import(text.as_bytes(), &ImportOptions::default()).is_ok(), "{name}");
        for end in line + 1..text.len() {
            let Ok(read) = import(&text.as_bytes()[..end], &ImportOptions::default()) else { continue };
            assert!(!read[0].remarks.is_empty(), "{name}: {:?} is read as whole", &text[line..end]);
        }
    }
}
