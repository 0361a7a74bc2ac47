//! Results of `onbeat hunt -- PROGRAM` for a program that measures its cycles (`lab/user_faults`):
//! the responses match the program's own, and its culprit has the right name.

use serde_json::Value;

use super::stalls::spoil;
use super::table::{By, FAULT, Fault, NamePlace, ORIGIN, Origin};
use crate::live::frames::Reply;
use crate::live::judge::{document, whole};

/// Cycles of the program, of which every third is delayed.
const CYCLES: usize = 105;

/// Tolerance of a response against the program's own: the program reads its clock before the call
/// that ends its cycle, and the call takes time.
const NEAR_NS: i64 = 50_000;
const NEAR_SHARE: i64 = 100;

/// One of this many cycles may exceed the tolerance: the emulator may stop just there.
const FAR_ONE_OF: usize = 100;

const CYCLE: Fault = Fault { hunt: "--deadline 40ms", first: false, least: 30, ..FAULT };

/// Every cause.
pub const FAULTS: &[Fault] = &[
    Fault {
        word: "cycle-preempted",
        counts_time: true,
        by: By::Followed("preempted"),
        parts: &[Origin { logged: "preempted", kinds: &["preempted"], names: &["cyc_above"], ..ORIGIN }],
        ..CYCLE
    },
    Fault {
        word: "cycle-lock",
        by: By::Followed("lock"),
        parts: &[Origin { logged: "lock", kinds: &["blocked"], names: &["cyc_holder"], ..ORIGIN }],
        ..CYCLE
    },
    Fault {
        word: "cycle-inherit",
        by: By::Followed("inherit"),
        parts: &[Origin { logged: "inherit", kinds: &["blocked"], names: &["cyc_holder"], ..ORIGIN }],
        ..CYCLE
    },
    Fault {
        word: "cycle-fault",
        by: By::Followed("fault"),
        parts: &[Origin {
            logged: "fault",
            kinds: &["page-fault"],
            names: &["handle_userfault", "cyc_pager"],
            ..ORIGIN
        }],
        ..CYCLE
    },
    Fault {
        word: "cycle-terminal",
        by: By::Followed("terminal"),
        parts: &[Origin {
            logged: "terminal",
            kinds: &["blocked"],
            names: &["n_tty_write"],
            place: NamePlace::Function,
            ..ORIGIN
        }],
        ..CYCLE
    },
    Fault {
        word: "cycle-own",
        by: By::Followed("own"),
        parts: &[Origin { logged: "own", kinds: &["own"], names: &["cyc_control"], ..ORIGIN }],
        ..CYCLE
    },
    // An interrupt at any time: some come while nothing is to be done.
    Fault {
        word: "cycle-irq",
        by: By::BesideFollowed("irq"),
        parts: &[Origin {
            logged: "irq",
            kinds: &["irq"],
            names: &["onbeat_fault", "fault_device"],
            ..ORIGIN
        }],
        least: 8,
        ..CYCLE
    },
];

pub fn is_followed(fault: &Fault) -> bool {
    matches!(fault.by, By::Followed(_) | By::BesideFollowed(_))
}

/// The program ends by itself, and the hunt with it.
pub fn script(cause: &str, hunt: &str) -> String {
    format!(
        "[ -c /dev/pts/ptmx ] || {{ mkdir -p /dev/pts; mount -t devpts devpts /dev/pts; }}\n\
         hunting {hunt} -- followed {cause} 1 {CYCLES} log cycles\n\
         tries=0\n\
         until [ -s cycles ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done\n\
         send cycles cycles\n\
         hunted\n"
    )
}

/// Script with a fault of the module during the program.
pub fn script_beside(word: &str, hunt: &str) -> String {
    format!(
        "hunting {hunt} -- followed none 1 {} own cycles\n\
         usleep 1000000\n\
         inject {word} cpu=1 from=0 us=40000 count=60 period_ms=220 jitter_ms=121\n\
         tries=0\n\
         until [ -s cycles ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done\n\
         send cycles cycles\n\
         hunted\n",
        CYCLES * 3
    )
}

/// A cycle of the program, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OwnCycle {
    release: i64,
    end: i64,
}

fn cycles(text: &str) -> Result<Vec<OwnCycle>, String> {
    let cycle = |line: &str| {
        let (release, end) = line.split_once(' ')?;
        Some(OwnCycle { release: release.parse().ok()?, end: end.parse().ok()? })
    };
    let cycles: Result<Vec<_>, String> =
        text.lines().map(|line| cycle(line).ok_or_else(|| format!("no cycle: {line:?}"))).collect();
    cycles.and_then(
        |cycles| if cycles.is_empty() { Err("the program has no cycle".into()) } else { Ok(cycles) },
    )
}

/// Compares the responses with the program's own: each late cycle, as only these are in a run one
/// by one, and all by their ranks.
pub fn judge(reply: &Reply, stalls: &[[i64; 3]]) -> Result<(), String> {
    let own = cycles(reply.file("cycles")?)?;
    let run = document(reply, "run")?;
    let thread = run["threads"]
        .as_array()
        .and_then(|threads| threads.iter().find(|thread| thread["comm"] == "cyc_control"))
        .ok_or("the program's thread was not followed")?;
    let seen = whole(thread, "cycles")?;
    if seen < own.len() as i64 * 9 / 10 {
        return Err(format!("{seen} of {} cycles were seen", own.len()));
    }
    late(&run, &own, stalls)?;
    ranks(thread, &own)
}

