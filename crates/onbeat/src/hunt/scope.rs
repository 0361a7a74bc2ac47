//! Threads of interest and the timers they sleep on, from which filters and triggers are made.
//! Pure.

use std::collections::BTreeMap;

use model::sort::CompactSort;
use model::units::Nanos;

/// Size and alignment of a kernel stack (THREAD_SIZE without KASAN, x86-64 and arm64 with 4 KiB
/// pages).
const STACK_SIZE: u64 = 16 << 10;

/// Maximum number of terms: a filter with more is slower than what it saves, and is widened.
const MAX_TERMS: usize = 24;

/// Threads, and the addresses of their timers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    threads: Vec<i32>,
    /// onbeat's housekeeping thread, 0 if there is none.
    housekeeping: i32,
    /// True if threads may join later.
    grows: bool,
    /// Address ranges, end exclusive.
    timers: Vec<(u64, u64)>,
}

impl Scope {
    /// A scope of these threads without known timers; `housekeeping` is onbeat's thread.
    pub fn new(mut threads: Vec<i32>, housekeeping: i32) -> Scope {
        threads.sort_unstable();
        threads.dedup();
        Scope { threads, housekeeping, grows: false, timers: Vec::new() }
    }

    /// Like this scope, with these threads and later ones; known timers stay.
    pub fn growing(&self, threads: Vec<i32>) -> Scope {
        let timers = self.timers.clone();
        Scope { timers, grows: true, ..Scope::new(threads, self.housekeeping) }
    }

    /// Like this scope, with these threads.
    pub fn of(&self, threads: Vec<i32>) -> Scope {
        Scope { grows: self.grows, ..self.growing(threads) }
    }

    pub fn grows(&self) -> bool {
        self.grows
    }

    /// Like [`Scope::threads`], but a condition that no thread meets if none is known.
    pub fn threads_or_none(&self, field: &str) -> Option<String> {
        // Filters take no constant; the idle thread makes no system call and has no user space.
        self.threads(field).or_else(|| Some(format!("{field} == 0")))
    }

    /// Like this scope, with onbeat's thread, whose timer shows that its CPU runs.
    pub fn with_housekeeping(&self) -> Scope {
        let threads = self.threads.iter().copied().chain([self.housekeeping]).collect();
        Scope::new(threads, self.housekeeping)
    }

    /// Filter condition on a field that holds a thread ID.
    pub fn threads(&self, field: &str) -> Option<String> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for thread in self.threads.iter().filter_map(|&thread| u64::try_from(thread).ok()) {
            match ranges.last_mut() {
                Some(last) if last.1 == thread => last.1 += 1,
                _ => ranges.push((thread, thread + 1)),
            }
        }
        let term = |&(first, end): &(u64, u64)| match end - first {
            1 => format!("{field} == {first}"),
            _ => format!("({field} >= {first} && {field} <= {})", end - 1),
        };
        any(as_few(&ranges).iter().map(term))
    }

    /// Filter condition on a field that holds a timer; none if no timer is known.
    pub fn timers(&self, field: &str) -> Option<String> {
        let term = |&(first, end): &(u64, u64)| match end - first {
            1 => format!("{field} == {first:#x}"),
            _ => format!("({field} >= {first:#x} && {field} < {end:#x})"),
        };
        any(as_few(&self.timers).iter().map(term))
    }

    /// Filter condition that the known timers do not meet; none if none is known, or if they are so
    /// many that other timers would not meet it either.
    pub fn other_timers(&self, field: &str) -> Option<String> {
        let term = |&(first, end): &(u64, u64)| match end - first {
            1 => format!("{field} != {first:#x}"),
            _ => format!("({field} < {first:#x} || {field} >= {end:#x})"),
        };
        let terms: Vec<String> = self.timers.iter().map(term).collect();
        (1..=MAX_TERMS).contains(&terms.len()).then(|| terms.join(" && "))
    }

    /// Learns from `hrtimer_start` events (thread, function, timer) the timers that the threads
    /// sleep on.
    ///
    /// A sleeping thread's timer is on its kernel stack, at many addresses of it; that of a timerfd
    /// or a POSIX timer has one address. Other timers of a thread (its deadline, a tick) differ in
    /// their function: the thread starts the timer that it sleeps on most often.
    pub fn learn(&mut self, starts: &[(i32, u64, u64)]) {
        let mut timers: Vec<(u64, u64)> = Vec::new();
        for &thread in &self.threads {
            let own: Vec<_> = starts.iter().filter(|start| start.0 == thread).collect();
            let mut by_function: BTreeMap<u64, usize> = BTreeMap::new();
            own.iter().for_each(|start| *by_function.entry(start.1).or_default() += 1);
            let Some((&function, _)) = by_function.iter().max_by_key(|(_, count)| **count) else { continue };
            let seen: Vec<u64> =
                own.iter().filter(|start| start.1 == function).map(|start| start.2).collect();
            let (first, last) = (seen.iter().min().copied(), seen.iter().max().copied());
            if let (Some(first), Some(last)) = (first, last) {
                let base = first & !(STACK_SIZE - 1);
                if first == last {
                    timers.push((first, first + 1));
                } else if last < base + STACK_SIZE {
                    timers.push((base, base + STACK_SIZE));
                } else {
                    // Several timers, none of them on a stack.
                    timers.extend(seen.iter().map(|&timer| (timer, timer + 1)));
                }
            }
        }
        self.timers.append(&mut timers);
        self.timers.sort_unstable();
        self.timers.dedup();
    }
}

