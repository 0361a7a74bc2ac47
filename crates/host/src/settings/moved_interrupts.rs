//! Waiting times for interrupts that are to move: an interrupt moves to its new CPU at its next
//! occurrence (Documentation/core-api/irq/irq-affinity.rst; kernel/irq/migration.c), and an idle
//! one may not occur for days.
//!
//! A change of `smp_affinity_list` is done when it reads back; the effective CPU follows later, and
//! is not a setting. The wait ensures that an undo finds the interrupt on its original CPU.

use std::collections::BTreeMap;

use model::units::Nanos;

/// Limits of the waits for one interrupt, and for all of them.
pub const ONE_INTERRUPT: Nanos = Nanos(200_000_000);
const ALL_INTERRUPTS: Nanos = Nanos(2_000_000_000);

/// Least distance between the waits of two undos.
const APART: Nanos = Nanos(1_000_000_000);

/// Wait in mean intervals; of random occurrences one interval in 150 is longer (exp -5).
const DISTANCES: i64 = 5;

/// Least wait: pauses between bursts are longer than the mean interval shows.
const BURSTS: Nanos = Nanos(1_000_000_000);

/// An interrupt that occurs less than ten times within the limit gets only the short usual wait: it
/// cannot cause the ten late wake-ups that a segment of this length should have.
const TIMES: i64 = 10;

/// Observation time after which an interrupt that has not occurred counts as idle.
const LOOK: Nanos = Nanos(5_000_000_000);

/// Remaining waiting time for interrupts. Each undo has the whole limit: an experiment undoes the
/// same change many times, and without a wait the interrupts stay on the changed CPUs.
#[derive(Debug)]
pub struct MovedInterrupts {
    all: Nanos,
    /// True if each is waited for by its rate.
    patient: bool,
    left: Nanos,
    /// End of the last wait.
    ended: Nanos,
    changed: BTreeMap<u32, ChangedInterrupt>,
}

/// Interrupt that this process has changed.
#[derive(Debug)]
struct ChangedInterrupt {
    /// CPU before the first change.
    home: Option<String>,
    /// Time of the last change, and occurrences until then.
    at: Nanos,
    count: Option<u64>,
    /// Rate before that change.
    before: Option<Pace>,
}

/// Rate of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Idle,
    /// Mean interval between two occurrences.
    Every(Nanos),
}

impl Default for MovedInterrupts {
    fn default() -> MovedInterrupts {
        MovedInterrupts {
            all: ALL_INTERRUPTS,
            patient: false,
            left: ALL_INTERRUPTS,
            ended: Nanos(0),
            changed: BTreeMap::new(),
        }
    }
}

impl MovedInterrupts {
    /// From now on waits by the rate of each, and for all of an undo together up to this limit.
    pub fn be_patient(&mut self, all: Nanos) {
        (self.all, self.patient) = (all.max(ALL_INTERRUPTS), true);
    }

    /// End of the wait for an interrupt that is moved now, after `count` occurrences.
    pub fn until(&mut self, irq: u32, now: Nanos, count: Option<u64>) -> Nanos {
        if now - self.ended > APART {
            self.left = self.all;
        }
        let wanted = if self.patient { self.by_rate(irq, now, count) } else { ONE_INTERRUPT };
        now + self.left.min(wanted)
    }

    pub fn waited(&mut self, begin: Nanos, end: Nanos) {
        self.left = Nanos((self.left.0 - (end - begin).0).max(0));
        self.ended = end;
    }

    /// Notes a change of an interrupt, which is still on the CPU `place`.
    pub fn changes(&mut self, irq: u32, place: Option<String>, at: Nanos, count: Option<u64>) {
        let before = self.pace(irq, at, count);
        let known = self.changed.remove(&irq).and_then(|known| known.home);
        self.changed.insert(irq, ChangedInterrupt { home: known.or(place), at, count, before });
    }

    /// CPU of an interrupt before this process changed it.
    pub fn home(&self, irq: u32) -> Option<&str> {
        self.changed.get(&irq)?.home.as_deref()
    }

    /// The CPUs before the change of all interrupts for which they are known.
    pub fn homes(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        self.changed.iter().filter_map(|(irq, known)| Some((*irq, known.home.clone()?)))
    }

