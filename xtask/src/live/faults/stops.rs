//! Stops of the whole emulator from outside, on request of the guest.
//!
//! The guest writes `=== STOP COUNT LEAST_MS MOST_MS PAUSE_MS SEED` to its channel. Each stop has a
//! length between the least and the most, log-uniform, after a pause of between 0.5 and 1.5 times
//! the requested one. The same seed gives the same lengths and pauses.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::stalls::{self, Stalls};
use crate::tools::{Result, Running, Tool};

/// Interval of polling the channel and the emulator's waits.
const POLL: Duration = Duration::from_millis(3);

/// Request of the guest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    pub count: u64,
    pub least: Duration,
    pub most: Duration,
    pub pause: Duration,
    pub seed: u64,
}

/// A future stop: the pause before it, and its length.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    pause: Duration,
    length: Duration,
}

/// Waits for the emulator's end, and grants requests in that time. All records are on the host's
/// clock.
pub fn attend(mut emulator: Running, channel: &Path, limit: Duration, urgent: bool) -> (Result<()>, Stalls) {
    let start = Instant::now();
    let mut stalls = Stalls::of(emulator.pid());
    let mut reader = Reader::default();
    let (mut granted, mut turns, mut next) = (0, Vec::new(), Instant::now());
    let mut first = true;
    if urgent {
        rank(std::process::id(), Some("3"));
    }
    let ended = loop {
        match emulator.poll() {
            Err(why) => break Err(why),
            Ok(Some(_)) => break Ok(()),
            Ok(None) if start.elapsed() > limit => break Err("not done in time".to_string()),
            Ok(None) => {}
        }
        reader.go_on(channel);
        if urgent && first && reader.at > 0 {
            first = false;
            prefer(&emulator);
        }
        stalls.look(reader.clocks);
        if let Some(wish) = reader.wishes.get(granted) {
            granted += 1;
            turns = wish.turns();
            turns.reverse();
            next = Instant::now() + turns.last().map_or(Duration::ZERO, |turn: &Turn| turn.pause);
        }
        if !turns.is_empty() && Instant::now() >= next {
            let turn = turns.pop().map_or(Duration::ZERO, |turn| turn.length);
            if let Err(why) = stop(&emulator, turn, &mut stalls) {
                break Err(why);
            }
            next = Instant::now() + turns.last().map_or(Duration::ZERO, |turn| turn.pause);
        }
        std::thread::sleep(POLL);
    };
    rank(std::process::id(), None);
    (ended, stalls)
}

/// Stops the emulator; the recorded time is between the two signals, so certainly within the stop.
fn stop(emulator: &Running, length: Duration, stalls: &mut Stalls) -> Result<()> {
    emulator.signal(Signal::STOP)?;
    let from = Instant::now();
    std::thread::sleep(length);
    stalls.stopped(from, Instant::now());
    emulator.signal(Signal::CONT)
}

/// Raises the emulator's own thread, which runs the guest's timers: below the virtual CPUs it would
/// be late with each, which no guest can explain; and both above all other work of the machine, as
/// nice values do not reach across groups. Without the permission they stay unchanged.
fn prefer(emulator: &Running) {
    let pid = emulator.pid().to_string();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let task = task.file_name().to_string_lossy().into_owned();
        rank(&task, Some(if task == pid { "2" } else { "1" }));
    }
}

/// Gives a thread a real-time priority, or removes it. This process has one itself while it stops
/// the emulator: a stop that ends late, or a clock that is read late, would spoil the score.
fn rank(thread: impl ToString, priority: Option<&str>) {
    let thread = thread.to_string();
    let args = match priority {
        Some(priority) => ["-f", "-p", priority, &thread],
        None => ["-o", "-p", "0", &thread],
    };
    let _ = Tool::new("chrt").args(args).quiet().capture();
}

/// Reader of the channel: reads only what was appended, because it may become large.
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
        // Unreadable data are read with the next sample.
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

/// Requests for stops, one per line of the channel.
pub fn wishes(text: &str) -> Vec<Wish> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| wish(line.strip_prefix("=== STOP ")?)).collect()
}

fn wish(words: &str) -> Option<Wish> {
    let numbers: Vec<u64> = words.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [count, least, most, pause, seed] = numbers[..] else { return None };
    let ms = Duration::from_millis;
    (0 < least && least <= most).then(|| Wish {
        count,
        least: ms(least),
        most: ms(most),
        pause: ms(pause),
        seed,
    })
}

impl Wish {
    fn turns(&self) -> Vec<Turn> {
        let (least, most) = (self.least.as_secs_f64(), self.most.as_secs_f64());
        let mut state = self.seed;
        let turn = |_| Turn {
            pause: self.pause.mul_f64(0.5 + unit(&mut state)),
            length: Duration::from_secs_f64(least * (most / least).powf(unit(&mut state))),
        };
        (0..self.count).map(turn).collect()
    }
}

/// The next of a series of numbers between 0 and 1 (SplitMix64).
pub fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "=== STOP 200 5 300 150 11";

    #[test]
    fn a_wish_is_a_whole_line_with_five_numbers() {
        assert_eq!(wishes(LINE), []);
        let wish = wishes(&format!("=== CHECK a\n|{LINE}\n{LINE}\n=== STOP 1 2\n=== STOP 1 9 3 5 1\n"));
        let ms = Duration::from_millis;
        assert_eq!(wish, [Wish { count: 200, least: ms(5), most: ms(300), pause: ms(150), seed: 11 }]);
    }

    #[test]
    fn lengths_are_of_all_orders_of_magnitude_and_the_seeds() {
        let turns = |seed: u64| wishes(&format!("{}{seed}\n", &LINE[..LINE.len() - 2]))[0].turns();
        let turns_of_one = turns(1);
        assert_eq!(
            (turns_of_one.len(), turns(1) == turns_of_one, turns(2) == turns_of_one),
            (200, true, false)
        );
        let ms = |turn: &Turn| turn.length.as_millis();
        assert!(turns_of_one.iter().all(|turn| (5..=300).contains(&ms(turn))));
        assert!(turns_of_one.iter().all(|turn| (75..=225).contains(&turn.pause.as_millis())));
        // The middle of the orders of magnitude is at 39 ms.
        let short = turns_of_one.iter().filter(|turn| ms(turn) < 39).count();
        assert!((80..=120).contains(&short), "{short}");
    }
}
