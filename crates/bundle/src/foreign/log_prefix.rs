//! Prefixes that a log puts before each line: times, levels, sources, marks of a quotation.

/// The most prefixes that a line has, one behind the other.
const MAX_PREFIXES: usize = 6;

/// The source that the line's prefix names, `""` without one, and the line behind the prefix.
///
/// Known: `2026-01-02T03:04:05.678Z `, `03:04:05 `, `[   12.345678] `, `<6>`, `[VM 1] `,
/// `web-1  | `, syslog's `Jan  2 03:04:05 host tag[12]: `, GitLab's `00O `, `> ` of a mail, `| ` of
/// a ticket.
pub(super) fn unprefixed(line: &str) -> (&str, &str) {
    let (mut label, mut rest) = ("", line);
    for _ in 0..MAX_PREFIXES {
        let trimmed = rest.trim_start();
        let quoted = trimmed.strip_prefix("> ").or_else(|| trimmed.strip_prefix("| "));
        let quoted = quoted.or_else(|| trimmed.strip_prefix("^C")).or_else(|| cursor(trimmed));
        let time = timed(trimmed).or_else(|| level(trimmed)).or_else(|| syslog(trimmed)).or(quoted);
        if let Some(behind) = time {
            rest = behind;
            continue;
        }
        match bracketed(trimmed).or_else(|| container(trimmed)) {
            Some((name, behind)) => {
                // A number or a time differs from line to line: it names no source.
                if name.chars().any(char::is_alphabetic) && !name.contains(':') {
                    label = name;
                }
                rest = behind;
            }
            None => break,
        }
    }
    (label, rest)
}

/// Behind a date and time, or a time of day, and a blank.
fn timed(text: &str) -> Option<&str> {
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
    // GitLab's runner puts the stream behind the time: 00O, 01E, with + for a line that goes on.
    let stream = digits(behind, &[2], b' ').and_then(|rest| rest.strip_prefix(['O', 'E']));
    Some(stream.and_then(|rest| rest.strip_prefix([' ', '+'])).unwrap_or(behind))
}

/// Behind groups of so many digits with this separator between them.
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

/// Behind a movement of the cursor whose escape character was lost: `[2A`, `^[[2A`.
fn cursor(text: &str) -> Option<&str> {
    let text = text.strip_prefix("^[").unwrap_or(text);
    let digits = text.strip_prefix('[')?;
    let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    (behind.len() < digits.len()).then(|| behind.strip_prefix(['A', 'B', 'H', 'J', 'K', 'm']))?
}

/// Behind a level of the kernel's log, like `<6>`.
fn level(text: &str) -> Option<&str> {
    let (number, behind) = text.strip_prefix('<')?.split_once('>')?;
    (number.len() <= 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(behind)
}

/// Behind `Jan  2 03:04:05 host tag[12]: `.
fn syslog(text: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (month, rest) = text.split_at_checked(3)?;
    let rest = rest.strip_prefix(' ').filter(|_| MONTHS.contains(&month))?.trim_start();
    let (day, rest) = rest.split_once(' ')?;
    let rest = timed(rest).filter(|_| day.len() <= 2 && day.parse::<u8>().is_ok())?;
    // Without a host and a tag the time stands alone.
    let tagged = rest.split_once(' ').and_then(|(_host, rest)| rest.split_once(": "));
    Some(tagged.filter(|(tag, _)| !tag.contains(' ')).map_or(rest, |(_, message)| message))
}

/// The content of brackets at the start, and the text behind them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (name, behind) = text.strip_prefix('[')?.split_once(']')?;
    let behind = behind.strip_prefix([' ', '\t']).or_else(|| behind.is_empty().then_some(behind))?;
    // queuelat's `[0 - 99] = 17` is a row.
    let is_row = behind.starts_with("= ");
    (name.len() <= 40 && !is_row && !name.contains(['[', '|', '"'])).then_some((name, behind))
}

/// The name of a container and the text behind it: `web-1  | `.
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
            ("[   12.345678] T: 0", ("", "T: 0")),
            ("<6>[   12.345678] T: 0", ("", "T: 0")),
            ("[VM 1] T: 0", ("VM 1", "T: 0")),
            ("[2026-09-10T12:00:03.123Z] T: 0", ("", "T: 0")),
            ("rt-test-1  | T: 0", ("rt-test-1", "T: 0")),
            ("Sep 10 12:00:03 board cyclictest[81]: T: 0", ("", "T: 0")),
            ("Sep 10 12:00:03 T: 0 ( 81) P:80 I:1000", ("", "T: 0 ( 81) P:80 I:1000")),
            ("2026/09/10 12:00:03 T: 0", ("", "T: 0")),
            ("^CT: 0", ("", "T: 0")),
            ("[2AT: 0", ("", "T: 0")),
            ("^[[2AT: 0", ("", "T: 0")),
            ("> > T: 0", ("", "T: 0")),
            ("| T: 0", ("", "T: 0")),
        ] {
            assert_eq!(unprefixed(line), expected, "{line}");
        }
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
            assert_eq!(unprefixed(line), ("", line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,80}") {
            let (label, rest) = unprefixed(&line);
            prop_assert!(label.len() + rest.len() <= line.len());
        }
    }
}
