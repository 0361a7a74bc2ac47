//! Losses of a hunt that follows threads: events that were overwritten before they could be read,
//! or not read before the end. Pure.

use crate::measure::integrity::entry;
use model::run::{Integrity, Run};
use model::text::several;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;

/// Gaps in the recorded events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Time up to which the threads have been followed.
    seen: Nanos,
    /// End of the last gap: later events of all CPUs were read, some earlier ones are missing.
    gap: Nanos,
    /// Number of polls in which events were missing.
    pub looks: u64,
    /// Total time in which events are missing.
    span: Nanos,
    /// Time at the end of the run whose events were not read.
    unread: Nanos,
    /// True if system calls are recorded: in many programs, these are most of the events.
    syscalls: bool,
}

impl Losses {
    /// No losses yet, in a run that starts at `began`.
    pub fn new(began: Nanos, syscalls: bool) -> Losses {
        Losses { seen: began, gap: began, syscalls, ..Losses::default() }
    }

    /// Counts a poll that found events missing before that time.
    pub fn missed(&mut self, before: Nanos) {
        self.looks += 1;
        self.span = self.span + Nanos((before - self.seen.max(self.gap)).0.max(0));
        self.gap = self.gap.max(before);
    }

    /// Notes that all events up to then have been read.
    pub fn read_until(&mut self, seen: Nanos) {
        self.seen = self.seen.max(seen);
    }

    /// Ends the run; events after the last poll are counted as unread.
    pub fn ended(&mut self, end: Nanos) {
        // A gap after the end is not part of the run.
        self.span = Nanos((self.span - Nanos((self.gap - end).0.max(0))).0.max(0));
        self.unread = Nanos((end - self.seen.max(self.gap)).0.max(0));
    }

    /// End of the last gap: wakings or switches before it may be missing.
    pub fn gap(&self) -> Nanos {
        self.gap
    }

    /// True if any events are missing.
    pub fn any(&self) -> bool {
        self.looks > 0 || self.unread.0 > 0
    }

    /// Writes the losses to the run, in place of an earlier entry.
    pub fn put_into(&self, run: &mut Run) {
        let Some(entry) = self.entry() else { return };
        match run.integrity.iter_mut().find(|known| known.kind == IntegrityKind::Lost) {
            Some(known) => *known = entry,
            None => run.integrity.push(entry),
        }
    }

    fn entry(&self) -> Option<Integrity> {
        let looks = several(self.looks, "read", "reads");
        let about = match self.span.0 {
            0 => String::new(),
            _ => format!(" (about {})", self.span.spoken()),
        };
        let overwritten = format!("the trace buffer overran in {looks}{about}");
        let unread = format!("the events of the last {} were not read", self.unread.spoken());
        let what = match (self.looks, self.unread.0) {
            (0, 0) => return None,
            (0, _) => unread,
            (_, 0) => overwritten,
            (_, _) => format!("{overwritten}, and {unread}"),
        };
        // Recorded late wake-ups are explained as usual: their ranking is valid.
        let detail = format!(
            "{what}: some wake-ups of the followed threads were not seen, so the true maximum may be larger; \
             reduce the events: {}",
            if self.syscalls {
                "remove --syscalls, or record them for less time, --syscalls=1s"
            } else {
                "use --no-stacks, or follow fewer threads"
            }
        );
        Some(entry(IntegrityKind::Lost, None, false, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn what_is_missing_is_reported_once_and_kept_up_to_date() {
        let (mut losses, mut run) = (Losses::new(Nanos(0), false), Run::default());
        losses.read_until(Nanos(10 * MS));
        losses.put_into(&mut run);
        assert!(!losses.any() && run.integrity.is_empty());
        losses.missed(Nanos(25 * MS));
        losses.put_into(&mut run);
        let first = run.integrity[0].detail.clone();
        assert!(first.contains("in 1 read (about 15"), "{first}");
        // Another CPU's gap within the known one adds a look, and no time.
        losses.missed(Nanos(20 * MS));
        losses.read_until(Nanos(30 * MS));
        losses.missed(Nanos(31 * MS));
        losses.put_into(&mut run);
        assert_eq!((losses.gap(), losses.looks), (Nanos(31 * MS), 3));
        assert_eq!(run.integrity.len(), 1);
        let entry = &run.integrity[0];
        assert_eq!((entry.kind.as_str(), entry.invalidates, entry.bars_claims()), ("lost", false, true));
        assert!(entry.detail.contains("in 3 reads (about 16"), "{}", entry.detail);
    }

    #[test]
    fn pages_not_read_in_time_at_the_end_count_as_missing() {
        let (mut losses, mut run) = (Losses::new(Nanos(0), false), Run::default());
        losses.read_until(Nanos(10 * MS));
        losses.ended(Nanos(10 * MS));
        assert!(!losses.any());
        losses.ended(Nanos(510 * MS));
        losses.put_into(&mut run);
        assert!(run.integrity[0].detail.starts_with("the events of the last 500"), "{:?}", run.integrity);
        assert!(run.integrity[0].bars_claims());
    }

    #[test]
    fn what_is_missing_after_the_end_is_no_part_of_the_run() {
        let (mut losses, mut run) = (Losses::new(Nanos(0), false), Run::default());
        losses.missed(Nanos(30 * MS));
        losses.ended(Nanos(20 * MS));
        losses.put_into(&mut run);
        assert!(run.integrity[0].detail.contains("(about 20"), "{:?}", run.integrity);
    }

    #[test]
    fn the_remedy_is_for_what_most_events_are_of() {
        let detail = |syscalls| {
            let (mut losses, mut run) = (Losses::new(Nanos(0), syscalls), Run::default());
            losses.missed(Nanos(0));
            losses.put_into(&mut run);
            run.integrity[0].detail.clone()
        };
        assert!(
            detail(true).ends_with("--syscalls=1s") && !detail(true).contains("about 0"),
            "{}",
            detail(true)
        );
        assert!(detail(false).ends_with("use --no-stacks, or follow fewer threads"), "{}", detail(false));
    }
}
