//! Times in which the emulator itself waited for a CPU of its host: what the guest sees then was
//! not injected.
//!
//! The kernel counts how long each thread was runnable and did not run
//! (`/proc/PID/task/TID/schedstat`, second number; the third counts the turns). The guest writes
//! `=== CLOCK NS` to its channel, several lines in a row: its CLOCK_MONOTONIC, to convert both to
//! one clock. The times of deliberate stops are passed on in the same way.

use std::collections::BTreeMap;
use std::time::Instant;

/// Minimum wait between two samples that is kept.
const LEAST: u64 = 50_000;

/// Usual wait of a turn: the emulator's threads wake each other some thousand times a second.
const USUAL: u64 = 30_000;

/// Waits of all of a process's threads.
pub struct Stalls {
    pid: u32,
    begin: Instant,
    last: u64,
    /// Total wait of each thread, and its number of turns.
    seen: BTreeMap<String, (u64, u64)>,
    /// Start, end, and time in which threads waited within them; in ns since the beginning.
    waits: Vec<[u64; 3]>,
    /// Start and end of the times in which it was certainly stopped.
    stops: Vec<[u64; 2]>,
    /// Times at which lines with the guest's clock were seen.
    marks: Vec<u64>,
}

/// Text after a group of lines with the clock, on the guest's clock.
struct Told {
    stalls: String,
    stops: String,
}

impl Stalls {
    /// Stalls of a process that has just begun.
    pub fn of(pid: u32) -> Stalls {
        Stalls {
            pid,
            begin: Instant::now(),
            last: 0,
            seen: BTreeMap::new(),
            waits: Vec::new(),
            stops: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Takes a sample; `marks` is the number of lines with the guest's clock by now.
    pub fn look(&mut self, marks: usize) {
        let now = self.begin.elapsed().as_nanos() as u64;
        let mut waited = 0;
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        for task in tasks {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let number =
                |at| text.split_whitespace().nth(at).and_then(|word: &str| word.parse().ok()).unwrap_or(0);
            let (delay, turns): (u64, u64) = (number(1), number(2));
            let before = self.seen.insert(task.file_name().to_string_lossy().into_owned(), (delay, turns));
            waited += before.map_or(0, |before| {
                let usual = turns.saturating_sub(before.1).saturating_mul(USUAL);
                delay.saturating_sub(before.0).saturating_sub(usual)
            });
        }
        if waited >= LEAST {
            self.waits.push([self.last, now, waited]);
        }
        self.last = now;
        self.marks.resize(marks.max(self.marks.len()), now);
    }

    /// Records a stop.
    pub fn stopped(&mut self, from: Instant, to: Instant) {
        let ns = |time: Instant| time.duration_since(self.begin).as_nanos() as u64;
        self.stops.push([ns(from), ns(to)]);
    }

    /// Text after the line number `mark`, the last of a group of such lines, up to the next one.
    fn text_after(&self, mark: usize, clocks: &[i64]) -> Told {
        // The quickest of the lines is nearest to the truth.
        let first = (mark + 1).saturating_sub(clocks.len());
        let offsets = self.marks[first.min(self.marks.len())..].iter().zip(clocks);
        let offset = offsets.map(|(&seen, &clock)| seen as i64 - clock).min();
        let from = self.marks.get(mark).copied().unwrap_or(u64::MAX);
        let to = self.marks.get(mark + 1).copied().unwrap_or(u64::MAX);
        let guest = |time: u64| time as i64 - offset.unwrap_or(0);
        let within = self.waits.iter().filter(|wait| offset.is_some() && wait[1] >= from && wait[0] < to);
        let stalls = within.map(|&[start, end, ns]| format!("{} {} {ns}\n", guest(start), guest(end)));
        let stops = self.stops.iter().filter(|stop| offset.is_some() && stop[0] >= from && stop[0] < to);
        let stops = stops.enumerate().map(|(at, &[start, end])| {
            format!(
                "seq={at} fault=stopped kind=unexplained cpu=0 from=-1 start={} end={} name=-\n",
                guest(start),
                guest(end)
            )
        });
        Told { stalls: stalls.collect(), stops: stops.chain(["dropped=0\n".to_string()]).collect() }
    }

    /// The channel's text with the waits and the stops inserted after the lines with the clock, as
    /// the files `stalls` and `stops` of the check.
    pub fn with(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        let (mut clocks, mut count): (Vec<i64>, usize) = (Vec::new(), 0);
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            whole += line;
            whole.push('\n');
            let Some(clock) = clock(line) else { continue };
            clocks.push(clock);
            count += 1;
            if lines.peek().is_none_or(|next| self::clock(next).is_none()) {
                let told = self.text_after(count - 1, &clocks);
                for (label, text) in [("stalls", told.stalls), ("stops", told.stops)] {
                    whole += &format!("=== FILE {label}\n");
                    text.lines().for_each(|line| whole += &format!("|{line}\n"));
                }
                clocks.clear();
            }
        }
        whole
    }
}

/// The guest's clock in such a line.
pub fn clock(line: &str) -> Option<i64> {
    line.strip_prefix("=== CLOCK ")?.trim().parse().ok()
}

/// Waits as written by [`Stalls::with`]: start, end, and time waited.
pub fn parse(text: &str) -> Vec<[i64; 3]> {
    let three = |line: &str| {
        let numbers: Vec<i64> =
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        <[i64; 3]>::try_from(numbers).ok()
    };
    text.lines().filter_map(three).collect()
}

/// True if threads of the emulator waited for more than a tenth of that time.
pub fn spoil(stalls: &[[i64; 3]], from: i64, to: i64) -> bool {
    /// Accuracy of the clocks.
    const SLACK: i64 = 2_000_000;
    let near = stalls.iter().filter(|stall| stall[1] > from - SLACK && stall[0] < to + SLACK);
    near.map(|stall| stall[2]).sum::<i64>() * 10 > to - from
}

#[cfg(test)]
mod tests {
    use super::super::log;
    use super::*;
    use crate::live::frames;

