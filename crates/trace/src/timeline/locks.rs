//! Distinction of sleeps for locks from other sleeps: by the kernel's contention events, by the
//! stack, and by the value in a call of futex(2).
//!
//! Sources: include/trace/events/lock.h, kernel/locking/{mutex,rwsem,percpu-rwsem,rwbase_rt}.c,
//! kernel/futex/waitwake.c.

use crate::cycles::place::{FutexWords, SleepKind, sleep_kind};
use crate::event::{Named, What};
use crate::window::Window;

/// Limit of calls and events of a window that are searched for one sleep.
const MAX_EVENTS: usize = 4_096;

/// Limit of innermost frames that are searched for the wait.
const MAX_INNER_FRAMES: usize = 8;

/// Flags of `contention_begin`.
const SPIN: u32 = 1;
const RT: u32 = 8;

/// FUTEX_CMD_MASK, without the flags for private futexes and the clock.
const FUTEX_CMD_MASK: u64 = 0x7f;

/// Lock that a sleep is for, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockProof {
    /// One without priority inheritance.
    Plain,
    Inheriting,
    /// A futex, of a lock or of something else, which no event shows.
    Open,
    /// No stack shows where it slept.
    Unseen,
    None,
}

/// Lock that a sleep is for, by the switch at its start and the stack there.
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

/// Kind of sleep of a stack, which may be empty.
pub(super) fn kind_of(stack: &[String]) -> SleepKind {
    match stack {
        [] => SleepKind::Unknown,
        _ => sleep_kind(stack.iter().map(String::as_str)),
    }
}

/// Kernel lock that a thread started to wait for before it slept, with the flags of the event.
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

/// True for a wait for a mutex, a read-write semaphore or a per-CPU one. Functions that recorded
/// the stack may precede it; counting semaphores are excluded, as they have no holder.
fn locks_in_kernel(stack: &[String]) -> bool {
    stack.iter().take(MAX_INNER_FRAMES).any(|frame| {
        let name = frame.split([' ', '.', '+']).next().unwrap_or_default().trim_start_matches('_');
        let starts = ["mutex_lock", "ww_mutex_lock", "rwsem_down_", "percpu_rwsem_wait", "percpu_down_"];
        starts.iter().any(|start| name.starts_with(start))
            || matches!(name, "down_read" | "down_write" | "down_write_killable")
    })
}

/// Lock by the value in the recorded call, if any: that of a mutex, that of a read-write lock,
/// which counters can have as well, or another.
fn of_futex(window: &Window, ordered: &[&Named], slept: &Named) -> LockProof {
    let end = ordered.partition_point(|event| event.time <= slept.time);
    let own = ordered[end.saturating_sub(MAX_EVENTS)..end].iter().filter(|event| event.pid == slept.pid);
    let is_futex = |id: i64| window.calls.get(&id).is_some_and(|name| name == "futex");
    let (mut words, mut last) = (FutexWords::default(), LockProof::Open);
    for event in own {
        match &event.what {
            What::SyscallEntry { id, args } if is_futex(*id) => {
                let waits = matches!(args[1] & FUTEX_CMD_MASK, 0 | 9);
                last = if words.waits_for_mutex(args) {
                    LockProof::Plain
                } else if waits && is_of_readers(args[2] as u32) {
                    LockProof::Open
                } else {
                    LockProof::None
                };
            }
            What::SyscallEntry { .. } | What::SyscallExit { .. } => last = LockProof::Open,
            _ => {}
        }
    }
    last
}

/// True for 3 (glibc's read-write locks held with waiters), or all lower bits (Rust's).
fn is_of_readers(value: u32) -> bool {
    const HELD: u32 = (1 << 30) - 1;
    value == 3 || (value & HELD == HELD && value != u32::MAX)
}
