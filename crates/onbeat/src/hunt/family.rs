//! Membership of threads in the followed program, from the kernel's fork, exec and exit events and
//! from the policy of a thread at its switches. Pure except for reads of /proc.
//!
//! Source: kernel/fork.c, fs/exec.c (`de_thread`: an executing thread takes the ID of its process),
//! kernel/exit.c.

use std::collections::{BTreeMap, BTreeSet};

use super::victims::{self, FollowedKind, MAX_VICTIMS, Victim};
use host::MachineFiles;
use trace::event::{Raw, Task, What};

/// Maximum number of members; a program with more threads at once is followed in part.
const MAX_MEMBERS: usize = 100_000;

/// Maximum number of threads whose policy is read without a switch: each is a file to read.
const MAX_LOOKED_AT: usize = 256;

/// Change in the set of followed threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyChange {
    /// A thread that runs under a real-time policy and is to be followed.
    Came(Task),
    /// A thread that has ended, changed its ID, or makes room for a more urgent one.
    Left(i32),
}

/// Member threads, and those of them that are followed.
#[derive(Clone, Debug)]
pub struct Family {
    kind: FollowedKind,
    members: BTreeSet<i32>,
    followed: BTreeMap<i32, Victim>,
    /// Threads without a real-time policy, or of another process; they are checked again later.
    passed_over: BTreeSet<i32>,
    /// Threads that are there and were to be followed, with room or without, and how many there
    /// were in all.
    wanted: BTreeSet<i32>,
    seen: u64,
    /// Threads that were made beyond those that can be remembered.
    unremembered: u64,
    /// Real-time threads by /proc for which no switch was recorded.
    unseen: BTreeSet<i32>,
}

impl Family {
    /// A family that follows `victims` from the beginning; `members` are all its threads.
    pub fn new(kind: FollowedKind, victims: Vec<Victim>, members: impl IntoIterator<Item = i32>) -> Family {
        let members = members.into_iter().chain(victims.iter().map(|victim| victim.thread)).collect();
        let followed: BTreeMap<i32, Victim> =
            victims.into_iter().map(|victim| (victim.thread, victim)).collect();
        Family {
            wanted: followed.keys().copied().collect(),
            seen: followed.len() as u64,
            kind,
            members,
            followed,
            passed_over: BTreeSet::new(),
            unremembered: 0,
            unseen: BTreeSet::new(),
        }
    }

    /// True if threads may join later.
    pub fn grows(&self) -> bool {
        self.kind != FollowedKind::Thread
    }

    pub fn followed(&self) -> impl Iterator<Item = &Victim> {
        self.followed.values()
    }

    /// IDs of the followed threads.
    pub fn threads(&self) -> Vec<i32> {
        self.followed.keys().copied().collect()
    }

    /// Threads that were to be followed since the beginning, each once, with room or without.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Number of threads created beyond the limit of members: their policy is unknown.
    pub fn unremembered(&self) -> u64 {
        self.unremembered
    }

    /// Number of real-time threads for which no switch was recorded.
    pub fn unseen(&self) -> u64 {
        self.unseen.len() as u64
    }

    /// True if [`Family::observe`] uses the event.
    pub fn wants(event: &Raw) -> bool {
        matches!(event.what, What::Switch { .. } | What::Fork { .. } | What::Exec { .. } | What::Exit)
    }

    /// Processes the next event in order of time.
    pub fn observe(&mut self, event: &Raw) -> Option<FamilyChange> {
        match &event.what {
            What::Fork { child } => {
                let ours = self.members.contains(&event.pid) && self.grows();
                // The ID may have belonged to another thread.
                self.forget(*child);
                if ours && !matches!(self.kind, FollowedKind::Named(_)) {
                    self.remember(*child);
                }
                None
            }
            What::Exec { old } if *old != event.pid => {
                let ours = self.members.contains(old);
                // It is the same thread by another number; one that is followed begins anew.
                let counted = !self.followed.contains_key(old) && self.wanted.contains(old);
                let left = self.leaves(*old);
                if ours {
                    self.members.insert(event.pid);
                }
                if counted {
                    self.wanted.insert(event.pid);
                }
                left
            }
            What::Exit => self.leaves(event.pid),
            // If the switch to the thread was not recorded, the one away from it is.
            What::Switch { prev, next, .. } => self.runs(next).or_else(|| self.runs(prev)),
            _ => None,
        }
    }

    fn leaves(&mut self, thread: i32) -> Option<FamilyChange> {
        let was = self.forget(thread);
        was.then_some(FamilyChange::Left(thread))
    }

