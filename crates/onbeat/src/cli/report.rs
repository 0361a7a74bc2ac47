//! `onbeat report`: pictures and tables of bundles.

mod proven;

use std::io::IsTerminal;
use std::path::PathBuf;

use super::Environment;
use super::bounds::Asked;
use super::cure::folder::{is_cure, read_record};
use super::named_run::named_runs;
use super::newest::ChosenRun;
use super::open_page;
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use super::prove::folder::is_experiment;
use super::read_flags::print_remarks;
use super::run_text::{Detail, run_text};
use super::suite::folder::{is_suite, read_suite};
use bundle::capture::is_capture;
use bundle::foreign::{cyclictest_hist, cyclictest_json};
use bundle::record::read::is_record;
use host::is_dir;
use model::error::{Exit, Failure, Result};
use model::text::{clean, quoted};
use report::last_lines::RunPlace;
use report::run::differing;
use report::{Input, ReportFormat, curing, suite, watch};
use rules::intent::Profile;
use stats::bounds::DEFAULT_REACH;
use study::audit::{MachineSource, judge};
use study::page::ReportedRun;

/// Draw runs as a page or a picture, or print their tables
///
/// The file extension selects the format: .html is one self-contained page with all pictures, .svg
/// the latency plot alone, .csv the histogram, .json the run itself. Without -o the table is
/// printed. Several bundles share one page and one plot. The page also states what each run
/// supports, like `onbeat bounds`, for the run's own limit, unless --limit gives one.
#[derive(clap::Args, Clone)]
#[command(
    mut_arg("json", |arg| arg.help("Also write the run as JSON to this file")),
    after_help = "Examples:\n  onbeat report --open\n  onbeat report ~/.local/state/onbeat/runs/ID -o latency.html\n  onbeat report before after -o both.html\n  onbeat report run --limit 50us --horizon 24h -o run.html\n  onbeat report run -o run.svg"
)]
pub struct Args {
    /// Bundles of runs; a bundle of `onbeat capture`, for the page of its audit; or a folder of
    /// `onbeat watch`, `onbeat suite`, `onbeat prove` or `onbeat cure`. By default this user's
    /// newest run
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// Open the page in a browser; without -o it is written to report.html in the bundle's folder
    #[arg(long)]
    open: bool,
    /// Also print all conditions, the cost of measuring, and the recorder's statistics
    #[arg(short, long)]
    verbose: bool,
    /// File to write: .html, .svg, .csv or .json; `-` is standard output, with --format
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Output format, if the file extension does not select it
    #[arg(long, value_name = "KIND", value_parser = ["html", "svg", "csv", "json", "text"])]
    format: Option<String>,
    #[command(flatten)]
    asked: Asked,
    /// Write JSON in cyclictest's format (one bundle)
    #[arg(long, value_name = "FILE")]
    rt_tests_json: Option<PathBuf>,
    /// Write a histogram in the text format of cyclictest (one bundle)
    #[arg(long, value_name = "FILE")]
    hist: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    if !args.bundles.is_empty() {
        let bundles = named_runs(&args.bundles, environment)?;
        return reported(&Args { bundles, ..args.clone() }, false, environment);
    }
    let chosen = ChosenRun::of(None, false, environment)?;
    // If a document takes standard output, the line goes to standard error.
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    chosen.announce(&mut outputs, args.format()?.is_some());
    reported(&Args { bundles: vec![chosen.path], ..args.clone() }, true, environment)
}

/// Writes the report; `--open` puts the page in the bundle's folder, unless a file is named.
fn reported(args: &Args, newest: bool, environment: &Environment) -> Result<Exit> {
    let page = match (&args.file, args.bundles.as_slice()) {
        _ if !args.open => return written(args, newest, environment),
        (Some(file), _) => file.clone(),
        (None, [one]) if is_dir(one).unwrap_or(false) => one.join("report.html"),
        (None, _) => return Err(Failure::usage("--open: give the page's file with -o FILE.html")),
    };
    let args = Args { file: Some(page.clone()), ..args.clone() };
    if args.format()? != Some(ReportFormat::Html) {
        return Err(Failure::usage("--open needs an HTML page: give -o FILE.html"));
    }
    let exit = written(&args, newest, environment)?;
    open_page::open(&page, environment);
    Ok(exit)
}

