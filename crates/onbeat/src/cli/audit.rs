//! `onbeat audit`: every setting that matters judged, here or from a capture.

use std::path::{Path, PathBuf};

use super::flags::keyword;
use super::{Environment, check_outputs, print, say, wanted, write_output};
use bundle::capture;
use facts::survey::survey;
use host::{self, Host};
use model::error::{Exit, Outcome, Trouble, json_pretty};
use model::keyword::Keyword;
use model::text::quoted;
use model::units::CpuSet;
use report::map::Map;
use report::map::text as map_text;
use rules::audit;
use rules::audit::Audit;
use rules::intent::{Profile, intent};
use rules::judgement::{AuditVerdict, Severity};

/// Judge the machine's settings for real time
///
/// Reads what the machine is set to, changes nothing, and says what stands in the way of real time, worst first: what
/// it is now, what it should be, why, what to do, and how long that lasts. What cannot be read is unknown, never
/// a pass; as root, less is unknown. `onbeat rules ID` tells all about a rule.
#[derive(clap::Args)]
#[command(
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
    /// Write the findings as JSON; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the findings as JUnit XML, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings as one HTML page, with a picture of the machine
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print only whether a gate failed
    #[arg(short, long)]
    quiet: bool,
}

/// Audits.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    let asked = args.cpus.as_deref().map(CpuSet::parse).transpose();
    let asked = asked.map_err(|what| Trouble::usage(format!("--cpus: {what}")))?;
    let outputs = [&args.json, &args.junit, &args.html];
    check_outputs(&outputs)?;
    let host = args.host()?;
    let survey = survey(&host, &wanted());
    let intent = intent(&survey, args.profile, asked.as_ref()).map_err(Trouble::usage)?;
    let audit = audit::audit(&survey, &intent);
    // Only whoever looks at it pays for the map.
    let map = (args.map || args.html.is_some()).then(|| Map::of(&survey, &intent));
    args.write(&audit, map.as_ref())?;
    if !args.quiet && !outputs.iter().any(|path| path.as_deref() == Some(Path::new("-"))) {
        let color = environment.color(&std::io::stdout());
        let mut text = report::audit::text::render(&audit, environment.columns(), color, args.verbose);
        if let Some(map) = map.filter(|_| args.map) {
            text.push('\n');
            text.push_str(&map_text::render(&map, environment.columns(), color));
        }
        print(text.as_bytes())?;
    }
    Ok(args.gate(&audit))
}

/// The page of a capture, judged for what machines are for by default.
pub fn page_of_capture(path: &Path) -> Outcome<String> {
    let survey = survey(&capture::open(path)?, &wanted());
    let intent = intent(&survey, Profile::default(), None).map_err(Trouble::usage)?;
    report::audit::page::html(&audit::audit(&survey, &intent), &Map::of(&survey, &intent))
}

impl Args {
    fn host(&self) -> Outcome<Host> {
        match (&self.bundle, &self.root) {
            (Some(bundle), _) => capture::open(bundle),
            (None, Some(root)) => match host::is_dir(root) {
                Ok(true) => Ok(Host::at(root)),
                Ok(false) => Err(Trouble::usage(format!(
                    "--root: {} is no folder: give a copy of a file system",
                    quoted(root)
                ))),
                Err(error) => {
                    let what = format!("--root: cannot look at {}", quoted(root));
                    Err(Trouble::of_call(what, &error, Exit::Usage, "give a copy of a file system"))
                }
            },
            (None, None) => Ok(Host::live()),
        }
    }

    fn write(&self, audit: &Audit, map: Option<&Map>) -> Outcome<()> {
        if let Some(path) = &self.json {
            write_output(path, json_pretty(audit)?.as_bytes())?;
        }
        if let Some(path) = &self.junit {
            write_output(path, report::audit::junit::render(audit).as_bytes())?;
        }
        if let (Some(path), Some(map)) = (&self.html, map) {
            write_output(path, report::audit::page::html(audit, map)?.as_bytes())?;
        }
        Ok(())
    }

    /// The gate, if one was asked for; what could not be told is said where it might have failed it.
    fn gate(&self, audit: &Audit) -> Exit {
        let Some(least) = self.fail_on else { return Exit::Fine };
        let of = |verdict| {
            let grave = audit
                .findings
                .iter()
                .filter(move |found| found.severity >= least && found.verdict == verdict);
            grave.map(|found| found.rule).collect::<Vec<_>>()
        };
        let (failed, unknown) = (of(AuditVerdict::Fail), of(AuditVerdict::Unknown));
        if !unknown.is_empty() {
            say(&format!("onbeat: unknown, of severity {} or above: {}", least.name(), unknown.join(", ")));
        }
        if !failed.is_empty() {
            say(&format!("onbeat: failed, of severity {} or above: {}", least.name(), failed.join(", ")));
        }
        let open = failed.is_empty() && (unknown.is_empty() || !self.strict);
        if open { Exit::Fine } else { Exit::Limit }
    }
}
