//! Ground truth for `onbeat hunt`: faults of known kind, place, time and length, and the score of
//! its explanations.
//!
//! A module in the guest (`lab/onbeat_fault`) and a program (`lab/user_faults`) inject and log; the
//! emulator is stopped from outside. These boots are separate: hunting switches tracepoints, which
//! occasionally makes emulated machines panic. Series completed before such a panic count, the rest
//! is booted again, and the panics are counted.

mod answer;
mod anywhere;
pub mod build;
mod followed;
mod kept;
mod late;
pub mod log;
mod names;
mod outside;
mod own;
mod score;
mod servo;
mod stalls;
pub mod stops;
mod table;
mod traced;
mod trial;
mod waits;
mod watched;

use std::collections::BTreeMap;
use std::time::Instant;

use super::checks::Check;
use super::frames::{self, Reply};
use super::machine::{ARM, Machine, NEW, NEW_RT, OLD_RT, RT, X86};
use super::{Args, Base, Reason, image, qemu};
use crate::tally::{StepOutcome, Tally};
use crate::tools;
use trial::{Trial, trials};

/// Limit of reboots of a machine after a panic of the emulator's kind.
const PANICS: usize = 6;

/// The emulated HPET is read under the emulator's own lock, with interrupts off in the guest:
/// faults that were not injected. The time stamp counter is the host's, and steady, which the
/// kernel has to be given as a parameter because it cannot detect it.
const TSC: &str = "quiet tsc=reliable clocksource=tsc";

/// The emulated serial port, which carries the old kernels' results, interrupts more often than its
/// threaded handler has work: the kernel would consider that a fault and disable the interrupt.
const TSC_SERIAL: &str = "quiet tsc=reliable clocksource=tsc noirqdebug";

/// A device whose only purpose is to interrupt (`storm` of lab/onbeat_fault).
const EDU: &[&str] = &["-device", "edu"];

/// The CPUs of machines on which a periodic program is followed while the emulator is stopped.
/// More virtual CPUs than the host may have: at a real-time priority they could starve it.
const FOUR_CPUS: &str = "4";

/// A processor that shows no hypervisor: in a guest that sees one, locks have no queues, and no
/// event names the thread that releases one.
const QUEUED_LOCKS: &[&str] = &["-cpu", "max,-hypervisor"];

/// The machines, the gate's first.
const MACHINES: &[Machine] = &[
    Machine { name: "6.12-rt-faults", first: true, words: TSC, devices: EDU, ..RT },
    Machine { name: "6.12-faults", metapackage: "linux-image-6.12-amd64", words: TSC, devices: EDU, ..X86 },
    Machine { name: "6.1-rt-faults", words: TSC_SERIAL, devices: EDU, ..OLD_RT },
    Machine { name: "6.12-rt-4-faults", words: TSC, devices: EDU, smp: FOUR_CPUS, urgent: false, ..RT },
    Machine { name: "7.3-rt-faults", words: TSC, devices: EDU, ..NEW_RT },
    Machine { name: "7.3-faults", words: TSC, devices: EDU, ..NEW },
    Machine { name: "7.3-rt-4-faults", words: TSC, devices: EDU, smp: FOUR_CPUS, urgent: false, ..NEW_RT },
    Machine { name: "7.3-rt-lock-faults", words: TSC, devices: EDU, board: QUEUED_LOCKS, ..NEW_RT },
    Machine { name: "arm64-faults", measure_only: true, ..ARM },
];

/// Boots the machines and prints a table for each.
pub fn all_machines(options: &Args, tally: &mut Tally) {
    for machine in MACHINES.iter().filter(|machine| machine.first || options.all) {
        let trials: Vec<Trial> = trials(machine, options.all, options.seed)
            .into_iter()
            .filter(|trial| options.wants(&format!("{}: {}", machine.name, trial.name())))
            .collect();
        if trials.is_empty() {
            continue;
        }
        println!("\n{}: {} series of faults", machine.name, trials.len());
        if options.again {
            again(machine, trials, options.onbeat.as_deref(), tally);
            continue;
        }
        match ingredients(machine, &trials, options.keep) {
            Ok(ingredients) => one_machine(machine, trials, &ingredients, tally),
            Err(why) => super::leave_out(machine, &checks(&trials), &why, tally),
        }
        if !options.keep {
            qemu::remove_image(machine);
        }
    }
}

fn checks(trials: &[Trial]) -> Vec<Check> {
    let check = |trial: &Trial| Check::new(&trial.name(), &trial.script(), |_, _| Ok(()));
    trials.iter().map(check).collect()
}

/// Contents of the image besides the checks.
struct Ingredients {
    base: Base,
    items: Vec<image::ImageFile>,
    keep: bool,
}