/// Merges ascending ranges to the maximum number of terms, across the smallest gaps.
fn as_few(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let gap = |&next: &usize| ranges[next].0.saturating_sub(ranges[next - 1].1);
    let mut cuts: Vec<usize> = (1..ranges.len()).collect();
    cuts.compact_sort_by_key(|next| std::cmp::Reverse(gap(next)));
    cuts.truncate(MAX_TERMS - 1);
    cuts.sort_unstable();
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([ranges.len()]);
    let ranges = starts.zip(ends).filter_map(|(start, end)| ranges.get(start..end));
    ranges.filter_map(|group| Some((group.first()?.0, group.iter().map(|range| range.1).max()?))).collect()
}

fn any(terms: impl Iterator<Item = String>) -> Option<String> {
    let terms: Vec<String> = terms.collect();
    (!terms.is_empty()).then(|| terms.join(" || "))
}

/// Size of a buffer that reaches back far enough: a delayed housekeeping thread still finds the
/// spike's beginning.
pub fn buffer_kib(bytes_per_s: u64, slowest: Nanos, cpus: usize, memory_kib: u64) -> u64 {
    /// Half a second of a busy CPU, whatever was measured before.
    const MIN_KIB: u64 = 1 << 10;
    const MAX_KIB: u64 = 32 << 10;
    let reach = Nanos(500_000_000 + 4 * slowest.0.clamp(0, 10 * Nanos::SECOND.0));
    // There is noise after the rounds, too: twice the measured rate.
    let needed = (2.0 * bytes_per_s as f64 * reach.as_secs() / 1024.0) as u64;
    // Most memory is left to the machine's work: a sixteenth of it for all CPUs together, as events
    // read from a buffer are kept a second time.
    let share = memory_kib / 32 / cpus.max(1) as u64;
    needed.clamp(MIN_KIB, MAX_KIB).min(share.max(256))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_next_to_each_other_are_one_term() {
        let scope = Scope::new(vec![12, 10, 11, 20], 5);
        let wanted = "(p >= 10 && p <= 12) || p == 20";
        assert_eq!(scope.threads("p").as_deref(), Some(wanted));
        assert_eq!(Scope::default().threads("p"), None);
        assert_eq!(scope.with_housekeeping().threads("p"), Some(format!("p == 5 || {wanted}")));
    }

    #[test]
    fn more_terms_than_a_filter_may_have_join_where_least_lies_between() {
        // Every second ID of a hundred, twice: two ranges would do, the rest is cut anywhere.
        let two = |from: i32| (0..100).map(move |n| from + 2 * n);
        let many = Scope::new(two(1000).chain(two(90_000)).collect(), 5).threads("p").unwrap();
        let terms: Vec<&str> = many.split(" || ").collect();
        assert_eq!(terms.len(), MAX_TERMS, "{many}");
        let begins = |from: &str| [format!("p == {from}"), format!("(p >= {from} ")];
        assert!(
            terms.iter().any(|term| term.ends_with("p == 1198") || term.ends_with("p <= 1198)")),
            "{many}"
        );
        assert!(begins("90000").iter().any(|begin| many.contains(begin)), "{many}");
        let far = (0..MAX_TERMS as u64 - 1).map(|n| (0x1000 * n, 0x1000 * n + 1));
        let near = [(0xffff_0000, 0xffff_0001), (0xffff_0002, 0xffff_0003)];
        let scope = Scope { timers: far.chain(near).collect(), ..Scope::default() };
        let timers = scope.timers("h").unwrap();
        assert!(timers.ends_with("(h >= 0xffff0000 && h < 0xffff0003)"), "{timers}");
        assert!(as_few(&[]).is_empty() && as_few(&[(5, 6)]) == [(5, 6)]);
    }

    #[test]
    fn a_timer_on_the_stack_is_a_range_and_one_elsewhere_an_address() {
        let mut scope = Scope::new(vec![7, 8, 9], 5);
        let on_stack = 0xffff_c900_0012_3c80u64;
        scope.learn(&[
            (7, 1, on_stack),
            (7, 1, on_stack + 0x40),
            (7, 2, 0x99),
            (8, 3, 0xffff_8880_0000_1000),
            (8, 3, 0xffff_8880_0000_1000),
            (6, 1, 0x55),
        ]);
        let wanted = "h == 0xffff888000001000 || (h >= 0xffffc90000120000 && h < 0xffffc90000124000)";
        assert_eq!(scope.timers("h").as_deref(), Some(wanted));
        let others = "h != 0xffff888000001000 && (h < 0xffffc90000120000 || h >= 0xffffc90000124000)";
        assert_eq!(scope.other_timers("h").as_deref(), Some(others));
        let none = Scope::new(vec![1], 5);
        assert_eq!((none.timers("h"), none.other_timers("h")), (None, None));
        let many = Scope { timers: (0..MAX_TERMS as u64 + 1).map(|n| (4 * n, 4 * n + 1)).collect(), ..none };
        assert_eq!(many.other_timers("h"), None);
    }

    #[test]
    fn the_buffer_follows_from_rate_response_and_memory() {
        assert_eq!(buffer_kib(0, Nanos(0), 2, 64 << 20), 1 << 10);
        assert_eq!(buffer_kib(8 << 20, Nanos(100_000_000), 2, 64 << 20), (2.0 * 8192.0 * 0.9) as u64);
        assert_eq!(buffer_kib(u64::MAX / 4, Nanos(0), 2, 64 << 20), 32 << 10);
        assert_eq!(buffer_kib(u64::MAX / 4, Nanos(0), 64, 1 << 20), 512);
        assert_eq!(buffer_kib(1, Nanos(0), 4096, 1 << 20), 256);
    }
}
