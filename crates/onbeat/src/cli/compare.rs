//! `onbeat compare`: a test of whether B is better than A.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Environment;
use super::flags::{limit, positive_span};
use super::named_run::named_runs;
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use super::read_flags::{ReadFlags, print_remarks, read_all};
use model::error::{Exit, Failure, Result, json};
use model::units::Bare;
use report::compare::last_words;
use report::compare::page::{self, Versus};
use report::compare::text;
use stats::compare::{CompareQuestion, Metric};
use stats::pair::verdict::{Design, Verdict};
use study::compare::{Pairing, Remarks, check_comparable, compare, differing, remarks, series};

/// Compare two sets of runs: better, worse, equivalent or inconclusive
///
/// The statistical unit is the run, not the sample: two boots of one configuration differ, and a
/// test on their seconds would find that difference every other time. Give several runs of each,
/// best taken alternately (A B B A ...); runs that alternate in time are treated as pairs. A
/// verdict needs at least six pairs, or four runs of each. A single new run as B is compared with
/// the spread of five or more past runs as A.
///
/// The metric is the rate at which one-second blocks reach the limit, fixed beforehand with
/// --limit; without it, the latency that 1 in 200 of all blocks reaches, or 20 blocks if there are
/// few. Imported histograms have no blocks: if a run has none, the share of all wake-ups at or
/// above the limit decides; without a limit, their p99; for runs without a histogram, the maximum,
/// if they have the same length. These use an exact rank test of the runs. Exit code 3 means worse,
/// 7 inconclusive.
#[derive(clap::Args)]
#[command(
    mut_arg("quiet", |arg| arg.help("Print only the table and the answer: no notes, no progress, no details")),
    after_help = "Examples:\n  onbeat compare before after\n  onbeat compare --limit 50us -o ab.html a1 a2 a3 a4 a5 a6 -- b1 b2 b3 b4 b5 b6\n  onbeat compare --limit 8kHz past/* -- new        a gate against a baseline\n  onbeat compare --metric p99 a*.csv -- b*.csv     block maxima, one integer in ns a line\n  onbeat compare --limit 50us nights-6.1/* -- nights-6.12/*    imported histograms"
)]
pub struct Args {
    /// Runs of A, `--`, runs of B: bundles or CSV files of block maxima in ns
    #[arg(required = true, value_name = "A... -- B", num_args = 1..)]
    runs: Vec<PathBuf>,
    /// Latency that blocks must not reach, or a rate, whose period is the limit; a bare number is
    /// in us. The default is the latency that one block in 200 reaches, or 20 blocks if there are
    /// few. Set the limit that matters before you look at the runs
    #[arg(short, long, value_name = "SPAN|RATE", allow_hyphen_values = true)]
    limit: Option<String>,
    /// Metric that decides: `rate`, or a quantile like `p99`: of the block maxima, or of the
    /// wake-ups if a run has no blocks
    #[arg(long, value_name = "METRIC", default_value = "rate")]
    metric: String,
    /// Largest difference that counts as equivalent: a factor for the rate [default: 2], a span for
    /// quantiles [default: 5 %, at least 1us]
    #[arg(long, value_name = "FACTOR|SPAN")]
    margin: Option<String>,
    /// Pair the runs: the i-th run of A belongs to the i-th run of B
    #[arg(long, conflicts_with = "unpaired")]
    paired: bool,
    /// Do not pair the runs, even if they alternate in time. Decide this before the runs are made:
    /// trying both ways misleads more often
    #[arg(long)]
    unpaired: bool,
    #[command(flatten)]
    read: ReadFlags,
    /// Also print how the numbers were computed
    #[arg(short, long)]
    verbose: bool,
    /// Write the answer with its pictures as one self-contained page
    #[arg(short = 'o', long = "output", value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

/// Separates A's runs from B's once the arguments are parsed; no path contains it.
pub const BETWEEN: &str = "\0";

/// Allows flags after the `--` of `compare` and `prove`, where users put them: the `--` separates A
/// from B there.
pub fn mark_separator(mut args: Vec<OsString>) -> Vec<OsString> {
    // Otherwise, a program follows it in `prove`.
    let across_boots = || args.iter().any(|arg| arg == "--across-boots");
    if args.get(1).is_some_and(|name| name == "compare" || (name == "prove" && across_boots())) {
        if let Some(between) = args.iter_mut().skip(2).find(|arg| *arg == "--") {
            *between = BETWEEN.into();
        }
    }
    args
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let (a, b) = args.sides()?;
    let question = args.question()?;
    let mut outputs = Outputs::of(&[&args.page, &args.output.json], environment)?;
    args.check_page()?;
    let (options, quiet) = (args.read.options()?, args.output.quiet);
    let paths = named_runs(&[a.as_slice(), b.as_slice()].concat(), environment)?;
    let mut in_a = read_all(&paths, &options, !quiet && !environment.dumb)?;
    let mut in_b = in_a.split_off(a.len());
    let seen = print_remarks(&in_a.iter().chain(&in_b).collect::<Vec<_>>(), quiet);
    let Screen { columns, color } = outputs.screen;
    if let Err(failure) = check_comparable(&in_a, &in_b) {
        // The differences are printed even if they are the reason for the refusal.
        if let Some(differing) = differing(&in_a, &in_b).filter(|differing| !differing.is_empty()) {
            text::differences(Some(&differing), "", columns).lines().for_each(remark);
        }
        return Err(failure);
    }
    let pairing = if args.unpaired || args.paired { Pairing::Given } else { Pairing::ByTime };
    let comparison = compare(&mut in_a, &mut in_b, &question, pairing);
    let (compared, differing) = (&comparison.compared, comparison.differing());
    outputs.json_pretty(&args.output.json, &comparison);
    outputs.write(&args.page, || {
        let (a, b) = (series(&in_a), series(&in_b));
        let page = Versus { compared, texts: None, differing, remarks: &comparison.remarks, a, b };
        Ok(page::html(&page, &json(&comparison)?))
    });
    let shown = remarks(&in_a, &in_b, if seen { Remarks::WithoutReading } else { Remarks::All });
    outputs.print(&if quiet {
        text::brief(compared, columns)
    } else {
        text::text(compared, differing, &shown, columns, args.verbose)
    });
    outputs.print(&last_words::render(compared, differing, columns, color));
    outputs.end(match compared.verdict {
        Verdict::Worse => Exit::Limit,
        Verdict::Inconclusive => Exit::Inconclusive,
        _ => Exit::Ok,
    })
}

impl Args {
    fn sides(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let mut sides = self.runs.split(|path| path.as_os_str() == BETWEEN);
        let (a, b) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
        let (a, b) = match (a, b) {
            ([a, b], []) => (vec![a.clone()], vec![b.clone()]),
            (_, []) | ([], _) if self.runs.iter().any(|path| path.as_os_str() == BETWEEN) => {
                return Err(Failure::usage(
                    "a run is missing on one side of `--`: give runs of both, onbeat compare A... -- B...",
                ));
            }
            (_, []) | ([], _) => {
                return Err(Failure::usage(
                    "`--` is missing: put it between the runs of A and those of B, onbeat compare A... -- \
                     B...",
                ));
            }
            (a, b) => (a.to_vec(), b.to_vec()),
        };
        if self.paired && a.len() != b.len() {
            return Err(Failure::usage(format!(
                "--paired: {} and {} runs cannot be paired; give as many of B as of A",
                a.len(),
                b.len()
            )));
        }
        Ok((a, b))
    }

