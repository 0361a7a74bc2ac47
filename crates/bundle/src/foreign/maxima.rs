//! A list of block maxima: one latency per line, the oldest first, as any script can write it.
//!
//! Numbers are integers in ns; a heading or comment that states a unit, like `max_us`, makes them
//! numbers in that unit. Other headings and comments (`#`) are ignored, a blank line between values
//! is a block without one. A line that is not an integer is refused with its number: a guessed
//! value would be the largest of all.

use model::column::Column;
use model::text::several;
use model::units::Nanos;

use super::unit;

/// Maximum length of a list: four months of seconds.
const MOST: usize = 10 << 20;

/// Maximum length of a line.
pub const LINE_LIMIT: usize = 4 << 10;

/// Value of a block without a latency; no latency of a list is negative.
const NONE: i64 = -1;

/// A list being read.
#[derive(Debug, Default)]
pub struct Maxima {
    /// Values in ns; a block without one is [`NONE`].
    values: Column,
    lines: u64,
    blank: usize,
    gaps: u64,
    comments: u64,
    heading: Option<String>,
    /// Unit that a heading or a comment before the values states.
    unit: Option<Nanos>,
}

impl Maxima {
    /// Reads the next line, without its end; the error states what was expected.
    pub fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.lines += 1;
        let refused = |what: &str| Err(format!("line {}: {what}", self.lines));
        let Ok(text) = std::str::from_utf8(bytes) else {
            return refused("not text: one integer in ns a line");
        };
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.starts_with('#') {
            if self.values.is_empty() {
                self.unit = self.unit.or_else(|| unit::stated(text));
            }
            self.comments += 1;
            return Ok(());
        }
        if text.is_empty() {
            self.blank += usize::from(!self.values.is_empty());
            return Ok(());
        }
        let excerpt: String =
            text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(40).collect();
        match number(text, self.unit) {
            Ok(value) if value.0 < 0 => {
                refused(&format!("{excerpt} is negative: the largest latency of a block is at least 0 ns"))
            }
            Ok(_) if self.values.len() + self.blank >= MOST => {
                refused(&format!("more than {MOST} blocks: give fewer, longer ones with --block"))
            }
            Ok(value) => {
                self.gaps += self.blank as u64;
                (0..self.blank).for_each(|_| self.values.push(NONE));
                self.blank = 0;
                self.values.push(value.0);
                Ok(())
            }
            Err(what) => {
                let first = self.values.is_empty() && self.heading.is_none();
                if first
                    && text.starts_with(|c: char| c.is_alphabetic() || c == '"')
                    && !text.starts_with('{')
                {
                    return match heading_unit(text) {
                        Ok(unit) => {
                            self.unit = unit.or(self.unit);
                            self.heading = Some(excerpt);
                            Ok(())
                        }
                        Err(what) => refused(&format!("invalid heading '{excerpt}': {what}")),
                    };
                }
                refused(&format!("'{excerpt}' {what}"))
            }
        }
    }

    /// Returns the values, see [`values`], and remarks on ignored lines.
    pub fn finish(self) -> Result<(Column, Vec<String>), String> {
        if self.values.is_empty() {
            return Err("no values: expected one integer in ns a line".into());
        }
        let mut remarks = Vec::new();
        if let Some(heading) = self.heading {
            let unit = match self.unit {
                None => String::new(),
                Some(unit) => format!(", values are in steps of {}", unit.spoken()),
            };
            remarks.push(format!("the first line, '{heading}', was taken for a heading{unit}"));
        }
        if self.unit.is_none() && self.values.iter().all(|ns| ns < 1_000) {
            remarks.push(
                "all values are below 1,000 ns, too short for wake-ups: if they are in us, add a heading \
                 like max_us"
                    .into(),
            );
        }
        if self.gaps > 0 {
            remarks.push(format!(
                "{} between values: {} without a value",
                several(self.gaps, "blank line", "blank lines"),
                if self.gaps == 1 { "a block" } else { "blocks" }
            ));
        }
        if self.comments > 0 {
            remarks.push(format!("{} with # skipped", several(self.comments, "line", "lines")));
        }
        Ok((self.values, remarks))
    }
}

