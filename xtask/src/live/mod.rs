//! The virtual machines: Debian kernels under QEMU with the static binary inside.
//!
//! One boot runs all checks of a kernel. The guest only acts and reports; the judgement is made
//! here, on plain values, so that every judge can be tested with good and bad results.

mod checks;
mod faults;
pub mod frames;
pub mod image;
pub mod judge;
pub mod kernels;
pub mod machine;
pub mod modules;
pub mod qemu;
pub mod tree;
mod tune;

use std::time::Instant;

use crate::debian::{self, Need};
use crate::tally::{StepOutcome, Tally};
use crate::tools::Result;
use crate::{built, dist};
use checks::Check;
use image::GuestProgram;
use machine::Machine;

/// Boot Debian kernels under QEMU and check onbeat on them.
///
/// The last boots inject faults and score what `hunt` says of them (`--only fault-`).
#[derive(Debug, Default, PartialEq, clap::Args)]
pub struct Args {
    /// Besides 6.12 PREEMPT_RT also stock 6.12, 6.1, 7.2 and 7.3 PREEMPT_RT, stock 7.3, arm64 and
    /// riscv64.
    #[arg(long)]
    all: bool,
    /// Keep the images, and the events of faults in target/lab/answers.
    #[arg(long)]
    keep: bool,
    /// Write how the machines' checks ended to lab/results.tsv; with --only, of the machines named
    /// in whole: "7.3-rt: ".
    #[arg(long, requires = "all")]
    record: bool,
    /// Score the events that --keep left, as they are explained now.
    #[arg(long)]
    again: bool,
    /// Run only checks whose name contains one of these, or equals one: =NAME.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// The program that explains them, in place of this tree's.
    #[arg(long, value_name = "PROGRAM", requires = "again")]
    onbeat: Option<String>,
    /// What the stops of the emulator are drawn from.
    #[arg(long, value_name = "N", default_value_t = 11)]
    seed: u64,
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        let is_meant = |part: &String| match part.strip_prefix('=') {
            Some(whole) => name == whole,
            None => name.contains(part.as_str()),
        };
        self.only.is_empty() || self.only.iter().any(is_meant)
    }
}

/// Boots the machines and closes with the count.
pub fn run(options: &Args) -> Result<()> {
    if let Some(part) = options.only.iter().find(|part| options.record && !part.ends_with(": ")) {
        return Err(format!(
            "invalid --only {part}: expected a whole machine like \"7.3-rt: \" with --record"
        ));
    }
    let tally = all_machines(options);
    if options.record {
        kernels::record(&tally)?;
    }
    tally.close()
}

/// The part of each landing: the board's checks on the first machine, and in brief on the newest,
/// with the program that the tests have run.
pub fn board() -> Tally {
    let mut tally = Tally::default();
    boards(&Args::default(), Build::Tested, &mut tally);
    tally
}

/// All machines, with settings and faults.
pub fn night() -> Tally {
    all_machines(&Args { all: true, ..Args::default() })
}

/// Boots the machines; the checks of a machine that cannot be booted are skipped, one by one.
fn all_machines(options: &Args) -> Tally {
    let mut tally = Tally::default();
    if !options.again {
        boards(options, Build::Static, &mut tally);
        tune::all_machines(options, &mut tally);
    }
    faults::all_machines(options, &mut tally);
    tally
}

fn boards(options: &Args, build: Build, tally: &mut Tally) {
    let wanted = |machine: &&Machine| machine.first || machine.brief || options.all;
    for machine in machine::MACHINES.iter().filter(wanted) {
        let wanted = |check: &Check| options.wants(&format!("{}: {}", machine.name, check.name));
        let checks: Vec<Check> = checks::of(machine, options.all).into_iter().filter(wanted).collect();
        if checks.is_empty() {
            continue;
        }
        println!("\n{}: {} checks", machine.name, checks.len());
        match prepare(machine, build, &checks) {
            Ok(image) => one_machine(machine, &checks, &image, tally),
            Err(why) => leave_out(machine, &checks, &why, tally),
        }
        if !options.keep {
            qemu::remove_image(machine);
        }
    }
}

/// A fault is counted once, under the machine's name; the checks are skipped one by one.
fn leave_out(machine: &Machine, checks: &[Check], why: &Reason, tally: &mut Tally) {
    let why = match why {
        Reason::Missing(why) => why.as_str(),
        Reason::Broken(why) => {
            tally.note(machine.name, StepOutcome::Failed(why.clone()));
            "see above"
        }
    };
    for check in checks {
        tally.note(format!("{}: {}", machine.name, check.name), StepOutcome::LeftOut(why.to_string()));
    }
}

/// Reason for which a machine cannot be booted.
enum Reason {
    /// The host lacks something: not a fault of the project.
    Missing(String),
    /// The project does not build.
    Broken(String),
}

/// Common contents of all images.
struct Base {
    kernel: machine::KernelImage,
    busybox: Vec<u8>,
    onbeat: GuestProgram,
}

/// The build of onbeat in a guest.
#[derive(Clone, Copy)]
enum Build {
    /// The one for boards, which takes minutes to link.
    Static,
    /// The one of the tests, of this machine's architecture.
    Tested,
}

