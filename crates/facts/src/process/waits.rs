//! System calls in which a thread sleeps, and the position of its stack.
//!
//! Source: `/proc/PID/syscall` in proc_pid_syscall(5): `running`, or the call's number (-1 for a
//! thread that is blocked outside of system calls) with six arguments, the stack pointer and the
//! instruction.

use super::calls::call_name;

/// Limit of distinct waits; further ones are counted together.
const WAITS_LIMIT: usize = 64;

/// A system call that a thread slept in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Name of the call; `""` if it is not in the list that rules use, and for all calls of a
    /// program whose calls have other numbers.
    pub call: &'static str,
    /// Arguments; none for one that is not a number for this process, such as a negative one.
    pub args: [Option<u64>; 6],
}

/// System calls in which a thread was seen asleep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Distinct waits, each with its number of observations.
    pub seen: Vec<(Wait, u64)>,
    /// Observations of the thread running, or about to run.
    pub running: u64,
    /// Observations in a call without room in the list, or asleep outside of system calls.
    pub others: u64,
    /// Stack pointer when it was last seen asleep.
    pub stack: Option<u64>,
}

impl Waits {
    /// Adds an observation.
    pub fn add(&mut self, look: Look) {
        let (wait, stack) = match look {
            Look::Running => return self.running += 1,
            Look::Asleep { wait, stack } => (wait, stack),
        };
        self.stack = stack.or(self.stack);
        let Some(wait) = wait else { return self.others += 1 };
        if let Some((_, times)) = self.seen.iter_mut().find(|(seen, _)| *seen == wait) {
            *times += 1;
        } else if self.seen.len() < WAITS_LIMIT {
            self.seen.push((wait, 1));
        } else {
            self.others += 1;
        }
    }

    /// Number of observations.
    pub fn looks(&self) -> u64 {
        self.running + self.others + self.seen.iter().map(|(_, times)| times).sum::<u64>()
    }

    /// Waits in a call.
    pub fn in_call(&self, call: &str) -> impl Iterator<Item = &(Wait, u64)> {
        self.seen.iter().filter(move |(wait, _)| wait.call == call)
    }
}

/// Observation of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Running, or about to run.
    Running,
    /// Asleep, in a system call or outside of one (in a page fault, for example).
    Asleep { wait: Option<Wait>, stack: Option<u64> },
}

impl Look {
    /// The observation without the call's name.
    pub fn without_name(mut self) -> Look {
        if let Look::Asleep { wait: Some(wait), .. } = &mut self {
            wait.call = "";
        }
        self
    }
}

/// Parses `/proc/PID/task/TID/syscall`.
pub fn parse_syscall(text: &str) -> Result<Look, String> {
    let text = text.trim();
    if text == "running" {
        return Ok(Look::Running);
    }
    let expected = || "expected 'running', or a call with six arguments, stack and instruction".to_owned();
    let words: Vec<&str> = text.split_whitespace().take(10).collect();
    let number: i64 = words.first().and_then(|word| word.parse().ok()).ok_or_else(expected)?;
    let hex = |word: &&str| word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match words[1..] {
        [stack, _] if number == -1 => Ok(Look::Asleep { wait: None, stack: hex(&stack) }),
        [ref args @ .., stack, _] if args.len() == 6 => {
            let mut own = [None; 6];
            own.iter_mut().zip(args).for_each(|(own, word)| *own = hex(word));
            let wait = Wait { call: call_name(number).unwrap_or_default(), args: own };
            Ok(Look::Asleep { wait: Some(wait), stack: hex(&stack) })
        }
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_with_its_arguments() {
        let number = libc::SYS_clock_nanosleep;
        let text = format!("{number} 0x1 0x1 0x7f00 0x0 0xaddress 0x5 0x7ffc10 0x7f01\n");
        let Look::Asleep { wait: Some(wait), stack } = parse_syscall(&text).unwrap() else {
            panic!("asleep")
        };
        assert_eq!((wait.call, wait.args[0], wait.args[4]), ("clock_nanosleep", Some(1), None));
        assert_eq!(stack, Some(0x7ffc10));
        assert_eq!(parse_syscall("running\n"), Ok(Look::Running));
        assert_eq!(parse_syscall("-1 0x10 0x20\n"), Ok(Look::Asleep { wait: None, stack: Some(16) }));
        for text in ["", "x", "5 0x1", "-1 0x1"] {
            assert!(parse_syscall(text).is_err(), "{text}");
        }
    }

    #[test]
    fn looks_are_counted_and_none_is_lost() {
        let mut waits = Waits::default();
        for nth in 0..100 {
            let wait = Wait { call: "futex", args: [Some(nth), None, None, None, None, None] };
            waits.add(Look::Asleep { wait: Some(wait), stack: None });
        }
        waits.add(Look::Running);
        waits.add(Look::Asleep { wait: None, stack: Some(1) });
        assert_eq!((waits.looks(), waits.seen.len(), waits.stack), (102, WAITS_LIMIT, Some(1)));
        assert_eq!(waits.in_call("futex").count(), WAITS_LIMIT);
    }
}