    #[test]
    fn waits_come_on_the_guests_clock() {
        let mut stalls = Stalls::of(0);
        stalls.marks = vec![1_000, 1_400, 1_900, 9_000];
        stalls.waits = vec![[100, 200, 50], [2_000, 2_600, 500], [9_500, 9_600, 70]];
        stalls.stops = vec![[300, 400], [2_000, 2_900], [9_600, 9_700], [9_800, 9_900]];
        // The second line took least: 1100 behind the guest's clock.
        let text = "=== CHECK a\n=== CLOCK -500\n=== CLOCK 300\n=== CLOCK 400\n=== OVER 0\n=== CHECK b\n=== CLOCK 8000\n=== OVER 0\n";
        let replies = frames::parse(&stalls.with(text)).replies;
        assert_eq!(replies["a"].file("stalls"), Ok("900 1500 500\n"));
        assert_eq!(replies["b"].file("stalls"), Ok("8500 8600 70\n"));
        let stops = |check: &str| -> Vec<[i64; 2]> {
            let log = log::parse(replies[check].file("stops").unwrap()).unwrap();
            log.iter().map(|record| [record.start, record.end]).collect()
        };
        assert_eq!(stops("a"), [[900, 1800]]);
        assert_eq!(stops("b"), [[8600, 8700], [8800, 8900]]);
        // A machine that stopped before its clock was seen has none.
        assert!(stalls.with("=== CHECK a\n=== OVER 0\n").lines().count() == 2);
        assert_eq!(parse("900 1500 500\nx\n1 2\n"), [[900, 1500, 500]]);
    }

    #[test]
    fn a_tenth_spoils_a_spike() {
        let ms = 1_000_000;
        let stalls = [[5 * ms, 10 * ms, ms], [20 * ms, 25 * ms, 2 * ms]];
        assert!(spoil(&stalls, 8 * ms, 28 * ms));
        assert!(!spoil(&stalls, 8 * ms, 17 * ms + ms));
        assert!(!spoil(&stalls, 28 * ms, 48 * ms));
        assert!(!spoil(&[], 0, 20 * ms));
    }

    #[test]
    fn the_own_process_is_looked_at() {
        let mut stalls = Stalls::of(std::process::id());
        stalls.look(2);
        assert!(!stalls.seen.is_empty());
        assert_eq!(stalls.marks.len(), 2);
    }
}
