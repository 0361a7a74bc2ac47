//! `onbeat audit`: judges the settings that affect latency, of this machine or of a capture.

use std::path::{Path, PathBuf};

use super::Environment;
use super::flags::{cpu_list, keyword};
use super::named_run::{named_by_flag, named_runs};
use super::newest::ChosenRun;
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use model::error::{Exit, Failure, Result};
use model::keyword::Keyword;
use model::text::clean;
use model::units::CpuSet;
use report::audit::format::{self, AuditFormat};
use report::audit::{diff as diff_text, junit, last_words, text};
use report::map::text as map_text;
use rules::audit::Audit;
use rules::audit_diff::{DiffVerdict, diff};
use rules::intent::Profile;
use rules::judgement::{AuditVerdict, Severity};
use study::audit::{MachineSource, hunt_gains, judge, judge_with};

/// Audit the machine's settings for real-time use
///
/// Reads the settings, changes nothing, and lists what prevents real-time behaviour, worst first:
/// the present value, the recommended value, the reason, the fix, and how long the fix lasts. What
/// cannot be read is reported as unknown, never as a pass; as root, less is unknown. `onbeat rules
/// ID` documents a rule.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write the findings as JSON; `-` is standard output, which then holds nothing else")),
    mut_arg("quiet", |arg| arg.help("Print one line per failed rule, the answer, and whether a gate failed")),
    after_help = "Examples:\n  onbeat audit\n  onbeat audit --cpus 2-3 --profile busy-poll\n  onbeat capture -o board && onbeat audit --bundle board --html board.html\n  onbeat audit --kconfig build/.config          a kernel before its first boot\n  onbeat audit -q --fail-on high --junit audit.xml\n  onbeat audit --format sarif >audit.sarif\n  onbeat audit --hunt --copy                   causes of the newest hunt first, and what to copy where\n  onbeat audit --diff board                    settings that got worse since that capture"
)]
pub struct Args {
    /// Purpose of the machine
    #[arg(long, value_name = "NAME", default_value = "control-loop", value_parser = keyword::<Profile>())]
    profile: Profile,
    /// CPUs to audit; by default the isolated CPUs, or all if none is isolated
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<String>,
    /// Audit a capture, or the machine state stored in a run's bundle
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// Audit a copy of a machine's file system; files missing from it count as absent
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Audit a kernel configuration, plain or gzip: on its own, or as the configuration of --root
    /// or --bundle
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    kconfig: Option<PathBuf>,
    /// Exit with 3 if a rule of this severity or above fails
    #[arg(long, value_name = "SEVERITY", value_parser = keyword::<Severity>())]
    fail_on: Option<Severity>,
    /// With --fail-on or --diff: count unknown results as failed
    #[arg(long)]
    strict: bool,
    /// List first the rules that cost a hunt the most time, by default the newest hunt; the order
    /// in the JSON stays
    #[arg(long, value_name = "RUN")]
    hunt: Option<Option<PathBuf>>,
    /// Also print lines to copy, one block per place: the kernel's command line, sysctl.d and so on
    #[arg(long)]
    copy: bool,
    /// Compare two captures, or a capture with the machine's present state; exit with 3 if a rule
    /// fails that did not fail before
    #[arg(
        long,
        value_name = "CAPTURE",
        num_args = 1..=2,
        conflicts_with_all = ["fail_on", "hunt", "copy", "map", "junit", "html", "verbose"]
    )]
    diff: Option<Vec<PathBuf>>,
    /// Also print rules that pass or do not apply
    #[arg(short, long)]
    verbose: bool,
    /// Also print what each CPU does
    #[arg(long)]
    map: bool,
    /// Write the findings as JUnit XML, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings to standard output in this format, with no other output there
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = keyword::<AuditFormat>(),
        conflicts_with_all = ["diff", "hunt", "copy", "map", "verbose"]
    )]
    format: Option<AuditFormat>,
    /// Write the findings as one HTML page, with a picture of the machine
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let asked = args.cpus.as_deref().map(|text| cpu_list("--cpus", text)).transpose()?;
    let formatted = args.format.map(|_| PathBuf::from("-"));
    let mut outputs = Outputs::of(&[&args.output.json, &args.junit, &args.html, &formatted], environment)?;
    if args.strict && args.fail_on.is_none() && args.diff.is_none() {
        return Err(Failure::usage("--strict needs a gate: add --fail-on SEVERITY or --diff CAPTURE"));
    }
    let bundle = named_by_flag(args.bundle.as_ref(), environment)?;
    let machine = MachineSource::of(bundle.as_deref(), args.root.as_deref());
    if let Some(captures) = &args.diff {
        let captures = named_runs(captures, environment)?;
        return args.compared(&captures, machine, asked.as_ref(), outputs);
    }
    let hunt = args.hunt.as_ref().map(|run| ChosenRun::of(run.as_ref(), true, environment)).transpose()?;
    let gains = hunt.as_ref().map(|hunt| hunt_gains(&hunt.path)).transpose()?;
    let audited = judge_with(machine, args.kconfig.as_deref(), args.profile, asked.as_ref())?;
    outputs.json_pretty(&args.output.json, &audited.audit);
    outputs.write(&args.junit, || Ok(junit::render(&audited.audit)));
    if let Some(form) = args.format {
        outputs.write(&formatted, || format::render(&audited.audit, form));
    }
    outputs.write(&args.html, || audited.page(gains.as_ref()));
    let Screen { columns, color } = outputs.screen;
    if args.output.quiet {
        outputs.print(&text::brief(&audited.audit, gains.as_ref(), columns));
    } else {
        hunt.iter().for_each(|hunt| hunt.announce(&mut outputs, false));
        outputs.print(&text::render(&audited.audit, gains.as_ref(), columns, color, args.verbose));
        if args.copy {
            outputs.print(&text::copied(&audited.copy_blocks()?, color));
        }
        if args.map {
            outputs.print(&format!("\n{}", map_text::render(&audited.map(), columns, color)));
        }
    }
    outputs.print(&last_words::render(&audited.audit, gains.as_ref(), columns, color));
    outputs.end(args.gate(&audited.audit))
}

