//! `onbeat check`: judges how a running program is written for real time.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Environment;
use super::flags::{keyword, positive_span};
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use super::program::{self, ChosenProgram};
use super::running::block_signals;
use crate::check::started::StartedProgram;
use crate::check::{self, CheckPlan, Checked, find};
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::keyword::Keyword;
use model::units::{Bare, Nanos};
use report::check::{junit, last_words, page, text};
use rules::checks::findings::ProgramCheck;
use rules::judgement::{AuditVerdict, Severity};

/// Maximum duration: a longer check shows no more, and its counts would mix phases of the program.
const LONGEST: Nanos = Nanos(600_000_000_000);

/// Check a running program for real-time mistakes
///
/// Observes a process and its real-time threads from outside for some seconds, without stopping it
/// or writing to its memory: its memory mappings, how its threads sleep and wait, what wakes them,
/// what they write, and their page faults. Lists the mistakes, worst first, each with the evidence,
/// the reason why it costs time, and the change to make in the program. What cannot be observed is
/// reported as unknown, never as a pass; as root, less is unknown. `onbeat rules ID` documents a
/// check.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write the findings as JSON; `-` is standard output, which then holds nothing else")),
    mut_arg("quiet", |arg| arg.help("Print one line per failed check, the answer, and whether a gate failed")),
    after_help = "Examples:\n  onbeat check robot\n  onbeat check 1234 -D 10s --syscalls\n  onbeat check -D 10s -- ./robot --arg\n  onbeat check -q --fail-on high --junit check.xml robot"
)]
pub struct Args {
    /// Process to check, by number or name
    #[arg(value_name = "PID|COMM", required_unless_present = "program", conflicts_with = "program")]
    process: Option<String>,
    /// Duration of the check; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "5s", allow_hyphen_values = true)]
    duration: String,
    /// Also record the threads' system calls; this slows down every system call of all processes
    /// during the check, by an amount that is measured and printed
    #[arg(long)]
    syscalls: bool,
    /// Exit with 3 if a check of this severity or above fails
    #[arg(long, value_name = "SEVERITY", value_parser = keyword::<Severity>())]
    fail_on: Option<Severity>,
    /// With --fail-on: count unknown results as failed
    #[arg(long, requires = "fail_on")]
    strict: bool,
    /// Also print checks that pass or do not apply
    #[arg(short, long)]
    verbose: bool,
    /// Write the findings as JUnit XML, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// User to run the program as; by default the caller
    #[arg(long, value_name = "NAME", requires = "program", conflicts_with = "process")]
    user: Option<String>,
    /// Program to start, with its arguments; it is checked once it has a real-time thread, then
    /// ended
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let window = positive_span("--duration", &args.duration, Bare::Seconds)?;
    if window > LONGEST {
        return Err(Failure::usage(format!(
            "invalid --duration: expected at most {}; repeat the check instead",
            LONGEST.spoken()
        )));
    }
    let mut outputs = Outputs::of(&[&args.output.json, &args.junit, &args.html], environment)?;
    let host = MachineFiles::live();
    let found = args.process.as_deref().map(|process| find::find(&host, process)).transpose()?;
    // The program inherits the caller's state: this process has changed nothing yet.
    let program = program::choose(&args.program, args.user.as_deref())?;
    block_signals()?;
    let checked = match program {
        Some(ChosenProgram { followed, notes }) => {
            args.say(&notes);
            let mut started = StartedProgram::new(followed);
            started.start(&host)?;
            let looked = args.look(&host, started.pid(), window, true);
            let mut checked = looked.map_err(|failure| started.told(failure))?;
            checked.check.remarks.extend(started.finish());
            checked
        }
        None => args.look(&host, found.unwrap_or_default(), window, false)?,
    };
    let found = &checked.check;
    outputs.json_pretty(&args.output.json, found);
    outputs.write(&args.junit, || Ok(junit::render(found)));
    outputs.write(&args.html, || page::html(found));
    let Screen { columns, color } = outputs.screen;
    outputs.print(&if args.output.quiet {
        text::brief(found, columns)
    } else {
        text::render(found, columns, color, args.verbose)
    });
    outputs.print(&last_words::render(found, columns, color));
    let gate = args.gate(found);
    outputs.end(if checked.interrupted && gate == Exit::Ok { Exit::Interrupted } else { gate })
}

impl Args {
    fn say(&self, notes: &[String]) {
        if !self.output.quiet {
            notes.iter().for_each(|said| remark(&format!("onbeat: {said}")));
        }
    }

    fn look(&self, host: &MachineFiles, pid: u32, window: Nanos, started: bool) -> Result<Checked> {
        self.say(&find::remarks(host, pid));
        check::run(host, &CheckPlan { pid, window, syscalls: self.syscalls, started })
    }

    /// Exit code of the gate, if one was requested; names the unknown checks that might have failed
    /// it.
    fn gate(&self, check: &ProgramCheck) -> Exit {
        let Some(least) = self.fail_on else { return Exit::Ok };
        let of = |verdict| {
            let found = check.findings.iter().map(|found| &found.finding);
            let grave = found.filter(move |found| found.severity >= least && found.verdict == verdict);
            let mut named: Vec<&str> = grave.map(|found| found.rule).collect();
            named.dedup();
            named
        };
        let (failed, unknown) = (of(AuditVerdict::Fail), of(AuditVerdict::Unknown));
        for (what, named) in [("unknown", &unknown), ("failed", &failed)] {
            if !named.is_empty() {
                remark(&format!(
                    "onbeat: {what}, of severity {} or above: {}",
                    least.name(),
                    named.join(", ")
                ));
            }
        }
        if self.strict && !unknown.is_empty() {
            return Exit::Limit;
        }
        // A program without real-time threads passes nothing; failures concern other threads.
        if check.threads.is_empty() {
            return Exit::Inconclusive;
        }
        if failed.is_empty() { Exit::Ok } else { Exit::Limit }
    }
}
