//! Fitted tails: coverage of bounds, the effect of recording in steps, and false alarms of the
//! gates of the fit.

use stats::rng::SEED;

use super::fits::{self as tail, Contamination};
use super::line::ResultLine;
use super::{Experiment, Length};

/// All experiments, the longest first.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for (n, m, xi, published) in PREDICTIONS {
        all.push(("prediction", Box::new(move |length| prediction(n, m, xi, published, length))));
    }
    for (n, xi, published) in LEVELS {
        all.push(("coverage", Box::new(move |length| coverage(n, xi, published, length))));
    }
    for (sigma, grouped, middles) in STEPS {
        all.push(("rounded", Box::new(move |length| rounded(sigma, grouped, middles, length))));
    }
    for row in MODES {
        all.push(("fit-gates", Box::new(move |length| fit_gates(row, length))));
    }
    all
}

/// Blocks, shape, and the published rates: two-sided, upper, guarded upper bound.
const LEVELS: [(usize, f64, [f64; 3]); 6] = [
    (300, -0.2, [0.955, 0.937, 1.0]),
    (300, 0.0, [0.956, 0.944, 1.0]),
    (300, 0.2, [0.953, 0.954, 0.935]),
    (60, -0.2, [0.945, 0.912, 1.0]),
    (60, 0.0, [0.953, 0.929, 1.0]),
    (60, 0.2, [0.944, 0.934, 0.96]),
];

fn coverage(n: usize, xi: f64, [two_sided, upper, guarded]: [f64; 3], length: Length) -> Vec<ResultLine> {
    let reps = length.of(1000, if n > 100 { 100 } else { 150 });
    let held = tail::level_coverage(n, xi, reps, SEED);
    let line = |what: &str, rate: f64| {
        ResultLine::rate(format!("1-in-10n level, n {n}, xi {xi}: {what}"), rate, reps)
    };
    vec![
        line("95 % interval", held.two_sided).near(two_sided, 1000).at_least(0.92).at_most(0.98),
        line("upper bound", held.upper).near(upper, 1000).at_least(0.89),
        line("guarded", held.guarded).near(guarded, 200).at_least(0.89),
    ]
}

/// Published rates of the estimate and of the bound, and their number of repetitions.
type Published = (f64, f64, u32);

/// Blocks, blocks ahead, shape, and the published rates.
const PREDICTIONS: [(usize, f64, f64, Published); 6] = [
    (3600, 36_000.0, -0.1, (0.90, 0.9875, 80)),
    (3600, 36_000.0, 0.1, (0.925, 0.9875, 80)),
    (300, 300.0, -0.1, (0.905, 0.99, 200)),
    (300, 300.0, 0.1, (0.89, 0.995, 200)),
    (300, 3000.0, -0.1, (0.815, 0.995, 200)),
    (300, 3000.0, 0.1, (0.84, 0.965, 200)),
];

fn prediction(n: usize, m: f64, xi: f64, published: Published, length: Length) -> Vec<ResultLine> {
    let (plain, bound, of) = published;
    let reps = if n > 1000 { length.of(200, 20) } else { length.of(1000, 100) };
    let held = tail::prediction(n, m, xi, reps, SEED);
    let line =
        |what: &str, rate: f64| ResultLine::rate(format!("next {m} of n {n}, xi {xi}: {what}"), rate, reps);
    vec![
        line("bound", held.1).near(bound, of).at_least(0.93),
        line("estimate", held.0).near(plain, of).note("why the estimate is not the bound"),
    ]
}

/// Sigma in steps, and the published coverage by steps and by densities at their middles.
const STEPS: [(f64, f64, f64); 3] = [(0.4, 0.9133, 0.0267), (1.0, 0.96, 0.9067), (2.0, 0.9733, 0.9733)];

fn rounded(sigma: f64, grouped: f64, middles: f64, length: Length) -> Vec<ResultLine> {
    let reps = length.of(300, 50);
    let held = tail::rounded_coverage(sigma, reps, SEED);
    let line = |what: &str, rate: f64| {
        ResultLine::rate(format!("maxima in steps, sigma {sigma}: {what}"), rate, reps)
    };
    vec![
        line("by steps", held.0).near(grouped, 150).at_least(0.89),
        line("by middles", held.1).near(middles, 150).note("not used"),
    ]
}

/// Blocks of a second mechanism, its height, the shape, and the published rates of G5 and, if any,
/// of G4.
type ModeRow = (&'static str, Contamination, f64, f64, f64, Option<f64>);

const MODES: [ModeRow; 6] = [
    ("clean, xi 0", Contamination::Clean, 0.0, 0.0, 0.02, None),
    ("clean, xi 0.2", Contamination::Clean, 0.0, 0.2, 0.015, None),
    ("clean, xi -0.2", Contamination::Clean, 0.0, -0.2, 0.03, None),
    ("+30 us every 60 s", Contamination::Every(60), 30.0, 0.0, 1.0, Some(1.0)),
    ("0.5 % at +50 us", Contamination::Share(0.005), 50.0, 0.0, 0.915, Some(0.78)),
    ("5 % at +15 us", Contamination::Share(0.05), 15.0, 0.0, 0.36, Some(1.0)),
];

fn fit_gates(row: ModeRow, length: Length) -> Vec<ResultLine> {
    let (name, mode, shift, xi, gap, fit) = row;
    let reps = length.of(400, 80);
    let stopped = tail::gates(mode, shift, xi, reps, SEED);
    let fits = ResultLine::rate(format!("{name}: fit stops it"), stopped.1, reps);
    vec![
        ResultLine::rate(format!("{name}: gap stops it"), stopped.0, reps).near(gap, 200),
        match fit {
            Some(rate) => fits.near(rate, 100),
            None => fits.at_most(0.04),
        },
    ]
}
