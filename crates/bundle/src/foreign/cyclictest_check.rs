//! Checks facts that cyclictest's text states twice, and detects a cut text.

use super::cyclictest_find::within_prompt;
use super::cyclictest_gather::{Gathered, Numbers};
use super::cyclictest_line::{self as line, Line, Summary};
use super::error::ImportError;
use super::quoted;
use super::source::TextLine;

impl Gathered {
    /// Refuses rows without the tool's footer, or under a heading of another tool, unless the
    /// format is named.
    pub(super) fn check_frame(
        &self,
        end: usize,
        unknown: Option<usize>,
        is_asked: bool,
    ) -> Result<(), ImportError> {
        if is_asked || self.last_bucket.is_none() {
            return Ok(());
        }
        match (self.max.is_some() || self.is_counted(), unknown) {
            (false, _) => Err(ImportError(format!(
                "line {end}: the histogram ends without '# Max Latencies:': give the whole output, or \
                 --as cyclictest-text for its rows alone"
            ))),
            (true, Some(line)) if self.min.is_none() && self.summaries.is_empty() => {
                Err(ImportError(format!(
                    "line {line}: unknown heading: expected cyclictest's own; remove it, or give \
                 --as cyclictest-text"
                )))
            }
            _ => self.check_overflows(end),
        }
    }

    /// True if a display's lines confirm the rows, all of them or none.
    fn is_counted(&self) -> bool {
        let vouches = |(thread, summary): (&usize, &Summary)| {
            let rows =
                self.columns.get(*thread).map_or(0, |rows| rows.iter().map(|row| u128::from(row.1)).sum());
            rows == u128::from(summary.cycles)
        };
        !self.summaries.is_empty() && self.summaries.iter().all(vouches)
    }

    /// True for rows without a footer or a display's line that states that they hold all samples.
    pub(super) fn is_open_ended(&self) -> bool {
        self.last_bucket.is_some()
            && self.overflows.is_none()
            && !self.is_counted()
            && (self.max.is_none() || self.check_overflows(0).is_err())
    }

    /// Refuses a maximum beyond all rows without an overflowed sample.
    fn check_overflows(&self, end: usize) -> Result<(), ImportError> {
        let largest = self.max.as_ref().and_then(|(_, list)| list.iter().max().copied());
        let last = self.columns.iter().flatten().map(|bucket| i128::from(bucket.0)).max();
        let is_beyond = largest.zip(last).is_some_and(|(largest, last)| largest > last);
        if is_beyond && self.overflows.is_none() {
            return Err(ImportError(format!(
                "line {end}: the footer ends before '# Histogram Overflows:' and the maximum is beyond \
                 the rows: give the whole output"
            )));
        }
        Ok(())
    }

    /// Contradiction between a number over all threads, which `-H` adds, and the numbers of the
    /// threads.
    pub(super) fn overall_fault(&self, threads: usize) -> Option<String> {
        let sum = |list: &[i128]| list.iter().sum::<i128>();
        let largest = |list: &[i128]| list.iter().max().copied().unwrap_or(0);
        type Overall<'a> = (&'a str, &'a Numbers, fn(&[i128]) -> i128);
        let overall: [Overall; 3] = [
            ("# Total:", &self.total, sum),
            ("# Max Latencies:", &self.max, largest),
            ("# Histogram Overflows:", &self.overflows, sum),
        ];
        for (name, numbers, of) in overall {
            let Some((line, list)) = numbers else { continue };
            if let Some((&stated, own)) = list.split_last().filter(|(_, own)| own.len() == threads)
                && of(own) != stated
            {
                return Some(format!(
                    "line {line}: {name} ends with {stated} over all threads, which have {}: give the output \
                     as it was",
                    of(own)
                ));
            }
        }
        None
    }
}

/// Refuses a last line without its end whose last number has fewer digits than the tool prints.
///
/// cyclictest pads its numbers, so that a cut one mostly differs from a whole one.
pub(super) fn refuse_cut(line: &TextLine) -> Result<(), ImportError> {
    let text = within_prompt(line.text);
    let word = text.split_ascii_whitespace().next_back().unwrap_or_default();
    let least = match line::parse(text) {
        Ok(Line::Row(..)) => 6,
        Ok(Line::Total(_)) => 9,
        Ok(Line::Min(_) | Line::Avg(_) | Line::Max(_) | Line::Overflows(_)) => 5,
        // Without squeezed blanks the largest latency has eight columns.
        Ok(Line::Summary(..)) if text.contains("Min:  ") => {
            let largest = text.split_once("Max:").map_or("", |(_, largest)| largest);
            if largest.len() < 8 { usize::MAX } else { 0 }
        }
        _ => 0,
    };
    if word.len() >= least { Ok(()) } else { Err(cut_number(line)) }
}

/// Refuses a last line without its end if fewer columns than these follow its last label.
pub(super) fn refuse_cut_after(line: &TextLine, label: &str, columns: usize) -> Result<(), ImportError> {
    let last = line.text.rsplit_once(label).map_or("", |(_, last)| last);
    if last.len() >= columns { Ok(()) } else { Err(cut_number(line)) }
}

