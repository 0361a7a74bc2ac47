//! Prefixes that a log adds to each line: times, levels, sources, marks of a quotation.

use super::log_shape::{self, OpenPrefix};

/// Maximum number of consecutive prefixes of a line.
const MAX_PREFIXES: usize = 6;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Label of the kernel's lines among those of programs.
pub(super) const KERNEL: &str = "kernel";

/// A line without the prefixes that no tool prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unprefixed<'a> {
    /// Source that the prefix names; `""` without one.
    pub label: &'a str,
    pub text: &'a str,
    /// True if there was nothing before the text.
    pub is_start: bool,
    /// A prefix that the line alone does not prove to be one.
    pub open: Option<OpenPrefix<'a>>,
}

/// Strips the prefixes that a log added to a line.
///
/// Known by the line alone: `2026-01-02T03:04:05.678Z `, `03:04:05 `, `[   12.345678] `, `<6>`,
/// `[VM 1] `, `web-1  | `, syslog's and journalctl's `Jan  2 03:04:05 host tag[12]: `, GitLab's
/// `00O `, a container runtime's `stdout F `, `> ` of a mail, `| ` of a ticket.
pub(super) fn unprefixed<'a>(line: &'a str, host: Option<&str>) -> Unprefixed<'a> {
    let (label, text) = certain(line, host);
    let is_start = text.trim_start().len() == line.trim_start().len();
    Unprefixed { label, text, is_start, open: open_prefix(text, is_start) }
}

/// Open prefix of a text, with the certain ones after it stripped.
pub(super) fn open_prefix(text: &str, is_start: bool) -> Option<OpenPrefix<'_>> {
    let open = log_shape::open_prefix(text, is_start)?;
    let behind = |text| certain(text, None).1;
    Some(OpenPrefix { behind: behind(open.behind), named: open.named.map(behind), ..open })
}

/// Host of a syslog log: the word after the time of each of its lines.
///
/// Without one the lines were stamped by another program, and the word belongs to them.
pub(super) fn host_of<'a>(lines: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut hosts = lines.filter_map(|line| syslog_time(line.trim_start())?.split(' ').next());
    let host = hosts.next().filter(|host| is_host(host))?;
    hosts.all(|other| other == host).then_some(host)
}

fn is_host(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Source that the line's certain prefixes name, and the line without them.
fn certain<'a>(line: &'a str, host: Option<&str>) -> (&'a str, &'a str) {
    let (mut label, mut rest) = ("", line);
    for _ in 0..MAX_PREFIXES {
        let trimmed = rest.trim_start();
        let quoted = trimmed.strip_prefix("> ").or_else(|| trimmed.strip_prefix("| "));
        let quoted = quoted.or_else(|| trimmed.strip_prefix("^C")).or_else(|| cursor(trimmed));
        let time = timed(trimmed).or_else(|| level(trimmed)).or(quoted);
        if let Some(behind) = time {
            rest = behind;
            continue;
        }
        let stamp = || stamped(trimmed).map(|behind| (KERNEL, behind));
        let known = syslog(trimmed, host).or_else(|| tagged(trimmed)).or_else(stamp);
        match known.or_else(|| bracketed(trimmed)).or_else(|| container(trimmed)) {
            Some((name, behind)) => {
                // A number or a time differs from line to line: it does not name a source.
                let is_source = name.starts_with(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
                if is_source && name.chars().any(char::is_alphabetic) && !name.contains(':') {
                    label = name;
                }
                rest = behind;
            }
            None => break,
        }
    }
    (label, rest)
}

/// Rest after the seconds since the start that the kernel adds to a line:
/// `[   12.345678] `, `[   12.345678][  T123] `.
fn stamped(text: &str) -> Option<&str> {
    let (seconds, behind) = text.strip_prefix('[')?.split_once(']')?;
    let (whole, fraction) = seconds.trim_start().split_once('.')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let caller = behind.strip_prefix('[').and_then(|caller| caller.split_once(']'));
    let caller = caller.filter(|(name, _)| name.trim_start().starts_with(['T', 'C']) && name.len() < 12);
    let behind = caller.map_or(behind, |(_, behind)| behind);
    let behind = behind.strip_prefix(' ').or_else(|| behind.is_empty().then_some(behind))?;
    (is_number(whole) && is_number(fraction)).then_some(behind)
}

/// Source and text of `host tag[12]: `, `tag[12]: `, `host kernel: `.
fn tagged(text: &str) -> Option<(&str, &str)> {
    let end = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    let (head, behind) = (&text[..end], &text[end + 1..]);
    let behind = behind.strip_prefix(' ').unwrap_or(behind);
    let (host, tag) = head.split_once(' ').unwrap_or(("", head));
    let is_name = |name: &str, more: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '(' || c == '/')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let numbered = tag.strip_suffix(']').and_then(|tag| tag.split_once('[')).is_some_and(|(name, id)| {
        is_name(name, "._-/@()+") && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_tag = numbered || tag == KERNEL && !host.is_empty();
    (is_tag && (host.is_empty() || is_name(host, "._-"))).then_some((tag, behind))
}

/// Rest after a date and time, or a time of day, and a blank.
fn timed(text: &str) -> Option<&str> {
    let weekday = text.split_once(' ').filter(|(day, _)| WEEKDAYS.contains(day));
    let is_named = weekday.is_some();
    let text = weekday.map_or(text, |(_, rest)| rest);
    let date = digits(text, &[4, 2, 2], b'-').or_else(|| digits(text, &[4, 2, 2], b'/'));
    let day = date.and_then(|rest| rest.strip_prefix(['T', ' ']));
    let rest = digits(day.unwrap_or(text), &[2, 2, 2], b':')?;
    let fraction = rest.strip_prefix(['.', ',']);
    let rest = fraction.map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = rest.strip_prefix(['+', '-']).filter(|zone| zone.starts_with(|c: char| c.is_ascii_digit()));
    let rest = zone.map_or(rest, |zone| zone.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'));
    let rest = rest.strip_prefix('Z').unwrap_or(rest);
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let behind = if rest.is_empty() { rest } else { rest.strip_prefix([' ', '\t'])? };
    // `journalctl -o short-full` names the day and the zone.
    let zone = behind.split_once(' ').filter(|(zone, _)| {
        is_named && (3..6).contains(&zone.len()) && zone.bytes().all(|byte| byte.is_ascii_uppercase())
    });
    let behind = zone.map_or(behind, |(_, rest)| rest);
    // A container's runtime adds the stream, and P for a part of a line, F for the last.
    let stream = behind.strip_prefix("stdout ").or_else(|| behind.strip_prefix("stderr "));
    if let Some(whole) = stream.and_then(|rest| rest.strip_prefix(['F', 'P'])) {
        return whole.strip_prefix(' ').or_else(|| whole.is_empty().then_some(whole));
    }
    // GitLab's runner adds the stream after the time: 00O, 01E, with + for a continued line.
    let stream = digits(behind, &[2], b' ').and_then(|rest| rest.strip_prefix(['O', 'E']));
    Some(stream.and_then(|rest| rest.strip_prefix([' ', '+'])).unwrap_or(behind))
}

/// Rest after groups of digits of these lengths with this separator between them.
fn digits<'a>(text: &'a str, groups: &[usize], separator: u8) -> Option<&'a str> {
    let mut rest = text;
    for (index, &count) in groups.iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(char::from(separator))?;
        }
        let group = rest.get(..count)?;
        if !group.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest = &rest[count..];
    }
    Some(rest)
}

