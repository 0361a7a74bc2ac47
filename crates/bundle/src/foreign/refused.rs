//! Results that are recognised and not read: they hold no latency that the other results have, or
//! only its sum.

use super::error::ImportError;
use super::format::{ForeignFormat, Reader, ResultSpan};
use super::json_read::rt_tests_program;
use super::quoted;
use super::source::{DocumentShape, SourceText, TextLine};

/// Programs of rt-tests whose JSON is read, or refused by a separate record.
const KNOWN_PROGRAMS: &[&str] = &[
    "cyclictest",
    "onbeat",
    "oslat",
    "signaltest",
    "cyclicdeadline",
    "pmqtest",
    "ptsematest",
    "svsematest",
    "sigwaittest",
    "pi_stress",
    "ssdd",
    "hackbench",
    "rt-migrate-test",
    "pip_stress",
];

/// Words of lines that identify the tool's text; all of them, in any order.
type FrameWords = &'static [&'static str];

macro_rules! refused {
    ($($name:ident: $id:literal, $tool:literal, $program:literal, $frames:expr, $instead:literal;)*) => {
        $(pub(super) const $name: ForeignFormat = ForeignFormat {
            id: $id,
            tool: $tool,
            versions: "recognised by its text",
            origin: "run here or public",
            carries: "nothing: refused",
            hides: $instead,
            find: |source| find(source, $program, $frames),
            reader: Reader::Refused($instead),
        };)*
        #[cfg(test)]
        const ALL: &[&ForeignFormat] = &[$(&$name),*];
    };
}

refused! {
    FIO: "fio", "fio's result", "", &[&["lat (", "min=", "stdev="], &["\"fio version\""]],
        "it times accesses to storage, no wake-ups: use it as a load (onbeat measure --load), and measure \
         wake-ups with onbeat measure";
    HACKBENCH: "hackbench", "hackbench's time", "hackbench",
        &[&["Running in process mode with", "groups using"], &["Running in threaded mode with"]],
        "it is a load and prints its own time: run it during onbeat measure (--load), and import the result \
         of the measuring tool";
    IPERF3: "iperf3", "iperf3's result", "",
        &[
            &["Interval", "Transfer", "Bitrate"],
            &["Interval", "Transfer", "Bandwidth"],
            &["\"sum_received\"", "\"bits_per_second\""],
        ],
        "it measures throughput: run onbeat measure at the same time";
    LATENCYTOP: "latencytop", "latencytop's table", "", &[&["Cause", "Maximum", "Percentage"]],
        "it has the waiting times of threads by cause: onbeat hunt explains late wake-ups";
    LAVA_RESULTS: "lava-results", "the results of a LAVA job", "",
        &[&["measurement:", "units:", "result:"], &["<LAVA_SIGNAL_TESTCASE", "MEASUREMENT="]],
        "they hold values that the job's script extracted from a tool's output: give the job's log, which \
         has the tool's own lines";
    PERF_SCHED: "perf-sched", "perf sched's table", "",
        &[&["Runtime ms", "Avg delay ms", "Max delay"], &["wait time", "sch delay", "run time"]],
        "it has sums over other threads: give perf.data to onbeat explain, or measure with onbeat measure";
    PING: "ping", "ping's statistics", "",
        &[&["min/avg/max/mdev = "], &["round-trip min/avg/max"]],
        "it has extremes of a network's round trips: measure wake-ups with onbeat measure";
    PI_STRESS: "pi_stress", "pi_stress's result", "pi_stress",
        &[&["Total inversion performed:"]],
        "it counts inversions but does not time them: onbeat probe pi counts and times them";
    PIP_STRESS: "pip_stress", "pip_stress's result", "pip_stress",
        &[&["Successfully used priority inheritance to handle an inversion"]],
        "it reports whether an inversion was resolved, but does not time it: onbeat probe pi counts and \
         times inversions";
    RT_APP_LOG: "rt-app-log", "rt-app's log", "",
        &[&["idx", "perf", "run", "period", "slack"], &["idx", "perf", "c_duration", "c_period"]],
        "its columns are loops of a described load: run the load during onbeat measure, or follow its \
         threads with onbeat hunt --victim";
    RT_APP_SCREEN: "rt-app-screen", "rt-app's messages", "",
        &[
            &["<notice> Calibrate ns per loop"],
            &["<notice> pLoad ="],
            &["<notice>", "] Using SCHED_", " policy with priority"],
            &["<notice>", "] starting thread ..."],
        ],
        "they hold no latency: follow its threads with onbeat hunt --victim";
    RT_MIGRATE_TEST: "rt-migrate-test", "rt-migrate-test's result", "rt-migrate-test",
        &[&["Task ", "(prio ", "(pid "]],
        "it times how long tasks of several priorities wait for each other, not a wake-up: onbeat \
         probe migrate measures the same";
    SCHBENCH: "schbench", "schbench's percentiles", "", &[&["Latencies percentiles (usec)"]],
        "it has percentiles of ordinary threads under its own load: use it as a load (onbeat measure --load)";
    SSDD: "ssdd", "ssdd's result", "ssdd", &[&["forktest#", ": STARTING"], &["forktest#", ": EXITING"]],
        "it tests ptrace and measures no time: measure with onbeat measure";
    SYSBENCH: "sysbench", "sysbench's result", "",
        &[&["sysbench ", " (using ", "LuaJIT"], &["95th percentile:"]],
        "it times its own requests, no wake-ups: use it as a load (onbeat measure --load)";
}

