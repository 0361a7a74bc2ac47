//! `onbeat load`: runs loads alone, or lists them; also the entry of a load's processes, which run
//! this program.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use super::Environment;
use super::flags::{cpu_list, positive_span, process_id};
use super::load_flags::existing;
use super::outputs::{OutputFlags, Outputs, no_document, remark};
use super::running::block_signals;
use ::load::admission::Planned;
use ::load::load::Load;
use ::load::loads::{LOADS, MIXES};
use ::load::running::{RunningLoads, plan};
use ::load::spec::{self, LoadSpec};
use ::load::worker::{Orders, work};
use host::rt::{self, Woken};
use host::work::keep_watch;
use host::{ProcessId, clock};
use model::error::{Exit, Failure, Result};
use model::units::{Bare, CpuSet, Nanos};
use report::load::{list, render};

/// Run loads, and verify that they loaded the machine
///
/// A SPEC is `name[:COUNTxSIZE][,key=value][@RATE]`, like `cpu`, `mem:2x1G`, `hdd:1x20M@1M`; sizes
/// are in powers of 1024, a rate is in the load's unit per second. `cmd:'stress-ng --vm 2'` runs
/// another program. Without a SPEC the loads are listed.
///
/// Each load counts its work, and the kernel counts it too, in windows of one second (five for
/// loads that wait for a disk or a slow bus). If in any window after the first two a load did less
/// than a tenth of its median, it is named as failed, and the exit code is 7. Loads run without
/// real-time priority in a separate control group, and end with this command, however it ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat load                                  the loads, with their defaults\n  \
        onbeat load cpu mem:2x1G -D 1m\n  \
        onbeat load full --load-cpus 0-1\n  \
        onbeat measure --load mem:2x1G,cpu -a 2-3    measure under load")]
pub struct Args {
    /// Loads to run, separated by blanks or commas
    #[arg(value_name = "SPEC")]
    specs: Vec<String>,
    /// Duration; a bare number is in seconds; until Ctrl-C by default
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    duration: Option<String>,
    /// CPUs for the loads; by default all that this process may use
    #[arg(long, visible_alias = "cpus", value_name = "CPUS")]
    load_cpus: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    /// A process of a load: which counter is its own
    #[arg(long, hide = true, requires = "starter")]
    work: Option<usize>,
    /// The process that started it
    #[arg(long, hide = true)]
    starter: Option<u32>,
    /// Where its files are
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
    /// Its control group
    #[arg(long, hide = true)]
    cage: Option<PathBuf>,
    /// Clear up when this process has ended
    #[arg(long, hide = true, value_name = "PID/START", value_parser = process_id)]
    keep: Option<ProcessId>,
    /// The process groups to end then
    #[arg(long, hide = true, value_delimiter = ',', value_parser = process_id)]
    groups: Vec<ProcessId>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    if let Some(counter) = args.work {
        return work(orders(args, counter)?);
    }
    if let Some(owner) = args.keep {
        return keep_watch(owner, args.cage.as_deref(), &args.groups).map(|()| Exit::Ok).map_err(|error| {
            let (exit, remedy) = match error.kind() {
                io::ErrorKind::InvalidInput => (Exit::Usage, "--keep is for onbeat's own processes"),
                _ => (Exit::Internal, "remove its control group"),
            };
            Failure::of_call("cannot remove what a load left behind", &error, exit, remedy)
        });
    }
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    if args.specs.is_empty() {
        no_document(&args.output.json, "the list of loads", "a load")?;
        outputs.print(&overview(outputs.screen.columns));
        return outputs.end(Exit::Ok);
    }
    let duration =
        args.duration.as_deref().map(|text| positive_span("-D", text, Bare::Seconds)).transpose()?;
    let specs = spec::parse(&args.specs).map_err(Failure::usage)?;
    let cpus = cpus(args)?;
    let planned = plan(specs, &cpus, &existing(&environment.runs()))?;
    let processes = planned.iter().map(Planned::processes).sum::<u64>();
    if processes > MANY && !args.output.quiet {
        remark(&format!("onbeat: this load has {processes} processes"));
    }
    block_signals()?;
    let mut running = RunningLoads::start(planned, &cpus)?;
    // Not during a measurement: there it would apply to the measuring threads, too.
    rt::come_before_others();
    let shows = !args.output.quiet && !environment.dumb && io::stderr().is_terminal();
    let stopped = sample_until(&mut running, duration, shows);
    let loads = running.finish(clock::monotonic());
    outputs.print(&render(&loads, outputs.screen.columns, outputs.screen.color));
    outputs.json_pretty(&args.output.json, &loads);
    match loads.iter().find(|load| !load.held) {
        _ if stopped => outputs.end(Exit::Interrupted),
        None => outputs.end(Exit::Ok),
        Some(load) => outputs.end(Exit::Ok).and(Err(Failure {
            exit: Exit::Inconclusive,
            message: format!("{}; free resources for it, or increase -D", report::load::sentence(load)),
        })),
    }
}

