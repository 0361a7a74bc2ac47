//! Real-time threads as steps of one scale: stop threads, deadline threads, then priorities 99 down
//! to 1.
//!
//! Source: sched(7); SCHED_DEADLINE preempts every priority. The kernel's stop threads
//! (`migration/N`) preempt that too, and only show as FIFO 99 in `/proc`: `sched_set_stop_task()`
//! of kernel/sched/core.c.

use std::collections::BTreeMap;

use super::names::{collapsed, kind_of};
use facts::tasks::RtPolicy;
use facts::threads::{Thread, Threads};
use model::units::CpuSet;

/// Rank of deadline threads, above every priority.
pub const DEADLINE: u32 = 100;

/// Rank of the kernel's stop threads, above all.
pub const STOP: u32 = 101;

/// Rank in a word: `stop`, `dl`, or the priority.
pub fn rank_name(rank: u32) -> String {
    match rank {
        STOP => "stop".to_owned(),
        DEADLINE => "dl".to_owned(),
        priority => priority.to_string(),
    }
}

/// Limit of CPU sets at one priority; beyond it the threads are shown together.
const SETS: usize = 3;

/// Threads of one priority on the same CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityStep {
    /// Priority, [`DEADLINE`] or [`STOP`].
    pub rank: u32,
    /// True if they are the kernel's.
    pub kernel: bool,
    /// Names; those that differ in numbers only are joined.
    pub names: Vec<String>,
    /// Number of threads.
    pub count: usize,
    /// CPUs that they may run on; none if that could not be read.
    pub cpus: Option<CpuSet>,
    /// True if some may run on a part of these CPUs only.
    pub each: bool,
}

/// CPUs of a thread relative to the audited ones; threads of one place can be shown together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Apart,
    Across,
    Elsewhere,
    Unknown,
}

fn place(thread: &Thread, matter: &CpuSet) -> Place {
    match thread.allowed.known() {
        None => Place::Unknown,
        Some(cpus) if cpus.0.is_disjoint(&matter.0) => Place::Elsewhere,
        Some(cpus) if cpus.0.is_subset(&matter.0) => Place::Apart,
        Some(_) => Place::Across,
    }
}

/// Real-time threads of a machine, the highest first; at one priority, programs before those of the
/// kernel.
pub fn steps(threads: &Threads, matter: &CpuSet) -> Vec<PriorityStep> {
    let all = |list: &'_ [Thread], kernel| {
        list.iter().map(move |thread| (thread.clone(), kernel)).collect::<Vec<_>>()
    };
    let mut ranks: BTreeMap<(u32, bool), Vec<Thread>> = BTreeMap::new();
    for (thread, kernel) in [all(&threads.realtime, false), all(&threads.kernel, true)].concat() {
        let rank = match thread.policy {
            None => continue,
            Some(_) if kernel && thread.immovable && thread.comm.starts_with("migration/") => STOP,
            Some(RtPolicy::Deadline) => DEADLINE,
            Some(_) => thread.priority,
        };
        ranks.entry((rank, !kernel)).or_default().push(thread);
    }
    ranks
        .into_iter()
        .rev()
        .flat_map(|((rank, program), threads)| of_rank(rank, !program, threads, matter))
        .collect()
}

/// Steps of one priority: names that differ in numbers only are joined first, then threads on the
/// same CPUs.
fn of_rank(rank: u32, kernel: bool, threads: Vec<Thread>, matter: &CpuSet) -> Vec<PriorityStep> {
    let mut kinds: BTreeMap<(Place, String), Vec<Thread>> = BTreeMap::new();
    for thread in threads {
        // Per-CPU threads are one family, on all CPUs.
        let at = if thread.immovable { Place::Across } else { place(&thread, matter) };
        kinds.entry((at, kind_of(&thread.comm))).or_default().push(thread);
    }
    let mut places: BTreeMap<Place, Vec<Vec<Thread>>> = BTreeMap::new();
    kinds.into_iter().for_each(|((at, _), threads)| places.entry(at).or_default().push(threads));
    places.into_values().flat_map(|families| of_place(rank, kernel, families)).collect()
}

