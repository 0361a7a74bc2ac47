//! Advice on a real-time thread that ran first. The rule knows only that it ran; the user knows its
//! purpose, and the run shows the commands that change the order.
//!
//! Source: chrt(1), taskset(1) and sched(7); Documentation/scheduler/sched-deadline.rst, section 5,
//! for the CPUs of deadline threads.

use super::{find, preempted_by_thread, realtime_thread};
use model::run::{Culprit, CulpritThread, Run};
use model::units::CpuSet;

/// The kernel's priority of SCHED_FIFO 99.
const HIGHEST: i32 = 0;

/// Sets the remedies of culprits that rules match by priority alone to ones that fit this run.
pub fn renew(run: &mut Run) {
    let remedies: Vec<Option<String>> = run.culprits.iter().map(|culprit| remedy(culprit, run)).collect();
    for (culprit, remedy) in run.culprits.iter_mut().zip(remedies) {
        let Some(rule) = culprit.rule.as_deref().filter(|rule| by_priority(rule)).and_then(find) else {
            continue;
        };
        culprit.remedy = remedy.unwrap_or_else(|| rule.remedy.to_owned());
    }
}

/// Command that follows the culprit, if it may be the thread that has to be in time: a user's
/// real-time thread that ran before onbeat's.
pub fn follow(culprit: &Culprit, run: &Run) -> Option<String> {
    let thread = first(culprit).filter(|_| !run.follows())?;
    let who = if is_plain(&thread.comm) { thread.comm.clone() } else { number(culprit)?.to_string() };
    Some(format!("onbeat hunt --victim {who}"))
}

fn by_priority(rule: &str) -> bool {
    [realtime_thread::CULPRIT.id, preempted_by_thread::CULPRIT.id].contains(&rule)
}

/// The thread that took most, if it is a user's.
fn first(culprit: &Culprit) -> Option<&CulpritThread> {
    culprit.rule.as_deref().filter(|rule| by_priority(rule))?;
    let found = |thread: &CulpritThread| thread.found.as_ref().and_then(|found| found.kernel);
    let of_kernel = |thread: &CulpritThread| thread.of_kernel || found(thread) == Some(true);
    let users = !culprit.threads.iter().any(of_kernel);
    culprit.threads.first().filter(|thread| users && !thread.comm.is_empty())
}

fn remedy(culprit: &Culprit, run: &Run) -> Option<String> {
    let thread = first(culprit)?;
    let change = change(culprit, run);
    if run.follows() {
        return Some(change);
    }
    // A command that accepts names needs one that requires no quotes.
    let name = if is_plain(&thread.comm) { format!("`{}`", thread.comm) } else { "it".to_owned() };
    let follow = follow(culprit, run)
        .map_or_else(|| "with `onbeat hunt --victim`".to_owned(), |command| format!("`{command}`"));
    Some(format!("if {name} has the deadline, follow it: {follow}; otherwise {change}"))
}

/// Change that lets the other thread run first.
fn change(culprit: &Culprit, run: &Run) -> String {
    let most_urgent = culprit.threads.iter().map(|thread| thread.prio).min().unwrap_or(HIGHEST);
    let its = number(culprit).map_or("PID".to_owned(), |tid| tid.to_string());
    let elsewhere = format!("to another CPU (`taskset -pc {} {its}`)", other_cpus(run));
    let (yours, own) = yours(run);
    match most_urgent {
        // A deadline thread must be allowed on all CPUs of its root domain.
        ..HIGHEST => {
            "separate the two with a cpuset: no priority is above that of a deadline thread".to_owned()
        }
        HIGHEST => {
            let below = own.filter(|own| *own > 1).map_or("N".to_owned(), |own| (own - 1).to_string());
            format!("give it a priority below yours (`chrt -f -p {below} {its}`) or move it {elsewhere}")
        }
        prio => {
            let above = 100 - prio.min(98);
            format!(
                "give yours the higher priority (`chrt -f -p {above} {yours}`) or move the other thread {elsewhere}"
            )
        }
    }
}

/// ID and priority of the thread that has to be in time, if they are known.
fn yours(run: &Run) -> (String, Option<u32>) {
    if !run.follows() {
        return ("PID".to_owned(), run.plan.priority.filter(|priority| *priority > 0));
    }
    match run.threads.as_slice() {
        [one] if run.ended != model::vocabulary::Ended::Victim => {
            (one.tid.to_string(), Some(one.priority).filter(|priority| *priority > 0))
        }
        _ => ("PID".to_owned(), None),
    }
}

/// Thread ID, if it was a single thread that still exists.
fn number(culprit: &Culprit) -> Option<i32> {
    let one = culprit.threads.first().filter(|_| culprit.threads_seen == 1)?;
    one.found.as_ref().is_some_and(|found| found.is_alive()).then_some(one.tid)
}

