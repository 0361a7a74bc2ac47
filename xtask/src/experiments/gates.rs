//! All gates together, through the whole of `bounds`: the rate at which a clean run is refused, and
//! at which each disturbance is.
//!
//! Ten minutes of one-second maxima, recorded in steps of 1 us. The published rates are those of
//! single tests.

use std::collections::BTreeMap;

use model::units::Nanos;
use stats::bounds::{Bounds, BoundsInput, ExtrapolationStatus, Question, bounds, gates};
use stats::rng::{Rng, SEED};
use stats::series::{BLOCK, Series};
use stats::tail::gev::Gev;

use super::line::ResultLine;
use super::{Experiment, Length};

/// Kind of the blocks.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Independent, of a law with this shape.
    Clean(f64),
    /// The second half this much later, us.
    Shift(f64),
    /// This much later at the end, growing from the start, us.
    Drift(f64),
    /// First-order autoregression with this coefficient.
    Memory(f64),
    /// Thirty seconds this much later, us.
    Burst(f64),
    /// Once a minute this much later, us.
    Minute(f64),
    /// This part of the blocks, this much later, us.
    Mode(f64, f64),
}

/// Name, number of blocks, their kind, the published rate of single tests.
type Row = (&'static str, usize, Kind, &'static str);

const ROWS: [Row; 14] = [
    ("clean, xi 0, n 86400", 86_400, Kind::Clean(0.0), "-"),
    ("clean, xi 0.2, n 3600", 3600, Kind::Clean(0.2), "gap 0.015"),
    ("clean, xi -0.2, n 3600", 3600, Kind::Clean(-0.2), "gap 0.03"),
    ("clean, xi 0, n 3600", 3600, Kind::Clean(0.0), "-"),
    ("clean, xi 0, n 600", 600, Kind::Clean(0.0), "G1-G3 0.017, gap 0.02"),
    ("clean, xi 0.2, n 600", 600, Kind::Clean(0.2), "gap 0.015"),
    ("clean, xi -0.2, n 600", 600, Kind::Clean(-0.2), "gap 0.03"),
    ("+1.5 us from the middle on", 600, Kind::Shift(1.5), "KPSS 1.00"),
    ("drift of 2 us", 600, Kind::Drift(2.0), "KPSS 1.00"),
    ("memory of 0.4", 600, Kind::Memory(0.4), "Ljung-Box 1.00"),
    ("30 s of +5 us", 600, Kind::Burst(5.0), "Ljung-Box 1.00, dispersion 0.75"),
    ("+30 us every 60 s", 600, Kind::Minute(30.0), "gap 1.00, AU2 1.00, pairs 1.00; G1-G3 0"),
    ("0.5 % at +50 us", 600, Kind::Mode(0.005, 50.0), "gap 0.92, AU2 0.78"),
    ("5 % at +15 us", 600, Kind::Mode(0.05, 15.0), "gap 0.36, AU2 1.00"),
];

/// All experiments.
pub fn all() -> Vec<Experiment> {
    let experiment = |row: Row| -> Experiment { ("gates", Box::new(move |length| battery(row, length))) };
    ROWS.into_iter().map(experiment).collect()
}

impl Kind {
    fn maxima(self, n: usize, rng: &mut Rng) -> Vec<f64> {
        let xi = if let Kind::Clean(xi) = self { xi } else { 0.0 };
        let law = Gev { mu: 20.0, sigma: 2.0, xi };
        let mut x: Vec<f64> = (0..n).map(|_| law.level_of_rate(rng.exponential())).collect();
        match self {
            Kind::Clean(_) => {}
            Kind::Shift(us) => x[n / 2..].iter_mut().for_each(|x| *x += us),
            Kind::Drift(us) => x.iter_mut().enumerate().for_each(|(i, x)| *x += us * i as f64 / n as f64),
            Kind::Memory(rho) => (1..n).for_each(|i| x[i] += rho * (x[i - 1] - law.mu)),
            Kind::Burst(us) => {
                let from = rng.below(n - 30);
                x[from..from + 30].iter_mut().for_each(|x| *x += us);
            }
            Kind::Minute(us) => x.iter_mut().step_by(60).for_each(|x| *x += us),
            Kind::Mode(part, us) => {
                x.iter_mut().for_each(|x| *x += if rng.uniform() < part { us } else { 0.0 })
            }
        }
        x
    }
}

