//! `onbeat compare`: whether B is really better than A.

use std::ffi::OsString;
use std::path::PathBuf;

use super::flags::{limit, positive_span};
use super::subject::{Reading, Subject};
use super::{Environment, crowd, print, say, write_output};
use bundle::read::host_files;
use facts::differences::{Difference, Settings, differences};
use model::error::{Exit, Outcome, Trouble, json, json_pretty};

use model::units::Bare;
use report::compare::page::Versus;
use stats::compare::{Compared, Metric, Question, compare, design};
use stats::pair::verdict::Design;
use stats::series::Series;

/// Say whether B is better than A: better, worse, equivalent or inconclusive
///
/// The run is the unit, never the sample: two boots of one configuration differ, and a test of their
/// seconds would find that difference every other time. Give several runs of each, best in turns
/// (A B B A ...); runs that alternate in time are taken as pairs. Six pairs, or four runs of each, are
/// the least for a verdict. One new run as B against five or more past ones as A is held against
/// their spread.
///
/// What decides is the rate at which one-second blocks reach the limit, fixed beforehand with
/// --limit; without it the 99.5 % block maximum of all runs together. Exit code 3 is worse, 7
/// inconclusive.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat compare before after\n  onbeat compare --limit 50us -o ab.html a1 a2 a3 a4 -- b1 b2 b3 b4\n  onbeat compare --limit 8kHz past/* -- new        a gate against a baseline\n  onbeat compare --metric p99 a*.csv -- b*.csv     block maxima, one integer in ns a line"
)]
pub struct Args {
    /// A's runs, `--`, B's runs: bundles or CSV files of block maxima in ns
    #[arg(required = true, value_name = "A... -- B", num_args = 1..)]
    runs: Vec<PathBuf>,
    /// The latency that blocks are not to reach, or a rate whose period it is; a bare number is in us
    #[arg(short, long, value_name = "SPAN|RATE", allow_hyphen_values = true)]
    limit: Option<String>,
    /// What decides: `rate`, or a quantile of the block maxima like `p99`
    #[arg(long, value_name = "METRIC", default_value = "rate")]
    metric: String,
    /// What is no difference: a factor for the rate [default: 2], a span for quantiles [default: 5 %, at least 1us]
    #[arg(long, value_name = "FACTOR|SPAN")]
    margin: Option<String>,
    /// The i-th of A was run beside the i-th of B
    #[arg(long, conflicts_with = "unpaired")]
    paired: bool,
    /// The runs make no pairs, even if they alternate in time
    #[arg(long)]
    unpaired: bool,
    #[command(flatten)]
    reading: Reading,
    /// Write the answer with its pictures there too, as one self-contained page
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Write the answer as JSON there; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No remarks and no progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// What stands between A's runs and B's once the arguments are read: no path holds it.
const BETWEEN: &str = "\0";

/// Lets flags stand behind the `--` of `compare` too, where everybody puts them: there it parts A from B.
pub fn part(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|name| name == "compare") {
        if let Some(between) = args.iter_mut().skip(2).find(|arg| *arg == "--") {
            *between = BETWEEN.into();
        }
    }
    args
}

/// The answer with what is not statistics.
#[derive(serde::Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    compared: &'a Compared,
    environment_diff: &'a [Difference],
    /// Whether all runs have a record of their conditions; a list has none.
    environment_recorded: bool,
    remarks: &'a [String],
}

/// Compares.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    let (a, b) = args.sides()?;
    let mut question = args.question()?;
    super::check_outputs(&[&args.output, &args.json])?;
    args.check_page()?;
    let paths = [a.as_slice(), b.as_slice()].concat();
    let mut in_a = crowd::read(&paths, &args.reading, !args.quiet && !environment.dumb)?;
    let mut in_b = in_a.split_off(a.len());
    let told = super::tell(&in_a.iter().chain(&in_b).collect::<Vec<_>>(), args.quiet);
    let differing = differing(&in_a, &in_b);
    if let Err(trouble) = comparable(&in_a, &in_b) {
        // What differs is said even where that is the reason for the refusal.
        if let Some(differing) = differing.as_deref().filter(|differing| !differing.is_empty()) {
            report::compare::text::differences(Some(differing), environment.columns()).lines().for_each(say);
        }
        return Err(trouble);
    }
    if !args.unpaired && !args.paired {
        question.design = pair_up(&mut in_a, &mut in_b);
    }
    let mut compared = compare(&series(&in_a), &series(&in_b), &question);
    in_a.iter().chain(&in_b).flat_map(flaws).for_each(|flaw| compared.no_verdict(flaw.reason));
    let (shown, remarks) = (remarks(&in_a, &in_b, told), remarks(&in_a, &in_b, false));
    compared.a.iter_mut().zip(&in_a).chain(compared.b.iter_mut().zip(&in_b)).for_each(|(unit, subject)| {
        unit.title = subject.title.clone();
        let rows = subject.run.as_ref().map(|_| subject.rows());
        unit.describe(rows.as_deref().map(|rows| (rows, subject.overflows())), subject.max());
    });
    let document = Document {
        compared: &compared,
        environment_diff: differing.as_deref().unwrap_or_default(),
        environment_recorded: differing.is_some(),
        remarks: &remarks,
    };
    if let Some(path) = &args.json {
        write_output(path, json_pretty(&document)?.as_bytes())?;
    }
    if let Some(path) = &args.output {
        let json = json(&document)?;
        let (a, b) = (series(&in_a), series(&in_b));
        let versus = Versus { compared: &compared, differing: differing.as_deref(), remarks: &remarks, a, b };
        write_output(path, report::compare::page::html(&versus, &json).as_bytes())?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        let color = environment.color(&std::io::stdout());
        let (differing, columns) = (differing.as_deref(), environment.columns());
        print(report::compare::text::text(&compared, differing, &shown, columns, color).as_bytes())?;
    }
    Ok(match compared.verdict {
        "worse" => Exit::Limit,
        "inconclusive" => Exit::Inconclusive,
        _ => Exit::Fine,
    })
}