fn cut_number(line: &TextLine) -> ImportError {
    let word = line.text.split_ascii_whitespace().next_back().unwrap_or_default();
    let (number, word) = (line.number, quoted(word));
    ImportError(format!("line {number}: the text ends within the number {word}: give the whole output"))
}

#[cfg(test)]
mod tests {
    use crate::foreign::testing::fixture;
    use crate::foreign::{ImportOptions, import};
    use model::units::Nanos;
    use model::vocabulary::Policy;

    fn refusal(text: &str) -> String {
        import(text.as_bytes(), &ImportOptions::default())
            .map(|_| "read".to_owned())
            .unwrap_or_else(|error| error.0)
    }

    #[test]
    fn lines_that_contradict_themselves_are_refused() {
        let line = |cycles, min, act, max: &str| {
            format!("T: 0 ( 7) P:80 I:1000 C: {cycles} Min: {min} Act: {act} Avg: {min} Max: {max}\n")
        };
        assert_eq!(refusal(&line(500, 2, 9, "18")), "read");
        for (text, what) in [
            (line(500, 2, 9, "4,234"), "expected T: thread (id)"),
            (line(500, 2, 9, "21ms"), "expected T: thread (id)"),
            (line(500, 2, 9, "18").trim_end().to_owned() + " " + &line(500, 2, 9, "920"), "expected T:"),
            (line(500, 2, 920, "18"), "Act: 920 is above Max: 18"),
            (line(0, 2, 9, "18"), "C: is 0 and Max: is 18"),
        ] {
            assert!(refusal(&text).contains(what), "{text}: {}", refusal(&text));
        }
    }

    #[test]
    fn a_priority_that_is_printed_stands_before_the_command_line() {
        let line = "T: 0 ( 7) P:80 I:1000 C: 500 Min: 2 Act: 9 Avg: 9 Max: 21\n";
        let text = format!("$ cyclictest -i 1000 # -a 4\n{line}");
        let run = &import(text.as_bytes(), &ImportOptions::default()).unwrap()[0].run;
        assert_eq!((&run.plan.policy, run.plan.priority), (&Policy::Fifo.into(), Some(80)));
        assert_eq!(run.cpus[0].cpu, None, "-a is in a comment");
    }

    #[test]
    fn totals_that_fall_begin_another_run() {
        let line =
            |cycles, max| format!("T: 0 ( 7) P:80 I:1000 C: {cycles} Min: 2 Act: 9 Avg: 9 Max: {max}\n");
        let runs = |text: &str| import(text.as_bytes(), &ImportOptions::default()).unwrap().len();
        assert_eq!(runs(&(line(100, 20) + &line(200, 920))), 1);
        assert_eq!(runs(&(line(100, 920) + &line(200, 20))), 2, "one container's output behind another's");
    }

    #[test]
    fn rows_alone_claim_nothing_beyond_them() {
        let options = ImportOptions { format: Some("cyclictest-text".into()), ..ImportOptions::default() };
        let is_open = |text: &str| {
            let run = &import(text.as_bytes(), &options).unwrap()[0].run;
            run.integrity.iter().any(|entry| entry.invalidates && entry.detail.contains("beyond them"))
        };
        let rows = "000016 000001\n000017 000001\n000018 000001\n";
        assert!(is_open(rows));
        assert!(!is_open(&format!("{rows}# Max Latencies: 00018\n")));
        assert!(!is_open(&format!("{rows}# Max Latencies: 00830\n# Histogram Overflows: 00005\n")));
        let display =
            "T: 0 (10343) P:80 I:1000 C:    3 Min:     16 Act:   18 Avg:   17 Max:      18\n# Histogram\n";
        assert!(!is_open(&format!("{display}{rows}")));
    }

    #[test]
    fn a_footer_that_the_rows_contradict_is_refused() {
        let rows = "000016 000001\n000017 000001\n000039 000001\n# Total: 000000003\n";
        let footer = |min, avg, max, beyond| {
            format!(
                "# Histogram\n{rows}# Min Latencies: {min}\n# Avg Latencies: {avg}\n# Max Latencies: {max}\n\
                 # Histogram Overflows: {beyond}\n"
            )
        };
        assert_eq!(refusal(&footer("00016", "00024", "00039", "00000")), "read");
        for text in [
            footer("00016", "00024", "00008", "00005"),
            footer("00016", "00090", "00039", "00000"),
            footer("00003", "00024", "00039", "00000"),
        ] {
            assert!(
                refusal(&text).contains("give the output as it was") || refusal(&text).contains("maximum"),
                "{text}"
            );
        }
        let spike = "T: 0 Spike:     140: TS:   1765746770\n";
        let error = refusal(&(spike.to_owned() + &footer("00016", "00024", "00039", "00000")));
        assert!(error.contains("a spike of 140 is above the maximum, 39"), "{error}");
    }

