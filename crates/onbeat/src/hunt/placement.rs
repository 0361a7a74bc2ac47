//! CPUs for onbeat's own thread while it follows others: those where none of them may run. Pure.
//!
//! Where it shared a CPU with a followed thread it would be part of what it reports: it reads the
//! buffers while a thread of lower priority holds what the followed one waits for.

use crate::measure::integrity::entry;
use model::run::Integrity;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::IntegrityKind;

/// Moves beyond this number get no entry of their own: the last entry reports that.
const MAX_ENTRIES: u32 = 20;

/// Masks are read again this often while followed threads run next to onbeat's own: each is a file
/// to read, and programs pin their threads some time after these have become real-time.
const AGAIN: Nanos = Nanos(100_000_000);

/// The CPUs to choose from.
#[derive(Clone, Debug)]
pub struct HousekeepingPlacement {
    usable: CpuSet,
    isolated: CpuSet,
    asked: Option<CpuSet>,
    /// What was chosen last, and on which of it followed threads may run.
    last: Option<(CpuSet, CpuSet)>,
    entries: u32,
    /// Threads have come that were not asked where they may run.
    unasked: bool,
    /// A followed thread ran on one of the CPUs that were chosen last.
    beside: bool,
    asked_at: Nanos,
}

/// A choice that differs from the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    pub cpus: CpuSet,
    /// The integrity entry for it, if it needs one.
    pub entry: Option<Integrity>,
}

impl HousekeepingPlacement {
    /// Of these CPUs, preferably not the isolated ones; what the user gave (`--housekeeping`) wins.
    pub fn new(usable: CpuSet, isolated: CpuSet, asked: Option<CpuSet>) -> HousekeepingPlacement {
        HousekeepingPlacement {
            usable,
            isolated,
            asked,
            last: None,
            entries: 0,
            unasked: false,
            beside: false,
            asked_at: Nanos(0),
        }
    }

    /// These are followed, and were not before.
    pub fn came(&mut self, threads: &[i32]) {
        self.unasked |= !threads.is_empty();
    }

    /// A followed thread runs there.
    pub fn ran_on(&mut self, cpu: Cpu) {
        self.beside |= self.last.as_ref().is_some_and(|last| last.0.contains(cpu));
    }

