//! `onbeat report`: bundles to pictures and tables.

use model::vocabulary::Command;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use super::bounds::{Asked, answer};
use super::subject::Subject;
use super::{Environment, print, say, write_output};
use crate::hunt::again;
use bundle::capture::is_capture;
use bundle::events::each_window;
use bundle::foreign;
use bundle::read::Bundle;
use model::error::{Exit, Outcome, Trouble};
use model::run::Peak;
use model::text::{clean, several};
use model::units::Nanos;
use report::hunt;
use report::hunt::windows::Windows;
use report::plot::history::History;
use report::run::table;
use report::{self, Format, Input};
use rules::culprits::context::StealInterval;
use stats::bounds::{Bounds, Question, REACH};
use stats::series::Collector;

/// Columns of the pictures over time; a longer run has more time in each.
const COLUMNS: usize = report::plot::history::COLUMNS;

/// Draw runs, or print their tables
///
/// The kind of output follows from the file's ending: .html is one self-contained page with all
/// pictures, .svg the latency plot alone, .csv the histogram, .json the run itself. Without -o the
/// table is printed. Several bundles come on one page, their curves in one plot. The page also says
/// what each run supports, as `onbeat bounds` does: of the run's own limit, unless --limit names one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat report ~/.local/state/onbeat/runs/ID -o latency.html\n  onbeat report before after -o both.html\n  onbeat report run --limit 50us --horizon 24h -o run.html\n  onbeat report run -o run.svg"
)]
pub struct Args {
    /// Bundles, as `onbeat measure -o` makes them, or one of `onbeat capture`: then the page is that of its audit
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The file to write: .html, .svg, .csv or .json; `-` is standard output, with --format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The kind of output, where the file's ending does not say it
    #[arg(long, value_name = "KIND", value_parser = ["html", "svg", "csv", "json", "text"])]
    format: Option<String>,
    #[command(flatten)]
    asked: Asked,
    /// Write the run as JSON there too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write cyclictest's JSON, for scripts that read it (one bundle)
    #[arg(long, value_name = "FILE")]
    rt_tests_json: Option<PathBuf>,
    /// Write cyclictest's histogram text (one bundle)
    #[arg(long, value_name = "FILE")]
    hist: Option<PathBuf>,
    /// No remarks on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// Reports.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    let format = args.format()?;
    if args.bundles.len() > 1 && (args.rt_tests_json.is_some() || args.hist.is_some()) {
        return Err(Trouble::usage(
            "cyclictest's formats hold one run: give one bundle with --rt-tests-json or --hist",
        ));
    }
    if args.asked.is_given() && format != Some(Format::Html) {
        return Err(Trouble::usage(
            "--limit and --horizon are about what a run supports, which only the page says: name it with -o FILE.html",
        ));
    }
    super::check_outputs(&[&args.output, &args.json, &args.rt_tests_json, &args.hist])?;
    if args.bundles.iter().any(|path| is_capture(path)) {
        return args.of_capture(format);
    }
    let question = args.asked.question(REACH)?;
    let mut read = Vec::new();
    for path in &args.bundles {
        let mut one = load(path, args.quiet)?;
        // Only the page says what a run supports.
        one.bounds = (format == Some(Format::Html)).then(|| one.bounds(&question)).flatten();
        read.push(one);
    }
    let inputs: Vec<Input> = read.iter().filter_map(Loaded::input).collect();
    if let Some(path) = &args.json {
        write_output(path, report::render(&inputs, Format::Json)?.as_bytes())?;
    }
    if let (Some(path), Some(input)) = (&args.rt_tests_json, inputs.first()) {
        let context = super::context_of(input.run, environment, "");
        write_output(path, foreign::cyclictest_json::write(input.run, &context)?.as_bytes())?;
    }
    if let (Some(path), Some(input)) = (&args.hist, inputs.first()) {
        write_output(path, foreign::cyclictest_hist::write(input.run).as_bytes())?;
    }
    match (&args.output, format) {
        (Some(path), Some(format)) => write_output(path, report::render(&inputs, format)?.as_bytes())?,
        (None, Some(format)) => print(report::render(&inputs, format)?.as_bytes())?,
        (path, None) if args.prints_table() || path.is_some() => {
            let color = path.is_none() && environment.color(&std::io::stdout());
            let text = tables(&inputs, environment.columns(), color);
            write_output(path.as_deref().unwrap_or(Path::new("-")), text.as_bytes())?;
        }
        _ => {}
    }
    Ok(Exit::Fine)
}

/// A run with what its pictures are made of.
struct Loaded {
    subject: Subject,
    history: History,
    bounds: Option<Bounds>,
    windows: Option<Windows>,
}