impl Args {
    /// Compares the audits of two captures, or of one and the machine.
    fn compared(
        &self,
        captures: &[PathBuf],
        machine: MachineSource,
        cpus: Option<&CpuSet>,
        mut outputs: Outputs,
    ) -> Result<Exit> {
        let name = |path: &Path| {
            path.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned())
        };
        let (first, second) = (&captures[0], captures.get(1));
        if second.is_some() && (self.bundle.is_some() || self.root.is_some()) {
            return Err(Failure::usage(
                "--diff compares two captures: omit the second one, or --bundle and --root",
            ));
        }
        let machine = second.map_or(machine, |path| MachineSource::Captured(path));
        let of = |machine| Ok(judge(machine, self.profile, cpus)?.audit);
        let compared = diff(&of(MachineSource::Captured(first))?, &of(machine)?);
        let after = second.or(self.bundle.as_ref()).or(self.root.as_ref());
        let after = after.map_or_else(|| "now".to_owned(), |path| name(path));
        outputs.json_pretty(&self.output.json, &compared);
        let Screen { columns, color } = outputs.screen;
        outputs.print(&if self.output.quiet {
            diff_text::sentence(&compared) + "\n"
        } else {
            diff_text::render(&compared, [&name(first), &after], columns, color)
        });
        let unknown = |found: &rules::audit_diff::RuleDiff| {
            found.change == DiffVerdict::Unknown && found.after == AuditVerdict::Unknown
        };
        let lost: Vec<&str> =
            compared.findings.iter().filter(|found| unknown(found)).map(|found| found.rule).collect();
        if !lost.is_empty() && self.output.quiet {
            remark(&format!("onbeat: unknown now, known before: {}", clean(&lost.join(", "))));
        }
        let worse = compared.verdict == DiffVerdict::Worse || (self.strict && !lost.is_empty());
        outputs.end(if worse { Exit::Limit } else { Exit::Ok })
    }

    /// Exit code of the gate, if one was requested; names the unknown settings that might have
    /// failed it.
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