fn ingredients(machine: &Machine, trials: &[Trial], keep: bool) -> Result<Ingredients, Reason> {
    let base = super::base(machine, super::Build::Static)?;
    // The own architecture must build; a foreign one needs a compiler that may be unavailable.
    let own = machine.arch == std::env::consts::ARCH;
    let module =
        build::module(machine, &base.kernel).map_err(if own { Reason::Broken } else { Reason::Missing })?;
    let mut items: Vec<image::ImageFile> = vec![
        ("lab/main.sh".to_string(), include_bytes!("../guest/faults.sh").into()),
        ("lab/fault-helpers.sh".to_string(), include_bytes!("../guest/fault-helpers.sh").into()),
        ("lab/onbeat_fault.ko".to_string(), module),
    ];
    if keep {
        items.push(("lab/keep".to_string(), Vec::new()));
    }
    if own {
        for name in ["user_faults", "followed"] {
            items.push((format!("bin/{name}"), build::program(name).map_err(Reason::Broken)?));
        }
    }
    if trials.iter().any(|trial| trial.trace_flags().is_some()) {
        items.extend(traced::recorder().map_err(Reason::Missing)?);
    }
    Ok(Ingredients { base, items, keep })
}

/// A failed series is repeated once in a fresh boot, and that counts: a correct one succeeds on a
/// calmer host, and a wrong one fails twice.
fn one_machine(machine: &Machine, trials: Vec<Trial>, ingredients: &Ingredients, tally: &mut Tally) {
    let start = Instant::now();
    let mut told: BTreeMap<String, (String, StepOutcome)> = BTreeMap::new();
    let (mut rest, mut retried, mut panics) = (trials.clone(), 0, 0);
    for again in [false, true] {
        let (mut replies, panicked, last_words) = match replies(machine, &rest, ingredients) {
            Ok(replies) => replies,
            Err(why) => return super::leave_out(machine, &checks(&trials), &Reason::Broken(why), tally),
        };
        panics += panicked;
        for trial in &rest {
            let stored = match replies.get(&trial.name()) {
                Some(reply) if ingredients.keep => kept::store(machine, trial, reply),
                _ => Ok(()),
            };
            stored.unwrap_or_else(|why| println!("  {} is not kept: {why}", trial.name()));
            if let Some(reply) = replies.get_mut(&trial.name()) {
                let made = kept::made_of(machine, trial, reply);
                made.unwrap_or_else(|why| println!("  {}: {why}", trial.name()));
            }
        }
        let (rows, outcomes) = table_of(&rest, &replies, &last_words);
        for (trial, (row, outcome)) in rest.iter().zip(rows.into_iter().zip(outcomes)) {
            let row = if again { format!("{row}  second run") } else { row };
            told.insert(trial.name(), (row, outcome));
        }
        rest.retain(|trial| {
            told.get(&trial.name()).is_some_and(|(_, outcome)| *outcome != StepOutcome::Passed)
        });
        if again || rest.is_empty() {
            break;
        }
        retried = rest.len();
        for trial in &rest {
            let (row, outcome) = &told[&trial.name()];
            println!("{row}\n  {} is run again: {outcome:?}", trial.name());
        }
    }
    let seconds = start.elapsed().as_secs();
    let name = machine.name;
    println!(
        "{name}: {seconds} s, {panics} panics of the emulator's kind, {retried} series run twice\n{}",
        score::head()
    );
    let mut print = |trial: &Trial| {
        if let Some((row, outcome)) = told.remove(&trial.name()) {
            println!("{row}");
            return Some((format!("{name}: {}", trial.name()), outcome));
        }
        None
    };
    let outcomes: Vec<(String, StepOutcome)> = trials.iter().filter_map(&mut print).collect();
    outcomes.into_iter().for_each(|(name, outcome)| tally.note(name, outcome));
}

/// Scores the kept results with the current explanation.
fn again(machine: &Machine, trials: Vec<Trial>, onbeat: Option<&str>, tally: &mut Tally) {
    let built =
        || tools::Tool::new("cargo").args(["build", "--quiet"]).text().and_then(|_| tools::target("debug"));
    let onbeat = match onbeat.map_or_else(|| built().map(|dir| dir.join("onbeat")), |path| Ok(path.into())) {
        Ok(path) => path.display().to_string(),
        Err(why) => return tally.note(machine.name, StepOutcome::Failed(why)),
    };
    let mut replies: BTreeMap<String, Reply> = BTreeMap::new();
    let mut there = Vec::new();
    for trial in trials {
        match kept::again(machine, &trial, &onbeat) {
            None => {}
            Some(Err(why)) => {
                tally.note(format!("{}: {}", machine.name, trial.name()), StepOutcome::Failed(why))
            }
            Some(Ok(reply)) => {
                replies.insert(trial.name(), reply);
                there.push(trial);
            }
        }
    }
    let (rows, outcomes) = table_of(&there, &replies, "");
    println!("{}\n{}", score::head(), rows.join("\n"));
    for (trial, outcome) in there.iter().zip(outcomes) {
        tally.note(format!("{}: {}", machine.name, trial.name()), outcome);
    }
}

/// Series per boot: more of them may exceed the time limit of a boot.
const SERIES: usize = 20;