    /// Waiting time by the rate of the interrupt.
    fn by_rate(&self, irq: u32, now: Nanos, count: Option<u64>) -> Nanos {
        match self.pace(irq, now, count) {
            None => ONE_INTERRUPT,
            Some(Pace::Idle) => Nanos(0),
            Some(Pace::Every(distance)) if distance.0.saturating_mul(TIMES) > self.all.0 => ONE_INTERRUPT,
            Some(Pace::Every(distance)) => Nanos(distance.0.saturating_mul(DISTANCES)).max(BURSTS),
        }
    }

    /// Rate since the last change, or before it if that is too recent; since boot if the interrupt
    /// was never changed.
    fn pace(&self, irq: u32, now: Nanos, count: Option<u64>) -> Option<Pace> {
        let (since, before) = match self.changed.get(&irq) {
            Some(known) if now - known.at < LOOK => return known.before,
            Some(known) => (known.at, known.count?),
            None => (Nanos(0), 0),
        };
        let times = i64::try_from(count?.saturating_sub(before)).unwrap_or(i64::MAX);
        Some(if times == 0 { Pace::Idle } else { Pace::Every(Nanos((now - since).0 / times)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// Waits for twelve interrupts that do not occur, one after the other from that time, in ms.
    fn waits(all: &mut MovedInterrupts, from: i64, count: Option<u64>) -> Vec<i64> {
        let mut now = ms(from);
        let one = |irq| {
            let until = all.until(irq, now, count);
            all.waited(now, until);
            let waited = until - now;
            now = until;
            waited.0 / 1_000_000
        };
        (0..12).map(one).collect()
    }

    #[test]
    fn each_undo_waits_for_its_interrupts() {
        let mut all = MovedInterrupts::default();
        let once = [[200; 10].as_slice(), &[0; 2]].concat();
        assert_eq!(waits(&mut all, 500, Some(7)), once);
        assert_eq!(waits(&mut all, 3_000, Some(7)), [0; 12], "the same undo");
        assert_eq!(waits(&mut all, 9_000, None), once, "the next one");
    }

    #[test]
    fn in_an_experiment_it_is_waited_for_by_its_own_rate() {
        let wait = |seconds: i64, times: Option<u64>| {
            let mut all = MovedInterrupts::default();
            all.be_patient(ms(10_000));
            all.changes(3, Some("2".into()), ms(100_000), Some(50));
            let now = ms(100_000 + 1_000 * seconds);
            (all.until(3, now, times.map(|times| 50 + times)) - now).0 / 1_000_000
        };
        assert_eq!((wait(10, Some(10)), wait(10, Some(25))), (5_000, 2_000));
        assert_eq!(wait(10, Some(10_000)), 1_000, "bursts have pauses");
        assert_eq!(wait(10, Some(9)), 200, "it makes less than ten late wake-ups of a segment");
        assert_eq!((wait(10, Some(0)), wait(2, Some(0))), (0, 200), "idle, or as rare as before");
        assert_eq!(wait(10, None), 200, "nothing is known about it");
        // An interrupt that was never changed has its rate since boot.
        let mut all = MovedInterrupts::default();
        all.be_patient(ms(60_000));
        assert_eq!(all.until(9, ms(200_000), Some(100)) - ms(200_000), ms(10_000));
    }

    #[test]
    fn right_behind_a_change_the_rate_is_that_of_before() {
        let mut all = MovedInterrupts::default();
        all.be_patient(ms(10_000));
        all.changes(3, Some("2".into()), ms(100_000), Some(0));
        // Twice a second while the change was in force, then changed again.
        all.changes(3, Some("0".into()), ms(110_000), Some(20));
        assert_eq!(all.until(3, ms(110_001), Some(20)) - ms(110_001), ms(2_500));
    }

    #[test]
    fn all_of_them_together_have_an_end() {
        let mut all = MovedInterrupts::default();
        all.be_patient(ms(10_000));
        let sum: i64 = waits(&mut all, 100_000, Some(1_000)).iter().sum();
        assert_eq!(sum, 10_000);
    }

    #[test]
    fn where_it_was_at_first_stays_known() {
        let mut all = MovedInterrupts::default();
        all.changes(3, Some("2".into()), ms(1), None);
        all.changes(3, Some("0".into()), ms(2), None);
        all.changes(4, None, ms(3), None);
        assert_eq!((all.home(3), all.home(4), all.home(5)), (Some("2"), None, None));
        assert_eq!(all.homes().collect::<Vec<_>>(), [(3, "2".to_owned())]);
    }
}