/// Number of processes above which a remark precedes their start.
const MANY: u64 = 100;

/// Orders of a starter for this process of a load.
fn orders(args: &Args, counter: usize) -> Result<Orders> {
    let missing = || Failure::usage("--work is for onbeat's own processes: give only a SPEC");
    Ok(Orders {
        starter: args.starter.ok_or_else(missing)?,
        counter,
        cpus: args.load_cpus.as_deref().and_then(|text| CpuSet::parse(text).ok()).ok_or_else(missing)?,
        group: args.cage.clone(),
        folder: args.folder.clone().ok_or_else(missing)?,
        spec: args.specs.first().cloned().ok_or_else(missing)?,
    })
}

/// Samples once a second until the time is over; true if a stop signal came first.
fn sample_until(running: &mut RunningLoads, duration: Option<Nanos>, shows: bool) -> bool {
    let begun = clock::monotonic();
    let end = duration.map(|duration| begun + duration);
    let mut next = begun + Nanos::SECOND;
    loop {
        if shows {
            show(clock::monotonic() - begun, duration);
        }
        let woken = rt::wait_until(end.map_or(next, |end| end.min(next)));
        let now = clock::monotonic();
        let over = end.is_some_and(|end| now >= end);
        if woken == Woken::Stop || over {
            if shows {
                let _ = io::stderr().write_all(b"\r\x1b[K");
            }
            return woken == Woken::Stop;
        }
        running.sample(now);
        if running.are_ended() {
            return false;
        }
        while next <= now {
            next = next + Nanos::SECOND;
        }
    }
}

/// Shows one line on the terminal, in place of the last one.
fn show(elapsed: Nanos, duration: Option<Nanos>) {
    if !host::in_foreground() {
        return;
    }
    let seconds = |span: Nanos| (span.as_secs() + 0.5) as u64;
    let line = match duration {
        Some(duration) => format!("loading: {} s left", seconds(Nanos((duration - elapsed).0.max(0)))),
        None => format!("loading: {} s so far, Ctrl-C ends it", seconds(elapsed)),
    };
    let _ = io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
}

fn cpus(args: &Args) -> Result<CpuSet> {
    let asked = args.load_cpus.as_deref().map(|text| cpu_list("--load-cpus", text)).transpose()?;
    match asked {
        Some(cpus) => Ok(cpus),
        None => rt::affinity().map_err(|error| {
            Failure::of_call(
                "cannot read the CPUs of this process",
                &error,
                Exit::Internal,
                "give CPUs with --load-cpus",
            )
        }),
    }
}

/// List of the loads with their defaults, and of the mixes.
fn overview(columns: usize) -> String {
    let of = |load: &&'static Load| (with_defaults(load), load.title);
    let loads: Vec<(String, &str)> = LOADS.iter().map(of).collect();
    let mixes: Vec<(String, &str)> = MIXES.iter().map(|(name, mix)| ((*name).to_owned(), *mix)).collect();
    format!(
        "Loads, with their defaults:\n{}\nMixes:\n{}\n\
         `onbeat load --help` explains the syntax; docs/loads.md describes each load.\n",
        list(&loads, columns),
        list(&mixes, columns)
    )
}

fn with_defaults(load: &'static Load) -> String {
    if load.name == "cmd" {
        return "cmd:'COMMAND'".into();
    }
    let keys =
        load.keys.iter().filter_map(|key| Some((key.name, (*key.values.first()?).to_owned()))).collect();
    LoadSpec {
        load,
        count: load.count.default,
        size: load.size.map(|size| size.default),
        rate: None,
        keys,
        command: Vec::new(),
    }
    .to_string()
}
