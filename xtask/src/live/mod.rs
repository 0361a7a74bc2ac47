//! The virtual machines: Debian kernels under QEMU with the static binary inside.
//!
//! One boot runs all checks of a kernel. The guest only acts and reports; judging happens here, on
//! plain values, so that every judge can be tested with good and bad answers.

mod checks;
mod faults;
pub mod frames;
pub mod image;
pub mod judge;
pub mod machine;
pub mod modules;
pub mod qemu;
pub mod tree;

use std::time::Instant;

use crate::debian::{self, Need};
use crate::dist;
use crate::tally::{Outcome, Tally};
use crate::tools::Result;
use checks::Check;
use machine::Machine;

/// What to boot.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    all: bool,
    keep: bool,
    again: bool,
    only: Option<String>,
    onbeat: Option<String>,
    seed: u64,
}

/// What chance draws from unless told.
const SEED: u64 = 11;

impl Options {
    /// Reads the flags.
    pub fn parse(args: &[String]) -> Result<Options> {
        let mut options = Options { seed: SEED, ..Options::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--all" => options.all = true,
                "--keep" => options.keep = true,
                "--again" => options.again = true,
                "--only" => {
                    options.only =
                        Some(args.next().ok_or("--only takes parts of names, with commas between")?.clone())
                }
                "--onbeat" => options.onbeat = Some(args.next().ok_or("--onbeat takes a program")?.clone()),
                "--seed" => {
                    let seed = args.next().and_then(|text| text.parse().ok());
                    options.seed = seed.ok_or("--seed takes a number")?;
                }
                other => return Err(format!("live does not know {other}")),
            }
        }
        if options.onbeat.is_some() && !options.again {
            return Err("--onbeat goes with --again".to_string());
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|parts| parts.split(',').any(|part| name.contains(part)))
    }
}

/// Boots the machines and closes with the count.
pub fn run(options: &Options) -> Result<()> {
    all_machines(options).close()
}

/// Boots the machines; what cannot be booted is left out, check by check.
pub fn all_machines(options: &Options) -> Tally {
    let mut tally = Tally::default();
    if options.again {
        faults::all_machines(options, &mut tally);
        return tally;
    }
    for machine in machine::MACHINES.iter().filter(|machine| machine.first || options.all) {
        let checks: Vec<Check> =
            checks::of(machine).into_iter().filter(|check| options.wants(&check.name)).collect();
        if checks.is_empty() {
            continue;
        }
        println!("\n{}: {} checks", machine.name, checks.len());
        match prepare(machine, &checks) {
            Ok(image) => one_machine(machine, &checks, &image, &mut tally),
            Err(why) => leave_out(machine, &checks, &why, &mut tally),
        }
        if !options.keep {
            qemu::remove_image(machine);
        }
    }
    faults::all_machines(options, &mut tally);
    tally
}

/// A fault is counted once, under the machine's name; the checks are left out one by one.
fn leave_out(machine: &Machine, checks: &[Check], why: &Reason, tally: &mut Tally) {
    let why = match why {
        Reason::Missing(why) => why.as_str(),
        Reason::Broken(why) => {
            tally.note(machine.name, Outcome::Failed(why.clone()));
            "see above"
        }
    };
    for check in checks {
        tally.note(format!("{}: {}", machine.name, check.name), Outcome::LeftOut(why.to_string()));
    }
}

/// Why a machine cannot be booted.
enum Reason {
    /// The host lacks something: no fault of the project's.
    Missing(String),
    /// The project does not build.
    Broken(String),
}

/// What every image has.
struct Base {
    kernel: machine::Kernel,
    busybox: Vec<u8>,
    onbeat: Vec<u8>,
}

fn base(machine: &Machine) -> std::result::Result<Base, Reason> {
    let need = Need { program: machine.emulator, package: machine.package };
    debian::ensure(&[need]).map_err(Reason::Missing)?;
    let kernel = machine::kernel(machine).map_err(Reason::Missing)?;
    let busybox = debian::busybox(machine.debian_arch).map_err(Reason::Missing)?;
    // The own architecture must build; a foreign one needs a target that may not be had.
    let own = machine.arch == std::env::consts::ARCH;
    let onbeat = dist::build(machine.arch).map_err(if own { Reason::Broken } else { Reason::Missing })?;
    let onbeat = crate::tools::read(&onbeat).map_err(Reason::Broken)?;
    Ok(Base { kernel, busybox, onbeat })
}

