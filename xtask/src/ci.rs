//! The gate: the checks of a landing, and with `--night` the longer ones.
//!
//! A failed step does not hide the result of the next one, except that nothing is run after a
//! failed build. No step has a limit on measured time: the benchmark is a separate command.

use std::collections::BTreeSet;
use std::time::Instant;

use gate::WORKSPACE;

use crate::needs;
use crate::tally::{StepOutcome, Tally};
use crate::tools::{Result, Tool, root};
use crate::{armv7, bench, browser, dist, docs, experiments, failures, live, packages};

/// The test target of packages that starts their programs.
const PROGRAMS: &str = "it";

/// Tests that need packages of hundreds of megabytes, which only the night installs.
const OF_NIGHT: &[&str] = &["spark_reads_what_is_exported"];

/// Tests that are skipped because of the running kernel, which no package changes.
const OF_KERNEL: &[&str] = &["switches of this kernel", "threads that are followed"];

/// Run the gate; the last line counts what passed, failed and was left out.
///
/// Without `--night`: build with Clippy and the fuzz targets, format, all tests, generated pages,
/// pages in a browser, weight, and with the program that was tested a PREEMPT_RT kernel with the
/// board's checks and the newest one in brief.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Also the static binary, packages, experiments on drawn data, failing system calls, armv7,
    /// Spark, the farm's pages over PostgreSQL, settings and faults in virtual machines, and the
    /// other kernels.
    #[arg(long)]
    night: bool,
}

/// Runs it; the last line counts it.
pub fn run(args: &Args) -> Result<()> {
    let mut tally = Tally::default();
    step(&mut tally, "packages", || needs::install(args.night));
    step(&mut tally, "format", || cargo(&["fmt", "--all", "--check"]));
    // A guest waits for its clocks most of the time. What only computes, and is nice, takes the rest
    // of two CPUs.
    let guests = (!args.night).then(|| std::thread::spawn(live::board));
    let mut left_out = BTreeSet::new();
    step(&mut tally, "tests of libraries", || {
        let others = other_test_files()?;
        let mut targets = vec!["--lib", "--bins", "--examples"];
        targets.extend(others.iter().flat_map(|name| ["--test", name]));
        tested("10", &targets, args, &mut left_out)
    });
    if let Some(guests) = guests {
        take(&mut tally, "guests", guests);
    }
    // Drawing and waiting leave half of two CPUs to the browser.
    let browser = std::thread::spawn(|| {
        let mut seen = Tally::default();
        browser::all(&mut seen);
        seen
    });
    step(&mut tally, "tests of programs", || tested("0", &["--test", PROGRAMS], args, &mut left_out));
    for (name, why) in left_out {
        tally.note(name, StepOutcome::LeftOut(why));
    }
    step(&mut tally, "generated pages", docs::check);
    if args.night {
        step(&mut tally, "experiments", || experiments::run_here(&experiments::Args::QUICK));
        step(&mut tally, "failing system calls", || failures::run(&failures::Args::of_gate()?));
        boards_of_32_bits(&mut tally);
        step(&mut tally, "packages of two folders", || packages::run(&packages::Args::of_gate()));
    }
    take(&mut tally, "browser", browser);
    weight(args, &mut tally);
    if args.night {
        tally.take(live::night());
    }
    let avoidable: Vec<&str> = tally.left_out().filter(|name| !OF_KERNEL.contains(name)).collect();
    if needs::can_install() && !avoidable.is_empty() {
        let why = format!("left out, although it can be installed: {}", avoidable.join(", "));
        tally.note("everything was tried", StepOutcome::Failed(why));
    }
    tally.close()
}

fn take(tally: &mut Tally, name: &str, steps: std::thread::JoinHandle<Tally>) {
    match steps.join() {
        Ok(steps) => tally.take(steps),
        Err(_) => tally.note(name, StepOutcome::Failed("its thread panicked".to_string())),
    }
}

/// Runs these test targets at a nice value, and collects the tests that they skip from their
/// output, which passing tests print, too.
fn tested(
    nice: &str,
    targets: &[&str],
    args: &Args,
    left_out: &mut BTreeSet<(String, String)>,
) -> Result<()> {
    let test = [&["-n", nice, "cargo", "test"], &WORKSPACE[..], &["--no-fail-fast"], targets];
    let mut line = [&test.concat()[..], &["--", "--show-output"]].concat();
    if !args.night {
        line.extend(OF_NIGHT.iter().flat_map(|name| ["--skip", name]));
    }
    let night = args.night.then(|| ("ONBEAT_NIGHT", "1".to_owned()));
    let run = Tool::new("nice").args(line).envs(needs::python()?).envs(night).dir(&root()).capture()?;
    left_out.extend(run.stdout.lines().filter_map(left_out_by));
    let summary = summary(&run.stdout);
    if run.code == 0 {
        println!("{summary}");
        return Ok(());
    }
    println!("{}{summary}", run.stderr);
    Err(format!("exit {}: {}", run.code, failed(&run.stdout).join(", ")))
}