    fn forget(&mut self, thread: i32) -> bool {
        self.members.remove(&thread);
        self.passed_over.remove(&thread);
        self.wanted.remove(&thread);
        self.followed.remove(&thread).is_some()
    }

    fn remember(&mut self, thread: i32) {
        if self.members.len() < MAX_MEMBERS {
            self.members.insert(thread);
        } else {
            self.unremembered += 1;
        }
    }

    fn runs(&mut self, task: &Task) -> Option<FamilyChange> {
        let named = |name: &String| task.comm.text() == name.as_str();
        let belongs = match &self.kind {
            FollowedKind::Thread => return None,
            // All threads of that name, whatever their policy, as at the beginning.
            FollowedKind::Named(name) => named(name),
            // A restarted program has threads of its name that are not members yet.
            FollowedKind::NamedProcesses(name) | FollowedKind::NamedThread(name) => {
                task.real_time() && (named(name) || self.members.contains(&task.pid))
            }
            FollowedKind::Process(_) | FollowedKind::Program => {
                task.real_time() && self.members.contains(&task.pid)
            }
        };
        let known = self.followed.contains_key(&task.pid) || self.passed_over.contains(&task.pid);
        self.unseen.remove(&task.pid);
        if !belongs || known {
            return None;
        }
        self.seen += u64::from(self.wanted.insert(task.pid));
        if self.followed.len() >= MAX_VICTIMS {
            let comes = Victim::from_event(task).urgency();
            let least = self.followed.values().max_by_key(|victim| (victim.urgency(), victim.thread));
            // It makes room, and the more urgent one comes with its next switch.
            let least = least.filter(|victim| victim.urgency() > comes).map(|victim| victim.thread);
            let left_out = least.unwrap_or(task.pid);
            self.passed_over.insert(left_out);
            self.followed.remove(&left_out);
            return least.map(FamilyChange::Left);
        }
        self.followed.insert(task.pid, Victim::from_event(task));
        Some(FamilyChange::Came(*task))
    }

    /// Checks a new thread in /proc; true if it is to be followed. Its priority may be inherited
    /// through a lock, and a process may have started another.
    pub fn confirm(&mut self, host: &MachineFiles, thread: i32) -> bool {
        // A thread that has ended was as its events show.
        let Some(found) = victims::thread(host, thread) else { return true };
        let ours = match self.kind {
            FollowedKind::Process(process) => {
                found.real_time && victims::process_of(host, thread).is_none_or(|of| of == process)
            }
            FollowedKind::NamedProcesses(ref name) => {
                let process = victims::process_of(host, thread).and_then(|of| victims::thread(host, of));
                found.real_time && process.is_none_or(|of| of.comm == *name)
            }
            FollowedKind::NamedThread(ref name) => {
                found.real_time && (found.comm == *name || self.members.contains(&thread))
            }
            FollowedKind::Program => found.real_time,
            FollowedKind::Thread | FollowedKind::Named(_) => true,
        };
        if ours {
            self.followed.insert(thread, found);
        } else {
            self.followed.remove(&thread);
            self.passed_over.insert(thread);
            self.seen -= u64::from(self.wanted.remove(&thread));
        }
        ours
    }

    /// Checks rejected threads again when they next run, because policies change.
    pub fn look_again(&mut self) {
        if self.followed.len() < MAX_VICTIMS {
            self.passed_over.clear();
        }
    }

    /// Adds threads that were not seen: created before recording, or while events were lost.
    pub fn scan(&mut self, host: &MachineFiles) {
        let processes: BTreeSet<i32> = match &self.kind {
            FollowedKind::Process(process) => [*process].into(),
            FollowedKind::NamedProcesses(name) => victims::processes_named(host, name).into_iter().collect(),
            FollowedKind::NamedThread(name) => victims::processes_with(host, name).into_iter().collect(),
            FollowedKind::Program => {
                self.members.iter().filter_map(|&member| victims::process_of(host, member)).collect()
            }
            FollowedKind::Thread | FollowedKind::Named(_) => return,
        };
        let threads = processes.into_iter().flat_map(|process| victims::threads_of(host, process));
        self.members.extend(threads.take(MAX_MEMBERS));
    }

    /// Looks for real-time threads of a program whose switches the kernel does not show, while none
    /// is followed.
    pub fn look_for_unseen(&mut self, host: &MachineFiles) {
        if self.kind != FollowedKind::Program || !self.followed.is_empty() {
            return;
        }
        self.scan(host);
        let policies = self.members.iter().take(MAX_LOOKED_AT).filter_map(|&tid| victims::thread(host, tid));
        let real_time = policies.filter(|found| found.real_time).map(|found| found.thread);
        self.unseen.extend(real_time);
    }