/// Rest after a movement of the cursor whose escape character was lost: `[2A`, `^[[2A`.
fn cursor(text: &str) -> Option<&str> {
    let text = text.strip_prefix("^[").unwrap_or(text);
    let digits = text.strip_prefix('[')?;
    let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    (behind.len() < digits.len()).then(|| behind.strip_prefix(['A', 'B', 'H', 'J', 'K', 'm']))?
}

/// Rest after a level of the kernel's log, like `<6>`.
fn level(text: &str) -> Option<&str> {
    let (number, behind) = text.strip_prefix('<')?.split_once('>')?;
    (number.len() <= 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(behind)
}

/// Source and text of `Jan  2 03:04:05 host tag[12]: `.
fn syslog<'a>(text: &'a str, host: Option<&str>) -> Option<(&'a str, &'a str)> {
    let rest = syslog_time(text)?;
    // A tag without an id is a word, and valid only after the log's host.
    let plain = || rest.split_once(' ').filter(|(word, _)| host == Some(word))?.1.split_once(": ");
    let plain = || plain().filter(|(tag, _)| !tag.contains(' ')).map(|(_, message)| ("", message));
    Some(tagged(rest).or_else(plain).unwrap_or(("", rest)))
}

/// Rest after `Jan  2 03:04:05 `.
fn syslog_time(text: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (month, rest) = text.split_at_checked(3)?;
    let rest = rest.strip_prefix(' ').filter(|_| MONTHS.contains(&month))?.trim_start();
    let (day, rest) = rest.split_once(' ')?;
    timed(rest).filter(|_| day.len() <= 2 && day.parse::<u8>().is_ok())
}

/// Content of brackets at the start, and the rest.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (name, behind) = text.strip_prefix('[')?.split_once(']')?;
    let behind = behind.strip_prefix([' ', '\t']).or_else(|| behind.is_empty().then_some(behind))?;
    // queuelat's `[0 - 99] = 17` is a row.
    let is_row = behind.starts_with("= ");
    (name.len() <= 40 && !is_row && !name.contains(['[', '|', '"'])).then_some((name, behind))
}