/// Result of `bounds` for maxima in us that are recorded in steps of 1 us.
pub fn answer(maxima: &[f64], horizon: Nanos) -> Bounds {
    let list: Vec<Option<Nanos>> = maxima.iter().map(|us| Some(Nanos(us.floor() as i64 * 1000))).collect();
    let series = Series::of_list(&list, BLOCK, Nanos::MICRO);
    let evidence = BoundsInput::of(&series);
    bounds(&evidence, &Question { horizon, ..Question::default() })
}

fn battery(row: Row, length: Length) -> Vec<ResultLine> {
    let (name, n, kind, published) = row;
    let clean = matches!(kind, Kind::Clean(_));
    let reps = match (clean, n > 1000) {
        (true, false) => length.of(300, 60),
        // A day of blocks takes a hundred times as long.
        (true, true) => length.of(if n > 10_000 { 50 } else { 300 }, 0),
        (false, _) => length.of(100, 20),
    };
    if reps == 0 {
        return Vec::new();
    }
    let mut rng = Rng::new(SEED);
    let (mut refused, mut wide, mut enlarged) = (0u32, 0u32, 0u32);
    let (mut named, mut refusing) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..reps {
        let answer = answer(&kind.maxima(n, &mut rng), Nanos(24 * 3600 * Nanos::SECOND.0));
        if answer.extrapolation.status == ExtrapolationStatus::Ok {
            enlarged += u32::from(answer.extrapolation.block_ns > Some(BLOCK));
            continue;
        }
        let width_alone = answer.gates.iter().all(|gate| gate.passed || gate.id == "G9");
        if clean && width_alone {
            wide += 1;
            continue;
        }
        refused += 1;
        let first = gates::most_informative(&answer.gates).map_or("none", |gate| gate.id);
        *named.entry(first).or_insert(0u32) += 1;
        answer
            .gates
            .iter()
            .filter(|gate| !gate.passed)
            .for_each(|gate| *refusing.entry(gate.id).or_insert(0u32) += 1);
    }
    let note = format!(
        "{published}; named {}; refusing {}; longer blocks {enlarged}",
        counts(&named),
        counts(&refusing)
    );
    let rate = |count: u32| f64::from(count) / f64::from(reps);
    let line = |what: &str, count: u32| ResultLine::rate(format!("{name}: {what}"), rate(count), reps);
    let judged = match kind {
        Kind::Clean(_) => line("refused", refused).at_most(0.08),
        Kind::Memory(_) => line("refused, or longer blocks", refused + enlarged).at_least(0.97),
        Kind::Mode(part, _) if part < 0.01 => line("refused", refused).at_least(0.88),
        _ => line("refused", refused).at_least(0.97),
    };
    // A heavy tail is not determined ten times as far ahead as was measured: to say so is not a
    // false alarm.
    let width = clean.then(|| ResultLine::rate(format!("{name}: refused by width alone"), rate(wide), reps));
    [Some(judged.note(note)), width].into_iter().flatten().collect()
}

fn counts(of: &BTreeMap<&str, u32>) -> String {
    let mut sorted: Vec<(&&str, &u32)> = of.iter().collect();
    sorted.sort_by_key(|entry| std::cmp::Reverse(entry.1));
    let text: Vec<String> = sorted.iter().map(|(id, count)| format!("{id} {count}")).collect();
    if text.is_empty() { "-".to_string() } else { text.join(" ") }
}