    /// Whether the threads are to be asked for their masks before the second is over.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let due = self.unasked || (self.beside && now - self.asked_at >= AGAIN);
        if due {
            (self.unasked, self.beside, self.asked_at) = (false, false, now);
        }
        due
    }

    /// Where to run next to threads with these masks; none where that has not changed.
    ///
    /// A place that none of them may use is left for no other one: what a followed thread did
    /// before it ended is still recorded, and its CPU is no better than any.
    pub fn place(&mut self, masks: &[CpuSet]) -> Option<Placement> {
        let taken = masks.iter().fold(CpuSet::default(), |all, mask| all.or(mask));
        let serves = |(cpus, shared): &(CpuSet, CpuSet)| {
            masks.is_empty() || (shared.is_empty() && cpus.and(&taken).is_empty())
        };
        if self.last.as_ref().is_some_and(serves) {
            return None;
        }
        let cpus = self.asked.clone().unwrap_or_else(|| self.choose(&taken, masks));
        let shared = cpus.and(&taken);
        let now = (cpus.clone(), shared.clone());
        if self.last.as_ref() == Some(&now) {
            return None;
        }
        let before = self.last.replace(now);
        let first = before.is_none();
        // An entry is made if it shares a CPU with them, no matter which of several.
        if before.map_or(CpuSet::default(), |last| last.1).is_empty() == shared.is_empty() {
            return Some(Placement { cpus, entry: None });
        }
        self.entries += 1;
        let entry = (self.entries <= MAX_ENTRIES).then(|| self.entry(first, &cpus, &shared));
        Some(Placement { cpus, entry })
    }

    fn choose(&self, taken: &CpuSet, masks: &[CpuSet]) -> CpuSet {
        let free = self.usable.without(taken);
        let pool = if free.is_empty() { self.usable.clone() } else { free };
        let quiet = pool.without(&self.isolated);
        let pool = if quiet.is_empty() { pool } else { quiet };
        // Where no CPU is free, those that the fewest threads may run on.
        let many = |cpu: &Cpu| masks.iter().filter(|mask| mask.contains(*cpu)).count();
        let least = pool.iter().map(|cpu| many(&cpu)).min();
        pool.iter().filter(|cpu| Some(many(cpu)) == least).collect()
    }

    fn entry(&self, first: bool, cpus: &CpuSet, shared: &CpuSet) -> Integrity {
        let moved = if first {
            ""
        } else {
            "the CPUs that followed threads may use changed meanwhile, with new threads or for old ones: "
        };
        let mut detail = match (shared.is_empty(), &self.asked) {
            (true, _) => format!("{moved}onbeat's own thread runs on {cpus}, where none of them may"),
            (false, Some(_)) => format!(
                "{moved}onbeat's own thread runs on {cpus}, as --housekeeping asks, and followed threads \
                may run on {shared}: \
                 what it does there may be part of what is reported; leave --housekeeping out"
            ),
            (false, None) => format!(
                "{moved}followed threads may run on every CPU that onbeat may use, so its own thread \
                shares {shared} with them and may be \
                 part of what is reported: keep them off one CPU (taskset), or name one with --housekeeping"
            ),
        };
        if self.entries == MAX_ENTRIES {
            detail.push_str("; later moves are not listed");
        }
        entry(IntegrityKind::Housekeeping, None, false, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    fn chosen(room: &mut HousekeepingPlacement, masks: &[&str]) -> Option<(String, String)> {
        let masks: Vec<CpuSet> = masks.iter().map(|mask| set(mask)).collect();
        let place = room.place(&masks)?;
        Some((place.cpus.to_string(), place.entry.map_or_else(String::new, |entry| entry.detail)))
    }

    fn quietly(cpus: &str) -> Option<(String, String)> {
        Some((cpus.into(), String::new()))
    }

    #[test]
    fn where_no_followed_thread_may_run_and_rather_not_isolated() {
        let room = HousekeepingPlacement::new(set("0-3"), set("3"), None);
        assert_eq!(chosen(&mut room.clone(), &["1"]), quietly("0,2"));
        assert_eq!(chosen(&mut room.clone(), &["0-1", "2"]), quietly("3"));
        assert_eq!(chosen(&mut room.clone(), &[]), quietly("0-2"));
        // A mask that reaches beyond what onbeat may use.
        assert_eq!(chosen(&mut room.clone(), &["1-63"]), quietly("0"));
    }

    #[test]
    fn where_that_is_impossible_it_warns_once_and_takes_the_least_shared() {
        let mut room = HousekeepingPlacement::new(set("0-1"), set(""), None);
        let (cpus, said) = chosen(&mut room, &["0-1", "1"]).expect("chosen");
        assert!(cpus == "0" && said.contains("shares 0 with them"), "{cpus} {said}");
        assert_eq!(chosen(&mut room, &["0-1", "1"]), None);
    }

    #[test]
    fn masks_that_change_move_it() {
        let mut room = HousekeepingPlacement::new(set("0-1"), set(""), None);
        assert_eq!(chosen(&mut room, &["1"]), quietly("0"));
        assert_eq!(chosen(&mut room, &["1"]), None);
        assert_eq!(chosen(&mut room, &["0"]), quietly("1"));
        let (cpus, said) = chosen(&mut room, &["0-1"]).expect("shared");
        assert!(
            cpus == "0-1" && said.contains("changed meanwhile") && said.contains("keep them off one CPU"),
            "{said}"
        );
        assert_eq!(chosen(&mut room, &["0-1", "1"]), quietly("0"));
        let (cpus, said) = chosen(&mut room, &["0"]).expect("free again");
        assert!(cpus == "1" && said.contains("runs on 1, where none of them may"), "{cpus} {said}");
        let moves: Vec<_> = (0..100).filter_map(|n| chosen(&mut room, &[["0-1", "0"][n % 2]])).collect();
        let said: Vec<_> = moves.iter().map(|moved| &moved.1).filter(|said| !said.is_empty()).collect();
        assert_eq!((moves.len(), said.len()), (100, MAX_ENTRIES as usize - 2));
        assert!(said.last().is_some_and(|last| last.contains("not listed")), "{said:?}");
    }

    #[test]
    fn a_followed_thread_that_ends_moves_nothing() {
        let mut room = HousekeepingPlacement::new(set("0-3"), set(""), None);
        assert_eq!(chosen(&mut room, &["1", "2"]), quietly("0,3"));
        assert_eq!(chosen(&mut room, &["2"]), None, "the CPU of the one that ended is not taken");
        assert_eq!(chosen(&mut room, &[]), None);
        assert_eq!(chosen(&mut room, &["0"]), quietly("1-3"), "another came where it runs");
        // Where it shared a CPU, that stays so: nothing is said of a better place.
        let mut room = HousekeepingPlacement::new(set("0"), set(""), None);
        assert!(chosen(&mut room, &["0"]).is_some_and(|(_, said)| said.contains("shares 0 with them")));
        assert_eq!(chosen(&mut room, &[]), None);
    }

    #[test]
    fn masks_are_asked_for_when_threads_come_and_while_they_run_beside_it() {
        let mut room = HousekeepingPlacement::new(set("0-1"), set(""), None);
        assert_eq!(chosen(&mut room, &[]), quietly("0-1"));
        assert!(!room.is_due(Nanos(1)));
        room.came(&[]);
        assert!(!room.is_due(Nanos(2)));
        room.came(&[7]);
        assert!(room.is_due(Nanos(2)) && !room.is_due(Nanos(3)), "once");
        // It was pinned after it had come.
        room.ran_on(Cpu(1));
        assert!(!room.is_due(Nanos(3)) && room.is_due(Nanos(2) + AGAIN));
        assert_eq!(chosen(&mut room, &["1"]), quietly("0"));
        room.ran_on(Cpu(1));
        assert!(!room.is_due(Nanos(i64::MAX / 2)), "that is another CPU");
    }

    #[test]
    fn the_users_choice_wins_with_a_warning() {
        let mut room = HousekeepingPlacement::new(set("0-3"), set(""), Some(set("1-2")));
        let (cpus, said) = chosen(&mut room, &["1"]).expect("chosen");
        assert!(
            cpus == "1-2" && said.contains("as --housekeeping asks") && said.contains("run on 1:"),
            "{said}"
        );
        assert_eq!(
            chosen(&mut HousekeepingPlacement::new(set("0-3"), set(""), Some(set("2"))), &["1"]),
            quietly("2")
        );
    }
}
