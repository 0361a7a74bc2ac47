//! The sentence that an extrapolation prints, if it is printed: "with 95 % confidence there is at
//! most a 5 % chance of exceeding U". Runs of known laws pass through the whole of `bounds`; of
//! those that print, U is to be at least the exact 95 % quantile of the largest of the blocks ahead
//! in 95 %, in each cell separately.
//!
//! Values are recorded as the lower edge of their step. The quantile is that of the latency itself,
//! not of its record: the stricter reading, as no recorded value is above its latency.

use model::units::Nanos;
use stats::bounds::{Bounds, BoundsInput, DEFAULT_REACH, Question, bounds};
use stats::rng::{Rng, SEED};
use stats::series::{BLOCK, Series};
use stats::tail::gev::Gev;
use stats::tail::profile::Level;

use super::line::ResultLine;
use super::{Experiment, Length};

/// Number of printed sentences that decide about a cell.
const PRINTED: u32 = 1000;
/// Limit of the runs of a cell in which most are refused.
const MOST_RUNS: u32 = 8000;

/// Runs of one kind.
#[derive(Clone, Copy)]
struct Cell {
    /// Blocks.
    n: usize,
    /// Law of the latencies, in us.
    law: Gev,
    /// Step in which latencies are recorded.
    step: Nanos,
    /// Horizon, as a multiple of the run's length.
    reach: f64,
}

/// Blocks, step, and the documented shares that print, and of these of that hold, by the shapes in
/// [`SHAPES`].
type Row = (usize, Nanos, [f64; 6], [f64; 6]);

const SHAPES: [f64; 6] = [-0.3, -0.1, 0.0, 0.1, 0.2, 0.3];
const NS: Nanos = Nanos(1);
const US: Nanos = Nanos::MICRO;
const USUAL: Gev = Gev { mu: 20.0, sigma: 2.0, xi: 0.0 };

/// The documented figures.
const ROWS: [Row; 10] = [
    (3600, NS, [0.945, 0.942, 0.932, 0.956, 0.933, 0.945], [0.963, 0.966, 0.966, 0.961, 0.965, 0.960]),
    (3600, US, [0.956, 0.955, 0.952, 0.956, 0.953, 0.937], [0.975, 0.964, 0.964, 0.973, 0.966, 0.964]),
    (60, NS, [0.898, 0.928, 0.946, 0.942, 0.945, 0.938], [0.980, 0.967, 0.966, 0.976, 0.968, 0.983]),
    (60, US, [0.152, 0.213, 0.249, 0.277, 0.336, 0.427], [0.997, 0.991, 0.989, 0.986, 0.990, 0.990]),
    (600, NS, [0.940, 0.953, 0.943, 0.946, 0.946, 0.944], [0.950, 0.956, 0.957, 0.965, 0.966, 0.966]),
    (600, US, [0.954, 0.955, 0.950, 0.938, 0.927, 0.940], [0.959, 0.963, 0.963, 0.959, 0.969, 0.976]),
    (300, NS, [0.950, 0.944, 0.930, 0.945, 0.940, 0.942], [0.956, 0.963, 0.971, 0.972, 0.971, 0.963]),
    (300, US, [0.945, 0.949, 0.942, 0.939, 0.944, 0.941], [0.974, 0.965, 0.960, 0.959, 0.973, 0.968]),
    (120, NS, [0.954, 0.945, 0.961, 0.951, 0.941, 0.931], [0.964, 0.966, 0.966, 0.974, 0.973, 0.983]),
    (120, US, [0.371, 0.723, 0.812, 0.880, 0.905, 0.937], [0.962, 0.974, 0.980, 0.974, 0.977, 0.976]),
];

/// Laws, lengths and horizons that nothing was chosen by.
const OTHERS: [(usize, Gev, Nanos, f64); 12] = [
    (1800, Gev { mu: 20.0, sigma: 2.0, xi: 0.25 }, NS, 10.0),
    (1000, Gev { mu: 20.0, sigma: 2.0, xi: 0.15 }, US, 10.0),
    (200, Gev { mu: 20.0, sigma: 2.0, xi: 0.05 }, NS, 10.0),
    (90, Gev { mu: 20.0, sigma: 2.0, xi: 0.25 }, NS, 10.0),
    (300, Gev { mu: 100.0, sigma: 2.0, xi: 0.2 }, NS, 10.0),
    (120, Gev { mu: 5.0, sigma: 1.0, xi: 0.3 }, NS, 10.0),
    (300, Gev { mu: 5.0, sigma: 0.5, xi: 0.3 }, US, 10.0),
    (600, Gev { mu: 5.3, sigma: 0.5, xi: 0.0 }, US, 10.0),
    (120, Gev { mu: 20.0, sigma: 2.0, xi: 0.2 }, NS, 1.0),
    (300, Gev { mu: 20.0, sigma: 2.0, xi: -0.3 }, NS, 100.0),
    (120, Gev { mu: 20.0, sigma: 2.0, xi: 0.5 }, NS, 10.0),
    (300, Gev { mu: 20.0, sigma: 2.0, xi: -0.4 }, NS, 10.0),
];

