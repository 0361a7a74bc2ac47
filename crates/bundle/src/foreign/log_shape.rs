//! Prefixes that count only if consecutive lines have them: levels, names of files, seconds.
//!
//! A line of a tool may begin like one, so its neighbours decide: [`settle`] strips the common
//! prefixes of a stretch, and leaves a single line unchanged.

/// Levels of a program's log.
const LEVELS: [&str; 11] =
    ["INFO", "WARN", "WARNING", "ERROR", "ERR", "DEBUG", "NOTICE", "TRACE", "FATAL", "CRITICAL", "VERBOSE"];

/// Number of digits of the seconds since 1970, from 2001 to 2286.
const EPOCH_DIGITS: usize = 10;

/// Form of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefixForm {
    /// `job.log:`, `job.log:17:`, `job.log-17-` of grep.
    File,
    /// `17:`, `17-` of `grep -n`, and the number and tabulator of `cat -n`.
    Number,
    /// `1750000000.123 `.
    Epoch,
    /// `INFO `, `INFO: `, `INFO  name: `, `- name - INFO - `.
    Level,
}

/// A prefix of a line that may not be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenPrefix<'a> {
    pub form: PrefixForm,
    /// File, or the name that may follow the level.
    pub name: &'a str,
    /// Number of the line that the prefix states.
    pub number: u64,
    pub behind: &'a str,
    /// Text after the name that follows the level.
    pub named: Option<&'a str>,
}

impl<'a> OpenPrefix<'a> {
    /// Source that the prefix names; `""` without one.
    pub(super) fn name_of_source(&self) -> &'a str {
        if self.form == PrefixForm::File { self.name } else { "" }
    }

    fn continues(&self, before: &OpenPrefix) -> bool {
        self.form == before.form && self.name_of_source() == before.name_of_source()
    }
}

/// Prefix that the text may begin with; a number only at the begin of a line.
pub(super) fn open_prefix(text: &str, is_start: bool) -> Option<OpenPrefix<'_>> {
    let text = text.trim_start();
    epoch(text)
        .or_else(|| level(text))
        .or_else(|| if is_start { numbered(text) } else { None })
        .or_else(|| file(text))
}

fn plain(form: PrefixForm, behind: &str) -> OpenPrefix<'_> {
    OpenPrefix { form, name: "", number: 0, behind, named: None }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn epoch(text: &str) -> Option<OpenPrefix<'_>> {
    let rest = text.get(EPOCH_DIGITS..).filter(|_| digits(text) == EPOCH_DIGITS)?;
    let rest = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => fraction.get(digits(fraction)..)?,
        None => rest,
    };
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let behind = if rest.is_empty() { rest } else { rest.strip_prefix([' ', '\t'])? };
    Some(plain(PrefixForm::Epoch, behind))
}

fn numbered(text: &str) -> Option<OpenPrefix<'_>> {
    let end = Some(digits(text)).filter(|end| (1..8).contains(end))?;
    let behind = text[end..].strip_prefix([':', '-', '\t'])?;
    let number = text[..end].parse().ok()?;
    Some(OpenPrefix { number, ..plain(PrefixForm::Number, behind) })
}

/// Parses a name with a point or a path, up to a colon; any name if a line's number follows.
fn file(text: &str) -> Option<OpenPrefix<'_>> {
    const LONGEST: usize = 200;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b':' || byte.is_ascii_whitespace())?;
    let name = &text[..end];
    let of = |name, behind| Some(OpenPrefix { name, ..plain(PrefixForm::File, behind) });
    let is_file = |name: &str| {
        name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_~".contains(c))
            && name.contains(|c: char| c.is_ascii_alphabetic())
            && !name.contains(|c: char| "#()<>[]{}\"'|=,;".contains(c))
    };
    if let Some(behind) = text[end..].strip_prefix(':').filter(|_| is_file(name)) {
        let count = digits(behind);
        if let Some(behind) = behind[count..].strip_prefix(':').filter(|_| (1..8).contains(&count)) {
            return of(name, behind);
        }
        return if name.contains(['.', '/']) { of(name, behind) } else { None };
    }
    // Context lines of a match: `job.log-17-`.
    let (at, _) = name.match_indices('-').find(|&(at, _)| {
        let count = digits(&name[at + 1..]);
        (1..8).contains(&count) && text[at + 1 + count..].starts_with('-')
    })?;
    let behind = &text[at + 1..];
    of(&name[..at], &behind[digits(behind) + 1..])
        .filter(|open| is_file(open.name) && open.name.contains(['.', '/']))
}