/// Values of a list; `None` for a block without one.
pub fn values(list: &Column) -> impl Iterator<Item = Option<Nanos>> + '_ {
    list.iter().map(|value| (value != NONE).then_some(Nanos(value)))
}

/// Unit that a heading states; an error for one of another quantity than a latency.
fn heading_unit(text: &str) -> Result<Option<Nanos>, &'static str> {
    const REMEDY: &str =
        "expected a latency, as max_us or max_ns: name the column so, or remove the line if values are in ns";
    let unit = unit::stated(text);
    let words: Vec<String> = unit::subjects(text).iter().map(|word| word.to_lowercase()).collect();
    let is_other = |word: &String| {
        let step = word.strip_prefix('x').is_some_and(|step| step.parse::<u32>().is_ok());
        step || NOT_LATENCIES.contains(&word.as_str())
    };
    let has_stem = |stems: &[&str]| words.iter().any(|word| stems.iter().any(|stem| word.contains(stem)));
    let is_maximum = has_stem(MAXIMA);
    let is_latency = is_maximum || has_stem(LATENCIES) || words.iter().any(|word| word == "lat");
    let is_smaller = |word: &String| {
        let percent = word.strip_prefix('p').is_some_and(|percent| percent.parse::<u32>().is_ok());
        percent || SMALLER.contains(&word.as_str())
    };
    let is_time = words.iter().any(|word| TIMES.contains(&word.as_str()));
    let is_named = unit.is_some() || is_latency && !unit::is_length(text);
    let is_refused = unit::is_ambiguous(text)
        || unit::has_unknown_multiple(text)
        || words.iter().any(is_other)
        || !is_maximum && words.iter().any(is_smaller)
        || !is_latency && is_time;
    if is_refused || !is_named {
        return Err(REMEDY);
    }
    Ok(unit)
}

/// Stems of words for a maximum.
const MAXIMA: &[&str] = &["max", "largest", "highest", "worst", "peak"];

/// Stems of other words of a heading without a unit.
const LATENCIES: &[&str] = &["latenc", "wake", "jitter", "delay", "value", "response"];

/// Words for another statistic than a maximum, which is no bound of a block.
const SMALLER: &[&str] =
    &["min", "minimum", "least", "smallest", "mean", "avg", "average", "median", "stddev", "sigma", "var"];

/// Words for a point in time, unless a latency is named, too.
const TIMES: &[&str] = &["time", "timestamp", "timestamps", "date", "uptime", "clock", "start", "end"];

/// Words of other quantities and steps.
const NOT_LATENCIES: &[&str] = &["cycles", "cycle", "ticks", "tick", "jiffies", "count", "counts", "samples"];

/// Parses a value in this unit into ns; without a unit it is an integer in ns.
fn number(text: &str, unit: Option<Nanos>) -> Result<Nanos, &'static str> {
    let Some(unit) = unit.filter(|unit| unit.0 > 1) else { return integer(text) };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let step = 10i64.checked_pow(decimals.len() as u32).filter(|step| unit.0 % step == 0);
    if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is not a number: expected one latency a line");
    }
    let step = step.ok_or("has more decimals than a nanosecond has")?;
    let part: i64 = if decimals.is_empty() { 0 } else { decimals.parse().unwrap_or(0) };
    let part = if whole.starts_with('-') { -part } else { part } * (unit.0 / step);
    let ns = integer(whole)?.0.checked_mul(unit.0).and_then(|ns| ns.checked_add(part));
    ns.map(Nanos).ok_or("is beyond 292 years, the largest span in ns")
}

