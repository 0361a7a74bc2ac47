//! A prefix that all lines of a text share: a host's name, a mark of a quotation or of a change, a
//! time in an unknown form.
//!
//! Tried if nothing is recognised without it, so that no table loses its first column to it.

/// Maximum number of characters that are compared.
const LONGEST: usize = 120;

/// Maximum number of prefixes that are tried.
const TRIED: usize = 12;

/// A part of a prefix: a sign that is the same in each line, blanks, or a number that may grow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrefixPart<'a> {
    Sign(char),
    Blanks,
    Number(&'a str),
}

impl PrefixPart<'_> {
    /// True for a sign or blanks after which a name ends.
    fn is_boundary(&self) -> bool {
        match self {
            PrefixPart::Sign(sign) => !sign.is_alphanumeric() && *sign != '_',
            PrefixPart::Blanks => true,
            PrefixPart::Number(_) => false,
        }
    }

    /// True for two parts that are equal apart from a number's value.
    fn is_like(&self, other: &PrefixPart) -> bool {
        matches!((self, other), (PrefixPart::Number(_), PrefixPart::Number(_))) || self == other
    }
}

/// Parts of a line's begin, each with the offset after it. The digits of a name are signs.
fn parts(line: &str) -> Vec<(PrefixPart<'_>, usize)> {
    let mut parts = Vec::new();
    let mut at = 0;
    let mut is_name = false;
    while let Some(c) = line[at..].chars().next().filter(|_| at < LONGEST) {
        let rest = &line[at..];
        let run = |is: fn(&u8) -> bool| rest.bytes().take_while(is).count();
        let (part, length) = match c {
            ' ' | '\t' => (PrefixPart::Blanks, run(|byte| matches!(byte, b' ' | b'\t'))),
            '0'..='9' if !is_name => {
                let digits = run(u8::is_ascii_digit);
                (PrefixPart::Number(&rest[..digits]), digits)
            }
            sign => (PrefixPart::Sign(sign), sign.len_utf8()),
        };
        is_name = c.is_alphabetic() || is_name && c.is_ascii_digit();
        at += length;
        parts.push((part, at));
    }
    parts
}

