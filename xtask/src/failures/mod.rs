//! `cargo xtask failures`: every system call of short runs is made to fail, one at a time, and the
//! end is judged.
//!
//! A first traced run records a command's calls and their numbers; then the n-th call of each fails
//! with an error that the kernel could return (strace's `inject`), and the command must end with a
//! code of the contract and a line with the reason, or complete. It must not panic, hang, die of a
//! signal, leave temporary files, or write an empty result.

mod calls;
mod judge;
mod scene;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stats::rng::Rng;

use crate::debian::{self, Need};
use crate::tally::{StepOutcome, Tally};
use crate::tools::{Result, target};
use calls::{Calls, FailingCall};
use scene::{Ending, FailureCase, Scene};

/// No command here takes longer, even traced on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Number of failures per command unless all are requested.
const USUAL: usize = 300;

/// Default seed of the sample.
const SEED: u64 = 11;

/// Run commands with one failing system call, each call in turn, and judge how they end.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run a sample for a minute, the same each time.
    #[arg(long, conflicts_with = "all")]
    quick: bool,
    /// Try every call with every error.
    #[arg(long)]
    all: bool,
    /// Try only commands whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Try this program instead of this tree's.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Seed of the sample.
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// Number of calls in the sample of each command.
    #[arg(long, value_name = "N", default_value_t = USUAL)]
    tries: usize,
}

impl Args {
    /// Selection for the gate, with the program that its tests were run on.
    pub fn of_gate() -> Result<Args> {
        let program = Some(target("debug")?.join("onbeat"));
        Ok(Args { quick: true, all: false, only: None, program, seed: SEED, tries: USUAL })
    }

    fn tries(&self) -> usize {
        if self.quick { 16 } else { self.tries }
    }

    fn within(&self) -> Option<Duration> {
        self.quick.then_some(Duration::from_secs(60))
    }
}

/// Tries all commands.
pub fn run(options: &Args) -> Result<()> {
    debian::ensure(&[Need { program: "strace", package: "strace" }])?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => crate::built::program("onbeat")?,
    };
    let scene = Scene::make(&program)?;
    let begun = Instant::now();
    let mut tally = Tally::default();
    for case in scene.cases() {
        if options.only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        let outcome = match scene.unable(&case) {
            Some(why) => StepOutcome::LeftOut(why),
            None => StepOutcome::from(one(&scene, &case, options, begun)),
        };
        tally.note(format!("failures {}", case.name), outcome);
    }
    tally.close()
}

/// A command with every call failing, or with a sample of them.
fn one(scene: &Scene, case: &FailureCase, options: &Args, begun: Instant) -> Result<()> {
    let (calls, usual) = trace(scene, case)?;
    let mut faults = table::faults(&calls);
    let found = faults.len();
    if !options.all {
        thin_out(&mut faults, options.tries(), options.seed);
    }
    faults.splice(0..0, table::missing(&calls));
    let (mut wrong, mut tried, mut codes) = (Vec::new(), 0, [0u32; 8]);
    for fault in &faults {
        if options.within().is_some_and(|within| begun.elapsed() > within) {
            break;
        }
        let ending = scene.run(case, Some(fault))?;
        tried += 1;
        if let Some(count) = usize::try_from(ending.code).ok().and_then(|code| codes.get_mut(code)) {
            *count += 1;
        }
        if let Some(why) = judge::judge(case, fault, &ending, &usual) {
            println!("  {fault}: {why}");
            wrong.push(format!("{fault}: {why}"));
        }
    }
    let codes: Vec<String> =
        (0..).zip(codes).filter(|(_, n)| *n > 0).map(|(code, n)| format!("{n} x {code}")).collect();
    println!(
        "  {}: {tried} endings, of {found} calls that can fail; exit codes {}",
        case.name,
        codes.join(", ")
    );
    match wrong.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!("{} of {tried} ended wrongly, the first: {first}", wrong.len())),
    }
}

/// The calls that a command makes, and its end if none fails.
fn trace(scene: &Scene, case: &FailureCase) -> Result<(Calls, Ending)> {
    let log = scene.path("trace");
    let ending = scene.traced(case, &["-o", &log.display().to_string()])?;
    let text = String::from_utf8_lossy(&crate::tools::read(&log)?).into_owned();
    remove(&log);
    let calls = Calls::parse(&text);
    if !calls.is_whole() {
        return Err(format!(
            "{}: strace did not show the program's start: {}",
            case.name,
            ending.stderr.trim()
        ));
    }
    Ok((calls, ending))
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Keeps one of every kind first, then those that the seed draws.
fn thin_out(faults: &mut Vec<FailingCall>, tries: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    // A shuffle, after which the first of each call and error moves to the front.
    for at in (1..faults.len()).rev() {
        faults.swap(at, rng.below(at + 1));
    }
    let mut seen = std::collections::BTreeSet::new();
    let (mut kept, rest): (Vec<FailingCall>, Vec<FailingCall>) =
        faults.drain(..).partition(|fault| seen.insert((fault.call.clone(), fault.errno)));
    kept.extend(rest);
    kept.truncate(tries);
    *faults = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_each_time_and_has_each_kind_first() {
        let all = || {
            let of = |call: &str| {
                (1..50).map(|nth| FailingCall { call: call.into(), nth, errno: "EIO" }).collect::<Vec<_>>()
            };
            [of("read"), of("write"), of("fsync")].concat()
        };
        let (mut one, mut two) = (all(), all());
        thin_out(&mut one, 10, 3);
        thin_out(&mut two, 10, 3);
        assert_eq!((one.len(), one == two), (10, true));
        let mut first: Vec<&str> = one[..3].iter().map(|fault| fault.call.as_str()).collect();
        first.sort_unstable();
        assert_eq!(first, ["fsync", "read", "write"]);
    }
}