fn written(args: &Args, newest: bool, environment: &Environment) -> Result<Exit> {
    let format = args.format()?;
    if args.bundles.len() > 1 && (args.rt_tests_json.is_some() || args.hist.is_some()) {
        return Err(Failure::usage(
            "cyclictest's formats hold only one run: give one bundle with --rt-tests-json or --hist",
        ));
    }
    if args.asked.is_given() && format != Some(ReportFormat::Html) {
        return Err(Failure::usage("--limit and --horizon apply only to the HTML page: add -o FILE.html"));
    }
    // A kind without a file goes to standard output, which another document may have.
    let file = if format.is_some() { args.file_or_stdout() } else { args.file.clone() };
    let files = [&file, &args.output.json, &args.rt_tests_json, &args.hist];
    let mut outputs = Outputs::of(&files, environment)?;
    if args.bundles.iter().any(|path| is_capture(path)) {
        return args.of_capture(format, outputs);
    }
    if args.bundles.iter().any(|path| is_record(path)) {
        return args.of_record(format, outputs);
    }
    if args.bundles.iter().any(|path| is_cure(path)) {
        return args.of_cure(format, outputs);
    }
    if args.bundles.iter().any(|path| is_experiment(path)) {
        return args.of_experiment(format, outputs);
    }
    if args.bundles.iter().any(|path| is_suite(path)) {
        return args.of_suite(format, outputs);
    }
    let question = args.asked.question(DEFAULT_REACH)?;
    let mut pages = Vec::new();
    for path in &args.bundles {
        let mut page = ReportedRun::open(path)?;
        print_remarks(&[&page.measurement], args.output.quiet);
        // Only the HTML page shows what a run supports.
        if format == Some(ReportFormat::Html) {
            page.ask(&question);
        }
        pages.push(page);
    }
    if pages.len() > 1 && matches!(format, None | Some(ReportFormat::Html)) {
        pages.iter_mut().for_each(ReportedRun::read_settings);
    }
    let inputs: Vec<Input> = pages.iter().filter_map(ReportedRun::input).collect();
    outputs.write(&args.output.json, || report::render(&inputs, ReportFormat::Json));
    if let Some(input) = inputs.first() {
        let context = super::context_of(input.run, environment, "");
        outputs.write(&args.rt_tests_json, || cyclictest_json::write(input.run, &context));
        outputs.write(&args.hist, || cyclictest_hist::write(input.run));
    }
    let (screen, plain) = (outputs.screen, Screen { color: false, ..outputs.screen });
    match format {
        Some(format) => outputs.write(&args.file_or_stdout(), || report::render(&inputs, format)),
        None if args.file.is_some() => {
            outputs.write(&args.file, || Ok(args.tables(&inputs, newest, plain, environment)))
        }
        None if args.prints_table() => outputs.print(&args.tables(&inputs, newest, screen, environment)),
        None => {}
    }
    outputs.end(Exit::Ok)
}

impl Args {
    /// Tables of all runs, each with its answer.
    fn tables(&self, inputs: &[Input], newest: bool, screen: Screen, environment: &Environment) -> String {
        let mut text = String::new();
        for (input, path) in inputs.iter().zip(&self.bundles) {
            if inputs.len() > 1 {
                text.push_str(&format!("{}\n", clean(input.title)));
            }
            let (path, program) = (quoted(path), environment.program(path));
            let place = RunPlace { path: &path, newest, fresh: false, program };
            text.push_str(&run_text(
                input.run,
                Some(place),
                Detail::of(self.output.quiet, self.verbose),
                screen,
            ));
        }
        text.push_str(&differing::text(inputs, screen.columns));
        text
    }

    /// Page of a capture, which has no run: its audit alone.
    fn of_capture(&self, format: Option<ReportFormat>, mut outputs: Outputs) -> Result<Exit> {
        let no_run = self.output.json.is_some() || self.rt_tests_json.is_some() || self.hist.is_some();
        match (self.bundles.as_slice(), format) {
            ([one], Some(ReportFormat::Html)) if !no_run && !self.asked.is_given() => {
                let page = judge(MachineSource::Captured(one), Profile::default(), None)?.page(None);
                outputs.write(&self.file_or_stdout(), || page);
                outputs.end(Exit::Ok)
            }
            _ => Err(Failure::usage(
                "a capture contains no run: `report CAPTURE -o FILE.html` writes the page of its audit; for all else use `onbeat audit --bundle CAPTURE`",
            )),
        }
    }

