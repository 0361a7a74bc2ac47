//! Refusal of a text without a format: the result that it is a part of, its heading, and the
//! candidates.

use super::error::ImportError;
use super::format::{Confidence, Reader};
use super::recognised::Recognised;
use super::refused::unexpanded;
use super::source::{DocumentShape, SourceText};
use super::{FORMATS, quoted};

/// Maximum number of lines that are searched for a heading.
const SEARCHED: usize = 10_000;

/// Words of a line, the kind of a text with it, and the alternative.
type Part = (&'static [&'static str], &'static str, &'static str);

/// Remains of known results, and messages in place of one; the first that matches counts.
const PARTS: &[Part] = &[
    (
        &["T:", "Spike:"],
        "cyclictest's spikes",
        "these are only samples over its --spike: give its whole output, with the T: lines",
    ),
    (
        &["Max-Min:", "(us)"],
        "the last lines of oslat",
        "give its whole output, with the rows of each latency, or its --json",
    ),
    (
        &["-> #", "Min", "Cur", "Avg", "Max"],
        "a part of the output of pmqtest, ptsematest, svsematest or sigwaittest",
        "give its whole output, with the lines of the threads before the arrows, or its --json",
    ),
    (
        &["File \"", "hwlatdetect", "\", line "],
        "a traceback of hwlatdetect",
        "it failed before measuring, see its last line: measure with onbeat probe hw",
    ),
    (
        &["Traceback (most recent call last):"],
        "a traceback of a Python program",
        "it failed, see its last line: run it again, and give its output",
    ),
    (
        &["# /dev/cpu_dma_latency set to 0us"],
        "the first line of cyclictest or another tool of rt-tests",
        "give its whole output, or the file of its --histfile",
    ),
    (
        &["Performance counter stats for"],
        "perf stat's counts",
        "it counts events and times no wake-up: measure with onbeat measure",
    ),
    (&["cyclictest <options>"], "cyclictest's help", "give the output of a measurement"),
    (&["oslat <options>"], "oslat's help", "give the output of a measurement"),
    (&["<LAVA_SIGNAL_"], "signals of a LAVA job", "give the job's log, which has the tool's own lines"),
];

/// Known result of which the text is a part.
fn part_of(source: &SourceText) -> Option<ImportError> {
    let is_part = |text: &str| PARTS.iter().find(|part| part.0.iter().all(|word| text.contains(word)));
    let lines = || source.lines().take(SEARCHED);
    let found = lines().find_map(|line| is_part(line.text));
    // Python's frames follow its first line.
    let found = found.map(|first| lines().filter_map(|line| is_part(line.text)).fold(first, earlier));
    if let Some((_, what, instead)) = found {
        return Some(ImportError(format!("this is {what}: {instead}")));
    }
    lines().any(|line| is_event(line.text)).then(|| {
        ImportError::new(
            "this is the text of a trace (perf script, trace-cmd report), with events but no result: give \
             the recording, perf.data or trace.dat, to onbeat explain",
        )
    })
}

/// The one that comes before the other in the list.
fn earlier(one: &'static Part, other: &'static Part) -> &'static Part {
    let place = |part: &Part| PARTS.iter().position(|listed| listed.1 == part.1);
    if place(other) < place(one) { other } else { one }
}

