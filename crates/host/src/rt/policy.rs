//! Policy and priority of other threads, as text: `fifo 50`, `rr 1`, or `other 0`, `batch 0` and
//! `idle 0` with the nice value; ` reset-on-fork` follows if it is set.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ptr;

use super::errno::check;

/// `struct sched_attr` as of its first version (sched_setattr(2)).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ThreadPolicy {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const NAMES: [(&str, i32); 5] = [
    ("other", libc::SCHED_OTHER),
    ("fifo", libc::SCHED_FIFO),
    ("rr", libc::SCHED_RR),
    ("batch", libc::SCHED_BATCH),
    ("idle", libc::SCHED_IDLE),
];

const RESET: &str = "reset-on-fork";

/// Policy of a thread as text.
///
/// # Errors
/// EOPNOTSUPP: a policy that is more than a priority (SCHED_DEADLINE, SCHED_EXT).
pub fn policy_of(tid: u32) -> io::Result<String> {
    let mut has = ThreadPolicy::default();
    let size = mem::size_of::<ThreadPolicy>();
    // SAFETY: the kernel writes at most `size` bytes, which is what the structure has.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, ptr::from_mut(&mut has), size, 0) })?;
    let name = NAMES.iter().find(|(_, number)| *number as u32 == has.policy).map(|(name, _)| *name);
    let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
    let level = if matches!(name, "fifo" | "rr") { i64::from(has.priority) } else { i64::from(has.nice) };
    let reset = has.flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0;
    Ok(format!("{name} {level}{}", if reset { " reset-on-fork" } else { "" }))
}

/// Sets a thread's policy from such a text.
pub fn set_policy_of(tid: u32, text: &str) -> io::Result<()> {
    let wanted = parse(text).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: the kernel reads as many bytes as the structure's size field states, which is its
    // size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, ptr::from_ref(&wanted), 0) }).map(drop)
}

fn parse(text: &str) -> Option<ThreadPolicy> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let policy = NAMES.iter().find(|(known, _)| *known == name)?.1 as u32;
    let level: i32 = words.next()?.parse().ok()?;
    let reset = match words.next() {
        None => 0,
        Some(word) if word == RESET => libc::SCHED_FLAG_RESET_ON_FORK as u64,
        Some(_) => return None,
    };
    let (nice, priority) = match name {
        "fifo" | "rr" => (0, u32::try_from(level).ok().filter(|level| (1..=99).contains(level))?),
        _ => (Some(level).filter(|level| (-20..=19).contains(level))?, 0),
    };
    let size = mem::size_of::<ThreadPolicy>() as u32;
    Some(ThreadPolicy { size, policy, flags: reset, nice, priority, ..ThreadPolicy::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_a_name_and_a_level() {
        for text in ["fifo 99", "rr 1", "other 0", "batch -20", "idle 19", "other 5 reset-on-fork"] {
            assert!(parse(text).is_some(), "{text}");
        }
        for text in
            ["", "fifo", "fifo 0", "fifo 100", "rr -1", "other 20", "deadline 1", "fifo 1 2", "fifo x"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_policy_of_this_thread_is_read() {
        let own = policy_of(rustix::thread::gettid().as_raw_pid() as u32).unwrap();
        assert!(parse(&own).is_some(), "{own}");
    }
}
