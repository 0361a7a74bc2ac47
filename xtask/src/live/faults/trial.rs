//! A series: the actions of the guest in it, and the judgement of its reply.

use super::table::{By, FAULTS, Fault, NAMED_LOCK, On};
use super::{FOUR_CPUS, QUEUED_LOCKS, answer, anywhere, followed, late, log, names, outside, score, servo};
use super::{stalls, traced, waits, watched};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit};
use crate::live::machine::Machine;
use crate::live::tree::Tree;
use crate::tally::StepOutcome;

/// A series of faults of one kind, or stops of the emulator: of an idle guest, or among faults.
#[derive(Clone, Copy)]
pub enum Trial {
    Fault(&'static Fault, &'static score::Demand),
    Stopped(Stops, &'static score::Demand),
    Among(Stops, &'static score::Demand),
    /// Made of recorded windows: stops at any place of onbeat's own path.
    Anywhere(Stops, &'static score::Demand),
    /// During a watch: faults of a kind, or stops of the emulator.
    Watched(&'static Fault),
    WatchedStops(Stops),
    /// During a watch: a holder that the measuring thread cuts into pieces.
    WatchedPieces,
    /// Recorded by trace-cmd during the hunt.
    Traced(&'static Fault),
    /// Stops of the emulator while a periodic program is followed.
    Servo(Stops),
}

/// The kinds that a watch can name from its records.
const WATCHED: [&str; 4] = ["irqs-off", "spin-irqsave", "preempt-off", "fifo"];

/// Number of stops of the emulator, and the seed of their lengths.
#[derive(Clone, Copy)]
pub struct Stops {
    count: usize,
    seed: u64,
}

/// Every kind of fault.
fn every() -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().chain(names::FAULTS).chain(waits::FAULTS).chain(followed::FAULTS)
}

/// The series of a machine.
pub fn trials(machine: &Machine, all: bool, seed: u64) -> Vec<Trial> {
    if machine.smp == FOUR_CPUS {
        return vec![Trial::Servo(Stops { count: 200, seed })];
    }
    let demand = if all { &score::FULL } else { &score::GATE };
    if machine.board == QUEUED_LOCKS {
        return vec![Trial::Fault(&NAMED_LOCK, demand)];
    }
    let old = machine.is_old();
    let fits = |fault: &Fault| match fault.on {
        On::All => true,
        On::Rt => machine.rt,
        On::Stock => !machine.rt && machine.suite.is_empty(),
        On::New => !old,
        On::Old => old,
    };
    let wanted = |fault: &Fault| if machine.measure_only { fault.foreign } else { all || fault.first };
    let faults = every().filter(|fault| fits(fault) && wanted(fault));
    let mut trials: Vec<Trial> = faults.map(|fault| Trial::Fault(fault, demand)).collect();
    if !machine.measure_only {
        let stops = |many, few| Stops { count: if all { many } else { few }, seed };
        trials.push(Trial::Stopped(stops(240, 24), demand));
        trials.push(Trial::Anywhere(stops(400, 200), demand));
        if all {
            trials.push(Trial::Among(stops(120, 0), demand));
            let watched = FAULTS.iter().filter(|fault| WATCHED.contains(&fault.word));
            trials.extend(watched.map(Trial::Watched));
            trials.push(Trial::WatchedStops(stops(100, 0)));
            trials.push(Trial::WatchedPieces);
        }
        if all && machine.first {
            let traced = FAULTS.iter().filter(|fault| fits(fault) && traced::can_record(fault));
            trials.extend(traced.map(Trial::Traced));
        }
    }
    trials
}

impl Trial {
    /// The check's name.
    pub fn name(&self) -> String {
        match self {
            Trial::Fault(fault, _) => format!("fault-{}", fault.word),
            Trial::Stopped(..) => "fault-stopped".to_string(),
            Trial::Among(..) => "fault-stopped-among".to_string(),
            Trial::Anywhere(..) => "fault-stopped-anywhere".to_string(),
            Trial::Watched(fault) => format!("watched-{}", fault.word),
            Trial::WatchedStops(..) => "watched-stops".to_string(),
            Trial::WatchedPieces => "watched-pieces".to_string(),
            Trial::Traced(fault) => format!("traced-{}", fault.word),
            Trial::Servo(..) => "fault-stopped-servo".to_string(),
        }
    }

    /// Script of the guest.
    pub fn script(&self) -> String {
        match self {
            Trial::Fault(fault, _) => script(fault),
            Trial::Stopped(stops, _) => stopped(stops),
            Trial::Among(stops, _) => among(stops),
            Trial::Watched(fault) => watched::script(fault),
            Trial::Traced(fault) => format!("tree=1\ntraced=1\n{}", script(fault)),
            Trial::WatchedStops(stops) => watched::stops_script(stops.count, stops.seed),
            Trial::WatchedPieces => watched::pieces_script(),
            Trial::Servo(stops) => servo::script(stops.count, stops.seed),
            // Raw material: each stop is a wake-up with a silence to remove.
            Trial::Anywhere(Stops { seed, .. }, _) => {
                format!("tree=1\n{}", stopped(&Stops { count: 40, seed: *seed }))
            }
        }
    }

    /// True if the judged data are derived from a recording.
    pub fn is_made(&self) -> bool {
        matches!(self, Trial::Fault(Fault { by: By::Late(..), .. }, _) | Trial::Anywhere(..))
    }

    /// Flags of `explain` for the trace in the bundle, which is judged as well as the run.
    pub fn trace_flags(&self) -> Option<[&str; 4]> {
        match self {
            Trial::Traced(fault) => Some(traced::flags(fault)),
            _ => None,
        }
    }

    /// The bundle that is derived from a recorded one, and the log of the inserted stops.
    pub fn made(&self, bundle: Tree) -> Result<(Tree, Option<String>), String> {
        match self {
            Trial::Fault(Fault { by: By::Late(_, function), .. }, _) => {
                Ok((late::bundle(bundle, function)?, None))
            }
            Trial::Anywhere(stops, _) => {
                let (bundle, log) = anywhere::stopped_windows(bundle, stops.count, stops.seed)?;
                Ok((bundle, Some(log)))
            }
            _ => Ok((bundle, None)),
        }
    }

    /// The row of the table and the verdict.
    pub fn judge(&self, reply: &Reply) -> Result<(String, StepOutcome), String> {
        match self {
            Trial::Watched(fault) => return watched::judge(fault, reply),
            Trial::WatchedStops(stops) => return watched::judge_stops(stops.count, reply),
            Trial::WatchedPieces => return watched::judge_pieces(reply),
            Trial::Traced(fault) => return traced::judge(fault, reply),
            _ => {}
        }
        // An interrupted run saves and reports its results. One whose victim has ended is over.
        let ends = match self {
            Trial::Fault(fault, _) => fault.follows(),
            _ => matches!(self, Trial::Servo(_)),
        };
        exit(reply, "h", 6).or_else(|why| if ends { exit(reply, "h", 0) } else { Err(why) })?;
        let answer = answer::of(&document(reply, "run")?)?;
        Ok(match self {
            Trial::Servo(stops) => {
                let score = servo::of(&log::parse(reply.file("stops")?)?, &answer);
                (score.row(stops.seed), score.verdict())
            }
            Trial::Watched(_) | Trial::WatchedStops(_) | Trial::WatchedPieces | Trial::Traced(_) => {
                return Err("judged above".to_string());
            }
            Trial::Fault(fault, demand) => {
                let stalls = stalls::parse(reply.file("stalls").unwrap_or_default());
                let score = score::of(fault, &log::parse(reply.file("log")?)?, &answer, &stalls);
                let told =
                    if followed::is_followed(fault) { followed::judge(reply, &stalls) } else { Ok(()) };
                let verdict = match (score.verdict(fault, demand), told) {
                    (Err(one), Err(other)) => Err(format!("{one}; {other}")),
                    (one, other) => one.and(other),
                };
                (score.row(fault.word), StepOutcome::from(verdict))
            }
            Trial::Stopped(stops, demand) => {
                let outside = outside::of(&log::parse(reply.file("stops")?)?, &[], &answer, outside::SLACK);
                (
                    outside.row("stopped", stops.seed),
                    StepOutcome::from(outside.verdict(stops.count * 5 / 6, demand)),
                )
            }
            Trial::Among(stops, demand) => {
                let injected = log::parse(reply.file("log")?)?;
                let outside =
                    outside::of(&log::parse(reply.file("stops")?)?, &injected, &answer, outside::SLACK);
                let row = outside.row("stopped-among", stops.seed);
                (row, StepOutcome::from(outside.verdict(stops.count / 3, demand)))
            }
            Trial::Anywhere(stops, demand) => {
                let outside = outside::of(&log::parse(reply.file("stops")?)?, &[], &answer, 0);
                let row = outside.row("stopped-anywhere", stops.seed);
                (row, StepOutcome::from(outside.verdict(stops.count, demand)))
            }
        })
    }
}

/// Stops of 5 to 300 ms, which both CPUs see; the threshold is below the shortest.
fn stopped(stops: &Stops) -> String {
    let Stops { count, seed } = stops;
    format!(
        "over=4ms\nhunting -a 0-1 -p 80 -i 1000\necho \"=== STOP {count} 5 300 140 {seed}\" >&3\nstopping {count}\n: >log\nhunted\n"
    )
}

/// Stops at any time while faults go on: interrupts off, a timer's handler, a thread above.
fn among(stops: &Stops) -> String {
    let Stops { count, seed } = stops;
    let inject =
        |word: &str| format!("inject {word} cpu=1 from=0 us=20000 count=80 period_ms=130 jitter_ms=61\n");
    let faults: String = ["irqs-off", "hrtimer", "fifo"].map(inject).concat();
    format!(
        "hunting -a 1 -p 80\necho \"=== STOP {count} 12 120 300 {seed}\" >&3\n{faults}cp $FAULTS/log log\nhunted\n"
    )
}

fn inject(word: &str, length: &str) -> String {
    format!("inject {word} cpu=1 from=0 count=40 period_ms=110 jitter_ms=61 {length}\n")
}

/// The victim of a followed kind must exist before the hunt looks for it.
fn script(fault: &Fault) -> String {
    let (hunt, start) = (fault.hunt, fault.start);
    match fault.by {
        By::Late(word, _) => {
            format!("tree=1\nhunting {hunt}\n{}hunted\n", inject(word, "us=20000"))
        }
        By::Module(length) => {
            let raised = match fault.raised {
                "" => String::new(),
                thread => format!("user_faults raise $(pidof {thread}) 90\n"),
            };
            format!("{raised}hunting {hunt}\n{}hunted\n", inject(fault.word, length))
        }
        By::Followed(cause) => followed::script(cause, hunt),
        By::BesideFollowed(word) => followed::script_beside(word, hunt),
        By::Program(arguments) if fault.follows() => format!(
            "through=\"{start}\"\nuser_faults {arguments} >log &\nfaults=$!\nusleep 300000\nhunting {hunt}\n: >begin\nwait $faults\nhunted\n"
        ),
        By::Program(arguments) => {
            // Fair threads get 20 ms of 200 instead of 50 of 1000: as many spikes in less time.
            let often = match fault.word {
                "fair-server" => "serve 20000000 200000000\n",
                _ => "",
            };
            let usual = if often.is_empty() { "" } else { "serve 50000000 1000000000\n" };
            format!("{often}hunting {hunt}\nuser_faults {arguments} >log\n{usual}hunted\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Origin;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_unique_and_every_fault_has_a_cause_with_a_name() {
        let words: BTreeSet<&str> = every().map(|fault| fault.word).collect();
        assert_eq!(words.len(), every().count());
        let named = |part: &Origin| !part.names.is_empty() && !part.kinds.is_empty();
        assert!(every().all(|fault| !fault.parts.is_empty() && fault.parts.iter().all(named)));
        assert!(every().filter(|fault| fault.foreign).count() >= 3);
    }
}
