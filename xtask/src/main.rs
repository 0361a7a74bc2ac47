//! The project's own commands: the gate, the static binaries, the virtual machines, the benchmark.
//!
//! Nothing here changes a setting of the machine it runs on. What it fetches and makes goes to
//! `target/`; only Debian packages that a command needs are installed, and only as root.

mod armv7;
mod bench;
mod ci;
mod corpus;
mod debian;
mod dist;
mod docs;
mod elf;
mod experiments;
mod failures;
mod fuzz;
mod live;
mod pages;
mod quick;
mod tally;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  ci                     the whole gate; the last line counts what passed, failed and was left out
  quick                  that everything builds, and the tests of what changed since the last commit, or in it
  live [--all] [--keep] [--only NAME,...] [--again [--onbeat PROGRAM]] [--seed N]
                         boot Debian kernels under QEMU and check onbeat there: 6.12 PREEMPT_RT, with
                         --all also stock 6.12, 6.1 PREEMPT_RT and arm64; --keep leaves the images,
                         --only runs the checks whose name contains a NAME; the last boots inject faults and
                         score what hunt says of them (--only fault-); with --keep their events stay in
                         target/lab/answers, and --again scores those as they are explained now, or by
                         another build; --seed is what the stops of the emulator are drawn from
  corpus [--only NAME] [--keep]
                         boot the machines of tests/corpus under QEMU and capture them again; --only takes
                         the one called NAME, or those whose name contains it; --keep leaves the images
  pages [--only NAME]    boot the machines of tests/pages under QEMU and record their trace buffers again
  dist                   static binaries target/dist/onbeat-ARCH
  bench [--quick] [--gate] [--only NAME]
                         onbeat beside cyclictest, interleaved, then its statistics of runs of days;
                         --gate makes a missed limit an error, --only takes the parts of that name
  experiments [--quick] [--only NAME]
                         the statistics on drawn data: how often bounds hold, gates err, comparisons
                         mislead, each beside its bound; --quick takes a minute, all take about ten
  fuzz [--seconds N] [--only NAME]
                         seeds from the tests' recordings, then every fuzz target for 600 s, or N; needs a
                         nightly toolchain and cargo-fuzz
  failures [--quick] [--all] [--only NAME] [--program FILE] [--seed N] [--tries N]
                         short runs in which one system call fails, each call of a command in turn, judged by
                         how they end: exit code, remedy, nothing left behind; a sample of 300 per command
                         drawn with the seed, --quick a minute's, --all every call with every error
  docs [--check]         write the generated pages, or say which are stale
  help                   this

Kernels and package lists are kept in target/lab; remove it to fetch newer ones.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = args.split_first().map_or(("help", &[][..]), |(c, rest)| (c.as_str(), rest));
    let done = match command {
        "ci" => no_flags(rest).and_then(|()| ci::run()),
        "quick" => no_flags(rest).and_then(|()| quick::run()),
        "live" => live::Options::parse(rest).and_then(|options| live::run(&options)),
        "corpus" => corpus::Options::parse(rest).and_then(|options| corpus::run(&options)),
        "pages" => pages::run(rest),
        "dist" => no_flags(rest).and_then(|()| dist::run()),
        "bench" => bench::Options::parse(rest).and_then(|options| bench::run(&options)),
        // What the bench of decoding starts.
        "decode-pages" => bench::decode_pages(rest),
        "experiments" => experiments::Options::parse(rest).and_then(|options| experiments::run(&options)),
        "fuzz" => fuzz::Options::parse(rest).and_then(|options| fuzz::run(&options)),
        "failures" => failures::Options::parse(rest).and_then(|options| failures::run(&options)),
        "docs" => docs::run(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("no such command: {other}\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn no_flags(rest: &[String]) -> Result<(), String> {
    match rest.first() {
        None => Ok(()),
        Some(flag) => Err(format!("unexpected argument: {flag}")),
    }
}
