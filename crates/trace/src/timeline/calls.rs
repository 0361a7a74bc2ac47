//! System calls of a followed thread, if recorded: from entry to exit, including its sleeps and
//! interrupts.
//!
//! Source: include/trace/events/syscalls.h; both events occur in the thread, outside interrupts.

use super::spans::Spans;
use crate::event::{Named, What};
use crate::window::Window;
use model::sort::CompactSort;
use model::text::several;

/// Limit of separate calls in a cycle; of more the longest are separate, and the others count as
/// the thread's own time.
const MAX_CALLS: usize = 256;

/// Number of a call, and its first argument as in the events.
type Call = (i64, u64);

/// System calls of the thread of a window.
pub(super) struct ThreadCalls<'w> {
    window: &'w Window,
    spans: Spans<Call>,
    /// Number of calls that are not separate.
    short: u64,
}

impl<'w> ThreadCalls<'w> {
    /// Collects the calls from events in order of time.
    pub(super) fn of(window: &'w Window, ordered: &[&Named]) -> ThreadCalls<'w> {
        let own = ordered.iter().filter(|event| {
            let interrupted = event.context.hard_irq() || event.context.soft_irq() || event.context.nmi();
            event.pid == window.victim.pid && !interrupted
        });
        let whole = window.events_lost == 0 && !window.begins_late;
        let (mut all, mut open, mut first) = (Vec::new(), None, true);
        for event in own {
            match event.what {
                What::SyscallEntry { id, args } => {
                    // A call that is still open has lost its exit: its end is unknown.
                    open = Some((event.time.0, (id, args[0])));
                    first = false;
                }
                What::SyscallExit { id } => {
                    // A return from a signal has no call number (syscall_get_nr).
                    let same = |open: &(i64, Call)| open.1.0 == id || id < 0;
                    match open.take() {
                        Some(begun) if same(&begun) => all.push((begun.0, event.time.0, begun.1)),
                        // The thread has been in this call since before the window.
                        None if first && whole => all.push((i64::MIN, event.time.0, (id, 0))),
                        _ => {}
                    }
                    first = false;
                }
                _ => {}
            }
        }
        // The call in which it sleeps for its next release.
        all.extend(open.map(|(since, call)| (since, i64::MAX, call)));
        all.retain(|call: &(i64, i64, Call)| call.1 > window.expected_ns.0);
        let short = all.len().saturating_sub(MAX_CALLS);
        if short > 0 {
            all.compact_sort_by_key(|call| std::cmp::Reverse(call.1.saturating_sub(call.0)));
            all.truncate(MAX_CALLS);
        }
        ThreadCalls { window, spans: Spans::new(all), short: short as u64 }
    }

    /// Note on calls that are too many to be separate.
    pub(super) fn note(&self) -> Option<String> {
        let calls = several(self.short, "shorter system call is", "shorter system calls are");
        (self.short > 0).then(|| format!("{calls} within the thread's own time"))
    }

    /// Start and end times of calls.
    pub(super) fn edges(&self) -> impl Iterator<Item = i64> + '_ {
        self.spans.edges()
    }

    /// Name of the call at a time.
    pub(super) fn name_at(&self, time: i64) -> Option<String> {
        let (id, _) = self.spans.at(time)?.2;
        let known = self.window.calls.get(&id).cloned();
        Some(known.unwrap_or_else(|| format!("system call {id}")))
    }

    /// Text of the call at a time with its lock, if it names one: `futex at robot+0x4040`.
    pub(super) fn words_at(&self, time: i64) -> Option<String> {
        let name = self.name_at(time)?;
        let lock = self.spans.at(time).and_then(|found| self.window.locks.get(&found.2.1));
        Some(lock.map_or(name.clone(), |place| format!("{name} at {place}")))
    }
}
