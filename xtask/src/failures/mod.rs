//! `cargo xtask failures`: every system call of short runs made to fail, one at a time, and the end judged.
//!
//! A first traced run tells which calls a command makes and how often; then the n-th call of each fails with an error
//! that the kernel could give (strace's `inject`), and the command must end with a code of the contract and a line that
//! says why, or complete. It must not panic, hang, die of a signal, leave temporary files, or write an empty result.

mod calls;
mod judge;
mod scene;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stats::rng::Rng;

use crate::debian::{self, Need};
use crate::tally::{Outcome, Tally};
use crate::tools::{Result, Tool, target};
use calls::Calls;
use judge::{Ending, Fault};
use scene::{Case, Scene};

/// No command here takes longer, under a tracer and on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Tries of a command unless all are asked for.
const USUAL: usize = 300;

/// What to try.
pub struct Options {
    all: bool,
    only: Option<String>,
    program: Option<PathBuf>,
    seed: u64,
    tries: usize,
    within: Option<Duration>,
}

impl Options {
    /// What the gate has time for: the same tries each time.
    pub const QUICK: Options = Options {
        all: false,
        only: None,
        program: None,
        seed: 11,
        tries: 16,
        within: Some(Duration::from_secs(60)),
    };

    /// From the command line.
    pub fn parse(args: &[String]) -> Result<Options> {
        let mut options = Options { tries: USUAL, within: None, ..Options::QUICK };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().cloned().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--all" => options.all = true,
                "--quick" => {
                    options = Options { only: options.only, program: options.program, ..Options::QUICK }
                }
                "--only" => options.only = Some(value()?),
                "--program" => options.program = Some(value()?.into()),
                "--seed" => {
                    options.seed = value()?.parse().map_err(|_| "--seed: expected a number".to_string())?
                }
                "--tries" => {
                    options.tries = value()?.parse().map_err(|_| "--tries: expected a number".to_string())?;
                }
                other => return Err(format!("unexpected argument: {other}")),
            }
        }
        Ok(options)
    }
}

/// Tries all commands.
pub fn run(options: &Options) -> Result<()> {
    debian::ensure(&[Need { program: "strace", package: "strace" }])?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => {
            Tool::new("cargo")
                .args(["build", "--quiet", "--package", "onbeat"])
                .dir(&crate::tools::root())
                .show()?;
            target("debug")?.join("onbeat")
        }
    };
    let scene = Scene::make(&program)?;
    let begun = Instant::now();
    let mut tally = Tally::default();
    for case in scene.cases() {
        if options.only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        let outcome = match scene.unable(&case) {
            Some(why) => Outcome::LeftOut(why),
            None => Outcome::from(one(&scene, &case, options, begun)),
        };
        tally.note(format!("failures {}", case.name), outcome);
    }
    tally.close()
}

/// A command with every call failing, or with a sample of them.
fn one(scene: &Scene, case: &Case, options: &Options, begun: Instant) -> Result<()> {
    let (calls, usual) = trace(scene, case)?;
    let mut faults = table::faults(&calls);
    let found = faults.len();
    if !options.all {
        thin_out(&mut faults, options.tries, options.seed);
    }
    faults.splice(0..0, table::missing(&calls));
    let (mut wrong, mut tried, mut codes) = (Vec::new(), 0, [0u32; 8]);
    for fault in &faults {
        if options.within.is_some_and(|within| begun.elapsed() > within) {
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

/// The calls that a command makes, and how it ends when none fails.
fn trace(scene: &Scene, case: &Case) -> Result<(Calls, Ending)> {
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

/// Leaves one of every kind first, then whichever the seed draws.
fn thin_out(faults: &mut Vec<Fault>, tries: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    // A shuffle, and then the first of each call and error goes to the front.
    for at in (1..faults.len()).rev() {
        faults.swap(at, rng.below(at + 1));
    }
    let mut seen = std::collections::BTreeSet::new();
    let (mut kept, rest): (Vec<Fault>, Vec<Fault>) =
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
                (1..50).map(|nth| Fault { call: call.into(), nth, errno: "EIO" }).collect::<Vec<_>>()
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
