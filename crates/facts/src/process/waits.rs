//! In which system call a thread sleeps, and where its stack is.
//!
//! Source: `/proc/PID/syscall` in proc_pid_syscall(5): `running`, or the call's number (-1 for a
//! thread that is blocked outside of any) with six arguments, the stack pointer and the
//! instruction.

use super::calls::call_name;

/// Different waits beyond these are counted together.
const WAITS_LIMIT: usize = 64;

/// A system call that a thread slept in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Its name; `""` for one that is not in the list of those that rules ask for, and for all of a
    /// program whose calls have other numbers.
    pub call: &'static str,
    /// Its arguments; none where it is no number for this process, as a negative one.
    pub args: [Option<u64>; 6],
}

/// In which calls a thread slept, over some looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// With how often it was in them.
    pub seen: Vec<(Wait, u64)>,
    /// How often it ran, or was about to.
    pub running: u64,
    /// How often it slept in a call that found no room in the list, or in none.
    pub others: u64,
    /// Its stack pointer when it was last seen asleep.
    pub stack: Option<u64>,
}

impl Waits {
    /// Notes a look.
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

    /// How often it was looked at.
    pub fn looks(&self) -> u64 {
        self.running + self.others + self.seen.iter().map(|(_, times)| times).sum::<u64>()
    }

    /// Its waits in a call.
    pub fn in_call(&self, call: &str) -> impl Iterator<Item = &(Wait, u64)> {
        self.seen.iter().filter(move |(wait, _)| wait.call == call)
    }
}

/// One look at a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It runs, or is about to.
    Running,
    /// It sleeps, in a system call or (on a page, for one) in none.
    Asleep { wait: Option<Wait>, stack: Option<u64> },
}

impl Look {
    /// The same without the call's name.
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
