//! Processes of a program started for a check that are still running after it.

use crate::hunt::program::end;
use crate::words::several;
use model::followed::ProgramRun;

/// Limit of processes that are named; the others are counted.
const MAX_NAMED: usize = 8;

/// Sentence on the processes of a program that still run after its check; none if all have ended.
/// `beside` are the other processes that it started and that have not ended.
pub fn still_running(program: &ProgramRun, beside: &[u32]) -> Option<String> {
    let (left, which) = (several(beside.len() as u64, "process", "processes"), named(beside));
    let end = end(program);
    match (program.left_running, beside.is_empty()) {
        (false, true) => None,
        (false, false) => Some(format!(
            "{end} and left {left} running ({which}), which the check does not end: end them with kill."
        )),
        (true, true) => {
            Some(format!("{end} although it was asked to: it continues as process {}.", program.pid))
        }
        (true, false) => Some(format!(
            "{end} although it was asked to: it continues as process {}, together with {left} ({which}).",
            program.pid
        )),
    }
}

/// Reason that a program in the background was not judged, in one line; none if nothing of it is
/// still running.
pub fn in_background(program: &ProgramRun, beside: &[u32]) -> Option<String> {
    let left = several(beside.len() as u64, "process", "processes");
    (!beside.is_empty()).then(|| {
        format!(
            "{} and went to the background with {left} ({}): keep it in the foreground, or check it there \
             with `onbeat check {}`",
            end(program),
            named(beside),
            if let [one] = beside { one.to_string() } else { "PID".to_owned() }
        )
    })
}

/// Reason that a program that ended early was not judged, in one line.
pub fn ended_early(program: &ProgramRun) -> String {
    // SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV, on x86 and ARM.
    const FAULTS: [i32; 5] = [4, 6, 7, 8, 11];
    let remedy = match (program.signal, program.exit_code) {
        (Some(signal), _) if FAULTS.contains(&signal) => {
            "its output or core dump shows where; fix that first"
        }
        (Some(_), _) => "it must not be ended during the check (-D)",
        (None, Some(1..)) => "its output may tell why; it must run during the check (-D)",
        (None, _) => "keep it running during the check (-D)",
    };
    format!("{} before it could be checked: {remedy}", end(program))
}

fn named(pids: &[u32]) -> String {
    let named: Vec<String> = pids.iter().take(MAX_NAMED).map(u32::to_string).collect();
    let more = pids.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_named_and_nothing_else() {
        let of = |left_running, signal| ProgramRun {
            name: "robot".to_owned(),
            pid: 9,
            left_running,
            signal,
            ..ProgramRun::default()
        };
        let ended = of(false, Some(15));
        assert_eq!((still_running(&ended, &[]), in_background(&ended, &[])), (None, None));
        let left = still_running(&ended, &[12, 13]).expect("a sentence");
        assert!(left.contains("(SIGTERM) and left 2 processes running (12, 13)"), "{left}");
        let stays = still_running(&of(true, None), &[]).expect("a sentence");
        assert_eq!(stays, "robot has not ended although it was asked to: it continues as process 9.");
        let both = still_running(&of(true, None), &(20..40).collect::<Vec<u32>>()).expect("a sentence");
        assert!(
            both.contains("together with 20 processes (20, ") && both.contains(" 27 and 12 more"),
            "{both}"
        );
        let daemon = in_background(&ended, &[12]).expect("a line");
        assert!(daemon.contains("`onbeat check 12`") && !daemon.contains('\n'), "{daemon}");
    }

    #[test]
    fn how_a_program_ended_decides_what_helps() {
        let of = |exit_code, signal| {
            let (name, elapsed_ns) = ("robot".to_owned(), Some(model::units::Nanos(2_000_000_000)));
            ended_early(&ProgramRun { name, exit_code, signal, elapsed_ns, ..ProgramRun::default() })
        };
        let code = of(Some(5), None);
        assert!(code.starts_with("robot ended with exit code 5 after ") && code.contains("output"), "{code}");
        let crash = of(None, Some(11));
        assert!(crash.contains("(SIGSEGV)") && !crash.contains("-D"), "{crash}");
        assert!(of(Some(0), None).ends_with("keep it running during the check (-D)"));
        assert!(of(None, Some(9)).contains("it must not be ended"));
    }
}