/// Numbers of a prefix, which differ between two sources of a log.
fn numbers<'a>(parts: &'a [(PrefixPart<'_>, usize)]) -> impl Iterator<Item = (usize, &'a str)> {
    parts.iter().filter_map(|(part, _)| match part {
        PrefixPart::Number(digits) => Some((digits.trim_start_matches('0').len(), *digits)),
        _ => None,
    })
}

/// True if the numbers do not fall from line to line, unlike those of two sources.
fn ascend(lines: &[Vec<(PrefixPart<'_>, usize)>], length: usize) -> bool {
    let key = |parts: &[(PrefixPart<'_>, usize)]| {
        numbers(&parts[..length])
            .map(|(digits, text)| (digits, text.trim_start_matches('0').to_owned()))
            .collect::<Vec<_>>()
    };
    lines.windows(2).all(|pair| key(&pair[0]) <= key(&pair[1]))
}

/// The text without a prefix that all its lines have, the shortest prefix first.
pub(super) fn without_prefixes(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split(['\n', '\r']).filter(|line| !line.trim_ascii().is_empty()).collect();
    let all: Vec<_> = lines.iter().map(|line| parts(line)).collect();
    let (Some(first), true) = (all.first(), all.len() > 1) else { return Vec::new() };
    let is_shared =
        |at: &usize| all.iter().all(|parts| parts.get(*at).is_some_and(|part| part.0.is_like(&first[*at].0)));
    let common = (0..first.len()).find(|at| !is_shared(at)).unwrap_or(first.len());
    let ends = (1..=common).filter(|&length| first[length - 1].0.is_boundary()).take(TRIED);
    ends.filter(|&length| ascend(&all, length))
        .map(|length| {
            let mut behind = all.iter().map(|parts| parts[length - 1].1);
            let mut stripped = String::with_capacity(text.len());
            for line in text.split_inclusive(['\n', '\r']) {
                let start = if line.trim_ascii().is_empty() { 0 } else { behind.next().unwrap_or(0) };
                stripped.push_str(line.get(start..).unwrap_or_default());
            }
            stripped
        })
        .collect()
}

/// Maximum number of hosts whose lines are separated.
const HOSTS: usize = 64;

/// Maximum length of a label of a host's name (RFC 1035).
const LONGEST_NAME: usize = 63;

/// Lines of a host without its name.
pub(super) struct HostLines {
    pub name: String,
    pub text: String,
    /// Number in the file of each line.
    pub numbers: Vec<u32>,
}

/// Name of a host with which a line begins, and the rest of the line.
fn host_tag(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(':')?;
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let is_host = is_name && name.contains(char::is_alphabetic) && name.len() <= LONGEST_NAME;
    let content = rest.strip_prefix(' ').or_else(|| rest.is_empty().then_some(rest))?;
    is_host.then_some((name, content))
}

/// Lines of each of several hosts, if each line begins with the name of one, as in output of pdsh
/// and Ansible: `node1: `. After a carriage return the name may be missing.
pub(super) fn by_host(text: &str) -> Vec<HostLines> {
    let mut hosts: Vec<HostLines> = Vec::new();
    for (index, whole) in text.split('\n').enumerate() {
        let mut before = None;
        for line in whole.split('\r').filter(|line| !line.trim_ascii().is_empty()) {
            let Some((name, rest)) = host_tag(line).or_else(|| before.map(|name| (name, line))) else {
                return Vec::new();
            };
            before = Some(name);
            let at = hosts.iter().position(|host| host.name == name).unwrap_or(hosts.len());
            if at == HOSTS {
                return Vec::new();
            }
            if at == hosts.len() {
                let (text, numbers) = (String::new(), Vec::new());
                hosts.push(HostLines { name: name.to_owned(), text, numbers });
            }
            hosts[at].text.extend([rest, "\n"]);
            hosts[at].numbers.push(index as u32 + 1);
        }
    }
    if hosts.len() > 1 { hosts } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::fixture;
    use crate::foreign::{ImportOptions, import};
    use proptest::prelude::*;

    #[test]
    fn results_are_read_behind_any_prefix_that_all_lines_share() {
        let text = fixture("smp-H60.txt");
        let all = |text: &str| import(text.as_bytes(), &ImportOptions::default());
        let expected = all(text).unwrap().remove(0).run;
        type Prefix = fn(usize) -> String;
        let prefixes: [Prefix; 13] = [
            |_| "node1: ".into(),
            |_| "[1,0]<stdout>:".into(),
            |_| "+".into(),
            |_| ">> ".into(),
            |_| "E       ".into(),
            |_| "\u{2502} ".into(),
            |n| format!("{n} "),
            |n| format!("11-29 09:00:{:02}.123  1234  1234 I cyclictest: ", n / 3),
            |n| format!("I1129 09:00:{:02}.123456   17893 main.go:123] ", n / 3),
            |n| format!("11/29/2026 09:00:{:02} AM ", n / 3),
            |n| format!("29.11.2026 09:00:{:02} ", n / 3),
            |n| format!("20261129 09:00:{:02}.123 - INFO - ", n / 3),
            |_| "// ".into(),
        ];
        for prefix in prefixes {
            let lines = text.lines().enumerate();
            let log: String = lines.map(|(n, line)| format!("{}{line}\n", prefix(n + 1))).collect();
            let read = all(&log).unwrap_or_else(|error| panic!("{}: {error}", prefix(1)));
            assert_eq!((read.len(), &read[0].run.cpus), (1, &expected.cpus), "{}", prefix(1));
        }
    }

    #[test]
    fn lines_of_two_sources_are_not_mixed() {
        let text = fixture("smp-H60.txt");
        let both = |a: &str, b: &str| -> String {
            text.lines().map(|line| format!("{a}{line}\n{b}{line}\n")).collect()
        };
        let all = |text: &str| import(text.as_bytes(), &ImportOptions::default());
        assert!(all(&both("[1,0]<stdout>:", "[1,1]<stdout>:")).is_err());
        let expected = all(text).unwrap().remove(0).run;
        let read = all(&both("node1: ", "node2: ")).unwrap();
        assert_eq!(read.len(), 2);
        for (one, name) in read.iter().zip(["node1", "node2"]) {
            assert_eq!(
                (&one.run.cpus, one.remarks.last()),
                (&expected.cpus, Some(&format!("the lines of {name}")))
            );
        }
        let half = both("node1: ", "node2: ") + "node3: no such program\n";
        assert!(all(&half).unwrap_err().0.contains("the lines of 3 hosts, with no result of node3"));
        // The error of one host, with the line's number in the file.
        let whole = both("node1: ", "node2: ");
        let row = "node2: 000006 ";
        let number = whole.lines().position(|line| line.starts_with(row)).unwrap() + 1;
        let error = all(&whole.replace(row, "node2: 000006 x")).unwrap_err().0;
        let wanted = format!("the lines of node2, of 2 hosts: line {number}: ");
        assert!(error.starts_with(&wanted), "{wanted} {error}");
        let many = text.repeat(129);
        assert_eq!(all(&many).unwrap().len(), 129);
        let many: String = ["node1", "node2"]
            .iter()
            .flat_map(|name| many.lines().map(move |line| format!("{name}: {line}\n")))
            .collect();
        assert!(all(&many).unwrap_err().0.starts_with("258 results in one file"));
        // A display overwrites its line after a carriage return.
        let overwritten = both("node1: ", "node2: ").replace("node1: T:", "node1: T: 0\rT:");
        assert_eq!(all(&overwritten).unwrap().len(), 2);
    }

    #[test]
    fn hosts_have_names_of_limited_length() {
        let text = |name: &str| format!("node1: a\n{name}: b\rc\n");
        assert_eq!(by_host(&text(&"n".repeat(64))).len(), 0);
        let hosts = by_host(&text("node2"));
        assert_eq!((hosts[1].text.as_str(), &hosts[1].numbers[..]), ("b\nc\n", &[2, 2][..]));
    }

    proptest! {
        #[test]
        fn any_text_is_stripped(text in "((a1: |[0-9]{1,3} |\u{e4}|> ){0,4}\\PC{0,12}[\r\n]{1,2}){0,6}") {
            let hosts = by_host(&text);
            prop_assert!(hosts.len() != 1);
            for stripped in without_prefixes(&text) {
                prop_assert_eq!(stripped.lines().count(), text.lines().count());
                prop_assert!(stripped.len() < text.len());
            }
        }
    }
}