    #[test]
    fn a_comment_above_the_lines_states_their_unit() {
        let line = "T: 0 ( 7) P:80 I:1000 C: 500 Min: 2000 Act: 9000 Avg: 9000 Max: 21000\n";
        let max =
            |text: &str| import(text.as_bytes(), &ImportOptions::default()).unwrap()[0].run.cpus[0].max_ns;
        assert_eq!(max(&format!("# Time unit is nanoseconds (ns)\n{line}")), Some(Nanos(21_000)));
        for above in [
            "# latency test of 60 seconds",
            "# cyclictest -m -S -p 80 -i 1000 -q",
            "# sysctl -w kernel.sched_min_granularity_ns=10000000\n# cyclictest -p 80 -q",
            "# Duration in seconds: 3600",
        ] {
            assert_eq!(max(&format!("{above}\n{line}")), Some(Nanos(21_000_000)), "{above}");
        }
    }

    #[test]
    fn numbers_over_all_threads_are_compared() {
        let text = fixture("smp-H60.txt");
        for name in ["# Total:", "# Max Latencies:", "# Histogram Overflows:"] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            let wrong = format!("{}9", &line[..line.len() - 1]);
            assert_ne!(line, wrong);
            let error = refusal(&text.replace(line, &wrong));
            assert!(error.contains(name) && error.contains("over all threads"), "{error}");
        }
    }

    #[test]
    fn a_maximum_that_no_sample_reached_is_refused() {
        let text = fixture("smp-H60.txt");
        let line = text.lines().find(|line| line.starts_with("# Histogram Overflows:")).unwrap();
        let error = refusal(&text.replace(line, "# Histogram Overflows: 00000 00000 00000"));
        assert!(error.contains("is beyond the rows, and no sample overflowed"), "{error}");
        let json = fixture("smp-H60.json");
        let error = refusal(&json.replacen("\"cycles\": 1500", "\"cycles\": 1487", 1));
        assert!(error.contains("thread 0: the maximum, 1535, is beyond the rows"), "{error}");
    }

    #[test]
    fn rows_that_were_lost_are_seen() {
        let since = include_str!("../../../../tests/fixtures/foreign/cyclictest/2.10-hist.txt");
        let rows: Vec<&str> = since.lines().filter(|line| line.starts_with("0000")).collect();
        assert_eq!(refusal(since), "read");
        let without = |row: &str| since.replacen(&format!("{row}\n"), "", 1);
        let error = refusal(&without(rows[0]));
        assert!(error.contains("is below the rows"), "{error}");
        let fullest = rows.iter().max_by_key(|row| row.split(['\t', ' ']).nth(1)).unwrap();
        let error = refusal(&without(fullest));
        assert!(error.contains("was beyond the end, and the rows hold"), "{error}");
        let whole = "# Histogram\n000010 000001\n000020 000008\n000050 000001\n# Min Latencies: 00010\n\
                     # Avg Latencies: 00022\n# Max Latencies: 00050\n# Histogram Overflows: 00000\n";
        assert_eq!(refusal(whole), "read");
        let error = refusal(&whole.replace("000020 000008\n", ""));
        assert!(error.contains("the mean, 22, does not match the rows"), "{error}");
        let json = include_str!("../../../../tests/fixtures/foreign/cyclictest/2.10-hist.json");
        let first = json.lines().skip_while(|line| !line.contains("\"histogram\"")).nth(1).unwrap();
        let error = refusal(&json.replacen(&format!("{first}\n"), "", 1));
        assert!(error.contains("thread 0: "), "{error}");
    }

    #[test]
    fn a_histogram_without_its_footer_is_refused() {
        let display =
            "T: 0 (10343) P:80 I:1000 C:    3 Min:     16 Act:   18 Avg:   17 Max:      18\n# Histogram\n";
        let rows = "000016 000001\n000017 000001\n000018 000001\n";
        assert_eq!(refusal(&format!("{display}{rows}")), "read");
        let error = refusal(&format!("{display}{}", rows.split_at(14).0));
        assert!(error.contains("ends without '# Max Latencies:'"), "{error}");
        // A part of the footer confirms the rows like all of it.
        let text = fixture("smp-H60.txt").replace("# Avg Latencies: 00027 00037\n", "");
        assert_eq!(refusal(&text), "read");
        let error = refusal("# Min Latencies: 00014 00014\n384 461 1e5\n375 767 710\n");
        assert!(error.contains("no result of a known tool") || error.contains("unknown heading"), "{error}");
    }

    #[test]
    fn a_number_that_the_end_cuts_is_refused() {
        for (text, cut) in [
            ("T: 0 (10343) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:     717", 1),
            ("# Min Latencies: 00000 00000\n# Avg Latencies: 00000 00000\n# Max Latencies: 00008 00012", 2),
        ] {
            assert_eq!(refusal(text), "read");
            let error = refusal(&text[..text.len() - cut]);
            assert!(error.contains("the text ends within the number"), "{error}");
            assert_eq!(refusal(&format!("{}\n", &text[..text.len() - cut])), "read");
        }
    }
}