fn series(side: &[Subject]) -> Vec<&Series> {
    side.iter().map(|subject| &subject.series).collect()
}

/// Puts runs that alternate in time into pairs; their order is that of time then.
fn pair_up(a: &mut [Subject], b: &mut [Subject]) -> Design {
    let started =
        |subject: &Subject| subject.run.as_ref().map_or_else(String::new, |run| run.started.clone());
    let starts = |side: &[Subject]| side.iter().map(started).collect::<Vec<_>>();
    let found = design::of_starts(&starts(a), &starts(b));
    if found == Design::Paired {
        a.sort_by_key(started);
        b.sort_by_key(started);
    }
    found
}

/// In what the sides differ, none where a run has no record of its conditions; the kernel's files are read only here
/// and not kept.
fn differing(a: &[Subject], b: &[Subject]) -> Option<Vec<Difference>> {
    let settings = |side: &[Subject]| -> Option<Vec<Settings>> {
        let of = |subject: &Subject| Some(Settings::of(subject.run.as_ref()?, &host_files(&subject.path)));
        side.iter().map(of).collect()
    };
    // A list says nothing of its conditions, which is not the same as having none.
    settings(a).zip(settings(b)).map(|(a, b)| differences(&a, &b))
}

/// Refuses what would compare different things.
fn comparable(a: &[Subject], b: &[Subject]) -> Outcome<()> {
    let all: Vec<&Subject> = a.iter().chain(b).collect();
    for (at, subject) in all.iter().enumerate() {
        let same = |other: &&&Subject| {
            let ids = other.run.as_ref().zip(subject.run.as_ref());
            let one_file = other.identity.is_some() && other.identity == subject.identity;
            one_file || ids.is_some_and(|(one, two)| !one.id.is_empty() && one.id == two.id)
        };
        if all[..at].iter().any(|other| same(&other)) {
            return Err(Trouble::usage(format!(
                "{} is given twice: one run is one unit, give each once",
                subject.title
            )));
        }
    }
    let Some(first) = all.first() else { return Ok(()) };
    for other in &all {
        let named = |what: &str, remedy: &str| {
            Err(Trouble::usage(format!("{} and {} differ in {what}: {remedy}", first.title, other.title)))
        };
        if first.series.block != other.series.block {
            return named(
                "the length of their blocks",
                "their maxima are of different things, measure again",
            );
        }
        // Where followed threads happen to run is found, not chosen.
        let own =
            |subject: &Subject| subject.run.as_ref().filter(|run| !run.follows()).map(|run| run.cpus.len());
        if own(first).zip(own(other)).is_some_and(|(one, two)| one != two) {
            return named("how many CPUs they measured", "name CPUs that all of them have with -a");
        }
        let interval = |subject: &Subject| subject.run.as_ref().and_then(|run| run.plan.interval_ns);
        if interval(first).zip(interval(other)).is_some_and(|(one, two)| one != two) {
            return named(
                "their interval",
                "a block's maximum is one of another number of wake-ups, measure both with the same -i",
            );
        }
    }
    Ok(())
}

/// Why a run carries no verdict.
struct Flaw {
    /// Of this run, in words.
    remark: String,
    /// For the answer.
    reason: &'static str,
}

/// What of a run forbids a verdict, the weightiest last.
fn flaws(subject: &Subject) -> Vec<Flaw> {
    let spoiled = subject.spoiled().into_iter().next().map(|reason| Flaw {
        remark: format!("{} was spoiled: {reason}", subject.title),
        reason: "a run was spoiled: leave it out, or measure again",
    });
    let lost = subject.series.lost().map(|lost| Flaw {
        remark: format!("{}: {lost}", subject.title),
        reason: "a run has lost records: leave it out, or measure again",
    });
    let bare = subject.series.blocks.is_empty().then(|| Flaw {
        remark: format!("{} has no block records: a histogram alone does not say when", subject.title),
        reason: "a run has no block records: of it only the quantiles are known",
    });
    spoiled.into_iter().chain(lost).chain(bare).collect()
}