fn of_place(rank: u32, kernel: bool, families: Vec<Vec<Thread>>) -> Vec<PriorityStep> {
    let mut sets: Vec<(Option<CpuSet>, bool, Vec<Thread>)> = Vec::new();
    for family in families {
        let (cpus, each) = reach(&family);
        match sets.iter_mut().find(|(known, parts, _)| *known == cpus && *parts == each) {
            Some((_, _, threads)) => threads.extend(family),
            None => sets.push((cpus, each, family)),
        }
    }
    if sets.len() > SETS {
        let threads: Vec<Thread> = sets.into_iter().flat_map(|(_, _, threads)| threads).collect();
        let (cpus, each) = reach(&threads);
        sets = vec![(cpus, each, threads)];
    }
    let step = |(cpus, each, threads): (Option<CpuSet>, bool, Vec<Thread>)| PriorityStep {
        rank,
        kernel,
        names: collapsed(threads.iter().map(|thread| thread.comm.as_str())),
        count: threads.len(),
        cpus,
        each,
    };
    sets.into_iter().map(step).collect()
}

/// Union of the threads' CPUs, none if one is not known; true if some have only a part of it.
fn reach(threads: &[Thread]) -> (Option<CpuSet>, bool) {
    let known: Option<Vec<&CpuSet>> = threads.iter().map(|thread| thread.allowed.known()).collect();
    let Some(known) = known else { return (None, false) };
    let mut all = CpuSet::default();
    known.iter().for_each(|cpus| all.0.extend(&cpus.0));
    let each = known.iter().any(|cpus| cpus.len() < all.len());
    (Some(all), each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::Fact;

    /// Threads from `NAME PRIORITY CPUS` lines; 0 is not real-time, `dl` a deadline thread.
    fn threads(text: &str, immovable: bool) -> Vec<Thread> {
        let thread = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let policy = match words[1] {
                "0" => None,
                "dl" => Some(RtPolicy::Deadline),
                _ => Some(RtPolicy::Fifo),
            };
            let allowed = match words[2] {
                "?" => Fact::Refused(13),
                list => Fact::Known(CpuSet::parse(list).unwrap()),
            };
            let priority = words[1].parse().unwrap_or(0);
            Thread { tid: 1, start: 1, comm: words[0].to_owned(), policy, priority, allowed, immovable }
        };
        text.lines().map(str::trim).map(thread).collect()
    }

    fn check(kernel: &str, programs: &str, matter: &str, expected: &[&str]) {
        let immovable = kernel.contains("migration");
        let threads = Threads {
            kernel: threads(kernel, immovable),
            realtime: threads(programs, false),
            ..Threads::default()
        };
        let step = |step: &PriorityStep| {
            let cpus = step.cpus.as_ref().map_or("?".to_owned(), CpuSet::to_string);
            format!(
                "{}{} {cpus}{} {}",
                step.rank,
                if step.kernel { "k" } else { "" },
                if step.each { "+" } else { "" },
                step.names.join(" ")
            )
        };
        let steps: Vec<String> = steps(&threads, &CpuSet::parse(matter).unwrap()).iter().map(step).collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn deadline_comes_first_and_programs_before_kernel_threads() {
        check(
            "irq/9-acpi 50 0\nkthreadd 0 0-1\nktimers/0 1 0\nktimers/1 1 1",
            "loop 50 0-1\nsteer dl 1\nodd 80 ?",
            "",
            &["100 1 steer", "80 ? odd", "50 0-1 loop", "50k 0 irq/9-acpi", "1k 0-1+ ktimers/N (2)"],
        );
    }

    #[test]
    fn what_reaches_the_audited_cpus_is_not_merged() {
        let lines: Vec<String> = (0..9).map(|n| format!("irq/{n}-dev{} 50 {}", n % 7, n % 3)).collect();
        check(&lines.join("\n"), "", "2", &["50k 2 irq/N-devN (3)", "50k 0-1+ irq/N-devN (6)"]);
        let lines = ["a 50 0", "b 50 1", "c 50 2", "d 50 3"].join("\n");
        check(&lines, "", "", &["50k 0-3+ a b c d"]);
        check("migration/0 99 0\nmigration/1 99 1", "", "1", &["101k 0-1+ migration/N (2)"]);
    }
}