/// Name of a container and the rest: `web-1  | `.
fn container(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once([' ', '\t'])?;
    let behind = rest.trim_start().strip_prefix('|')?;
    let behind = if behind.is_empty() { behind } else { behind.strip_prefix(' ')? };
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    is_name.then_some((name, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_of_logs_are_removed() {
        for (line, expected) in [
            ("2026-09-10T12:00:03.123456 T: 0", ("", "T: 0")),
            ("2026-09-10 12:00:03,123 T: 0", ("", "T: 0")),
            ("2026-09-10T12:00:03.1Z 00O T: 0", ("", "T: 0")),
            ("2026-09-10T12:00:03+02:00 T: 0", ("", "T: 0")),
            ("12:00:03 T: 0", ("", "T: 0")),
            ("[   12.345678] T: 0", ("kernel", "T: 0")),
            ("<6>[   12.345678] T: 0", ("kernel", "T: 0")),
            ("[   12.345678][    T1] T: 0", ("kernel", "T: 0")),
            ("[   12.345678] board cyclictest[81]: T: 0", ("cyclictest[81]", "T: 0")),
            ("2026-09-10T12:00:03.123456789Z stdout F T: 0", ("", "T: 0")),
            ("2026-09-10T12:00:03.123456789+02:00 stderr P T: 0", ("", "T: 0")),
            ("2026-09-10T12:00:03+0200 board cyclictest[81]: T: 0", ("cyclictest[81]", "T: 0")),
            (
                "2026-09-10T12:00:03+0200 board kernel: [   12.345678] usb 1-1: new",
                ("kernel", "usb 1-1: new"),
            ),
            ("Thu 2026-09-10 12:00:03 CEST board run-u1.service[81]: T: 0", ("run-u1.service[81]", "T: 0")),
            ("cyclictest[81]: T: 0", ("cyclictest[81]", "T: 0")),
            ("<30>Sep 10 12:00:03 board cyclictest[81]: T: 0", ("cyclictest[81]", "T: 0")),
            ("[VM 1] T: 0", ("VM 1", "T: 0")),
            ("[12.345s] T: 0", ("", "T: 0")),
            ("[+1.5 s] T: 0", ("", "T: 0")),
            ("[2026-09-10T12:00:03.123Z] T: 0", ("", "T: 0")),
            ("rt-test-1  | T: 0", ("rt-test-1", "T: 0")),
            ("Sep 10 12:00:03 board cyclictest[81]: T: 0", ("cyclictest[81]", "T: 0")),
            ("Sep 10 12:00:03 board cyclictest: T: 0", ("", "T: 0")),
            ("Sep 10 12:00:03 T: 0 ( 81) P:80 I:1000", ("", "T: 0 ( 81) P:80 I:1000")),
            ("2026/09/10 12:00:03 T: 0", ("", "T: 0")),
            ("^CT: 0", ("", "T: 0")),
            ("[2AT: 0", ("", "T: 0")),
            ("^[[2AT: 0", ("", "T: 0")),
            ("> > T: 0", ("", "T: 0")),
            ("| T: 0", ("", "T: 0")),
        ] {
            let Unprefixed { label, text, .. } = unprefixed(line, host_of([line].into_iter()));
            assert_eq!((label, text), expected, "{line}");
        }
    }

    #[test]
    fn a_tag_stands_behind_the_log_s_host() {
        let lines = ["Sep 10 12:00:03 CPU list: 0,1", "Sep 10 12:00:03 Total runtime: 2 seconds"];
        let host = host_of(lines.into_iter());
        assert_eq!(
            lines.map(|line| unprefixed(line, host).text),
            ["CPU list: 0,1", "Total runtime: 2 seconds"]
        );
        let lines = ["Sep 10 12:00:03 board CPU list: 0,1", "Sep 10 12:00:03 board oslat: Test starts..."];
        let host = host_of(lines.into_iter());
        assert_eq!(lines.map(|line| unprefixed(line, host).text), ["board CPU list: 0,1", "Test starts..."]);
    }

    #[test]
    fn lines_of_results_stay_whole() {
        for line in [
            "000012 000345\t000001",
            "T: 0 ( 501) P:48 I:1000 C: 600000 Min: 3 Act: 7 Avg: 15 Max: 208",
            "  2 #30000     |        1         0         1         9 |        4",
            "CPU COUNT      |      cur       min       avg       max |      cur",
            "RTT|  00:00:01  (periodic user-mode task, 500 us period, priority 99)",
            "RTD|      1.104|      1.911|",
            "  0 00:00:30   |          IRQ Timer Latency (us)",
            "[root@board ~]# cyclictest -S",
            "# Min Latencies: 00002",
            "[36700 - 36799] = 1",
        ] {
            let Unprefixed { label, text, open, .. } = unprefixed(line, None);
            assert_eq!((label, text.trim_start(), open), ("", line.trim_start(), None), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,80}") {
            let Unprefixed { label, text, open, .. } = unprefixed(&line, None);
            prop_assert!(label == KERNEL || label.len() + text.len() <= line.len());
            prop_assert!(open.is_none_or(|open| open.behind.len() < text.len()));
        }
    }
}