    /// Report of a record of `onbeat watch`: its worst wake-ups, and the data it has dropped.
    fn of_record(&self, format: Option<ReportFormat>, mut outputs: Outputs) -> Result<Exit> {
        let of_runs = self.rt_tests_json.is_some() || self.hist.is_some() || self.asked.is_given();
        let ([one], false) = (self.bundles.as_slice(), of_runs) else {
            return Err(Failure::usage(
                "expected a record of `onbeat watch` alone: `report DIR`, with -o FILE.html, \
                 .svg, .csv or .json",
            ));
        };
        let record = study::recorded::record(one)?;
        if !self.output.quiet {
            record.remarks.iter().for_each(|line| remark(line));
        }
        outputs.json(&self.output.json, &record);
        let Screen { columns, color } = outputs.screen;
        let text = |columns, color| watch::text::render(&record, columns, color);
        match format {
            Some(ReportFormat::Html) => outputs.write(&self.file_or_stdout(), || watch::page::html(&record)),
            Some(ReportFormat::Svg) => {
                outputs.write(&self.file_or_stdout(), || Ok(watch::page::svg(&record)))
            }
            Some(ReportFormat::Csv) => outputs.write(&self.file_or_stdout(), || Ok(watch::csv::csv(&record))),
            Some(ReportFormat::Json) => outputs.json(&self.file_or_stdout(), &record),
            None if self.file.is_some() => outputs.write(&self.file, || Ok(text(columns, false))),
            None if self.prints_table() => outputs.print(&text(columns, color)),
            None => {}
        }
        outputs.end(Exit::Ok)
    }

    /// Report of a cure, as of its last move.
    fn of_cure(&self, format: Option<ReportFormat>, mut outputs: Outputs) -> Result<Exit> {
        let of_runs = self.rt_tests_json.is_some() || self.hist.is_some() || self.asked.is_given();
        let refusal = "expected the folder of a cure alone: `report DIR`, with -o FILE.html \
                       or .json";
        let ([one], false) = (self.bundles.as_slice(), of_runs) else {
            return Err(Failure::usage(refusal));
        };
        let record = read_record(one)?;
        outputs.json_pretty(&self.output.json, &record);
        let Screen { columns, color } = outputs.screen;
        let text = |columns, color| curing::text::render(&record, columns, color);
        match format {
            Some(ReportFormat::Html) => {
                outputs.write(&self.file_or_stdout(), || study::curing::page(one, &record));
            }
            Some(ReportFormat::Json) => outputs.json_pretty(&self.file_or_stdout(), &record),
            Some(_) => return Err(Failure::usage(refusal)),
            None if self.file.is_some() => outputs.write(&self.file, || Ok(text(columns, false))),
            None if self.prints_table() => outputs.print(&text(columns, color)),
            None => {}
        }
        outputs.end(Exit::Ok)
    }

    /// Report of a suite: its tables, and the curves of its phases.
    fn of_suite(&self, format: Option<ReportFormat>, mut outputs: Outputs) -> Result<Exit> {
        let of_runs = self.rt_tests_json.is_some() || self.hist.is_some() || self.asked.is_given();
        let refusal = "expected the folder of a suite alone: `report DIR`, with -o FILE.html \
                       or .json; its phases are bundles below it";
        let ([one], false) = (self.bundles.as_slice(), of_runs) else {
            return Err(Failure::usage(refusal));
        };
        let kept = read_suite(one)?;
        outputs.json_pretty(&self.output.json, &kept);
        let text = |columns, color| {
            suite::render(&kept, columns, color)
                + &suite::last_lines(&kept, &quoted(one), false, columns, color)
        };
        let Screen { columns, color } = outputs.screen;
        match format {
            Some(ReportFormat::Html) => {
                outputs.write(&self.file_or_stdout(), || study::suites::page(one, &kept));
            }
            Some(ReportFormat::Json) => outputs.json_pretty(&self.file_or_stdout(), &kept),
            Some(_) => return Err(Failure::usage(refusal)),
            None if self.file.is_some() => outputs.write(&self.file, || Ok(text(columns, false))),
            None if self.prints_table() => outputs.print(&text(columns, color)),
            None => {}
        }
        outputs.end(Exit::Ok)
    }

    /// Format of the output; none is the text table.
    fn format(&self) -> Result<Option<ReportFormat>> {
        let ending = self
            .file
            .as_ref()
            .and_then(|path| path.extension())
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let name = match (&self.format, ending, &self.file) {
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
        match (name.as_str(), ReportFormat::of_name(&format!("x.{name}"))) {
            ("text", _) => Ok(None),
            (_, Some(format)) => {
                if self.file.is_none() && std::io::stdout().is_terminal() && format != ReportFormat::Csv {
                    return Err(Failure::usage(format!(
                        "{name} cannot be printed on a terminal: give a file with -o"
                    )));
                }
                Ok(Some(format))
            }
            _ => Err(Failure::usage(
                "unknown output format: give -o a name that ends in .html, .svg, .csv or .json, or use --format",
            )),
        }
    }

    fn file_or_stdout(&self) -> Option<PathBuf> {
        Some(self.file.clone().unwrap_or_else(|| "-".into()))
    }

    /// True if the table is to be printed: no document was requested.
    fn prints_table(&self) -> bool {
        self.file.is_none()
            && self.output.json.is_none()
            && self.rt_tests_json.is_none()
            && self.hist.is_none()
    }
}