fn is_near(found: i64, own: i64) -> bool {
    (found - own).abs() <= NEAR_NS.max(own / NEAR_SHARE)
}

fn late(run: &Value, own: &[OwnCycle], stalls: &[[i64; 3]]) -> Result<(), String> {
    let spikes = run["spikes"].as_array().ok_or("the document has no spikes")?;
    let (mut all, mut far) = (0, Vec::new());
    for spike in spikes.iter().filter(|spike| spike["victim"]["comm"] == "cyc_control") {
        let Some(_) = spike["deadline_ns"].as_i64() else { continue };
        let (release, end) = (whole(spike, "expected_ns")?, whole(spike, "actual_ns")?);
        if spoil(stalls, release, end) {
            continue;
        }
        all += 1;
        match own.iter().find(|cycle| cycle.release == release) {
            Some(cycle) if is_near(end - release, cycle.end - cycle.release) => {}
            Some(cycle) => far.push(format!("{} ns, in truth {}", end - release, cycle.end - release)),
            None => far.push(format!("a release at {release} that the program does not have")),
        }
    }
    match far.first() {
        Some(first) if far.len() * FAR_ONE_OF > own.len() => {
            Err(format!("{} of {all} late responses are not the program's own: {first}", far.len()))
        }
        _ => Ok(()),
    }
}

/// Compares the histogram's rows with the program's responses, from the shortest to the longest.
/// The ranks of missing cycles (the first, and those cut by lost events) are unknown: the n-th of
/// the recorded ones is between the n-th of all and that many after it.
fn ranks(thread: &Value, own: &[OwnCycle]) -> Result<(), String> {
    let mut truth: Vec<i64> = own.iter().map(|cycle| cycle.end - cycle.release).collect();
    truth.sort_unstable();
    let rows = thread["response"].as_array().ok_or("the document has no histogram of responses")?;
    let rows: Option<Vec<[i64; 3]>> =
        rows.iter().map(|row| Some([row[0].as_i64()?, row[1].as_i64()?, row[2].as_i64()?])).collect();
    let rows = rows.ok_or("a histogram's row has no numbers")?;
    let all: i64 = rows.iter().map(|row| row[2]).sum();
    let unseen = (own.len() as i64 - all).max(0);
    for of_20 in 1..20 {
        let rank = (all * of_20 / 20).max(1);
        let mut passed = 0;
        let row = rows.iter().find(|row| {
            passed += row[2];
            passed >= rank
        });
        let Some(&[lower, upper, _]) = row else { continue };
        let at = |rank: i64| truth.get(rank as usize - 1).or(truth.last()).copied();
        let (Some(least), Some(most)) = (at(rank), at(rank + unseen)) else { continue };
        let above = upper < least && !is_near(upper, least);
        if above || (lower > most && !is_near(lower, most)) {
            let words = format!("{lower} to {upper} ns, in truth {least} to {most}");
            return Err(format!("the response at {of_20} of 20 is {words}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(latency: i64, rows: Value) -> Reply {
        let run = json!({
            "threads": [{ "comm": "cyc_control", "cycles": 2, "response": rows }],
            "spikes": [{ "victim": { "comm": "cyc_control" }, "deadline_ns": 5, "expected_ns": 1_000,
                "actual_ns": 1_000 + latency }],
        });
        let mut reply = Reply::default();
        reply.files.insert("run".into(), Some(run.to_string()));
        reply.files.insert("cycles".into(), Some("1000 25001000\n50000000 55000000\n".into()));
        reply
    }

    #[test]
    fn responses_are_the_program_s_own_or_they_are_not() {
        let right = json!([[4_960_000, 5_040_000, 1], [24_900_000, 25_300_000, 1]]);
        assert_eq!(judge(&reply(25_100_000, right.clone()), &[]), Ok(()));
        assert!(judge(&reply(26_000_000, right), &[]).is_err_and(|why| why.contains("in truth")));
        let wrong = json!([[2_000_000, 2_040_000, 1], [24_900_000, 25_300_000, 1]]);
        assert!(judge(&reply(25_100_000, wrong), &[]).is_err_and(|why| why.contains("of 20")));
        assert!(judge(&Reply::default(), &[]).is_err());
    }

    #[test]
    fn a_cycle_that_was_not_seen_has_any_rank() {
        let own: Vec<_> = (1..=10).map(|n| OwnCycle { release: 0, end: n * 10_000_000 }).collect();
        let seen = |of: &[i64]| {
            let rows: Vec<_> = of.iter().map(|n| json!([n * 10_000_000, n * 10_000_000, 1])).collect();
            ranks(&json!({ "response": rows }), &own)
        };
        assert_eq!(seen(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), Ok(()));
        assert_eq!(seen(&[1, 3, 4, 5, 6, 7, 8, 9, 10]), Ok(()));
        assert!(seen(&[1, 2, 3, 5, 6, 7, 8, 9, 10, 10]).is_err());
        assert!(seen(&[1, 4, 5, 6, 7, 8, 9, 10, 10]).is_err());
    }

    #[test]
    fn every_cause_is_one_of_the_program_s() {
        let source = include_str!("../../../../lab/user_faults/followed.c");
        for fault in FAULTS {
            let By::Followed(cause) = fault.by else { continue };
            assert!(source.contains(&format!("\n *   {cause} ")), "{cause}");
            assert_eq!(fault.word, format!("cycle-{cause}"));
        }
    }
}
