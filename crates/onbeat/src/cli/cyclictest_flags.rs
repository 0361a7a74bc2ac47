//! Flags of cyclictest's that `measure` and `hunt` do not have, each with what serves instead.

use std::ffi::OsString;

use model::error::{Failure, Result};

/// The letter, the long name, what serves instead.
const ELSEWHERE: &[(char, &str, &str)] = &[
    ('A', "aligned", "--phase aligned wakes all CPUs at once"),
    (' ', "secaligned", "--phase aligned wakes all CPUs at once"),
    ('c', "clock", "the clock is CLOCK_MONOTONIC: leave it out"),
    (
        ' ',
        "deepest-idle-state",
        "--idle held allows no idle state that takes time to leave, --idle as-is all",
    ),
    ('e', "latency", "--idle held keeps /dev/cpu_dma_latency at 0, --idle as-is leaves it alone"),
    ('F', "fifo", "the bundle's blocks.jsonl gets a line per CPU each second while it runs"),
    (' ', "laptop", "--idle as-is leaves the idle states alone"),
    ('M', "refresh_on_max", "the screen is drawn once a second, with -q not at all: leave it out"),
    (' ', "priospread", "all CPUs are measured at one priority: give it with -p"),
    ('r', "relative", "the sleep ends at an absolute time, as a periodic task's does: leave it out"),
    ('R', "resolution", "-v says what one read of the clock takes"),
    ('s', "system", "--wake says how a thread sleeps: nanosleep, timerfd, signal or futex"),
    (' ', "spike", "`onbeat hunt --over SPAN` keeps every spike, and says who took the time"),
    (' ', "spike-nodes", "`onbeat hunt` keeps every spike: leave it out"),
    (' ', "tracemark", "`onbeat hunt -b SPAN` stops at a late wake-up and says who took the time"),
    (' ', "tracer", "`onbeat hunt` records the kernel's events"),
    ('u', "unbuffered", "--json - writes the result when it is there: leave it out"),
    ('x', "posix_timers", "--wake signal waits for the signal of a POSIX timer"),
];

/// Letters that take the rest of their word, or the next one.
const WITH_VALUE: &str = "apidDlbotT";

/// Refuses them with what serves instead, in any spelling.
pub fn refuse(args: &[OsString]) -> Result<()> {
    let of_loop = args.get(1).is_some_and(|command| command == "measure" || command == "hunt");
    if !of_loop {
        return Ok(());
    }
    let mut value = false;
    // What is behind `--` are another program's.
    for arg in args.iter().skip(2).take_while(|arg| *arg != "--") {
        let arg = arg.to_string_lossy();
        if std::mem::take(&mut value) && !arg.starts_with('-') {
            continue;
        }
        let found = match (arg.strip_prefix("--"), arg.strip_prefix('-')) {
            (Some(long), _) => {
                let name = long.split('=').next().unwrap_or_default();
                ELSEWHERE.iter().find(|flag| flag.1 == name)
            }
            (None, Some(group)) => {
                value = group.ends_with(|letter| WITH_VALUE.contains(letter));
                let own = group.chars().take_while(|letter| !WITH_VALUE.contains(*letter));
                own.filter(|letter| *letter != ' ')
                    .find_map(|letter| ELSEWHERE.iter().find(|flag| flag.0 == letter))
            }
            _ => None,
        };
        if let Some((_, name, instead)) = found {
            let name = if arg.starts_with("--") { String::new() } else { format!(" --{name}") };
            return Err(Failure::usage(format!("{arg} is cyclictest's{name}: {instead}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        refuse(&args).err().map(|failure| failure.message)
    }

    #[test]
    fn what_serves_instead_is_named_in_any_spelling() {
        for (line, word) in [
            ("onbeat measure -A", "--phase aligned"),
            ("onbeat measure --laptop -D 1", "--idle as-is"),
            ("onbeat measure -Smx -p80", "--wake signal"),
            ("onbeat hunt --tracemark", "onbeat hunt -b"),
            ("onbeat measure -q -M", "once a second"),
            ("onbeat measure --clock=1", "CLOCK_MONOTONIC"),
        ] {
            assert!(said(line).is_some_and(|said| said.contains(word)), "{line}: {:?}", said(line));
        }
    }

    #[test]
    fn what_onbeat_has_is_left_alone() {
        for line in [
            "onbeat measure -Smn -p80 -i 200 -a 0-1 -q -v",
            "onbeat measure -o FsA",
            "onbeat measure -oxs",
            "onbeat hunt -- ./robot -A --laptop",
            "onbeat compare -s",
            "onbeat",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
