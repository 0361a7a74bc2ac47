//! A list of block maxima: one integer in ns a line, the oldest first, as any script can write it.
//!
//! A heading and comments (`#`) are left out, a blank line between values is a block without one.
//! What is no integer is refused with its line: a value that is guessed at would be the largest of
//! all.

use model::column::Column;
use model::text::several;
use model::units::Nanos;

/// No list is longer: four months of seconds.
const MOST: usize = 10 << 20;

/// The longest line that is read.
pub const LINE_LIMIT: usize = 4 << 10;

/// No latency of a list is negative.
const NONE: i64 = -1;

/// A list being read.
#[derive(Debug, Default)]
pub struct Maxima {
    /// In ns; a block without one is [`NONE`].
    values: Column,
    lines: u64,
    blank: usize,
    gaps: u64,
    comments: u64,
    heading: Option<String>,
}

impl Maxima {
    /// Takes the next line, without its end; the error states what was expected.
    pub fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.lines += 1;
        let refused = |what: &str| Err(format!("line {}: {what}", self.lines));
        let Ok(text) = std::str::from_utf8(bytes) else {
            return refused("not text: one integer in ns a line");
        };
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.starts_with('#') {
            self.comments += 1;
            return Ok(());
        }
        if text.is_empty() {
            self.blank += usize::from(!self.values.is_empty());
            return Ok(());
        }
        let shown: String =
            text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(40).collect();
        match integer(text) {
            Ok(value) if value.0 < 0 => {
                refused(&format!("{shown} is negative: the largest latency of a block is at least 0 ns"))
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
                    self.heading = Some(shown);
                    return Ok(());
                }
                refused(&format!("'{shown}' {what}"))
            }
        }
    }

    /// The values, see [`values`], and remarks on what was left out.
    pub fn finish(self) -> Result<(Column, Vec<String>), String> {
        if self.values.is_empty() {
            return Err("no values: expected one integer in ns a line".into());
        }
        let mut remarks = Vec::new();
        if let Some(heading) = self.heading {
            remarks.push(format!("the first line, '{heading}', was taken for a heading"));
        }
        if self.gaps > 0 {
            remarks.push(format!(
                "{} between values: {} without a value",
                several(self.gaps, "blank line", "blank lines"),
                if self.gaps == 1 { "a block" } else { "blocks" }
            ));
        }
        if self.comments > 0 {
            remarks.push(format!("{} with # left out", several(self.comments, "line", "lines")));
        }
        Ok((self.values, remarks))
    }
}

/// The values of a list, a block without one being none.
pub fn values(list: &Column) -> impl Iterator<Item = Option<Nanos>> + '_ {
    list.iter().map(|value| (value != NONE).then_some(Nanos(value)))
}

fn integer(text: &str) -> Result<Nanos, &'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Nanos).map_err(|_| "is beyond 292 years, the largest span in ns");
    }
    if text.contains([',', ';', '\t', ' ']) {
        return Err("has several columns: keep the one with the maxima, in ns");
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
        let said = remarks.join("; ");
        assert!(
            said.contains("'max'") && said.contains("1 blank") && said.contains("1 line with #"),
            "{said}"
        );
        assert_eq!(read(b"1\n2\n").expect("a list").1.len(), 0);
    }

    #[test]
    fn what_is_no_integer_is_refused_with_its_line() {
        for (text, word) in [
            ("1\n-5\n", "line 2: -5 is negative"),
            ("12.5\n", "not a whole number"),
            ("1e3\n", "not a whole number"),
            ("1\nmax\n", "line 2: 'max' is not an integer"),
            ("a\nb\n", "line 2: 'b'"),
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
