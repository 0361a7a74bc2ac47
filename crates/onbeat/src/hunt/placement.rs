//! CPUs for onbeat's housekeeping thread: those on which no followed thread may run. Pure.
//!
//! On a CPU of a followed thread it would affect what it reports: it reads the buffers while a
//! thread of lower priority holds a lock that the followed one waits for.

use crate::measure::integrity::entry;
use model::run::Integrity;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::IntegrityKind;

/// Maximum number of entries for moves; the last one says that later moves are not listed.
const MAX_ENTRIES: u32 = 20;

/// Interval between reads of the masks while followed threads run on onbeat's CPUs: each is a file,
/// and programs pin their threads some time after making them real-time.
const AGAIN: Nanos = Nanos(100_000_000);

/// CPUs to choose from, and the last choice.
#[derive(Clone, Debug)]
pub struct HousekeepingPlacement {
    usable: CpuSet,
    isolated: CpuSet,
    asked: Option<CpuSet>,
    /// Last choice, and those of its CPUs on which followed threads may run.
    last: Option<(CpuSet, CpuSet)>,
    entries: u32,
    /// True if there are new threads whose masks have not been read.
    unasked: bool,
    /// True if a followed thread ran on one of the CPUs of the last choice.
    beside: bool,
    asked_at: Nanos,
}

/// Choice that differs from the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    pub cpus: CpuSet,
    /// Integrity entry for it, if it needs one.
    pub entry: Option<Integrity>,
}

impl HousekeepingPlacement {
    /// A choice among `usable`, preferably not isolated; `asked` (`--housekeeping`) overrides it.
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

    /// Notes threads that are newly followed.
    pub fn came(&mut self, threads: &[i32]) {
        self.unasked |= !threads.is_empty();
    }

    /// Notes that a followed thread ran on this CPU.
    pub fn ran_on(&mut self, cpu: Cpu) {
        self.beside |= self.last.as_ref().is_some_and(|last| last.0.contains(cpu));
    }

    /// True if the threads' masks are to be read before the end of the second.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let due = self.unasked || (self.beside && now - self.asked_at >= AGAIN);
        if due {
            (self.unasked, self.beside, self.asked_at) = (false, false, now);
        }
        due
    }

    /// CPUs to run on next to threads with these masks; none if the choice is unchanged.
    ///
    /// CPUs that none of the threads may use are kept: events of a followed thread that has ended
    /// may still be unread, and its CPU is no better.
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
        // An entry is needed if sharing begins or ends, whichever CPUs are shared.
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
        // If no CPU is free, those that the fewest threads may use.
        let many = |cpu: &Cpu| masks.iter().filter(|mask| mask.contains(*cpu)).count();
        let least = pool.iter().map(|cpu| many(&cpu)).min();
        pool.iter().filter(|cpu| Some(many(cpu)) == least).collect()
    }

    fn entry(&self, first: bool, cpus: &CpuSet, shared: &CpuSet) -> Integrity {
        let moved = if first { "" } else { "the CPUs of the followed threads changed during the run: " };
        let mut detail = match (shared.is_empty(), &self.asked) {
            (true, _) => format!("{moved}onbeat's own thread runs on {cpus}, which none of them may use"),
            (false, Some(_)) => format!(
                "{moved}onbeat's own thread runs on {cpus} as requested with --housekeeping, and followed \
                 threads may run on {shared}: its work there may affect the results; remove --housekeeping"
            ),
            (false, None) => format!(
                "{moved}followed threads may use every CPU that onbeat may use, so its own thread shares \
                 {shared} with them and may affect the results: keep them off one CPU (taskset), or give one \
                 with --housekeeping"
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
        // A mask that reaches beyond the CPUs that onbeat may use.
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
            cpus == "0-1"
                && said.contains("changed during the run")
                && said.contains("keep them off one CPU"),
            "{said}"
        );
        assert_eq!(chosen(&mut room, &["0-1", "1"]), quietly("0"));
        let (cpus, said) = chosen(&mut room, &["0"]).expect("free again");
        assert!(cpus == "1" && said.contains("runs on 1, which none of them may use"), "{cpus} {said}");
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
        // If it shares a CPU and keeps it, no entry reports a better place.
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
        // The thread was pinned after it had appeared.
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
            cpus == "1-2" && said.contains("as requested with --housekeeping") && said.contains("run on 1:"),
            "{said}"
        );
        assert_eq!(
            chosen(&mut HousekeepingPlacement::new(set("0-3"), set(""), Some(set("2"))), &["1"]),
            quietly("2")
        );
    }
}
