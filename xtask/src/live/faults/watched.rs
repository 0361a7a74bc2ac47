//! Results of `onbeat watch` for faults injected during an application, and for stops of the whole
//! machine: the interval's largest wake-up has the right culprit, or none.

use serde_json::Value;

use super::table::Fault;
use crate::live::frames::Reply;
use crate::live::judge::{document, exit};
use crate::tally::StepOutcome;

/// Each takes 20 ms; other latencies of the emulator are below this.
const LEAST_NS: i64 = 15_000_000;

/// Faults, one an interval: naming the worst takes the emulator up to another second.
const FAULTS: usize = 30;

/// Holders in pieces, five in an interval.
const PIECES: usize = 150;

/// Minimum number of them that are the largest of an interval.
const SEEN: usize = 20;

/// On a kernel that does not preempt its own code, two stacks do not separate that from a section
/// with preemption off: for this fault the rule for both may name the thread.
const KEPT: (&str, &str, &str) = ("preempt-off", "kept-by-kernel-code", "fault_atomic");

/// The measuring thread, which is the application of all series but that of pieces.
const MEASURING: &str = "onbeat/1";

/// A script in which the measuring thread is the application, with `done` in the meantime.
fn around(done: &str) -> String {
    format!(
        "start w onbeat watch -q --interval 1s -o rec\n\
         watch=$pid\n\
         onbeat measure -p 80 -a 1 -i 1000 -D 140s -q -o b >/dev/null 2>&1 &\n\
         measure=$!\n\
         underway b\n\
         usleep 2000000\n\
         {done}\
         kill -TERM $measure\n\
         wait $measure\n\
         usleep 1500000\n\
         pid=$watch\n\
         kill -TERM $pid\n\
         reap\n\
         run r onbeat report rec --json r.json\n\
         send record r.json\n"
    )
}

pub fn script(fault: &Fault) -> String {
    around(&format!(
        "inject {} cpu=1 from=0 us=20000 count={FAULTS} period_ms=2100 jitter_ms=150\n",
        fault.word
    ))
}

/// Stops of the emulator, in some minutes.
pub fn stops_script(count: usize, seed: u64) -> String {
    around(&format!("clock\necho \"=== STOP {count} 20 60 500 {seed}\" >&3\nusleep {}\n", count * 560_000))
}

/// A thread that runs for 20 ms above one that wakes every 5 ms, with the measuring one above both:
/// it takes the CPU every millisecond, so that the holder runs in pieces.
pub fn pieces_script() -> String {
    around(&format!(
        "user_faults own 1 {PIECES} pieces >log &\nfaults=$!\nusleep 300000\n: >begin\nwait $faults\n"
    ))
}

/// Largest wake-ups of intervals: with the right name, with another, and number of those without.
struct Told {
    right: usize,
    wrong: Vec<String>,
    none: usize,
}

fn score(reply: &Reply, victim: &str, word: &str, names: &[&str]) -> Result<Told, String> {
    exit(reply, "w", 6)?;
    exit(reply, "r", 0)?;
    let record = document(reply, "record")?;
    let (mut right, mut wrong, mut none) = (0, Vec::new(), 0);
    let lists =
        ["worst", "worst_by_priority"].map(|list| record[list].as_array().cloned().unwrap_or_default());
    let of_victim = |worst: &Value| worst["victim"]["comm"] == victim;
    for worst in lists.concat().iter().filter(|worst| of_victim(worst)) {
        if worst["total_ns"].as_i64().is_none_or(|ns| ns < LEAST_NS) {
            continue;
        }
        let name = worst["culprit"]["name"].as_str().unwrap_or_default();
        let rule = worst["culprit"]["rule"].as_str().unwrap_or_default();
        match () {
            () if name.is_empty() => none += 1,
            () if names.iter().any(|wanted| name.contains(wanted)) => right += 1,
            () if (word, rule, name) == KEPT => right += 1,
            () => wrong.push(name.to_string()),
        }
    }
    Ok(Told { right, wrong, none })
}

pub fn judge(fault: &Fault, reply: &Reply) -> Result<(String, StepOutcome), String> {
    let names: Vec<&str> = fault.parts.iter().flat_map(|part| part.names.iter().copied()).collect();
    judge_named(fault.word, &score(reply, MEASURING, fault.word, &names)?)
}

/// The holder of all pieces, and no other.
pub fn judge_pieces(reply: &Reply) -> Result<(String, StepOutcome), String> {
    judge_named("pieces", &score(reply, "own_victim", "pieces", &["own_hog"])?)
}

fn judge_named(word: &str, Told { right, wrong, none }: &Told) -> Result<(String, StepOutcome), String> {
    let seen = right + wrong.len() + none;
    let row = row(word, seen, *right, wrong);
    let fails = match () {
        () if seen < SEEN => Some(format!("{seen} of {FAULTS} faults are the largest of an interval")),
        () if !wrong.is_empty() => Some(format!("false names: {wrong:?}")),
        () if right * 10 < seen * 9 => Some(format!("{right} of {seen} have a name")),
        () => None,
    };
    Ok((row, fails.map_or(StepOutcome::Passed, StepOutcome::Failed)))
}

/// No stop may have another name than its own, and nearly all must have that.
pub fn judge_stops(count: usize, reply: &Reply) -> Result<(String, StepOutcome), String> {
    let Told { right, wrong, none } = score(reply, MEASURING, "stops", &["stopped from outside"])?;
    let row = row("stops", right + wrong.len() + none, right, &wrong);
    let fails = match () {
        () if right + none + wrong.len() < count / 3 => {
            Some(format!("{} of {count} stops were seen", right + none))
        }
        () if !wrong.is_empty() => Some(format!("false names: {wrong:?}")),
        () if right * 10 < (right + none) * 9 => Some(format!("{right} of {} have a name", right + none)),
        () => None,
    };
    Ok((row, fails.map_or(StepOutcome::Passed, StepOutcome::Failed)))
}

fn row(what: &str, seen: usize, right: usize, wrong: &[String]) -> String {
    format!(
        "  {:<22} largest of an interval {seen}, named rightly {right}, falsely {}",
        format!("watched {what}"),
        wrong.len()
    )
}