fn level(text: &str) -> Option<OpenPrefix<'_>> {
    let text = text.strip_prefix("- ").unwrap_or(text);
    let first = text.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(text.len());
    let (word, rest) = if LEVELS.contains(&&text[..first]) {
        (&text[..first], &text[first..])
    } else {
        // Order of Python: `name - INFO - `.
        let rest = text.split_once(" - ").filter(|(name, _)| !name.contains(' '))?.1;
        let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
        (&rest[..end], rest.get(end..).filter(|rest| rest.starts_with(" - ") || *rest == " -")?)
    };
    if !LEVELS.contains(&word) || !(rest.is_empty() || rest.starts_with([' ', '\t', ':', '|'])) {
        return None;
    }
    let end_of_name = |text: &str| {
        let is_name = |name: &str| {
            name != "T"
                && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
        };
        text.find(':').filter(|&at| is_name(&text[..at]))
    };
    // `INFO:root:text`.
    if let Some(glued) = rest.strip_prefix(':').filter(|rest| !rest.starts_with(' ') && !rest.is_empty()) {
        let named = end_of_name(glued).map(|at| (&glued[..at], &glued[at + 1..]));
        let (name, named) = named.map_or(("", None), |(name, behind)| (name, Some(behind)));
        return Some(OpenPrefix { name, named, ..plain(PrefixForm::Level, glued) });
    }
    let behind = rest.trim_start_matches([' ', '\t']);
    let behind = behind.strip_prefix([':', '-', '|']).filter(|rest| rest.starts_with(' ')).unwrap_or(behind);
    let behind = behind.strip_prefix(' ').unwrap_or(behind);
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let spaced = end_of_name(behind).filter(|&at| is_end(&behind[at + 1..]));
    let dashed = || {
        let (name, rest) = behind.split_once(' ')?;
        let rest = rest.strip_prefix(['-', '|']).filter(|rest| is_end(rest))?;
        name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some((name, rest.trim_start()))
    };
    let named = spaced.map(|at| (&behind[..at], behind[at + 1..].trim_start())).or_else(dashed);
    let (name, named) = named.map_or(("", None), |(name, rest)| (name, Some(rest)));
    Some(OpenPrefix { name, named, ..plain(PrefixForm::Level, behind) })
}

/// A line of a stream: its text after the certain prefixes, and the prefix that it may have.
pub(super) type OpenLine<'a> = (&'a str, Option<OpenPrefix<'a>>);

/// Gives each line of a stream its text, without the prefixes that it shares with its neighbours.
pub(super) fn settle<'a>(
    count: usize,
    line: impl Fn(usize) -> OpenLine<'a>,
    mut text_of: impl FnMut(usize, &'a str),
) {
    let mut start = 0;
    while start < count {
        let (text, Some(first)) = line(start) else {
            text_of(start, line(start).0);
            start += 1;
            continue;
        };
        let open = |index: &usize| line(*index).1;
        let continues = |index: &usize| open(index).is_some_and(|next| next.continues(&first));
        let end = (start + 1..count).find(|index| !continues(index)).unwrap_or(count);
        if !is_shared(|| (start..end).filter_map(|index| open(&index)), end - start, count) {
            text_of(start, text);
            (start + 1..end).for_each(|index| text_of(index, line(index).0));
        } else {
            let is_named = |one: OpenPrefix| one.named.is_some() && one.name == first.name;
            let has_name = (start..end).filter_map(|index| open(&index)).all(is_named);
            for index in start..end {
                let (text, open) = line(index);
                let stripped = open.map(|open| open.named.filter(|_| has_name).unwrap_or(open.behind));
                text_of(index, stripped.unwrap_or(text));
            }
        }
        start = end;
    }
}

