//! `onbeat isolate create`: isolates CPUs.

use super::list::print;
use crate::cli::Environment;
use crate::cli::flags::{cpu_list, keyword};
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs, Screen};
use crate::cli::tune::apply::{Request, UndoFlags, make, require_consent};
use model::error::{Exit, Result};
use model::keyword::Keyword;
use model::units::named_cpus;
use report::isolation::text::summary;
use rules::intent::Profile;
use study::audit::MachineSource;
use study::isolating::{isolation_of, plan_isolation};
use study::tuning::boot_id;
use tune::isolate::list::current;
use tune::isolate::steps::{IsolationRequest, interrupt_names, memory_nodes};
use tune::undo::entries;

/// Isolate CPUs: create a partition, then move other work away
///
/// The partition needs control groups version 2 with cpuset. Each further step is a rule of `onbeat
/// rules`: interrupts, kernel threads, workqueues, lockup detectors, RCU threads, network queues,
/// idle states, the governor, machine check polling, statistics, writeback. If a step fails, all
/// steps before it are undone. What the kernel cannot move stays, and `isolate list` names it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        sudo onbeat isolate create 2-3\n  \
        sudo onbeat isolate create 0xc --irqs 'eth0|nvme' --without idle-states\n  \
        sudo onbeat isolate create 2-3 --confirm-within 60s; sudo onbeat tune confirm\n  \
        sudo onbeat isolate create 2-3 --check")]
pub struct Args {
    /// CPUs to isolate, as a list or a mask: `2-3`, `0xc`
    #[arg(value_name = "CPUS", allow_hyphen_values = true)]
    cpus: String,
    /// Memory nodes for processes in the partition
    #[arg(long, value_name = "NODES", allow_hyphen_values = true)]
    numa: Option<String>,
    /// Move only interrupts with a handler whose name matches this regular expression
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    irqs: Option<String>,
    /// Skip a step, named by its rule; may be given several times
    #[arg(long, value_name = "RULE")]
    without: Vec<String>,
    /// Purpose of the machine
    #[arg(long, value_name = "NAME", default_value = "control-loop", value_parser = keyword::<Profile>())]
    profile: Profile,
    /// Also change settings that a running tuned, irqbalance or similar service manages
    #[arg(long)]
    take_over: bool,
    /// Also remove safeguards: real-time throttling and the fair server
    #[arg(long)]
    yes: bool,
    /// Print what would be changed, and change nothing
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Count interrupts and other work on the CPUs for 10 s
    #[arg(long)]
    check: bool,
    /// With --dry-run, print each setting on a separate line
    #[arg(short, long, requires = "dry_run")]
    verbose: bool,
    #[command(flatten)]
    end: UndoFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let time = args.end.time()?;
    let wanted = args.request()?;
    let cpus = wanted.cpus.to_string();
    let plan = plan_isolation(args.profile, &wanted, args.take_over)?;
    let about = format!("{} as {}", named_cpus(&cpus), args.profile.name());
    if args.dry_run {
        use report::tuning::text::{Layout, Stage, render};
        outputs.json_pretty(&args.output.json, &plan);
        let layout =
            Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: args.verbose };
        outputs.print(&render(&plan, Stage::Planned, &about, layout));
        return outputs.end(Exit::Ok);
    }
    require_consent(&plan, args.yes, time, environment)?;
    let (file, quiet) = (&None, args.output.quiet);
    let request = Request {
        plan,
        from_file: false,
        keep_going: false,
        time,
        cpus: &cpus,
        about: &about,
        json: file,
        quiet,
    };
    let exit = make(&mut outputs, environment, request)?;
    let known = match journal::open()? {
        Some(folder) => entries(&folder)?,
        None => Vec::new(),
    };
    let document = isolation_of(MachineSource::Live, current(&known, &boot_id()?))?;
    if args.check {
        outputs.print("\n");
        print(&mut outputs, document, true, false, &args.output)?;
    } else {
        outputs.json_pretty(&args.output.json, &document);
        let Screen { columns, color } = outputs.screen;
        outputs.print(&format!("\n{}", summary(&document, columns, color)));
    }
    outputs.end(exit)
}

impl Args {
    fn request(&self) -> Result<IsolationRequest> {
        Ok(IsolationRequest {
            cpus: cpu_list("CPUS", &self.cpus)?,
            memory_nodes: self.numa.as_deref().map(memory_nodes).transpose()?,
            interrupts: self.irqs.as_deref().map(interrupt_names).transpose()?,
            without: self.without.clone(),
            risky: self.yes,
        })
    }
}
