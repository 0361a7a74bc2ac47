//! The system calls of a run, from strace's log.

use std::collections::BTreeMap;
use std::fmt;

/// One call that fails.
#[derive(Clone, Debug, PartialEq)]
pub struct FailingCall {
    /// The system call.
    pub call: String,
    /// Index among a thread's calls of that name; 0 means all, as on a kernel without the call.
    pub nth: u64,
    /// The error's name.
    pub errno: &'static str,
}

impl fmt::Display for FailingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nth {
            0 => write!(f, "{}:error={}", self.call, self.errno),
            nth => write!(f, "{}:error={}:when={nth}", self.call, self.errno),
        }
    }
}

/// Number of calls by name, and of those before `main`.
#[derive(Default)]
pub struct Calls {
    /// Counts by name: before `main`, and of the thread with the most.
    counts: BTreeMap<String, (u64, u64)>,
    whole: bool,
}

impl Calls {
    /// Parses the log of `strace -f`: a line per call, with the thread's id first.
    ///
    /// strace counts the calls of each thread separately, so the n-th is that of every thread that
    /// makes that many. The calls before `main` are the loader's and the runtime's: the first
    /// alternative signal stack ends them.
    pub fn parse(log: &str) -> Calls {
        let mut by_thread: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut calls = Calls::default();
        let mut main = "";
        for line in log.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let Some((name, args)) = call.trim_start().split_once('(') else { continue };
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.is_empty() {
                continue;
            }
            main = if main.is_empty() { thread } else { main };
            let count = by_thread.entry((thread, name)).or_default();
            *count += 1;
            let entry = calls.counts.entry(name.to_owned()).or_default();
            entry.1 = entry.1.max(*count);
            if thread == main && !calls.whole {
                entry.0 = *count;
                calls.whole = name == "sigaltstack" && args.starts_with("{ss_sp=0x");
            }
        }
        calls
    }

    /// True if it contains the program's start.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Names, and which calls of that name belong to the program: after the first number, up to the
    /// second.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.counts.iter().map(|(name, &(before, most))| (name.as_str(), before, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_thread_and_those_before_main_left_out() {
        let log = "10 execve(\"x\", [\"x\"], 0x1) = 0\n10 openat(AT_FDCWD, \"/lib\", 0) = 3\n\
                   10 sigaltstack(NULL, {ss_sp=NULL}) = 0\n10 sigaltstack({ss_sp=0x7f, ss_size=1}, NULL) = 0\n\
                   10 openat(AT_FDCWD, \"a\", 0) = 3\n11 read(3, <unfinished ...>\n11 <... read resumed>) = 0\n\
                   11 openat(AT_FDCWD, \"b\", 0) = 3\n10 openat(AT_FDCWD, \"c\", 0) = 3\n10 +++ exited with 0 +++\n";
        let calls = Calls::parse(log);
        assert!(calls.is_whole() && !Calls::parse("").is_whole());
        let of =
            |wanted| calls.each().find(|(name, ..)| *name == wanted).map(|(_, before, most)| (before, most));
        assert_eq!(of("openat"), Some((1, 3)));
        assert_eq!((of("read"), of("sigaltstack")), (Some((0, 1)), Some((2, 2))));
    }
}