/// JSON of another program of rt-tests: the frame is the same for all.
pub(super) const RT_TESTS_OTHER: ForeignFormat = ForeignFormat {
    id: "rt-tests-other",
    tool: "the JSON of another program of rt-tests",
    versions: "recognised by its text",
    origin: "run here or public",
    carries: "nothing: refused",
    hides: "which of its numbers are latencies",
    find: |source| {
        let is_frame = source.text().contains("\"rt_test_version:\"");
        let other = rt_tests_program(source).filter(|program| is_frame && !KNOWN_PROGRAMS.contains(program));
        whole(source, other.is_some())
    },
    reader: Reader::Refused(
        "its cmdline: names the program: give the result of a program in docs/formats.md",
    ),
};

/// Refusal of lines with a shell's variable instead of its value.
pub(super) fn unexpanded<'a>(mut lines: impl Iterator<Item = TextLine<'a>>) -> Option<ImportError> {
    lines.find_map(|line| {
        let (_, rest) = line.text.split_once("${")?;
        let (name, _) = rest.split_once('}')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| {
            ImportError(format!(
                "line {}: found a shell variable, {}, instead of a value: give the tool's own output",
                line.number,
                quoted(&format!("${{{name}}}"))
            ))
        })
    })
}

fn whole(source: &SourceText, is_its: bool) -> Vec<ResultSpan> {
    is_its.then(|| ResultSpan::strong(0..source.lines().len())).into_iter().collect()
}

