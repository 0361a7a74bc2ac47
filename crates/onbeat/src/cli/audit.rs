//! `onbeat audit`: judges the settings that affect latency, of this machine or of a capture.

use std::path::PathBuf;

use super::Environment;
use super::flags::{cpu_list, keyword};
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use model::error::{Exit, Result};
use model::keyword::Keyword;
use report::audit::{junit, last_words, text};
use report::map::text as map_text;
use rules::audit::Audit;
use rules::intent::Profile;
use rules::judgement::{AuditVerdict, Severity};
use study::audit::{MachineSource, judge};

/// Judge the machine's settings for real time
///
/// Reads what the machine is set to, changes nothing, and says what stands in the way of real time,
/// worst first: what it is now, what it should be, why, what to do, and how long that lasts. What
/// cannot be read is unknown, never a pass; as root, less is unknown. `onbeat rules ID` tells all
/// about a rule.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write the findings as JSON; `-` is standard output, which then holds nothing else")),
    mut_arg("quiet", |arg| arg.help("Print only whether a gate failed")),
    after_help = "Examples:\n  onbeat audit\n  onbeat audit --cpus 2-3 --profile busy-poll\n  onbeat capture -o board && onbeat audit --bundle board --html board.html\n  onbeat audit -q --fail-on high --junit audit.xml"
)]
pub struct Args {
    /// What the machine is for
    #[arg(long, value_name = "NAME", default_value = "control-loop", value_parser = keyword::<Profile>())]
    profile: Profile,
    /// The CPUs that matter; by default those that are isolated, or all
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<String>,
    /// Judge a capture, or what a run's bundle holds of its machine
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// Judge a copy of a machine's file system: what it lacks counts as absent
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Exit with 3 if a rule of this severity or above fails
    #[arg(long, value_name = "SEVERITY", value_parser = keyword::<Severity>())]
    fail_on: Option<Severity>,
    /// With --fail-on: what is unknown counts as failed
    #[arg(long, requires = "fail_on")]
    strict: bool,
    /// Print what passes and what does not apply, too
    #[arg(short, long)]
    verbose: bool,
    /// Print what each CPU does, too
    #[arg(long)]
    map: bool,
    /// Write the findings as JUnit XML, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings as one HTML page, with a picture of the machine
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let asked = args.cpus.as_deref().map(|text| cpu_list("--cpus", text)).transpose()?;
    let mut outputs = Outputs::of(&[&args.output.json, &args.junit, &args.html], environment)?;
    let audited = judge(args.machine(), args.profile, asked.as_ref())?;
    outputs.json_pretty(&args.output.json, &audited.audit);
    outputs.write(&args.junit, || Ok(junit::render(&audited.audit)));
    outputs.write(&args.html, || audited.page());
    if !args.output.quiet {
        let Screen { columns, color } = outputs.screen;
        outputs.print(&text::render(&audited.audit, columns, color, args.verbose));
        if args.map {
            outputs.print(&format!("\n{}", map_text::render(&audited.map(), columns, color)));
        }
        outputs.print(&last_words::render(&audited.audit, columns, color));
    }
    outputs.end(args.gate(&audited.audit))
}

impl Args {
    fn machine(&self) -> MachineSource<'_> {
        MachineSource::of(self.bundle.as_deref(), self.root.as_deref())
    }

    /// The gate, if one was asked for; the settings that stayed unknown are named where they might
    /// have failed it.
    fn gate(&self, audit: &Audit) -> Exit {
        let Some(least) = self.fail_on else { return Exit::Ok };
        let of = |verdict| {
            let grave = audit
                .findings
                .iter()
                .filter(move |found| found.severity >= least && found.verdict == verdict);
            grave.map(|found| found.rule).collect::<Vec<_>>()
        };
        let (failed, unknown) = (of(AuditVerdict::Fail), of(AuditVerdict::Unknown));
        if !unknown.is_empty() {
            remark(&format!(
                "onbeat: unknown, of severity {} or above: {}",
                least.name(),
                unknown.join(", ")
            ));
        }
        if !failed.is_empty() {
            remark(&format!("onbeat: failed, of severity {} or above: {}", least.name(), failed.join(", ")));
        }
        let open = failed.is_empty() && (unknown.is_empty() || !self.strict);
        if open { Exit::Ok } else { Exit::Limit }
    }
}