/// CPUs that are not measured, or the placeholder `CPUS`.
fn other_cpus(run: &Run) -> String {
    let online = CpuSet::parse(&run.host.online).unwrap_or_default();
    let rest: Vec<String> = if run.follows() {
        Vec::new()
    } else {
        online.iter().filter(|cpu| !run.plan.cpus.contains(cpu)).map(|cpu| cpu.to_string()).collect()
    };
    match CpuSet::parse(&rest.join(",")) {
        Ok(rest) if !rest.is_empty() => rest.to_string(),
        _ => "CPUS".to_owned(),
    }
}

/// True if a shell reads a thread's name unchanged, and onbeat as a name.
fn is_plain(comm: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "._-+:@/".contains(c);
    let number = comm.chars().all(|c| c.is_ascii_digit());
    !comm.is_empty() && !number && !comm.starts_with('-') && comm.chars().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{FoundThread, ThreadRun};
    use model::units::{Cpu, Nanos};

    fn culprit(rule: &str, comm: &str, prio: i32, state: &str) -> Culprit {
        let found = FoundThread { state: state.into(), kernel: Some(false), ..FoundThread::default() };
        let thread =
            CulpritThread { tid: 4203, comm: comm.into(), prio, found: Some(found), ..Default::default() };
        Culprit { rule: Some(rule.into()), threads: vec![thread], threads_seen: 1, ..Culprit::default() }
    }

    fn hunt(culprit: Culprit) -> Run {
        let mut run = Run { command: "hunt".into(), culprits: vec![culprit], ..Run::default() };
        (run.plan.interval_ns, run.plan.priority) = (Some(Nanos::MILLI), Some(80));
        run.plan.cpus = vec![Cpu(2), Cpu(3)];
        run.host.online = "0-3".into();
        run
    }

    fn renewed_remedy(mut run: Run) -> String {
        renew(&mut run);
        run.culprits[0].remedy.clone()
    }

    #[test]
    fn both_ways_are_said_with_the_numbers_that_are_known() {
        assert_eq!(
            renewed_remedy(hunt(culprit("realtime-thread", "control", 19, "alive"))),
            "if `control` has the deadline, follow it: `onbeat hunt --victim control`; \
             otherwise give yours the higher priority (`chrt -f -p 81 PID`) or move the other thread to \
             another CPU (`taskset -pc 0-1 4203`)"
        );
        let ended = renewed_remedy(hunt(culprit("realtime-thread", "control", 4, "ended")));
        assert!(
            ended.ends_with(
                "(`chrt -f -p 96 PID`) or move the other thread to another CPU (`taskset -pc 0-1 PID`)"
            ),
            "{ended}"
        );
        let mut all = hunt(culprit("realtime-thread", "control", 4, "alive"));
        all.plan.cpus = (0..4).map(Cpu).collect();
        assert!(renewed_remedy(all).ends_with("(`taskset -pc CPUS 4203`)"));
    }

    #[test]
    fn a_priority_that_nothing_goes_before_is_no_number_to_beat() {
        let highest = renewed_remedy(hunt(culprit("realtime-thread", "hog", 0, "alive")));
        assert!(highest.contains("a priority below yours (`chrt -f -p 79 4203`)"), "{highest}");
        let deadline = renewed_remedy(hunt(culprit("realtime-thread", "hog", -1, "alive")));
        assert!(deadline.contains("otherwise separate the two with a cpuset") && !deadline.contains("chrt"));
    }

    #[test]
    fn the_kernel_s_threads_and_others_rules_keep_their_remedies() {
        let mut of_kernel = hunt(culprit("realtime-thread", "spi0", 49, "alive"));
        of_kernel.culprits[0].threads[0].found.as_mut().expect("found").kernel = Some(true);
        assert_eq!(follow(&of_kernel.culprits[0], &of_kernel), None);
        assert_eq!(renewed_remedy(of_kernel), realtime_thread::CULPRIT.remedy);
        let mut other = hunt(culprit("irq-thread", "irq/24-eth0", 49, "alive"));
        other.culprits[0].remedy = "its own".into();
        assert_eq!(renewed_remedy(other), "its own");
    }

    #[test]
    fn who_follows_a_thread_is_not_asked_whether_it_is_his() {
        let mut run = hunt(culprit("preempted-by-thread", "hog", 19, "alive"));
        run.plan.interval_ns = None;
        run.threads = vec![ThreadRun { tid: 77, priority: 50, ..ThreadRun::default() }];
        assert_eq!(follow(&run.culprits[0], &run), None);
        assert_eq!(
            renewed_remedy(run),
            "give yours the higher priority (`chrt -f -p 81 77`) or move the other thread to another CPU \
             (`taskset -pc CPUS 4203`)"
        );
    }

    #[test]
    fn names_that_a_shell_reads_otherwise_are_in_no_command() {
        for (comm, state, command) in [
            ("a b", "alive", Some("onbeat hunt --victim 4203")),
            ("$(x)", "ended", None),
            ("12", "ended", None),
            ("-a", "ended", None),
        ] {
            let run = hunt(culprit("realtime-thread", comm, 19, state));
            assert_eq!(follow(&run.culprits[0], &run).as_deref(), command, "{comm}");
            assert!(!renewed_remedy(run).contains("$("));
        }
    }
}