fn base(machine: &Machine, build: Build) -> std::result::Result<Base, Reason> {
    let need = Need { program: machine.emulator, package: machine.package };
    debian::ensure(&[need]).map_err(Reason::Missing)?;
    let kernel = machine::kernel(machine).map_err(Reason::Missing)?;
    let busybox = debian::busybox(machine.debian_arch).map_err(Reason::Missing)?;
    // The own architecture must build; a foreign one needs a target that may be unavailable.
    let own = machine.arch == std::env::consts::ARCH;
    let onbeat = match build {
        Build::Tested if own => built::program("onbeat").and_then(|path| GuestProgram::linked(&path)),
        _ => dist::build(machine.arch).and_then(|path| crate::tools::read(&path)).map(GuestProgram::fixed),
    };
    let onbeat = onbeat.map_err(if own { Reason::Broken } else { Reason::Missing })?;
    Ok(Base { kernel, busybox, onbeat })
}

fn prepare(machine: &Machine, build: Build, checks: &[Check]) -> std::result::Result<qemu::Image, Reason> {
    let Base { kernel, busybox, onbeat } = base(machine, build)?;
    let mut items = image::of_checks(checks, &[image::main_script()]);
    let wanted: Vec<&str> = checks.iter().flat_map(|check| check.modules).copied().collect();
    items.extend(modules::in_image(machine, &wanted).map_err(Reason::Missing)?);
    let archive = image::initramfs(&busybox, &onbeat, &kernel.config, &items);
    let image = qemu::Image::write(machine, kernel.image, &archive).map_err(Reason::Broken)?;
    if !wanted.contains(&"nvme") {
        return Ok(image);
    }
    Ok(image.with_disk(qemu::blank_disk(machine).map_err(Reason::Broken)?))
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
            println!("slowest: {}", slowest(&report));
        }
    }
    println!("{}: {} s", machine.name, start.elapsed().as_secs());
}

/// Checks that took the longest, with their seconds by the guest's clock, and the sum of all.
fn slowest(report: &frames::Report) -> String {
    let seconds = |reply: &frames::Reply| reply.number("ms").unwrap_or(0) / 1000;
    let mut all: Vec<_> = report.replies.iter().map(|(name, reply)| (seconds(reply), name)).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let named: Vec<String> = all.iter().take(8).map(|(s, name)| format!("{name} {s}")).collect();
    format!("{}; all {} s", named.join(", "), all.iter().map(|(s, _)| s).sum::<i64>())
}

/// A machine that stops fails the check it stopped in; those after it never ran.
fn outcomes(
    machine: &Machine,
    checks: &[Check],
    report: &frames::Report,
    boot: &qemu::Boot,
) -> Vec<(String, StepOutcome)> {
    let mut stopped = false;
    let mut outcome_of = |check: &Check| {
        if stopped {
            return StepOutcome::LeftOut("the machine had stopped".to_string());
        }
        match report.replies.get(&check.name).map(|reply| (reply, reply.over)) {
            Some((reply, Some(0))) => StepOutcome::from((check.judge)(reply, machine)),
            Some((_, Some(code))) => StepOutcome::Failed(format!("the check's script ended with {code}")),
            Some((_, None)) | None => {
                stopped = true;
                let (words, log) = (&boot.last_words, boot.log.display());
                StepOutcome::Failed(format!("the machine stopped here: {words}; see {log}"))
            }
        }
    };
    checks.iter().map(|check| (check.name.clone(), outcome_of(check))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_names_are_wanted() {
        let both = Args { only: vec!["lock".into(), "stopped".into()], ..Args::default() };
        assert!(both.wants("a: fault-lock") && both.wants("a: fault-stopped-among"));
        assert!(!both.wants("a: fault-irq") && Args::default().wants("a: fault-irq"));
        let one = Args { only: vec!["=a: cure".into()], ..Args::default() };
        assert!(one.wants("a: cure") && !one.wants("a: cure-two") && !one.wants("aa: cure"));
    }

    #[test]
    fn a_machine_that_stops_fails_one_check_and_passes_none_after() {
        let check = |name: &str| Check::new(name, "", |_, _| Ok(()));
        let checks = ["a", "b", "c", "d"].map(check);
        let report = frames::parse("=== CHECK a\n=== OVER 0\n=== CHECK b\n=== OVER 137\n=== CHECK c\n");
        let boot = qemu::Boot {
            results: String::new(),
            log: "x.log".into(),
            last_words: "Kernel panic".into(),
            emulator_fault: false,
        };
        let outcomes = outcomes(&machine::MACHINES[0], &checks, &report, &boot);
        assert_eq!(outcomes[0].1, StepOutcome::Passed);
        assert!(matches!(&outcomes[1].1, StepOutcome::Failed(why) if why.contains("137")));
        assert!(matches!(&outcomes[2].1, StepOutcome::Failed(why) if why.contains("Kernel panic")));
        assert!(matches!(outcomes[3].1, StepOutcome::LeftOut(_)));
    }
}