/// Result lines of each test program, and the output of its failed tests. They remain visible in a
/// log that is truncated in the middle.
fn summary(stdout: &str) -> String {
    let mut of_failures = false;
    let lines = stdout.lines().filter(|line| {
        of_failures = (of_failures || *line == "failures:") && !line.starts_with("test result: ");
        of_failures || line.starts_with("test result: ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Names of the failed tests.
fn failed(stdout: &str) -> Vec<&str> {
    let names = stdout.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    names.collect()
}

/// Name of a skipped test and the reason, from its line `left out: NAME (WHY)`.
fn left_out_by(line: &str) -> Option<(String, String)> {
    let (name, why) = line.trim().strip_prefix("left out: ")?.split_once(" (")?;
    Some((name.to_owned(), why.strip_suffix(')')?.to_owned()))
}

/// The test targets of the workspace but for those of whole programs.
fn other_test_files() -> Result<Vec<String>> {
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    let text = Tool::new("cargo").args(args).dir(&root()).quiet().text()?;
    let metadata: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let names = tests.filter_map(|target| target["name"].as_str()).filter(|name| *name != PROGRAMS);
    Ok(names.map(str::to_string).collect())
}

fn step(tally: &mut Tally, name: &str, run: impl FnOnce() -> Result<()>) -> bool {
    println!("\n== {name}");
    let start = Instant::now();
    let result = run();
    let passed = result.is_ok();
    println!("  {} s", start.elapsed().as_secs());
    tally.note(name, StepOutcome::from(result));
    passed
}

/// A real-time priority takes root.
fn weight(args: &Args, tally: &mut Tally) {
    const NAME: &str = "weight";
    if needs::can_install() {
        step(tally, NAME, || bench::check_weight(args.night));
    } else {
        tally.note(NAME, StepOutcome::LeftOut("it measures as root".to_string()));
    }
}

/// Boards of 32 bits: the source is checked, and with a linker and an emulator the binary measures.
fn boards_of_32_bits(tally: &mut Tally) {
    const NAME: &str = "armv7";
    if let Err(why) = dist::add_target(armv7::TRIPLE) {
        return tally.note(NAME, StepOutcome::LeftOut(why));
    }
    match armv7::emulator() {
        Ok(emulator) => drop(step(tally, NAME, || armv7::measure(emulator))),
        Err(why) => {
            step(tally, NAME, || {
                cargo(&["check", "--quiet", "--package", "onbeat", "--target", armv7::TRIPLE])
            });
            tally.note("measuring on armv7", StepOutcome::LeftOut(why));
        }
    }
}

fn cargo(args: &[&str]) -> Result<()> {
    Tool::new("cargo").args(args).dir(&root()).show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_leaves_out_has_a_name_and_a_reason() {
        let told = |line| left_out_by(line).map(|(name, why)| format!("{name}: {why}"));
        let line = "left out: PostgreSQL (initdb: exit 1 (no space))";
        assert_eq!(told(line).as_deref(), Some("PostgreSQL: initdb: exit 1 (no space)"));
        assert_eq!((told("left out"), told("test a::left out: b (c) ... ok")), (None, None));
    }

    #[test]
    fn a_failed_test_is_named_with_what_it_printed() {
        let stdout = [
            "test a::b ... ok\ntest a::c ... FAILED\n\nsuccesses:\n\n---- a::b stdout ----\nfine\n",
            "failures:\n\n---- a::c stdout ----\nleft: 1\n\nfailures:\n    a::c\n",
            "test result: FAILED. 1 passed\n\nrunning 1 test\ntest result: ok. 1 passed\n",
        ];
        let stdout = &stdout.join("\n");
        assert_eq!(failed(stdout), ["a::c"]);
        let shown = summary(stdout);
        assert!(shown.starts_with("failures:\n") && shown.contains("left: 1"), "{shown}");
        assert!(!shown.contains("fine") && shown.ends_with("1 passed\ntest result: ok. 1 passed"), "{shown}");
    }
}
