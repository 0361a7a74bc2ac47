//! `onbeat bounds`: what a run can prove.

use std::path::PathBuf;

use super::flags::{limit, positive_span};
use super::subject::{Reading, Subject};
use super::{Environment, print, write_output};
use model::error::{Exit, Outcome, Trouble, json_pretty};
use model::run::CpuRun;

use model::text::quoted;
use model::units::{Bare, Nanos};
use stats::bounds::overflows::Listed;
use stats::bounds::{self, Bounds, Evidence, LARGEST_REACH, Question, REACH};

/// Say what a run supports, and what it cannot have seen
///
/// First by counting alone: how likely a later wake-up is in the next hours, how often the limit may
/// be reached at most, how long a clean run would have to be. Then, if and only if every gate
/// passes, what the largest latency of a longer time is likely to be. With --limit the exit code is
/// the verdict: 0 supported, 3 failed, 7 the run is too short or not steady enough for either.
///
/// A CSV file of block maxima (one integer in ns a line, the oldest first) is as good as a run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat bounds RUN --limit 50us --horizon 24h\n  onbeat bounds RUN --limit 8kHz            the period of 8 kHz is the limit\n  onbeat bounds maxima.csv --block 1s --resolution 1us --horizon 10h"
)]
pub struct Args {
    /// A bundle, or a CSV file of block maxima in ns
    #[arg(value_name = "BUNDLE|FILE.csv")]
    input: PathBuf,
    #[command(flatten)]
    asked: Asked,
    /// How many times the run's length an extrapolation may reach, at most 100
    #[arg(long, value_name = "N", default_value_t = REACH)]
    reach: f64,
    #[command(flatten)]
    reading: Reading,
    /// Write the answer as JSON there; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print only the answer: no remarks, no gates, no structure
    #[arg(short, long)]
    quiet: bool,
}

/// What is asked of a run: flags that `bounds` and `report` share.
#[derive(clap::Args, Default)]
pub struct Asked {
    /// The latency that is not to be reached, or a rate like 8kHz, whose period it is; a bare number is in us
    #[arg(short, long, value_name = "SPAN|RATE", allow_hyphen_values = true)]
    limit: Option<String>,
    /// How far ahead; a bare number is in seconds [default: 24h]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    horizon: Option<String>,
}

impl Asked {
    /// Whether anything is asked.
    pub fn is_given(&self) -> bool {
        self.limit.is_some() || self.horizon.is_some()
    }

    /// The question, with how many times the run's length an extrapolation may reach.
    pub fn question(&self, reach: f64) -> Outcome<Question> {
        let horizon = self
            .horizon
            .as_deref()
            .map(|text| positive_span("--horizon", text, Bare::Seconds))
            .transpose()?;
        Ok(Question {
            limit: self.limit.as_deref().map(limit).transpose()?,
            horizon: horizon.unwrap_or(Nanos(86_400 * Nanos::SECOND.0)),
            chosen: horizon.is_some(),
            reach,
        })
    }
}

/// Answers.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    let question = args.question()?;
    super::check_outputs(&[&args.json])?;
    let subject = args.reading.open(&args.input)?;
    let alone = args.json.as_deref() == Some("-".as_ref());
    let told = super::tell(&[&subject], args.quiet);
    let answer = answer(&subject, &question)?;
    if let Some(path) = &args.json {
        write_output(path, json_pretty(&answer)?.as_bytes())?;
    }
    if !alone {
        let color = environment.color(&std::io::stdout());
        let remarks = if told { &[] } else { subject.remarks.as_slice() };
        let (title, columns) = (&subject.title, environment.columns());
        let text = match args.quiet {
            true => report::bounds::text::brief(title, &answer, columns, color),
            false => report::bounds::text::text(title, &answer, remarks, columns, color),
        };
        print(text.as_bytes())?;
    }
    Ok(match answer.verdict {
        "failed" => Exit::Limit,
        "inconclusive" => Exit::Inconclusive,
        _ => Exit::Fine,
    })
}

/// The bounds of a subject.
pub fn answer(subject: &Subject, question: &Question) -> Outcome<Bounds> {
    let rows = subject.rows();
    let cycles = subject.cpus().fold(0u64, |sum, cpu| sum.saturating_add(cpu.cycles));
    // A run that was killed before its first second has nothing to say either, but it is one.
    let complete = subject.run.as_ref().is_none_or(|run| run.complete);
    if subject.series.worst().is_none() && cycles == 0 && complete {
        return Err(Trouble::usage(format!(
            "{} holds no wake-up, which bounds nothing: measure again",
            quoted(&subject.path)
        )));
    }
    let (spoiled, lists) = (subject.spoiled(), subject.overflow_lists());
    let sum = |of: fn(&CpuRun) -> Option<u64>| subject.cpus().filter_map(of).fold(0u64, u64::saturating_add);
    let evidence = Evidence {
        series: &subject.series,
        rows: &rows,
        overflows: subject.overflows(),
        listed: Listed {
            lists: &lists,
            cycles: subject.cpus().map(|cpu| cpu.listed_overflows().count() as u64).sum(),
            from: subject.cpus().filter_map(CpuRun::beyond_from).min(),
        },
        max: subject.max(),
        spoiled: &spoiled,
        cycles,
        missed: sum(|cpu| cpu.missed),
        hz: subject.run.as_ref().and_then(|run| run.host.hz),
    };
    Ok(bounds::bounds(&evidence, question))
}

impl Args {
    fn question(&self) -> Outcome<Question> {
        if !(self.reach > 0.0 && self.reach <= LARGEST_REACH) {
            return Err(Trouble::usage(format!(
                "--reach: expected more than 0 and at most {LARGEST_REACH} times the run's length"
            )));
        }
        self.asked.question(self.reach)
    }
}