fn integer(text: &str) -> Result<Nanos, &'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Nanos).map_err(|_| "is beyond 292 years, the largest span in ns");
    }
    if text.contains([',', ';', '\t', ' ']) {
        return Err("has several columns: keep only the column of maxima, in ns");
    }
    if text.parse::<f64>().is_ok() {
        return Err("is not a whole number: latencies are integers in ns");
    }
    Err("is not an integer: expected one latency in ns a line")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Result<(Column, Vec<String>), String>;

    fn read(text: &[u8]) -> Read {
        let mut maxima = Maxima::default();
        text.split(|&byte| byte == b'\n').try_for_each(|line| maxima.line(line))?;
        maxima.finish()
    }

    fn values(text: &str) -> Vec<i64> {
        let (list, _) = read(text.as_bytes()).expect(text);
        super::values(&list).map(|value| value.map_or(-1, |ns| ns.0)).collect()
    }

    #[test]
    fn integers_come_through() {
        assert_eq!(values("1\n2\r\n +3 \n9223372036854775807\n"), [1, 2, 3, i64::MAX]);
        assert_eq!(values("\u{feff}max_ns\n5\n6"), [5, 6]);
        assert_eq!(values("# made by hand\n5\n\n\n6\n\n"), [5, -1, -1, 6]);
    }

    #[test]
    fn omissions_are_reported() {
        let (_, remarks) = read(b"max\n# x\n1\n\n2\n\n").expect("a list");
        let text = remarks.join("; ");
        assert!(
            text.contains("'max'") && text.contains("1 blank") && text.contains("1 line with #"),
            "{text}"
        );
        assert_eq!(read(b"1000\n2\n").expect("a list").1.len(), 0);
    }

    #[test]
    fn a_unit_of_the_heading_or_a_comment_counts() {
        assert_eq!(values("max_us\n12\n151.25\n"), [12_000, 151_250]);
        assert_eq!(values("# latency (ms)\n1.5\n"), [1_500_000]);
        assert_eq!(values("max [ns]\n12\n"), [12]);
        assert_eq!(values("Max latency (us), 10000 samples per block\n12\n"), [12_000]);
        assert_eq!(values("maxLatency\n1200\n"), [1_200]);
        assert!(read(b"max_us\n0.0001\n").expect_err("decimals").contains("decimals"));
        let remarks = |text: &str| read(text.as_bytes()).expect(text).1.join("; ");
        assert!(remarks("12\n151\n").contains("below 1,000 ns"));
        assert!(!remarks("max_us\n12\n").contains("below 1,000 ns"));
    }

    #[test]
    fn what_is_no_integer_is_refused_with_its_line() {
        for (text, word) in [
            ("1\n-5\n", "line 2: -5 is negative"),
            ("12.5\n", "not a whole number"),
            ("1e3\n", "not a whole number"),
            ("1\nmax\n", "line 2: 'max' is not an integer"),
            ("max\nb\n", "line 2: 'b'"),
            ("max_cycles\n21000\n", "line 1: invalid heading 'max_cycles'"),
            ("max_ticks_ns_x10\n210\n", "invalid heading"),
            ("bonus\n21\n", "invalid heading 'bonus'"),
            ("status\n21\n", "name the column so"),
            ("max us, ns\n21\n", "invalid heading"),
            ("max [1e-6 s]\n21\n", "1e-6"),
            ("1,2\n", "several columns"),
            ("99999999999999999999\n", "beyond 292 years"),
            ("{\"schema\": 1}\n", "'{\"schema\": 1}'"),
            ("1\n\u{1F600}\n", "line 2"),
            ("\n\n", "no values"),
            ("", "no values"),
        ] {
            let refusal = read(text.as_bytes()).expect_err(text);
            assert!(refusal.contains(word), "{text:?}: {refusal}");
        }
        assert!(read(b"1\n\xff\xfe\n").expect_err("bytes").contains("line 2: not text"));
    }
}
