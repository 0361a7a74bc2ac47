//! Program that a hunt has started: how it ended, and why no wake-up of it was seen.

use crate::prose::Shortfall;
use crate::words::{clean, duration, several};
use model::run::{ProgramRun, Run};

/// End of a sentence on threads without cycles under SCHED_DEADLINE. A thread that yields is
/// throttled in its run queue until its next period, and is not woken (kernel/sched/deadline.c,
/// `yield_task_dl`).
pub const YIELDS: &str = "a SCHED_DEADLINE thread that waits for its next period with sched_yield() neither \
                          sleeps nor wakes, so its cycles cannot be detected";
/// Remedy for [`YIELDS`].
pub const SLEEP: &str = "make it wait with clock_nanosleep()";

/// Sentence on its end; none if no program was started.
pub fn ended(run: &Run) -> Option<String> {
    let program = run.program.as_ref()?;
    let mut words = format!("{}.", end(program));
    if program.outlived_by > 0 {
        let left = several(program.outlived_by, "process", "processes");
        words += &format!(
            " It has left {left} running, which the hunt no longer follows: follow one with --victim PID, or \
             keep the program in the foreground."
        );
    }
    if program.left_running {
        words += &format!(" It continues to run as process {}.", program.pid);
    }
    Some(words)
}

/// `robot ended with exit code 3 after 12.3 s`, without a full stop.
pub(crate) fn end(program: &ProgramRun) -> String {
    let name = clean(&program.name);
    let after = program.elapsed_ns.map_or_else(String::new, |length| format!(" after {}", duration(length)));
    match (program.exit_code, program.signal) {
        (Some(code), _) => format!("{name} ended with exit code {code}{after}"),
        (None, Some(signal)) => format!("{name} was ended by signal {signal}{}{after}", signal_name(signal)),
        (None, None) => format!("{name} has not ended"),
    }
}

/// Names of signals that end programs (signal(7)); the numbers are those of x86 and ARM.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        _ => "",
    }
}

/// Clause on the end of the program, without a full stop.
pub fn end_of(run: &Run) -> Option<String> {
    run.program.as_ref().map(end)
}

/// Reason for a result without its threads, and the remedy; in lower case but for the program's
/// name.
pub fn nothing_seen(run: &Run) -> Option<Shortfall> {
    let program = run.program.as_ref()?;
    if let Some(daemon) = in_background(run) {
        return Some(daemon);
    }
    let mut policies = run.threads.iter().filter(|thread| thread.policy != "other").peekable();
    let real_time = policies.peek().is_some();
    let (seen, remedy) = if real_time && policies.all(|thread| thread.policy == "deadline") {
        (format!("no wake-up of its real-time threads was seen: {YIELDS}"), SLEEP)
    } else if real_time {
        (
            "no wake-up of its real-time threads was seen".to_owned(),
            "let it run longer, with threads that sleep and wake",
        )
    } else if program.unseen_threads > 0 {
        let threads = several(program.unseen_threads, "real-time thread", "real-time threads");
        (format!("the kernel recorded no switch of its {threads}"), "examine them with `onbeat check`")
    } else {
        (
            "none of its threads had a real-time policy".to_owned(),
            "run them under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE, which needs CAP_SYS_NICE or a limit \
             (ulimit -r)",
        )
    };
    Some(Shortfall { what: format!("{}, and {seen}", end(program)), remedy: remedy.to_owned() })
}

/// Of followed threads without a wake-up: the reason, and what to do; `None` where one was seen.
pub fn void(run: &Run) -> Option<Shortfall> {
    // A trace of another tool has no end, and its spikes alone.
    let ended = run.complete && !run.ended.is_empty();
    let seen = run.samples().unwrap_or(0) > 0 || !run.spikes.is_empty() || run.spikes_dropped > 0;
    if !run.follows() || seen || !ended {
        return None;
    }
    Some(nothing_seen(run).unwrap_or_else(|| Shortfall {
        what: "no followed thread woke up".to_owned(),
        remedy: "follow threads that sleep and wake (--victim), or hunt longer".to_owned(),
    }))
}

/// What is to be done about one that goes on where nobody follows it, as [`nothing_seen`].
pub fn in_background(run: &Run) -> Option<Shortfall> {
    let program = run.program.as_ref().filter(|program| program.outlived_by > 0)?;
    let left = several(program.outlived_by, "process", "processes");
    Some(Shortfall {
        what: format!("{} and went to the background with {left}", end(program)),
        remedy: "keep it in the foreground, or follow it with --victim PID".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::ThreadRun;
    use model::units::Nanos;

    fn run(program: ProgramRun) -> Run {
        let name = "robot".to_owned();
        Run { program: Some(ProgramRun { name, pid: 9, ..program }), ..Run::default() }
    }

    #[test]
    fn every_end_is_told_with_what_is_left() {
        let second = Some(Nanos(1_500_000_000));
        let of = |program: ProgramRun| ended(&run(program)).unwrap_or_default();
        let coded = ProgramRun { exit_code: Some(3), elapsed_ns: second, ..ProgramRun::default() };
        assert_eq!(of(coded.clone()), "robot ended with exit code 3 after 1.5 s.");
        let killed = ProgramRun { signal: Some(11), ..ProgramRun::default() };
        assert_eq!(of(killed), "robot was ended by signal 11 (SIGSEGV).");
        let left = ProgramRun { left_running: true, ..ProgramRun::default() };
        assert_eq!(of(left), "robot has not ended. It continues to run as process 9.");
        assert!(of(ProgramRun { outlived_by: 1, ..coded.clone() }).contains("1 process running"));
        assert_eq!(ended(&Run::default()), None);
    }

    #[test]
    fn a_name_with_a_colon_is_not_cut() {
        let program = ProgramRun { exit_code: Some(0), ..ProgramRun::default() };
        let mut run = run(program);
        (run.complete, run.ended, run.command) = (true, "victim".into(), "hunt".into());
        run.program.iter_mut().for_each(|program| program.name = "arm: left".into());
        let nothing = void(&run).expect("nothing was seen");
        assert_eq!(
            nothing.what,
            "arm: left ended with exit code 0, and none of its threads had a real-time policy"
        );
        assert!(nothing.remedy.starts_with("run them under SCHED_FIFO"), "{}", nothing.remedy);
    }

    #[test]
    fn nothing_seen_has_its_reason_and_a_way_on_in_one_line() {
        let code = ProgramRun { exit_code: Some(0), ..ProgramRun::default() };
        let daemon = run(ProgramRun { outlived_by: 2, ..code.clone() });
        let mut threads = run(code.clone());
        threads.threads = vec![ThreadRun { policy: "fifo".into(), ..ThreadRun::default() }];
        let mut deadline = run(code.clone());
        deadline.threads = vec![ThreadRun { policy: "deadline".into(), ..ThreadRun::default() }];
        let unseen = run(ProgramRun { unseen_threads: 1, ..code.clone() });
        for (run, word) in [
            (daemon, "--victim"),
            (threads, "longer"),
            (deadline, "sched_yield()"),
            (unseen, "no switch of its 1 real-time thread"),
            (run(code), "SCHED_FIFO"),
        ] {
            let words = nothing_seen(&run).expect("it ended").to_string();
            assert!(words.contains(word) && !words.contains('\n'), "{words}");
        }
    }
}
