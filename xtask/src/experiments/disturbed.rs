//! Runs that are not steady: the rate at which `bounds` extrapolates them nevertheless, or takes
//! their count for a claim.
//!
//! Drifts, steps, combs and bursts of three to six scales of the law, in steps of 1 us. The limit
//! is above all maxima and the horizon a quarter of the run: were the blocks alike, counting would
//! support each claim.

use model::units::Nanos;
use stats::bounds::{BoundsInput, BoundsVerdict, ExtrapolationStatus, Question, bounds};
use stats::rng::{Rng, SEED};
use stats::series::{BLOCK, Series};
use stats::tail::gev::Gev;

use super::line::ResultLine;
use super::{Experiment, Length};

const SIGMA: f64 = 2.0;
const SIZES: [f64; 4] = [3.0, 4.0, 5.0, 6.0];

/// Disturbance of the blocks, in units of sigma.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Growing over this last part of the run.
    Drift(f64),
    /// Step from this part of the run on.
    Step(f64),
    /// Once in that many blocks, with a random phase.
    Comb(f64),
    /// That many blocks in a row, at a random place, that number of times.
    Burst(usize, u32),
}

/// Name, disturbance, shape of the law, and the documented rates of extrapolations at 600 and 3,600
/// blocks: the largest of the four sizes.
type Row = (&'static str, Kind, f64, [f64; 2]);

const ROWS: [Row; 14] = [
    ("drift over the run", Kind::Drift(1.0), 0.0, [0.0, 0.0]),
    ("drift over the last fifth", Kind::Drift(0.2), 0.0, [0.0, 0.0]),
    ("step in the middle", Kind::Step(0.5), 0.0, [0.0, 0.0]),
    ("step at nine tenths", Kind::Step(0.9), 0.0, [0.0, 0.0]),
    ("burst of 10 s", Kind::Burst(10, 1), 0.0, [0.0, 0.0]),
    ("burst of 30 s", Kind::Burst(30, 1), 0.0, [0.0, 0.0]),
    ("three bursts of 20 s", Kind::Burst(20, 3), 0.0, [0.0, 0.0]),
    ("burst of 60 s, xi -0.2", Kind::Burst(60, 1), -0.2, [0.0, 0.0]),
    ("comb of 7 s", Kind::Comb(7.0), 0.0, [0.0, 0.0]),
    ("comb of 30 s", Kind::Comb(30.0), 0.0, [0.0, 0.0]),
    ("comb of 45 s", Kind::Comb(45.0), 0.0, [0.0, 0.0]),
    ("comb of 60 s", Kind::Comb(60.0), 0.0, [0.013, 0.0]),
    ("comb of 60 s, xi -0.2", Kind::Comb(60.0), -0.2, [0.0, 0.0]),
    ("comb of 20.3 s", Kind::Comb(20.3), 0.0, [0.025, 0.0]),
];

/// All experiments, the longest first.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for (at, n) in [(1, 3600), (0, 600)] {
        for (name, kind, xi, documented) in ROWS {
            let row = move |length| disturbed(name, kind, xi, n, documented[at], length);
            all.push(("disturbed", Box::new(row)));
        }
    }
    all
}

impl Kind {
    fn maxima(self, xi: f64, n: usize, size: f64, rng: &mut Rng) -> Vec<f64> {
        let law = Gev { mu: 20.0, sigma: SIGMA, xi };
        let by = size * SIGMA;
        let mut x: Vec<f64> = (0..n).map(|_| law.level_of_rate(rng.exponential())).collect();
        match self {
            Kind::Drift(part) => {
                let from = (1.0 - part) * n as f64;
                let grown = |i: usize| ((i as f64 - from) / (n as f64 - from)).max(0.0);
                x.iter_mut().enumerate().for_each(|(i, x)| *x += by * grown(i));
            }
            Kind::Step(from) => x[(from * n as f64) as usize..].iter_mut().for_each(|x| *x += by),
            Kind::Comb(period) => {
                let mut at = rng.uniform() * period;
                while at < n as f64 {
                    x[at as usize] += by;
                    at += period;
                }
            }
            Kind::Burst(blocks, times) => {
                for _ in 0..times {
                    let from = rng.below(n - blocks);
                    x[from..from + blocks].iter_mut().for_each(|x| *x += by);
                }
            }
        }
        x
    }
}

/// Two flags for maxima in us: they are extrapolated, and a claim on their count is supported.
fn wrong(maxima: &[f64]) -> (bool, bool) {
    let list: Vec<Option<Nanos>> = maxima.iter().map(|us| Some(Nanos(us.floor() as i64 * 1000))).collect();
    let series = Series::of_list(&list, BLOCK, Nanos::MICRO);
    let limit = list.iter().flatten().max().map(|max| Nanos(max.0 + 100_000));
    let horizon = Nanos(series.observed.0 / 4);
    let answer =
        bounds(&BoundsInput::of(&series), &Question { limit, horizon, chosen: true, ..Question::default() });
    (answer.extrapolation.status == ExtrapolationStatus::Ok, answer.verdict == BoundsVerdict::Supported)
}

fn disturbed(name: &str, kind: Kind, xi: f64, n: usize, documented: f64, length: Length) -> Vec<ResultLine> {
    let reps = if n > 1000 { length.of(60, 0) } else { length.of(200, 10) };
    if reps == 0 {
        return Vec::new();
    }
    let mut rng = Rng::new(SEED);
    let mut rate = |size: f64| {
        let found: Vec<(bool, bool)> =
            (0..reps).map(|_| wrong(&kind.maxima(xi, n, size, &mut rng))).collect();
        let part = |of: fn(&(bool, bool)) -> bool| {
            found.iter().filter(|one| of(one)).count() as f64 / f64::from(reps)
        };
        (part(|one| one.0), part(|one| one.1))
    };
    let rates = SIZES.map(&mut rate);
    let line = |what: &str, of: fn(&(f64, f64)) -> f64| {
        let each = rates.iter().map(|rates| format!("{:.3}", of(rates))).collect::<Vec<_>>().join(" ");
        let most = rates.iter().map(of).fold(0.0, f64::max);
        ResultLine::rate(format!("{name}, n {n}: {what}"), most, reps)
            .at_most(0.05)
            .note(format!("3, 4, 5, 6 sigma: {each}; documented {documented:.3}"))
    };
    vec![line("extrapolated", |rates| rates.0), line("supported", |rates| rates.1)]
}