/// True for a line `COMM PID [CPU] SECONDS: EVENT:`.
pub(crate) fn is_event(text: &str) -> bool {
    let is_cpu = |word: &str| {
        let number = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|digits| digits.len() >= 3 && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_time = |word: &str| {
        let number = word.strip_suffix(':').filter(|number| number.contains('.'));
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let mut words = text.split_whitespace().skip(1);
    words.find(|word| is_cpu(word)).is_some() && words.next().is_some_and(is_time) && words.next().is_some()
}

/// Reason why nothing is read, with the candidates that `--as` would try.
pub(super) fn refusal(source: &SourceText, weak: &[Recognised]) -> ImportError {
    if let Some(known) = part_of(source).or_else(|| unexpanded(source.lines().take(SEARCHED))) {
        return known;
    }
    let heading = heading(source);
    let named = heading.map(|(line, text)| format!("line {line}: unknown heading {}", quoted(text)));
    let mut ids: Vec<&str> = weak
        .iter()
        .filter(|one| one.finding.confidence == Confidence::Weak)
        .map(|one| one.format.id)
        .collect();
    ids.dedup();
    let remedy = match ids.as_slice() {
        [] => {
            let readable = FORMATS.iter().filter(|format| matches!(format.reader, Reader::Run(_)));
            let mut tools: Vec<&str> =
                readable.filter_map(|format| format.tool.split("'s ").next()).collect();
            tools.sort_unstable();
            tools.dedup();
            format!("expected the whole output of {}", tools.join(", "))
        }
        ids => {
            let tried: Vec<String> = ids.iter().map(|id| format!("--as {id}")).collect();
            format!(
                "rows alone do not identify their format: give the whole output, or {}",
                tried.join(" or ")
            )
        }
    };
    let what = match source.shape {
        DocumentShape::Json if named.is_none() => "unknown JSON".to_owned(),
        DocumentShape::Xml if named.is_none() => "unknown XML".to_owned(),
        _ => named.unwrap_or_else(|| "no result of a known tool".to_owned()),
    };
    ImportError(format!("{what}: {remedy}"))
}

/// Last line with a letter before the first row of numbers.
fn heading(source: &SourceText) -> Option<(usize, &str)> {
    if source.shape != DocumentShape::Text {
        return None;
    }
    let mut last = None;
    for line in source.lines().take(SEARCHED) {
        let text = line.text.trim();
        let numbers = text.split([' ', '\t', ',', ';', '|']).filter(|word| !word.is_empty());
        if !text.is_empty() && numbers.clone().all(|word| word.parse::<f64>().is_ok()) {
            return last;
        }
        if text.chars().any(char::is_alphabetic) {
            last = Some((line.number, text));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::foreign::{ImportOptions, import};

    #[test]
    fn parts_of_results_are_refused_by_name() {
        let traceback = "Traceback (most recent call last):\n  File \"/usr/bin/hwlatdetect\", line 515, in \
                         <module>\nFileNotFoundError: [Errno 2] No such file or directory\n";
        let perf = "swapper     0 [001]  1234.567890: sched:sched_wakeup: comm=a pid=12 prio=19\n\
                    a    12 [001]  1234.567899: sched:sched_switch: prev_comm=swapper/1 prev_pid=0\n";
        let stack = "a  12 [001]  1234.567899:     250000 cycles:ppp: \n\tffffffff81a0 halt ([kernel])\n";
        for (text, what) in [
            ("T: 0 Spike:      210: TS:     1234567890\n", "this is cyclictest's spikes"),
            (
                "      Maximum:\t 12 15 (us)\n      Max-Min:\t 11 14 (us)\n     Duration:\t 9 9 (sec)\n",
                "this is the last lines of oslat: give its whole output",
            ),
            ("#1 -> #0, Min    1, Cur    3, Avg    2, Max   20\n", "this is a part of the output of pmqtest"),
            (traceback, "this is a traceback of hwlatdetect: it failed"),
            (perf, "this is the text of a trace (perf script, "),
            (stack, "this is the text of a trace (perf script, "),
            ("# /dev/cpu_dma_latency set to 0us\n", "this is the first line of cyclictest"),
            (
                " Performance counter stats for 'sleep 1':\n\n 1 context-switches\n",
                "this is perf stat's counts",
            ),
            ("cyclictest V 2.40\nUsage:\ncyclictest <options>\n", "this is cyclictest's help"),
            (
                "oslat: Trace threshold (5 us) triggered on cpu 1 with 17 us!\nStopping the test.\noslat V 2.40\n",
                "this is oslat's output without its table: it ended at its threshold (-T)",
            ),
            ("<LAVA_SIGNAL_STARTRUN cyclictest 1234_1.1>\n", "this is signals of a LAVA job: give"),
            (
                "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=a RESULT=pass UNITS=us MEASUREMENT=25>\n",
                "this is the results of a LAVA job: ",
            ),
            (
                "T: 0 ( 12) P:80 I:${interval} C:  10000 Min:      2 Act:    3 Avg:    3 Max:      21\n",
                "line 1: found a shell variable, '${interval}', instead of a value: ",
            ),
            ("{\"cycles\": ${cycles}}\n", "line 1: found a shell variable, '${cycles}', instead"),
        ] {
            let error = import(text.as_bytes(), &ImportOptions::default()).expect_err(text).0;
            assert!(error.starts_with(what) && !error.contains('\n'), "{error}");
        }
    }
}
