//! `onbeat explain`: repeats a hunt's explanation from its bundle, or explains a trace recorded by
//! another tool.

use std::path::{Path, PathBuf};

use super::Environment;
use super::newest::ChosenRun;
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use super::run_text::{Detail, run_text};
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::quoted;
use model::units::{Bare, parse_span};
use report::hunt::spike_text;
use report::last_lines::RunPlace;
use study::explain::ExplainedRun;
use study::page::{TracedWindows, perfetto};
use study::traced::{TraceQuestion, explain_trace};
use trace::late_wakeups::{WantedThreads, WantedWakeups};

/// Explain a stored hunt, or another tool's trace, without root
///
/// Analyses the spikes again from the events that `onbeat hunt` stored around each of them, and
/// ranks the culprits by the rules of this version. In a trace recorded with trace-cmd, perf or
/// ftrace it first finds late wake-ups: the ten largest of real-time threads. Nothing is read from
/// the machine that this runs on.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write the run with its explanation as JSON; `-` is standard output, which then holds nothing else")),
    after_help = "Examples:\n  onbeat explain                               the newest hunt\n  onbeat explain --spike 17                    one spike of it\n  onbeat explain run --json explained.json\n  onbeat explain run --perfetto spikes.json    for ui.perfetto.dev\n  onbeat explain trace.dat --over 100us        what trace-cmd recorded\n  onbeat explain trace.txt --victim robot      one thread, in ftrace's text"
)]
pub struct Args {
    /// A bundle of `onbeat hunt`, by default this user's newest; or a trace: trace.dat of
    /// trace-cmd, perf.data, ftrace's text, rtla's auto-analysis
    #[arg(value_name = "BUNDLE|TRACE")]
    bundle: Option<PathBuf>,
    /// In a trace: explain all wake-ups later than SPAN; a bare number is in us
    #[arg(long, value_name = "SPAN")]
    over: Option<String>,
    /// In a trace: explain wake-ups of the thread with this number, or of all threads with this
    /// name
    #[arg(long, value_name = "NAME|TID")]
    victim: Option<String>,
    /// In a trace: explain the wake-up before each mark with this text, written by a program to
    /// trace_marker
    #[arg(long, value_name = "TEXT", conflicts_with = "over")]
    mark: Option<String>,
    /// Also print the conditions and the recorder's statistics
    #[arg(short, long)]
    verbose: bool,
    /// Print one spike in full: every slice, its stack and its remedies; 1 is the worst
    #[arg(long, value_name = "N")]
    spike: Option<usize>,
    /// Write the events and slices of the worst spikes for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json, &args.perfetto], environment)?;
    let traced = args.bundle.as_ref().filter(|path| is_trace(path));
    let chosen = match traced {
        Some(path) => ChosenRun { path: path.clone(), newest: false },
        None => ChosenRun::of(args.bundle.as_ref(), true, environment)?,
    };
    chosen.announce(&mut outputs, false);
    let shown = quoted(&chosen.path);
    let mut windows = TracedWindows::default();
    let ExplainedRun { run, remarks } = match traced {
        Some(path) => {
            let keep = args.perfetto.is_some();
            explain_trace(path, &question(args)?, |window| {
                if keep {
                    windows.add(window)
                }
            })?
        }
        None => study::explain::open(&chosen.path)?,
    };
    if traced.is_none() && (args.over.is_some() || args.victim.is_some() || args.mark.is_some()) {
        return Err(Failure::usage(format!(
            "{shown} is a bundle: remove --over, --victim and --mark, which are for other tools' traces"
        )));
    }
    if !args.output.quiet {
        remarks.iter().for_each(|own| remark(&format!("onbeat: {shown}: {own}")));
    }
    let detail = Detail::of(args.output.quiet, args.verbose);
    // The commands suggested for a bundle do not work on a trace.
    let program = environment.program(&chosen.path);
    let place = RunPlace { path: &shown, newest: chosen.newest, fresh: false, program };
    let place = traced.is_none().then_some(place);
    match args.spike {
        None => outputs.print(&run_text(&run, place, detail, outputs.screen)),
        Some(number) => outputs.print(&spike(&run, number, place, outputs.screen)?),
    }
    outputs.json(&args.output.json, &run);
    outputs.write(&args.perfetto, || match traced {
        Some(path) => Ok(windows.perfetto(path, &run)),
        None => perfetto(&chosen.path, &run),
    });
    outputs.end(Exit::Ok)
}

/// True for a file that is not a document of a bundle.
fn is_trace(path: &Path) -> bool {
    let document = path.file_name().is_some_and(|name| name == "run.json" || name == "capture.json");
    !document && host::identity(path).is_some() && !host::is_dir(path).unwrap_or(true)
}

/// Requested part of a trace.
fn question(args: &Args) -> Result<TraceQuestion> {
    let threads = match &args.victim {
        None => WantedThreads::RealTime,
        Some(wanted) => wanted
            .parse()
            .map_or_else(|_| WantedThreads::Named(wanted.as_str().into()), WantedThreads::Thread),
    };
    let over = args
        .over
        .as_deref()
        .map(|text| parse_span(text, Bare::Micros).map_err(|what| Failure::usage(format!("--over: {what}"))));
    let wakeups = match (over.transpose()?, &args.mark) {
        (Some(over), _) => WantedWakeups::Over(over),
        (None, Some(text)) => WantedWakeups::AtMark(text.clone()),
        (None, None) => WantedWakeups::Largest,
    };
    Ok(TraceQuestion { threads, wakeups })
}

fn spike(run: &Run, number: usize, place: Option<RunPlace>, screen: Screen) -> Result<String> {
    spike_text::render(run, number, place, screen.columns, screen.color).ok_or_else(|| {
        Failure::usage(match run.spikes.len() {
            0 => format!("invalid --spike {number}: this hunt has no spikes"),
            1 => format!("invalid --spike {number}: this hunt has one spike, number 1"),
            kept => format!("invalid --spike {number}: expected 1 (the worst) to {kept}"),
        })
    })
}