impl Loaded {
    /// What the run supports; about its own limit, where none is asked for.
    fn bounds(&self, question: &Question) -> Option<Bounds> {
        let own = self.subject.run.as_ref().and_then(|run| run.plan.limit_ns);
        answer(&self.subject, &Question { limit: question.limit.or(own), ..*question }).ok()
    }

    fn input(&self) -> Option<Input<'_>> {
        Some(Input {
            run: self.subject.run.as_ref()?,
            history: &self.history,
            series: &self.subject.series,
            bounds: self.bounds.as_ref(),
            windows: self.windows.as_ref(),
            remarks: &self.subject.remarks,
            title: &self.subject.title,
        })
    }
}

/// Reads a bundle; its blocks only once, because those of a day are a quarter of a gigabyte.
fn load(path: &Path, quiet: bool) -> Outcome<Loaded> {
    let mut bundle = Bundle::open(path)?;
    let mut history = History::for_run(&bundle.run, COLUMNS);
    let mut collector = Collector::new(None, bundle.run.plan.interval_ns.unwrap_or_default());
    let mut stolen = Vec::new();
    let unread = bundle.each_block(|block| {
        stolen.extend(StealInterval::of(block));
        collector.add(&Peak::of(block));
        history.add(block);
    })?;
    if unread > 0 {
        bundle.remarks.push(format!(
            "{} of blocks.jsonl could not be read; the pictures over time lack that",
            several(unread, "line", "lines")
        ));
    }
    let windows =
        if bundle.run.command == Command::Hunt { Some(windows(path, &mut bundle, &stolen)?) } else { None };
    let subject = Subject::of_bundle(path, bundle, collector, Nanos(1));
    if !quiet {
        subject.remarks.iter().for_each(|remark| say(&format!("onbeat: {}: {remark}", subject.title)));
    }
    Ok(Loaded { subject, history, bounds: None, windows })
}

/// What was traced around a hunt's spikes; of a hunt that was killed, the spikes since its last checkpoint, too.
fn windows(path: &Path, bundle: &mut Bundle, stolen: &[StealInterval]) -> Outcome<Windows> {
    let mut windows = Windows::default();
    let unread = match bundle.run.complete {
        true => each_window(path, |window| windows.add(window))?,
        false => again::explain(path, &mut bundle.run, stolen, |window| windows.add(window))?,
    };
    if unread > 0 {
        bundle.remarks.push(format!(
            "{} of events could not be read; the pictures lack that",
            several(unread, "window", "windows")
        ));
    }
    Ok(windows)
}

fn tables(inputs: &[Input], columns: usize, color: bool) -> String {
    let mut text = String::new();
    for input in inputs {
        if inputs.len() > 1 {
            text.push_str(&format!("{}\n", clean(input.title)));
        }
        let hunted = input.run.command == Command::Hunt;
        let render = if hunted { hunt::text::render } else { table::render };
        text.push_str(&render(input.run, columns, color));
    }
    text
}

impl Args {
    /// A capture has no run: all that there is to report is how its machine is set up.
    fn of_capture(&self, format: Option<Format>) -> Outcome<Exit> {
        let no_run = self.json.is_some() || self.rt_tests_json.is_some() || self.hist.is_some();
        match (self.bundles.as_slice(), format) {
            ([one], Some(Format::Html)) if !no_run && !self.asked.is_given() => {
                let page = super::audit::page_of_capture(one)?;
                write_output(self.output.as_deref().unwrap_or(Path::new("-")), page.as_bytes())?;
                Ok(Exit::Fine)
            }
            _ => Err(Trouble::usage(
                "a capture holds no run: `report CAPTURE -o FILE.html` makes the page of its audit, `onbeat audit --bundle CAPTURE` all else",
            )),
        }
    }

    /// The kind of output; none is the text table.
    fn format(&self) -> Outcome<Option<Format>> {
        let ending = self
            .output
            .as_ref()
            .and_then(|path| path.extension())
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let name = match (&self.format, ending, &self.output) {
            (Some(format), _, _) => format.clone(),
            (None, Some(ending), _) => {
                if ending == "txt" {
                    "text".into()
                } else {
                    ending
                }
            }
            (None, None, None) => "text".into(),
            (None, None, Some(_)) => String::new(),
        };
        match (name.as_str(), Format::of_name(&format!("x.{name}"))) {
            ("text", _) => Ok(None),
            (_, Some(format)) => {
                if self.output.is_none() && std::io::stdout().is_terminal() && format != Format::Csv {
                    return Err(Trouble::usage(format!("{name} is not for a terminal: name a file with -o")));
                }
                Ok(Some(format))
            }
            _ => Err(Trouble::usage(
                "the output's kind is not known: give -o a name that ends in .html, .svg, .csv or .json, or use --format",
            )),
        }
    }

    /// The table is for who asked for nothing else.
    fn prints_table(&self) -> bool {
        self.output.is_none() && self.json.is_none() && self.rt_tests_json.is_none() && self.hist.is_none()
    }
}