/// True for a stretch of lines whose prefix is the log's.
fn is_shared<'a, I: Iterator<Item = OpenPrefix<'a>>>(
    opens: impl Fn() -> I,
    length: usize,
    all: usize,
) -> bool {
    let is_word = |c: char| c.is_alphabetic() || "#{[+$".contains(c);
    let has_word = || opens().any(|open| open.behind.starts_with(is_word));
    let many = length > 1 || length == all;
    many && match opens().next().map(|open| open.form) {
        // The first column of a table has numbers, too, but no words after them.
        Some(PrefixForm::Epoch) => has_word(),
        Some(PrefixForm::Number) => {
            let mut numbers = opens().map(|open| open.number);
            let mut last = numbers.next();
            has_word() && numbers.all(|number| last.replace(number).is_some_and(|before| before < number))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settled<'a>(lines: &[&'a str]) -> Vec<&'a str> {
        let mut texts = vec![""; lines.len()];
        let line = |index: usize| (lines[index], open_prefix(lines[index], true));
        settle(lines.len(), line, |index, text| texts[index] = text);
        texts
    }

    #[test]
    fn what_neighbours_share_is_stripped() {
        for prefixes in [
            ["INFO  x: ", "INFO  x: "],
            ["INFO: ", "WARNING: "],
            ["INFO:root:", "INFO:root:"],
            ["- root - INFO - ", "- root - INFO - "],
            ["INFO  com.example.Run - ", "INFO  com.example.Run - "],
            ["job.log:", "job.log:"],
            ["out/job:", "out/job:"],
            ["job.log:8:", "job.log-9-"],
            ["job:8:", "job:9:"],
            ["8:", "9:"],
            ["1750000000.123 ", "1750000001.5 "],
            ["1750000000 ", "1750000001 "],
            ["8\t", "9\t"],
        ] {
            let texts = ["# Histogram", "000014 000001\t000002"];
            let lines: Vec<String> =
                prefixes.iter().zip(texts).map(|(prefix, text)| format!("{prefix}{text}")).collect();
            assert_eq!(settled(&[&lines[0], &lines[1]]), texts, "{prefixes:?}");
        }
        assert_eq!(settled(&["job.log:T: 0 ( 81) P:80"]), ["T: 0 ( 81) P:80"]);
        assert_eq!(settled(&["INFO T: 0 ( 81)", "INFO T: 1 ( 82)"]), ["T: 0 ( 81)", "T: 1 ( 82)"]);
    }

    #[test]
    fn what_a_tool_prints_stays() {
        for lines in [
            ["WARNING: Running SCHED_FIFO for the main thread", "  Core: 0"],
            ["       0:       1:      17", "       0:       2:      18"],
            ["1750000000 000014", "1750000001 000001"],
            ["14\t1\t2", "15\t3\t4"],
            ["forktest#0/21424: STARTING", "forktest#0/21424: EXITING"],
            ["make.c:12: error", "T: 0 ( 81) P:80"],
            ["policy: fifo: loadavg: 0.1", "T:10 ( 81) P:80"],
            ["Min: 3", "Max: 4"],
        ] {
            assert_eq!(settled(&lines), lines);
        }
    }

    const ANY: &str = "(INFO|a.b:|1750000000|[0-9]{1,3})?[-:. \\t|]{0,3}\\PC{0,20}";

    proptest! {
        #[test]
        fn any_lines_are_settled(lines in proptest::collection::vec(ANY, 1..8)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            for (text, line) in settled(&lines).iter().zip(&lines) {
                prop_assert!(line.ends_with(text));
            }
        }
    }
}
