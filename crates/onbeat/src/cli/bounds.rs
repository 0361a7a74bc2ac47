//! `onbeat bounds`: statements that a run supports.

use std::path::PathBuf;

use super::Environment;
use super::flags::{computing, limit, positive_span};
use super::newest::ChosenRun;
use super::outputs::{OutputFlags, Outputs, Screen};
use super::read_flags::{ReadFlags, print_remarks};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::Bare;
use report::bounds::last_words::BoundsStyle;
use report::bounds::text;
use report::last_lines::RunPlace;
use stats::bounds::{BoundsVerdict, DEFAULT_REACH, MAX_REACH, Question};

/// Compute the latency bounds that a run supports
///
/// First by counting alone: the probability of a larger latency in the next hours, the highest rate
/// at which the limit may be reached, and the length of clean run that a claim needs. Then, only if
/// every gate passes, the likely largest latency over a longer time. With --limit the exit code is
/// the verdict: 0 supported, 3 failed, 7 the run is too short or not steady enough to decide. With
/// --period it is 0 if a period is supported, else 7: LinuxCNC needs this for its base and servo
/// periods.
///
/// A CSV file of block maxima (one integer in ns per line, oldest first) works like a run.
#[derive(clap::Args)]
#[command(
    mut_arg("quiet", |arg| arg.help("Print only the answer: no notes, no gates, no structure")),
    after_help = "Examples:\n  onbeat bounds                             the newest run\n  onbeat bounds --limit 50us --horizon 24h  check a limit\n  onbeat bounds RUN --limit 8kHz            the limit is the period of 8 kHz\n  onbeat bounds --period                    the shortest period that the run supports\n  onbeat bounds --period=200us              the same, with 200 us of computing\n  onbeat bounds maxima.csv --block 1s --resolution 1us --horizon 10h"
)]
pub struct Args {
    /// A bundle, or a CSV file of block maxima in ns; by default this user's newest run
    #[arg(value_name = "BUNDLE|FILE.csv")]
    input: Option<PathBuf>,
    /// Also list the checks behind the answer
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    asked: Asked,
    /// Find the shortest period that the run supports. COMPUTING is the part of it that a cycle
    /// computes, as a time (200us) or a share (30%); the rest is left for lateness [default: 50%]
    #[arg(
        long, value_name = "COMPUTING", num_args = 0..=1, require_equals = true,
        default_missing_value = "50%"
    )]
    period: Option<String>,
    /// Largest extrapolation, in multiples of the run's length, at most 100
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REACH)]
    reach: f64,
    #[command(flatten)]
    read: ReadFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// What is asked of a run: flags that `bounds` and `report` share.
#[derive(clap::Args, Clone, Default)]
pub struct Asked {
    /// Latency that must not be reached, or a rate like 8kHz, whose period is the limit; a bare
    /// number is in us
    #[arg(short, long, value_name = "SPAN|RATE", allow_hyphen_values = true)]
    limit: Option<String>,
    /// Time that the claim covers; a bare number is in seconds [default: 24h]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    horizon: Option<String>,
}

impl Asked {
    /// True if a limit or a horizon is given.
    pub fn is_given(&self) -> bool {
        self.limit.is_some() || self.horizon.is_some()
    }

    /// Question for the analysis; `reach` is the maximum extrapolation in lengths of the run.
    pub fn question(&self, reach: f64) -> Result<Question> {
        let horizon = self
            .horizon
            .as_deref()
            .map(|text| positive_span("--horizon", text, Bare::Seconds))
            .transpose()?;
        Ok(Question {
            limit: self.limit.as_deref().map(limit).transpose()?,
            horizon: horizon.unwrap_or(Question::default().horizon),
            chosen: horizon.is_some(),
            reach,
            ..Question::default()
        })
    }
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let question = args.question()?;
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let chosen = ChosenRun::of(args.input.as_ref(), false, environment)?;
    chosen.announce(&mut outputs, false);
    let measurement = args.read.options()?.open(&chosen.path)?;
    let seen = print_remarks(&[&measurement], args.output.quiet);
    let bounds = study::bounds::bounds(&measurement, &question)?;
    outputs.json_pretty(&args.output.json, &bounds);
    let Screen { columns, color } = outputs.screen;
    let remarks = if seen { &[] } else { measurement.remarks.as_slice() };
    let (path, program) = (quoted(&chosen.path), environment.program(&chosen.path));
    let place = RunPlace { path: &path, newest: chosen.newest, fresh: false, program };
    let style = BoundsStyle { width: columns, color, verbose: args.verbose };
    let (title, run) = (&measurement.title, measurement.run.as_ref());
    outputs.print(&if args.output.quiet {
        text::brief(&bounds, title, run, place, style)
    } else {
        text::text(&bounds, title, run, place, remarks, style)
    });
    outputs.end(match bounds.verdict {
        BoundsVerdict::Failed => Exit::Limit,
        BoundsVerdict::Inconclusive => Exit::Inconclusive,
        _ => Exit::Ok,
    })
}

impl Args {
    fn question(&self) -> Result<Question> {
        if !(self.reach > 0.0 && self.reach <= MAX_REACH) {
            return Err(Failure::usage(format!(
                "invalid --reach: expected more than 0 and at most {MAX_REACH} times the run's length"
            )));
        }
        if self.period.is_some() && self.asked.limit.is_some() {
            return Err(Failure::usage(
                "--period determines the limit itself: use either --limit or --period",
            ));
        }
        let computing = self.period.as_deref().map(computing).transpose()?;
        Ok(Question { computing, ..self.asked.question(self.reach)? })
    }
}
