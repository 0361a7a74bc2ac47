//! Stopping the whole emulator from outside, when the guest asks for it.
//!
//! The guest writes `=== STOP COUNT MS PERIOD_MS NOW_MS` to its channel, the last being its time since boot. The stops are
//! noted on that clock, which runs on while the emulator is stopped, to within the time it takes to see the line.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::stalls::{self, Stalls};
use crate::tools::{Result, Running, Tool};

/// How often the channel, and what the emulator waited for, is looked at.
const POLL: Duration = Duration::from_millis(5);

/// What the guest asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    count: u64,
    length: Duration,
    period: Duration,
    /// The guest's time since boot.
    now: Duration,
}

/// Waits for the emulator's end; grants wishes meanwhile. The log of each follows its line in the channel's text.
pub fn attend(mut emulator: Running, channel: &Path, limit: Duration) -> (Result<()>, Vec<String>, Stalls) {
    let start = Instant::now();
    let mut logs = Vec::new();
    let mut stalls = Stalls::of(emulator.pid());
    let mut reader = Reader::default();
    let mut first = true;
    let ended = loop {
        match emulator.poll() {
            Err(why) => break Err(why),
            Ok(Some(_)) => break Ok(()),
            Ok(None) if start.elapsed() > limit => break Err("not done in time".to_string()),
            Ok(None) => {}
        }
        reader.go_on(channel);
        if first && reader.at > 0 {
            first = false;
            prefer(&emulator);
        }
        stalls.look(reader.clocks);
        if let Some(wish) = reader.wishes.get(logs.len()) {
            match grant(&mut emulator, wish) {
                Ok(log) => logs.push(log),
                Err(why) => break Err(why),
            }
        }
        std::thread::sleep(POLL);
    };
    (ended, logs, stalls)
}

/// The emulator's own thread runs the guest's timers: behind the virtual CPUs it would be late with each, by what no guest
/// can explain; and both go before whatever else the machine does meanwhile, nice values do not reach across groups. Without the right to do so they stay as they are.
fn prefer(emulator: &Running) {
    let pid = emulator.pid().to_string();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let task = task.file_name().to_string_lossy().into_owned();
        let priority = if task == pid { "2" } else { "1" };
        let _ = Tool::new("chrt").args(["-f", "-p", priority, &task]).quiet().capture();
    }
}

/// What of the channel has been read: only the growth is, because it may become large.
#[derive(Default)]
struct Reader {
    at: u64,
    rest: Vec<u8>,
    wishes: Vec<Wish>,
    clocks: usize,
}

impl Reader {
    fn go_on(&mut self, channel: &Path) {
        let Ok(mut file) = File::open(channel) else { return };
        let mut grown = Vec::new();
        // What cannot be read now is read at the next look.
        let read = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.read_to_end(&mut grown));
        self.at += read.unwrap_or(0) as u64;
        self.rest.append(&mut grown);
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else { return };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let text = String::from_utf8_lossy(&whole);
        self.clocks += text.lines().filter(|line| stalls::clock(line).is_some()).count();
        self.wishes.extend(wishes(&text));
    }
}

/// Each line of the channel that asks for stops.
pub fn wishes(text: &str) -> Vec<Wish> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| wish(line.strip_prefix("=== STOP ")?)).collect()
}

fn wish(words: &str) -> Option<Wish> {
    let numbers: Vec<u64> = words.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [count, length, period, now] = numbers[..] else { return None };
    let ms = Duration::from_millis;
    Some(Wish { count, length: ms(length), period: ms(period), now: ms(now) })
}

fn grant(emulator: &mut Running, wish: &Wish) -> Result<String> {
    let seen = Instant::now();
    let guest = |at: Instant| (wish.now + at.duration_since(seen)).as_nanos();
    let mut log = String::new();
    for seq in 1..=wish.count {
        std::thread::sleep(wish.period.saturating_sub(wish.length));
        let start = Instant::now();
        emulator.signal(Signal::STOP)?;
        std::thread::sleep(wish.length);
        emulator.signal(Signal::CONT)?;
        let (start, end) = (guest(start), guest(Instant::now()));
        log += &format!(
            "seq={seq} fault=stopped kind=unexplained cpu=0 from=-1 start={start} end={end} name=-\n"
        );
    }
    Ok(log + "dropped=0\n")
}

/// The channel's text with the logs behind the lines that asked for them, as the file `stops` of the check.
pub fn with_logs(text: &str, logs: &[String]) -> String {
    let mut logs = logs.iter();
    let mut whole = String::new();
    for line in text.lines() {
        whole += line;
        whole.push('\n');
        let asked = line.strip_prefix("=== STOP ").and_then(wish).is_some();
        if let Some(log) = asked.then(|| logs.next()).flatten() {
            whole += "=== FILE stops\n";
            log.lines().for_each(|line| whole += &format!("|{line}\n"));
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::frames;

    #[test]
    fn a_wish_is_a_whole_line_with_four_numbers() {
        assert_eq!(wishes("=== STOP 3 50 300 1234"), []);
        let wish = wishes("=== CHECK a\n|=== STOP 3 50 300 1234\n=== STOP 3 50 300 1234\n=== STOP 1 2\n");
        let ms = Duration::from_millis;
        assert_eq!(wish, [Wish { count: 3, length: ms(50), period: ms(300), now: ms(1234) }]);
    }

    #[test]
    fn a_log_lies_in_the_check_that_asked() {
        let text = "=== CHECK a\n=== OVER 0\n=== CHECK b\n=== STOP 1 50 300 7\n=== VALUE x 1\n=== OVER 0\n";
        let report = frames::parse(&with_logs(text, &["one\ndropped=0\n".to_string()]));
        assert_eq!(report.replies["b"].file("stops"), Ok("one\ndropped=0\n"));
        assert_eq!(report.replies["b"].number("x"), Ok(1));
        assert!(report.replies["a"].file("stops").is_err());
        // A machine that stopped before the end has no log of it.
        assert!(frames::parse(&with_logs(text, &[])).replies["b"].file("stops").is_err());
    }
}
