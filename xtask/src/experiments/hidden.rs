//! The limit of statistics: a mechanism that did not occur during the test. Half an hour is
//! measured, a day follows.

use model::units::Nanos;
use stats::bounds::ExtrapolationStatus;
use stats::rng::{Rng, SEED};
use stats::tail::gev::{self, Gev, Shape};
use stats::tail::grouped_sample::GroupedSample;
use stats::tail::profile::{self, Level, ONE_SIDED_95};

use super::gates::answer;
use super::line::ResultLine;
use super::{Experiment, Length};

const TRAINED: usize = 1800;
const DAY: f64 = 86_400.0;
/// Increase of a block by the mechanism, us.
const HEIGHT: f64 = 50.0;

/// All of them.
pub fn all() -> Vec<Experiment> {
    vec![
        ("hidden-mode", Box::new(|length| mode(0.0, length))),
        ("hidden-mode", Box::new(|length| mode(1.0 / 14_400.0, length))),
        ("hidden-mode", Box::new(|length| mode(1.0 / 600.0, length))),
    ]
}

/// Numbers of repetitions by outcome.
#[derive(Default)]
struct Counts {
    holds: u32,
    seen: u32,
    refused: u32,
    named: u32,
}

/// The mechanism occurs with this probability in each second.
fn mode(per_second: f64, length: Length) -> Vec<ResultLine> {
    let reps = length.of(300, 40);
    let mut rng = Rng::new(SEED);
    let mut counts = Counts::default();
    for _ in 0..reps {
        once(per_second, &mut rng, &mut counts);
    }
    let name = match per_second {
        0.0 => "no hidden mode",
        rate if rate < 1e-3 => "1 per 4 h at +50 us",
        _ => "1 per 10 min at +50 us",
    };
    let line = |what: &str, count: u32| {
        ResultLine::rate(format!("{name}: {what}"), f64::from(count) / f64::from(reps), reps)
    };
    let holds = line("the fitted bound holds a day", counts.holds);
    let seen = line("seen in half an hour", counts.seen);
    let refused = line("extrapolation refused", counts.refused);
    match per_second {
        0.0 => vec![holds.near(1.0, 120).at_least(0.95), refused.at_most(0.08)],
        rate if rate < 1e-3 => vec![
            holds
                .near(0.0083, 120)
                .at_most(0.05)
                .note("the limit that no statistic removes: the answer has to say so"),
            seen.near(0.083, 120),
            refused.note("published: flagged 0.092 of 120"),
            line("the answer names such rates as not covered", counts.named).at_least(1.0),
        ],
        _ => vec![
            holds.near(0.467, 120).note("were it said"),
            seen.near(0.983, 120),
            refused.at_least(0.85).note("published: flagged 0.975 of 120"),
        ],
    }
}

fn once(per_second: f64, rng: &mut Rng, counts: &mut Counts) {
    let law = Gev { mu: 20.0, sigma: 2.0, xi: 0.0 };
    let mut events = 0u32;
    let trained: Vec<f64> = (0..TRAINED)
        .map(|_| {
            let fires = rng.uniform() < per_second;
            events += u32::from(fires);
            law.level_of_rate(rng.exponential()) + if fires { HEIGHT } else { 0.0 }
        })
        .collect();
    counts.seen += u32::from(events > 0);
    let mut largest = law.level_of_rate(rng.exponential() / DAY);
    let mut at = rng.exponential();
    while at < per_second * DAY {
        largest = largest.max(law.level_of_rate(rng.exponential()) + HEIGHT);
        at += rng.exponential();
    }
    counts.holds += u32::from(fitted_bound(&trained).is_none_or(|bound| bound >= largest));
    let answer = answer(&trained, Nanos(DAY as i64 * Nanos::SECOND.0));
    counts.refused += u32::from(answer.extrapolation.status != ExtrapolationStatus::Ok);
    counts.named +=
        u32::from(answer.counting.hidden_rate_per_hour.is_some_and(|rate| rate >= per_second * 3600.0));
}

/// The bound for a day, regardless of the gates.
fn fitted_bound(maxima: &[f64]) -> Option<f64> {
    let steps = GroupedSample::new(maxima, 0.0)?;
    let fit = gev::fit(&steps, Shape::USUAL)?;
    profile::level_upper(&steps, &fit, Level { blocks: DAY, probability: 0.95 }, ONE_SIDED_95)
}
