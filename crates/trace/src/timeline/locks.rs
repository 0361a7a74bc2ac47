//! Sleeps for locks told from other sleeps: by the kernel's events of contention, by the stack, and
//! by the value that a call of futex(2) waits with.
//!
//! Sources: include/trace/events/lock.h, kernel/locking/{mutex,rwsem,percpu-rwsem,rwbase_rt}.c,
//! kernel/futex/waitwake.c.

use crate::cycles::place::{FutexWords, SleepKind, sleep_kind};
use crate::event::{Named, What};
use crate::window::Window;

/// Calls and events of a window that are looked through for one sleep.
const MAX_EVENTS: usize = 4_096;

/// Frames of a stack among which the wait for a lock is.
const MAX_INNER_FRAMES: usize = 8;

/// Flags of `contention_begin`.
const SPIN: u32 = 1;
const RT: u32 = 8;

/// FUTEX_CMD_MASK without the flags for private and for the clock.
const FUTEX_CMD_MASK: u64 = 0x7f;

/// The lock that a sleep is for, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockProof {
    /// For one without priority inheritance.
    Plain,
    Inheriting,
    /// For a futex, which is a lock's or something else's: no event tells.
    Open,
    /// No stack tells where it slept.
    Unseen,
    None,
}

/// The sort of lock that a sleep is for, by the switch that began it and the stack there.
pub(super) fn proof(
    window: &Window,
    ordered: &[&Named],
    slept: Option<&Named>,
    stack: &[String],
) -> LockProof {
    let kind = kind_of(stack);
    let contended = slept.and_then(|slept| open_contention(ordered, slept));
    match (contended, kind) {
        (Some((_, flags)), _) if flags & RT != 0 => LockProof::Inheriting,
        (Some(_), _) => LockProof::Plain,
        (None, SleepKind::Lock) => LockProof::Inheriting,
        (None, SleepKind::Futex) => slept.map_or(LockProof::Open, |slept| of_futex(window, ordered, slept)),
        (None, SleepKind::Unknown) => LockProof::Unseen,
        (None, _) if locks_in_kernel(stack) => LockProof::Plain,
        (None, _) => LockProof::None,
    }
}

/// The kind of sleep that a stack shows, which may be empty.
pub(super) fn kind_of(stack: &[String]) -> SleepKind {
    match stack {
        [] => SleepKind::Unknown,
        _ => sleep_kind(stack.iter().map(String::as_str)),
    }
}

/// The kernel's lock that a thread began to wait for before it slept, with the event's flags.
pub(super) fn open_contention(ordered: &[&Named], slept: &Named) -> Option<(u64, u32)> {
    let end = ordered.partition_point(|event| event.time <= slept.time);
    let own = ordered[..end].iter().rev().take(MAX_EVENTS).filter(|event| event.pid == slept.pid);
    let own = own.filter(|event| !event.context.hard_irq() && !event.context.soft_irq());
    let mut ended = Vec::new();
    for event in own {
        match event.what {
            What::ContentionEnd { lock } => ended.push(lock),
            What::ContentionBegin { lock, flags } if !ended.contains(&lock) && flags & SPIN == 0 => {
                return Some((lock, flags));
            }
            What::SyscallEntry { .. } | What::SyscallExit { .. } => return None,
            _ => {}
        }
    }
    None
}

/// Finds a wait for a mutex, a semaphore of readers and writers, or one of those per CPU. The
/// functions that took the stack may come before; a counting semaphore has no holder.
fn locks_in_kernel(stack: &[String]) -> bool {
    stack.iter().take(MAX_INNER_FRAMES).any(|frame| {
        let name = frame.split([' ', '.', '+']).next().unwrap_or_default().trim_start_matches('_');
        let starts = ["mutex_lock", "ww_mutex_lock", "rwsem_down_", "percpu_rwsem_wait", "percpu_down_"];
        starts.iter().any(|start| name.starts_with(start))
            || matches!(name, "down_read" | "down_write" | "down_write_killable")
    })
}

/// By the value that the call waits with, if it was recorded: that of a mutex, that of a lock of
/// readers and writers, which counters pass as well, or another.
fn of_futex(window: &Window, ordered: &[&Named], slept: &Named) -> LockProof {
    let end = ordered.partition_point(|event| event.time <= slept.time);
    let own = ordered[end.saturating_sub(MAX_EVENTS)..end].iter().filter(|event| event.pid == slept.pid);
    let is_futex = |id: i64| window.calls.get(&id).is_some_and(|name| name == "futex");
    let (mut words, mut last) = (FutexWords::default(), LockProof::Open);
    for event in own {
        match &event.what {
            What::SyscallEntry { id, args } if is_futex(*id) => {
                let waits = matches!(args[1] & FUTEX_CMD_MASK, 0 | 9);
                last = match words.waits_for_mutex(args) {
                    true => LockProof::Plain,
                    false if waits && is_of_readers(args[2] as u32) => LockProof::Open,
                    false => LockProof::None,
                };
            }
            What::SyscallEntry { .. } | What::SyscallExit { .. } => last = LockProof::Open,
            _ => {}
        }
    }
    last
}

/// 3 in glibc's locks of readers and writers (held, with waiters), all lower bits in Rust's.
fn is_of_readers(value: u32) -> bool {
    const HELD: u32 = (1 << 30) - 1;
    value == 3 || (value & HELD == HELD && value != u32::MAX)
}