/// What else is to be known; what was told on the screen already is not told twice.
fn remarks(a: &[Subject], b: &[Subject], told: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    for subject in a.iter().chain(b) {
        remarks.extend(flaws(subject).into_iter().map(|flaw| flaw.remark));
        let own = if told { &[] } else { subject.remarks.as_slice() };
        remarks.extend(own.iter().map(|remark| format!("{}: {remark}", subject.title)));
    }
    remarks
}

impl Args {
    fn sides(&self) -> Outcome<(Vec<PathBuf>, Vec<PathBuf>)> {
        let mut sides = self.runs.split(|path| path.as_os_str() == BETWEEN);
        let (a, b) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
        let (a, b) = match (a, b) {
            ([a, b], []) => (vec![a.clone()], vec![b.clone()]),
            (_, []) | ([], _) => {
                return Err(Trouble::usage("put `--` between A's runs and B's: onbeat compare A... -- B..."));
            }
            (a, b) => (a.to_vec(), b.to_vec()),
        };
        if self.paired && a.len() != b.len() {
            return Err(Trouble::usage(format!(
                "--paired: {} and {} runs make no pairs, give as many of B as of A",
                a.len(),
                b.len()
            )));
        }
        Ok((a, b))
    }

    /// The page is no other kind of file.
    fn check_page(&self) -> Outcome<()> {
        let named = self
            .output
            .as_ref()
            .is_none_or(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")));
        if named {
            Ok(())
        } else {
            Err(Trouble::usage("-o: the page's name ends in .html; --json writes the other form"))
        }
    }

    fn question(&self) -> Outcome<Question> {
        let metric = metric(&self.metric)?;
        let margin = self.margin.as_deref().map(|text| margin(text, metric)).transpose()?;
        Ok(Question {
            metric,
            limit: self.limit.as_deref().map(limit).transpose()?,
            design: if self.paired { Design::Paired } else { Design::Unpaired },
            margin,
        })
    }
}

fn metric(text: &str) -> Outcome<Metric> {
    if text == "rate" {
        return Ok(Metric::Rate);
    }
    let number =
        text.strip_prefix('p').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let q = number.and_then(|digits| digits.parse::<f64>().ok()).map(|percent| percent / 100.0);
    q.filter(|q| (0.01..1.0).contains(q)).map(Metric::Quantile).ok_or_else(|| {
        Trouble::usage(format!("--metric: '{text}' is neither `rate` nor a quantile like p50 or p99"))
    })
}

fn margin(text: &str, metric: Metric) -> Outcome<f64> {
    match metric {
        Metric::Rate => {
            text.parse::<f64>().ok().filter(|factor| *factor > 1.0 && factor.is_finite()).ok_or_else(|| {
                Trouble::usage(format!(
                    "--margin: '{text}' is not a factor above 1: the rate's margin is one, like 1.5"
                ))
            })
        }
        Metric::Quantile(_) => positive_span("--margin", text, Bare::Micros).map(|span| span.0 as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        let words = ["onbeat", "compare"].into_iter().chain(line.split_whitespace());
        let mut words = part(words.map(OsString::from).collect());
        words.remove(1);
        Only::try_parse_from(words).expect(line).args
    }

    #[test]
    fn two_runs_need_no_dashes() {
        let sides = |line: &str| args(line).sides().map(|(a, b)| (a.len(), b.len()));
        assert_eq!(sides("a b").expect("two"), (1, 1));
        assert_eq!(sides("a b -- c").expect("three"), (2, 1));
        assert_eq!(sides("a -- b c -- --x").expect("what follows a second one is a name"), (1, 3));
        for line in ["a", "a b c", "a --", "-- a", "a b -- c --paired"] {
            assert!(sides(line).is_err(), "{line}");
        }
    }

    #[test]
    fn flags_may_stand_anywhere() {
        for line in ["--limit 50us -q a b -- c", "a b -- c --limit 50us -q", "a --limit 50us b -- -q c"] {
            let args = args(line);
            assert!(args.quiet && args.limit.as_deref() == Some("50us"), "{line}");
            assert_eq!(args.sides().map(|(a, b)| (a.len(), b.len())).expect(line), (2, 1));
        }
        let page = |line: &str| args(line).check_page().is_ok();
        assert!(page("a b") && page("a b -o x.HTML") && !page("a b -o x.svg") && !page("a b -o -"));
    }

    #[test]
    fn metrics_and_margins_are_read() {
        assert_eq!(metric("p99.5").expect("a quantile"), Metric::Quantile(0.995));
        for text in ["p", "p0", "p100", "q5", "p-1", "p1e1", ""] {
            assert!(metric(text).is_err(), "{text}");
        }
        let margin = |line: &str| args(line).question().map(|question| question.margin);
        assert_eq!(margin("a b --margin 1.5").expect("a factor"), Some(1.5));
        assert_eq!(margin("a b --metric p99 --margin 2us").expect("a span"), Some(2_000.0));
        assert!(margin("a b --margin 1").is_err() && margin("a b --margin 2us").is_err());
    }
}