/// Boots until every check has ended, or the machine stopped for another reason.
fn replies(machine: &Machine, trials: &[Trial], ingredients: &Ingredients) -> tools::Result<Replies> {
    let Ingredients { base, items, .. } = ingredients;
    let (mut done, mut panics) = (BTreeMap::new(), 0);
    loop {
        let rest: Vec<Check> =
            checks(trials).into_iter().filter(|check| !done.contains_key(&check.name)).take(SERIES).collect();
        let items: Vec<image::ImageFile> = image::of_checks(&rest, items);
        let archive = image::initramfs(&base.busybox, &base.onbeat, &base.kernel.config, &items);
        let boot = qemu::boot(machine, &qemu::Image::write(machine, base.kernel.image.clone(), &archive)?)?;
        let ended = |(_, reply): &(String, Reply)| reply.over.is_some();
        let replies: Vec<(String, Reply)> =
            frames::parse(&boot.results).replies.into_iter().filter(ended).collect();
        let none = replies.is_empty();
        done.extend(replies);
        if done.len() < trials.len() && rest.iter().all(|check| done.contains_key(&check.name)) {
            continue;
        }
        if !boot.emulator_fault || panics == PANICS {
            return Ok((done, panics, format!("{}; see {}", boot.last_words, boot.log.display())));
        }
        panics += 1;
        let got = if none { "nothing was over" } else { "what was over counts" };
        println!("  a panic of the emulator's kind ({panics}); {got}, booting again");
    }
}

/// Replies by check, panics of the emulator's kind, and the last words of the last boot.
type Replies = (BTreeMap<String, Reply>, usize, String);

/// Rows of the table and outcomes, one of each per trial.
fn table_of(
    trials: &[Trial],
    replies: &BTreeMap<String, Reply>,
    last_words: &str,
) -> (Vec<String>, Vec<StepOutcome>) {
    let judge = |trial: &Trial| match replies.get(&trial.name()) {
        None => Err(format!("the machine stopped before its end: {last_words}")),
        Some(reply) if reply.over != Some(0) => {
            Err(format!("the series' script ended with {:?}", reply.over))
        }
        Some(reply) => trial.judge(reply),
    };
    let failed =
        |trial: &Trial, why: String| (format!("  {:<14} no score", trial.name()), StepOutcome::Failed(why));
    trials.iter().map(|trial| judge(trial).unwrap_or_else(|why| failed(trial, why))).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_machine_has_faults_and_the_other_architecture_three() {
        for machine in MACHINES {
            let count = trials(machine, true, 1).len();
            let enough = match machine.smp {
                FOUR_CPUS => count == 1,
                _ if machine.board == QUEUED_LOCKS => count == 1,
                _ if machine.measure_only => count == 3,
                _ => count > 12,
            };
            assert!(enough, "{}", machine.name);
        }
        let name = |trial: Trial| trial.name();
        let first: Vec<String> = trials(&MACHINES[0], false, 1).into_iter().map(name).collect();
        assert!(first.contains(&"fault-hog".into()) && first.contains(&"fault-stopped".into()));
        let old: Vec<String> = trials(&MACHINES[2], true, 1).into_iter().map(name).collect();
        assert!(old.contains(&"fault-throttle".into()) && !old.contains(&"fault-fair-server".into()));
        // The kernel preempts its own code there.
        let newer = MACHINES.iter().find(|machine| machine.name == "7.3-faults").unwrap();
        let newer: Vec<String> = trials(newer, true, 1).into_iter().map(name).collect();
        assert!(newer.contains(&"fault-fair-server".into()) && !newer.contains(&"fault-long-call".into()));
    }

    #[test]
    fn silence_and_a_script_that_was_killed_have_no_score() {
        let trials = trials(&MACHINES[0], true, 1);
        let silent =
            |over| trials.iter().map(|trial| (trial.name(), Reply { over, ..Reply::default() })).collect();
        for replies in [BTreeMap::new(), silent(Some(0)), silent(Some(137))] {
            let (rows, outcomes) = table_of(&trials, &replies, "Kernel panic");
            assert!(rows.iter().all(|row| row.contains("no score")));
            assert!(outcomes.iter().all(|outcome| matches!(outcome, StepOutcome::Failed(_))));
        }
    }

    #[test]
    fn a_hunt_without_a_spike_fails_every_series() {
        let empty = json!({ "cpus": [], "spikes": [], "culprits": [] }).to_string();
        let mut reply = Reply { over: Some(0), ..Reply::default() };
        for (program, code) in [("h", "6"), ("w", "6"), ("r", "0"), ("t", "0")] {
            reply.values.insert(format!("{program}.exit"), code.into());
        }
        let logs = [("log", "dropped=0\n"), ("stops", "dropped=0\n"), ("cycles", "")];
        let runs = [("run", empty.as_str()), ("traced", empty.as_str()), ("record", "{}")];
        for (label, text) in runs.into_iter().chain(logs) {
            reply.files.insert(label.into(), Some(text.into()));
        }
        for trial in trials(&MACHINES[0], true, 1) {
            let (row, outcome) = trial.judge(&reply).unwrap();
            assert!(!row.contains("no score") && matches!(outcome, StepOutcome::Failed(_)), "{row}");
        }
    }
}
