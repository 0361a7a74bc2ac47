//! Sentences on the thread of a culprit: its program, policy and CPUs, whether it still exists, how
//! long each of its turns took, and how often they came.

use crate::words::{MachineClock, clean, several, span};
use model::run::{Culprit, CulpritThread, CulpritTurns, FoundThread, Run};
use model::units::{Nanos, named_cpus};
use stats::time::period_name;

/// Sentence on the culprit at a place of the ranking; it refers to an earlier culprit with the same
/// thread, whose turns are in other spikes and would read as another period.
pub fn sentence_at(run: &Run, at: usize) -> String {
    let culprit = &run.culprits[at];
    let only = |culprit: &Culprit| match culprit.threads.as_slice() {
        [one] if culprit.threads_seen <= 1 => Some(one.tid),
        _ => None,
    };
    let above =
        only(culprit).and_then(|tid| run.culprits[..at].iter().position(|other| only(other) == Some(tid)));
    match above {
        Some(above) => format!("the thread under {}, in {} of its turns", above + 1, turns_counted(culprit)),
        None => sentence(culprit, run),
    }
}

fn turns_counted(culprit: &Culprit) -> u64 {
    culprit.turns.as_ref().map_or(1, |turns| turns.count)
}

/// All that is known, for -v and for the page; empty if the culprit is not a thread.
fn sentence(culprit: &Culprit, run: &Run) -> String {
    let Some(first) = culprit.threads.first() else { return String::new() };
    let mut words = vec![numbers(culprit)];
    words.extend(kernels(first));
    if let Some(found) = &first.found {
        words.extend(identity(found));
        words.extend(lifetime(found, run));
        words.extend(found.unread.iter().map(|what| clean(what)));
    }
    words.extend(turns(culprit));
    words.join(", ")
}

/// Like `sentence`, in a line: the facts that identify the program.
pub fn short(culprit: &Culprit) -> String {
    let Some(first) = culprit.threads.first() else { return String::new() };
    let mut words = vec![numbers(culprit)];
    words.extend(kernels(first));
    if let Some(found) = &first.found {
        words.extend(identity(found).into_iter().take(1));
        words.extend(policy(found, first));
        words.extend(allowed(found));
    }
    words.extend(turns(culprit));
    words.join(", ")
}

/// Thread id, or the number of threads of that name.
fn numbers(culprit: &Culprit) -> String {
    let ended =
        culprit.threads.iter().filter(|thread| thread.found.as_ref().is_some_and(FoundThread::has_ended));
    let alive =
        culprit.threads.iter().filter(|thread| thread.found.as_ref().is_some_and(FoundThread::is_alive));
    let (ended, alive) = (ended.count() as u64, alive.count() as u64);
    let first = culprit.threads.first().map_or(0, |thread| thread.tid);
    match (culprit.threads_seen.max(1), alive) {
        (1, _) if ended == 1 => format!("thread {first}, ended"),
        (1, _) => format!("thread {first}"),
        (many, 0) if ended > 0 => format!("ended; {many} short-lived threads of this name"),
        (many, alive) if ended > 0 => {
            format!("{many} threads of this name started, {} still running", is(alive))
        }
        (many, _) => format!("{many} threads of this name, {first} took most"),
    }
}

fn is(many: u64) -> String {
    format!("{many} {}", if many == 1 { "is" } else { "are" })
}

fn kernels(thread: &CulpritThread) -> Option<String> {
    let found = thread.found.as_ref().and_then(|found| found.kernel);
    (thread.of_kernel || found == Some(true)).then(|| "a kernel thread".to_owned())
}

/// Program and unit.
fn identity(found: &FoundThread) -> Vec<String> {
    let mut words = Vec::new();
    if !found.program.is_empty() {
        words.push(clean(&found.program));
    }
    if !found.unit.is_empty() {
        words.push(format!("in {}", clean(&found.unit)));
    }
    words
}

fn policy(found: &FoundThread, thread: &CulpritThread) -> Option<String> {
    let name = match found.policy.as_str() {
        "" => return (thread.prio < 99).then(|| super::sentences::priority(thread.prio)),
        "fifo" => "SCHED_FIFO",
        "rr" => "SCHED_RR",
        "deadline" => return Some("SCHED_DEADLINE".to_owned()),
        "other" => return Some("no real-time policy".to_owned()),
        other => other,
    };
    Some(found.priority.map_or(name.to_owned(), |priority| format!("{} {priority}", clean(name))))
}

fn allowed(found: &FoundThread) -> Option<String> {
    let one = found.cpus.chars().all(|c| c.is_ascii_digit());
    let only = if one { " only" } else { "" };
    (!found.cpus.is_empty()).then(|| named_cpus(clean(&found.cpus)) + only)
}