/// All experiments, the longest first.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for (n, step, printed, held) in ROWS {
        for ((xi, printed), held) in SHAPES.into_iter().zip(printed).zip(held) {
            let cell = Cell { n, law: Gev { xi, ..USUAL }, step, reach: DEFAULT_REACH };
            all.push(("printed", Box::new(move |length| lines(cell, Some([printed, held]), length))));
        }
    }
    for (n, law, step, reach) in OTHERS {
        let cell = Cell { n, law, step, reach };
        all.push(("printed-else", Box::new(move |length| lines(cell, None, length))));
    }
    all
}

/// Results of a cell's runs.
#[derive(Default)]
struct Tally {
    runs: u32,
    printed: u32,
    upper: u32,
    guarded: u32,
    times: Vec<f64>,
}

impl Tally {
    fn of(cell: &Cell, printed: u32, most: u32) -> Tally {
        let ahead = Level { blocks: cell.reach * cell.n as f64, probability: 0.95 };
        let truth = 1e3 * ahead.of(&cell.law);
        // A separate seed: cells that share their draws would be wrong together.
        let (n, xi) = (cell.n as u64, (1e3 * cell.law.xi) as i64 as u64);
        let mut rng =
            Rng::new(SEED.wrapping_add(n << 32).wrapping_add(xi << 16).wrapping_add(cell.step.0 as u64));
        let mut tally = Tally::default();
        while tally.printed < printed && tally.runs < most {
            tally.runs += 1;
            let beyond = cell.answer(&mut rng).extrapolation;
            let (Some(upper), Some(guarded)) = (beyond.upper_ns, beyond.upper_nonneg_shape_ns) else {
                continue;
            };
            tally.printed += 1;
            tally.upper += u32::from(upper >= truth);
            tally.guarded += u32::from(guarded >= truth);
            tally.times.extend(beyond.times_seen);
        }
        tally.times.sort_by(f64::total_cmp);
        tally
    }

    fn widest(&self, part: f64) -> f64 {
        self.times.get((part * self.times.len() as f64) as usize).copied().unwrap_or(f64::NAN)
    }
}

impl Cell {
    fn answer(&self, rng: &mut Rng) -> Bounds {
        let recorded = |us: f64| Nanos((1e3 * us).floor() as i64).0.div_euclid(self.step.0) * self.step.0;
        let maximum = |rng: &mut Rng| Nanos(recorded(self.law.level_of_rate(rng.exponential())));
        let list: Vec<Option<Nanos>> = (0..self.n).map(|_| Some(maximum(rng))).collect();
        let series = Series::of_list(&list, BLOCK, self.step);
        let horizon = Nanos((self.reach * self.n as f64) as i64 * BLOCK.0);
        let reach = self.reach.max(DEFAULT_REACH);
        bounds(&BoundsInput::of(&series), &Question { horizon, chosen: true, reach, ..Question::default() })
    }
}

fn lines(cell: Cell, documented: Option<[f64; 2]>, length: Length) -> Vec<ResultLine> {
    // A quick run uses the shortest of the rows, heavy tails among them: these fail first.
    let quick = cell.n <= 120 && cell.step == NS && cell.law.xi > 0.15;
    let few = if quick { 30 } else { 0 };
    let tally = Tally::of(&cell, length.of(PRINTED, few), length.of(MOST_RUNS, 2 * few));
    if tally.printed == 0 {
        return Vec::new();
    }
    let Gev { mu, sigma, xi } = cell.law;
    let law = if documented.is_some() { String::new() } else { format!(", mu {mu}, sigma {sigma}") };
    let ahead = if cell.reach == DEFAULT_REACH { String::new() } else { format!(", next {} n", cell.reach) };
    let name = format!("n {}, xi {xi}{law}, steps of {}{ahead}", cell.n, cell.step);
    let rate = |what: &str, count: u32, of: u32| {
        ResultLine::rate(format!("{name}: {what}"), f64::from(count) / f64::from(of), of)
    };
    // Twice the error of the simulation.
    let least = 0.95 - 2.0 * (0.95 * 0.05 / f64::from(tally.printed)).sqrt();
    let least = (1e3 * least).round() / 1e3;
    let printed = rate("printed", tally.printed, tally.runs);
    let held = rate("upper holds", tally.upper, tally.printed).at_least(least);
    let (printed, held) = match documented {
        // Few repetitions of a rate near 1 scatter to one side: they are not compared with the
        // documented one.
        Some([print, hold]) if length.of(1, 0) == 1 => {
            (printed.near(print, PRINTED), held.near(hold, PRINTED))
        }
        _ => (printed, held),
    };
    let (half, tenth) = (tally.widest(0.5), tally.widest(0.9));
    vec![
        printed,
        held.note(format!("guarded is {half:.2} times the largest seen, {tenth:.1} in a tenth")),
        rate("guarded holds", tally.guarded, tally.printed).at_least(least),
    ]
}