fn prepare(machine: &Machine, checks: &[Check]) -> std::result::Result<qemu::Image, Reason> {
    let Base { kernel, busybox, onbeat } = base(machine)?;
    let items = image::of_checks(checks, &[image::main_script()]);
    let archive = image::initramfs(&busybox, &onbeat, &kernel.config, &items);
    qemu::Image::write(machine, kernel.image, &archive).map_err(Reason::Broken)
}

fn one_machine(machine: &Machine, checks: &[Check], image: &qemu::Image, tally: &mut Tally) {
    let start = Instant::now();
    let booted = qemu::boot_again(machine, image);
    match booted {
        Err(why) => leave_out(machine, checks, &Reason::Broken(why), tally),
        Ok(boot) => {
            let report = frames::parse(&boot.results);
            for (name, outcome) in outcomes(machine, checks, &report, &boot) {
                tally.note(format!("{}: {name}", machine.name), outcome);
            }
        }
    }
    println!("{}: {} s", machine.name, start.elapsed().as_secs());
}

/// A machine that stops fails the check it stopped in; those after it never ran.
fn outcomes(
    machine: &Machine,
    checks: &[Check],
    report: &frames::Report,
    boot: &qemu::Boot,
) -> Vec<(String, Outcome)> {
    let mut stopped = false;
    let mut outcome_of = |check: &Check| {
        if stopped {
            return Outcome::LeftOut("the machine had stopped".to_string());
        }
        match report.replies.get(&check.name).map(|reply| (reply, reply.over)) {
            Some((reply, Some(0))) => Outcome::from((check.judge)(reply, machine)),
            Some((_, Some(code))) => Outcome::Failed(format!("the check's script ended with {code}")),
            Some((_, None)) | None => {
                stopped = true;
                let (words, log) = (&boot.last_words, boot.log.display());
                Outcome::Failed(format!("the machine stopped here: {words}; see {log}"))
            }
        }
    };
    checks.iter().map(|check| (check.name.clone(), outcome_of(check))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags() {
        let parse =
            |text: &str| Options::parse(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        assert_eq!(
            parse("--all --only stall"),
            Ok(Options { all: true, only: Some("stall".into()), seed: SEED, ..Options::default() })
        );
        let both = parse("--only lock,stopped").unwrap();
        assert!(
            both.wants("a: fault-lock")
                && both.wants("a: fault-stopped-among")
                && !both.wants("a: fault-irq")
        );
        assert_eq!(parse("--seed 7").map(|options| options.seed), Ok(7));
        let other = parse("--again --onbeat target/other").unwrap();
        assert_eq!(other.onbeat.as_deref(), Some("target/other"));
        assert!(parse("--onbeat target/other").is_err() && parse("--again --onbeat").is_err());
        assert!(parse("--seed x").is_err() && parse("--seed").is_err());
        assert!(parse("--only").is_err() && parse("--al").is_err());
    }

    #[test]
    fn a_machine_that_stops_fails_one_check_and_passes_none_after() {
        let check =
            |name: &str| Check { name: name.into(), script: String::new(), judge: Box::new(|_, _| Ok(())) };
        let checks = ["a", "b", "c", "d"].map(check);
        let report = frames::parse("=== CHECK a\n=== OVER 0\n=== CHECK b\n=== OVER 137\n=== CHECK c\n");
        let boot = qemu::Boot {
            results: String::new(),
            log: "x.log".into(),
            last_words: "Kernel panic".into(),
            emulator_fault: false,
        };
        let outcomes = outcomes(&machine::MACHINES[0], &checks, &report, &boot);
        assert_eq!(outcomes[0].1, Outcome::Passed);
        assert!(matches!(&outcomes[1].1, Outcome::Failed(why) if why.contains("137")));
        assert!(matches!(&outcomes[2].1, Outcome::Failed(why) if why.contains("Kernel panic")));
        assert!(matches!(outcomes[3].1, Outcome::LeftOut(_)));
    }
}