/// Policy, CPUs, and start of the thread.
fn lifetime(found: &FoundThread, run: &Run) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(policy(found, &CulpritThread { prio: 99, ..CulpritThread::default() }));
    words.extend(allowed(found));
    if found.is_alive() && !found.started.is_empty() {
        words.push(format!("started {}", MachineClock::of(run).moment(&found.started)));
    }
    words
}

/// Length of a turn that is part of a spike, and its period.
fn turns(culprit: &Culprit) -> Option<String> {
    let CulpritTurns { count, median_ns, longest_ns, every_ns, every_se_ns } = culprit.turns.clone()?;
    let longest =
        if longest_ns > median_ns { format!(" (at most {})", span(longest_ns)) } else { String::new() };
    let turn = format!("{}{longest}", span(median_ns));
    Some(match every_ns {
        Some(every) => {
            let seconds = |ns: Nanos| ns.0 as f64 / 1e9;
            let error = every_se_ns.map_or(0.0, seconds).max(1e-3 * seconds(every));
            format!("runs {turn} every {}", period_name::spoken(seconds(every), error))
        }
        None if count == 1 => format!("ran once, for {turn}"),
        None => format!("ran {}, typically for {turn}", several(count, "time", "times")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit() -> Culprit {
        let found = FoundThread {
            state: "alive".into(),
            kernel: Some(false),
            program: "/usr/sbin/fieldbusd".into(),
            unit: "fieldbus.service".into(),
            policy: "fifo".into(),
            priority: Some(95),
            cpus: "0".into(),
            started: "2026-11-23T20:31:02Z".into(),
            ..FoundThread::default()
        };
        let thread = CulpritThread {
            tid: 4203,
            comm: "fieldbusd".into(),
            prio: 4,
            found: Some(found),
            ..Default::default()
        };
        Culprit {
            threads: vec![thread],
            threads_seen: 1,
            turns: Some(CulpritTurns {
                count: 76,
                median_ns: Nanos(6_100_000),
                longest_ns: Nanos(6_300_000),
                every_ns: Some(Nanos(792_619_123)),
                every_se_ns: Some(Nanos(3_000_000)),
            }),
            ..Culprit::default()
        }
    }

    #[test]
    fn all_that_is_known_is_said_and_in_a_line_what_tells_the_program() {
        assert_eq!(
            sentence(&culprit(), &Run::default()),
            "thread 4203, /usr/sbin/fieldbusd, in fieldbus.service, SCHED_FIFO 95, CPU 0 only, started \
             2026-11-23 20:31:02 UTC, runs 6.10 ms (at most 6.30 ms) every 0.793 s"
        );
        assert_eq!(
            short(&culprit()),
            "thread 4203, /usr/sbin/fieldbusd, SCHED_FIFO 95, CPU 0 only, runs 6.10 ms (at most 6.30 ms) \
             every 0.793 s"
        );
        assert_eq!(sentence(&Culprit::default(), &Run::default()), "");
    }

    #[test]
    fn a_thread_that_is_two_culprits_has_one_period() {
        let mut again = culprit();
        again.turns.as_mut().expect("turns").count = 14;
        let run = Run { culprits: vec![Culprit::default(), culprit(), again], ..Run::default() };
        assert_eq!(sentence_at(&run, 1), sentence(&culprit(), &run));
        assert_eq!(sentence_at(&run, 2), "the thread under 2, in 14 of its turns");
        assert_eq!(sentence_at(&run, 0), "");
    }

    #[test]
    fn threads_that_came_and_went_are_counted_and_have_the_priority_of_the_trace() {
        let mut gone = culprit();
        gone.threads_seen = 9;
        gone.turns.as_mut().expect("turns").every_ns = None;
        gone.threads[0].found = Some(FoundThread { state: "ended".into(), ..FoundThread::default() });
        assert_eq!(
            short(&gone),
            "ended; 9 short-lived threads of this name, real-time 95, ran 76 times, typically for 6.10 ms \
             (at most 6.30 ms)"
        );
        gone.threads_seen = 1;
        assert!(short(&gone).starts_with("thread 4203, ended, "));
        gone.threads[0].found = None;
        assert!(short(&gone).starts_with("thread 4203, ran "), "{}", short(&gone));
        let refused = "its program could not be read (EACCES)".to_owned();
        gone.threads[0].found = Some(FoundThread { unread: vec![refused.clone()], ..FoundThread::default() });
        assert!(sentence(&gone, &Run::default()).contains(&refused));
    }
}