/// Finds each line with all words of a frame; the whole document if it is the program's JSON.
fn find(source: &SourceText, program: &str, frames: &[FrameWords]) -> Vec<ResultSpan> {
    let has = |text: &str, words: FrameWords| words.iter().all(|word| text.contains(word));
    if source.shape == DocumentShape::Json {
        let quoted = |words: &&FrameWords| words.iter().all(|word| word.starts_with('"'));
        let by_words = || frames.iter().filter(quoted).any(|words| has(source.text(), words));
        let program = (!program.is_empty()).then_some(program);
        return whole(source, program.is_some() && rt_tests_program(source) == program || by_words());
    }
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let is_its = |text: &str| frames.iter().any(|words| has(text, words));
    let mut lines = source.lines().enumerate().filter(|(_, line)| is_its(line.text));
    // One is enough for a refusal.
    lines.next().map(|(index, _)| ResultSpan::strong(index..index + 1)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{ImportOptions, import};

    fn refusal(text: &str) -> String {
        let error = import(text.as_bytes(), &ImportOptions::default()).expect_err(text);
        assert!(!error.0.contains('\n'), "{error}");
        error.0
    }

    #[test]
    fn results_of_other_kinds_are_refused_by_name() {
        for (text, tool) in [
            ("  write: IOPS=1\n    clat (usec): min=2, max=300, avg= 4.10, stdev= 1.20\n", "fio's result"),
            ("{\"fio version\": \"fio-3.36\", \"jobs\": []}", "fio's result"),
            (
                "Running in process mode with 1 groups using 40 file descriptors each\nTime: 0.1\n",
                "hackbench",
            ),
            (
                "- {id: t0-max-latency, level: '', measurement: '208.0', result: pass, units: us}\n",
                "LAVA job",
            ),
            ("[ ID] Interval           Transfer     Bitrate         Retr\n", "iperf3's result"),
            ("{\"end\": {\"sum_received\": {\"bits_per_second\": 9}}}", "iperf3's result"),
            ("Cause                                                Maximum     Percentage\n", "latencytop's"),
            (
                "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    |\n",
                "perf sched's",
            ),
            ("rtt min/avg/max/mdev = 0.041/0.050/0.061/0.008 ms\n", "ping's statistics"),
            ("Successfully used priority inheritance to handle an inversion\n", "pip_stress's result"),
            ("Wakeup Latencies percentiles (usec) runtime 10 (s) (30 total samples)\n", "schbench's"),
            (
                "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n         95th percentile:   0.01\n",
                "sysbench's",
            ),
            (
                "[rt-app] <notice> Calibrate ns per loop\n[rt-app] <notice> pLoad = 133ns : calib_cpu 0\n",
                "rt-app's messages",
            ),
            ("{\"cmdline:\": \"newtest -q\", \"rt_test_version:\": \"2.11\"}", "another program of rt-tests"),
        ] {
            let error = refusal(text);
            assert!(error.starts_with(&format!("this is {tool}")) || error.contains(tool), "{error}");
            assert!(error.len() > tool.len() + 20, "what serves instead: {error}");
        }
    }

    #[test]
    fn a_format_by_name_does_not_read_another_tools_rows() {
        let text = "#idx perf run period start end rel_st slack c_duration c_period wu_lat\n\
                    0 9999 10011 100062 1000000 1010011 0 89989 10000 100000 12\n";
        let options =
            ImportOptions { format: Some("cyclictest-text".to_owned()), ..ImportOptions::default() };
        let error = |text: &str| import(text.as_bytes(), &options).expect_err(text).0;
        assert!(error(text).starts_with("this is rt-app's log: "), "{}", error(text));
        // Another heading elsewhere in the text does not hide this one.
        let twice = format!("{}\n{text}", text.split('\n').next().unwrap());
        assert!(error(&twice).starts_with("this is rt-app's log: "), "{}", error(&twice));
        let row = text.split_inclusive('\n').nth(1).unwrap();
        assert!(error(row).contains("expected all rows, found one"), "{}", error(row));
    }

    #[test]
    fn a_load_beside_a_measurement_does_not_hide_it() {
        let text = crate::foreign::testing::fixture("smp-H60.txt");
        let at = text.find("# Total").unwrap();
        let load =
            "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)\nTime: 0.1\n";
        let log = format!("{load}{}{load}{}", &text[..at], &text[at..]);
        assert_eq!(crate::foreign::testing::import_one(&log).samples(), Some(3000));
        let options =
            ImportOptions { format: Some("cyclictest-text".to_owned()), ..ImportOptions::default() };
        assert_eq!(import(log.as_bytes(), &options).unwrap()[0].run.samples(), Some(3000));
    }

    #[test]
    fn every_refusal_has_a_remedy() {
        for format in ALL {
            let Reader::Refused(instead) = format.reader else { panic!("{}", format.id) };
            assert!(instead.contains(':') && !instead.contains('\n'), "{}: {instead}", format.id);
            assert!(!instead.contains("  "), "{}: {instead}", format.id);
        }
    }
}
