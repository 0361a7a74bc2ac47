//! The project's own commands: the gate, the static binaries, the virtual machines, the benchmark.
//!
//! Nothing here changes a setting of the machine it runs on. Downloads and results are below
//! `target/`; only Debian packages that a command needs are installed, and only as root.

mod armv7;
mod bench;
mod browser;
mod built;
mod ci;
mod corpus;
mod debian;
mod dist;
mod docs;
mod elf;
mod experiments;
mod failures;
mod farm_examples;
mod farm_load;
mod fuzz;
mod live;
mod needs;
mod packages;
mod pages;
mod quick;
mod sizes;
mod tally;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands of the project. Kernels and package lists are kept in target/lab; remove it to fetch
/// newer ones.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Ci(ci::Args),
    /// Build everything, and run the tests of crates changed since the last commit, or in it.
    Quick,
    Live(live::Args),
    Corpus(corpus::Args),
    Pages(pages::Args),
    /// Test a hunt's page in a browser: clicks, keys, address, filter, zoom, CPUs, print.
    Browser,
    Dist(dist::Args),
    Packages(packages::Args),
    /// Write the static binary's bytes by crate to docs/bench.md.
    Sizes,
    Bench(bench::Args),
    /// What the bench of decoding starts.
    #[command(hide = true)]
    DecodePages {
        /// Pages one after the other.
        path: String,
    },
    /// A program's start in the bench of memory.
    #[command(hide = true)]
    InGroup {
        /// The folder of the control group.
        group: String,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        line: Vec<String>,
    },
    Experiments(experiments::Args),
    FarmLoad(farm_load::Args),
    Fuzz(fuzz::Args),
    Failures(failures::Args),
    Docs(docs::Args),
}

fn main() -> ExitCode {
    let done = match Line::parse().command {
        Command::Ci(args) => ci::run(&args),
        Command::Quick => quick::run(),
        Command::Live(args) => live::run(&args),
        Command::Corpus(args) => corpus::run(&args),
        Command::Pages(args) => pages::run(&args),
        Command::Browser => browser::run(),
        Command::Dist(args) => dist::run(&args),
        Command::Packages(args) => packages::run(&args),
        Command::Sizes => sizes::run(),
        Command::Bench(args) => bench::run(&args),
        Command::DecodePages { path } => bench::decode_pages(&path),
        Command::InGroup { group, line } => bench::run_in_group(&group, &line),
        Command::Experiments(args) => experiments::run(&args),
        Command::FarmLoad(args) => farm_load::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Failures(args) => failures::run(&args),
        Command::Docs(args) => docs::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Line as clap::CommandFactory>::command().debug_assert();
        let parses = |line: &str| Line::try_parse_from(line.split(' ')).is_ok();
        assert!(parses("xtask live --all --only lock,stopped --seed 7") && parses("xtask docs --check"));
        assert!(parses("xtask farm-load --boards 1000 --seconds 60 --store postgres"));
        assert!(parses("xtask packages --built --check") && parses("xtask dist --arch x86_64,aarch64"));
        assert!(!parses("xtask packages --rebuild") && !parses("xtask dist --arch sparc"));
        assert!(parses("xtask live --again --onbeat target/other") && parses("xtask failures --quick"));
        assert!(!parses("xtask live --onbeat target/other") && !parses("xtask failures --quick --all"));
        assert!(
            !parses("xtask ci --quick") && !parses("xtask fuzz --seconds x") && !parses("xtask bench --only")
        );
    }
}