    /// Refuses a page whose name does not end in `.html`.
    fn check_page(&self) -> Result<()> {
        let named = self
            .page
            .as_ref()
            .is_none_or(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")));
        if named {
            Ok(())
        } else {
            Err(Failure::usage("invalid -o: expected a name that ends in .html; for JSON use --json"))
        }
    }

    fn question(&self) -> Result<CompareQuestion> {
        let metric = metric(&self.metric)?;
        let margin = self.margin.as_deref().map(|text| margin(text, metric)).transpose()?;
        Ok(CompareQuestion {
            metric,
            limit: self.limit.as_deref().map(limit).transpose()?,
            design: if self.paired { Design::Paired } else { Design::Unpaired },
            margin,
        })
    }
}

fn metric(text: &str) -> Result<Metric> {
    if text == "rate" {
        return Ok(Metric::Rate);
    }
    let number =
        text.strip_prefix('p').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let q = number.and_then(|digits| digits.parse::<f64>().ok()).map(|percent| percent / 100.0);
    q.filter(|q| (0.01..1.0).contains(q)).map(Metric::Quantile).ok_or_else(|| {
        Failure::usage(format!("invalid --metric '{text}': expected `rate` or a quantile like p50 or p99"))
    })
}

fn margin(text: &str, metric: Metric) -> Result<f64> {
    match metric {
        Metric::Rate => {
            text.parse::<f64>().ok().filter(|factor| *factor > 1.0 && factor.is_finite()).ok_or_else(|| {
                Failure::usage(format!(
                    "invalid --margin '{text}': expected a factor above 1 for the rate, like 1.5"
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
        let mut words = mark_separator(words.map(OsString::from).collect());
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
    fn flags_may_be_anywhere() {
        for line in ["--limit 50us -q a b -- c", "a b -- c --limit 50us -q", "a --limit 50us b -- -q c"] {
            let args = args(line);
            assert!(args.output.quiet && args.limit.as_deref() == Some("50us"), "{line}");
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