    /// True if no thread is left. A hunt with an end waits for the next thread of the name, for
    /// example after a restart of the program.
    pub fn is_gone(&self, host: &MachineFiles, has_end: bool) -> bool {
        use FollowedKind::{Named, NamedProcesses, NamedThread, Process};
        if has_end && matches!(self.kind, Named(_) | NamedProcesses(_) | NamedThread(_)) {
            return false;
        }
        let follows = self.followed.values().any(|victim| victim.is_alive(host));
        let others = || self.members.iter().any(|&member| victims::thread(host, member).is_some());
        let left =
            follows || matches!(self.kind, Process(_) | NamedProcesses(_) | NamedThread(_)) && others();
        !left
    }

    /// Number of remaining member processes other than `program`.
    pub fn processes_beside(&self, host: &MachineFiles, program: i32) -> u64 {
        let of =
            |&member: &i32| victims::thread(host, member).and_then(|_| victims::process_of(host, member));
        let processes: BTreeSet<i32> = self.members.iter().filter_map(of).collect();
        processes.iter().filter(|&&process| process != program).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{event, switch};
    use host::access::Access;

    const RT: i32 = 19;

    fn runs(pid: i32, prio: i32) -> Raw {
        let task = |pid, prio| Task { comm: "work".into(), pid, prio };
        event(1, 0, 3, What::Switch { prev: task(3, 120), state: 1, next: task(pid, prio) })
    }

    fn fork(by: i32, child: i32) -> Raw {
        event(1, 0, by, What::Fork { child })
    }

    fn program() -> Family {
        Family::new(FollowedKind::Program, Vec::new(), [10])
    }

    fn came(change: Option<FamilyChange>) -> Option<i32> {
        change.map(|change| match change {
            FamilyChange::Came(task) => task.pid,
            FamilyChange::Left(thread) => -thread,
        })
    }

    #[test]
    fn threads_and_processes_that_come_later_belong_and_are_judged_by_their_policy() {
        let mut family = program();
        for (raw, expected) in [
            (runs(10, 120), None),
            (fork(10, 11), None),
            (fork(11, 12), None),
            (fork(3, 13), None),
            (runs(12, 120), None),
            (runs(12, RT), Some(12)),
            (runs(12, RT), None),
            (runs(13, RT), None),
            (event(1, 0, 12, What::Exit), Some(-12)),
            // Its ID belongs to another thread now.
            (fork(3, 12), None),
            (runs(12, RT), None),
        ] {
            assert!(Family::wants(&raw));
            assert_eq!(came(family.observe(&raw)), expected, "{raw:?}");
        }
    }

    #[test]
    fn one_that_is_seen_to_leave_its_cpu_ran_there() {
        let mut family = program();
        let task = |pid, prio| Task { comm: "work".into(), pid, prio };
        let leaves = |prio| What::Switch { prev: task(10, prio), state: 1, next: task(0, 120) };
        assert_eq!(came(family.observe(&event(1, 1, 10, leaves(120)))), None);
        assert_eq!(came(family.observe(&event(2, 1, 10, leaves(RT)))), Some(10));
        assert_eq!(came(family.observe(&event(3, 1, 10, leaves(RT)))), None);
        // An ending thread is removed before it leaves its CPU for the last time.
        family.observe(&event(4, 1, 10, What::Exit));
        assert_eq!(came(family.observe(&event(5, 1, 10, leaves(RT)))), None);
    }

    #[test]
    fn a_thread_that_executes_has_its_process_s_number() {
        let mut family = program();
        family.observe(&fork(10, 11));
        assert_eq!(came(family.observe(&runs(11, RT))), Some(11));
        assert_eq!(came(family.observe(&event(1, 0, 10, What::Exec { old: 11 }))), Some(-11));
        assert_eq!(came(family.observe(&runs(10, RT))), Some(10));
        assert_eq!(family.observe(&event(1, 0, 10, What::Exec { old: 10 })), None);
        assert_eq!(family.followed().count(), 1);
    }

    #[test]
    fn a_name_takes_all_that_bear_it_and_a_thread_nobody_else() {
        let named = FollowedKind::Named("work".to_owned());
        let mut family = Family::new(named, Vec::new(), []);
        assert_eq!(came(family.observe(&runs(20, 120))), Some(20));
        assert_eq!(came(family.observe(&switch(1, 0, 3, 21))), None);
        let mut family = Family::new(FollowedKind::Thread, Vec::new(), [10]);
        family.observe(&fork(10, 11));
        assert!(family.observe(&runs(11, RT)).is_none() && !family.grows());
        // Found before it became real-time, it stands for its process; a hunt with an end waits for
        // the program's next start.
        let mut family = Family::new(FollowedKind::NamedThread("work".to_owned()), Vec::new(), [10]);
        assert_eq!(came(family.observe(&event(1, 0, 10, What::Exit))), None);
        let no_process = MachineFiles::in_memory(BTreeMap::new());
        assert!(!family.is_gone(&no_process, true) && family.is_gone(&no_process, false));
        assert_eq!(
            (came(family.observe(&runs(20, 120))), came(family.observe(&runs(20, RT)))),
            (None, Some(20))
        );
    }

    #[test]
    fn more_than_can_be_followed_are_counted() {
        let mut family = program();
        for child in 100..100 + MAX_VICTIMS as i32 + 5 {
            family.observe(&fork(10, child));
            family.observe(&runs(child, RT));
            family.observe(&runs(child, RT));
        }
        let all = MAX_VICTIMS as u64 + 5;
        assert_eq!((family.followed().count(), family.seen()), (MAX_VICTIMS, all));
        // Looked at again they are the same, and so is one that finds room.
        let last = 100 + MAX_VICTIMS as i32 + 4;
        family.observe(&event(1, 0, 100, What::Exit));
        family.look_again();
        assert_eq!(came(family.observe(&runs(last, RT))), Some(last));
        family.observe(&runs(last - 1, RT));
        assert_eq!(family.seen(), all);
        // One that ended was there, and its number is another's now.
        family.observe(&event(1, 0, last - 1, What::Exit));
        family.observe(&fork(10, last - 1));
        family.observe(&runs(last - 1, RT));
        assert_eq!((family.followed().count(), family.seen()), (MAX_VICTIMS, all + 1));
    }

    #[test]
    fn a_more_urgent_thread_takes_the_place_of_the_least_urgent() {
        let mut family = program();
        for child in 100..100 + MAX_VICTIMS as i32 {
            family.observe(&fork(10, child));
            family.observe(&runs(child, RT));
        }
        family.observe(&fork(10, 500));
        assert_eq!(came(family.observe(&runs(500, RT))), None, "as urgent as the others");
        family.observe(&fork(10, 501));
        let last = 99 + MAX_VICTIMS as i32;
        assert_eq!(came(family.observe(&runs(501, RT - 1))), Some(-last));
        assert_eq!(came(family.observe(&runs(501, RT - 1))), Some(501));
        // One that made room is the same when it comes again.
        family.observe(&event(1, 0, 100, What::Exit));
        family.look_again();
        assert_eq!(came(family.observe(&runs(last, RT))), Some(last));
        assert_eq!((family.followed().count(), family.seen()), (MAX_VICTIMS, MAX_VICTIMS as u64 + 2));
    }

    #[test]
    fn threads_that_cannot_be_remembered_are_counted() {
        let mut family = Family::new(FollowedKind::Program, Vec::new(), 10..10 + MAX_MEMBERS as i32);
        family.observe(&fork(10, 5));
        family.observe(&fork(10, 6));
        assert_eq!((family.unremembered(), family.observe(&runs(5, RT))), (2, None));
    }

    fn stat(policy: u32) -> BTreeMap<String, Access> {
        let (before, between) = (" 0".repeat(18), " 0".repeat(17));
        let text = format!("11 (work) S{before} 1000{between} 50 {policy} 0 0\n");
        BTreeMap::from([("/proc/11/stat".to_owned(), Access::File(text.into_bytes()))])
    }

    #[test]
    fn a_real_time_thread_without_a_switch_is_found_in_proc() {
        for (policy, unseen) in [(0, 0), (1, 1)] {
            let mut family = Family::new(FollowedKind::Program, Vec::new(), [10, 11]);
            family.look_for_unseen(&MachineFiles::in_memory(stat(policy)));
            assert_eq!(family.unseen(), unseen);
            // Its switches are recorded after all.
            assert_eq!(came(family.observe(&runs(11, RT))), Some(11));
            family.look_for_unseen(&MachineFiles::in_memory(stat(policy)));
            assert_eq!(family.unseen(), 0);
        }
    }

    #[test]
    fn an_inherited_priority_is_no_policy() {
        let mut family = program();
        family.observe(&fork(10, 11));
        family.observe(&runs(11, RT));
        assert!(!family.confirm(&MachineFiles::in_memory(stat(0)), 11));
        assert_eq!((family.followed().count(), family.observe(&runs(11, RT))), (0, None));
        family.look_again();
        assert_eq!(came(family.observe(&runs(11, RT))), Some(11));
        assert!(family.confirm(&MachineFiles::in_memory(stat(1)), 11));
        assert_eq!(family.followed().next().map(|victim| victim.policy), Some("fifo"));
    }
}
