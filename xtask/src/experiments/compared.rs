//! Comparisons: how often equal configurations are called different, by the tests and by the whole
//! of `compare`.

use model::units::Nanos;
use stats::compare::{CompareQuestion, Compared, Metric, compare};
use stats::pair::sign_flip;
use stats::pair::verdict::{Design, Verdict};
use stats::rng::{Rng, SEED};
use stats::series::{BLOCK, Series};

use super::line::ResultLine;
use super::pairs::{self as pair, Frozen, Null, RatePairs};
use super::{Experiment, Length};

/// All of them, the longest first.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for metric in [Metric::Rate, Metric::Quantile(0.99)] {
        for design in [Design::Unpaired, Design::Paired] {
            for tau in [0.5, 1.0] {
                all.push(("compare", Box::new(move |length| whole(design, tau, metric, length))));
            }
        }
    }
    for (tau, runs, pairs) in [(0.0, 0.06, 0.085), (0.5, 0.05, 0.035), (1.0, 0.06, 0.04)] {
        all.push(("run-effects", Box::new(move |length| run_effects(tau, [runs, pairs], length))));
    }
    all.push(("halved-rate", Box::new(halved_rate)));
    all.push(("sign-flip", Box::new(sign_flip)));
    all
}

/// Eight runs, or pairs, of ten minutes of one configuration, each with a shift of its own, through
/// `compare`.
fn whole(design: Design, tau: f64, metric: Metric, length: Length) -> Vec<ResultLine> {
    let reps = length.of(200, 40);
    let mut rng = Rng::new(SEED);
    let question = CompareQuestion { metric, limit: None, design, margin: None };
    let mut verdicts = [0u32; 4];
    for _ in 0..reps {
        let mut side = || -> Vec<Series> { (0..8).map(|_| run(&mut rng, tau)).collect() };
        let (a, b) = (side(), side());
        verdicts[place(&compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question))] +=
            1;
    }
    let [better, worse, equivalent, inconclusive] = verdicts;
    let units = if design == Design::Paired { "8 pairs" } else { "8 v 8 runs" };
    let what = format!("A/A, {units}, shift {tau} us, {}: declared", metric.name());
    let rate = f64::from(better + worse) / f64::from(reps);
    let note =
        format!("{better} better, {worse} worse, {equivalent} equivalent, {inconclusive} inconclusive");
    vec![ResultLine::rate(what, rate, reps).at_most(0.08).note(note)]
}

fn place(compared: &Compared) -> usize {
    [Verdict::Better, Verdict::Worse, Verdict::Equivalent]
        .iter()
        .position(|one| *one == compared.verdict)
        .unwrap_or(3)
}

/// Gumbel maxima of one second with a standard deviation of 2.57 us.
fn run(rng: &mut Rng, tau: f64) -> Series {
    let shift = 20.0 + tau * rng.normal();
    let maximum = |rng: &mut Rng| Nanos((1e3 * (shift - 2.0 * rng.exponential().ln())) as i64);
    let list: Vec<Option<Nanos>> = (0..600).map(|_| Some(maximum(rng))).collect();
    Series::of_list(&list, BLOCK, Nanos(1))
}

fn run_effects(tau: f64, published: [f64; 2], length: Length) -> Vec<ResultLine> {
    let reps = length.of(1000, 100);
    let nulls = [("5 v 5 runs", Null::five_runs(tau)), ("8 pairs", Null::eight_pairs(tau))];
    let mut lines: Vec<ResultLine> = nulls
        .iter()
        .zip(published)
        .map(|((name, null), published)| {
            let rate = null.quantile_alarms(0.5, reps as usize, SEED);
            ResultLine::rate(format!("A/A, {name}, shift {tau} us, median: declared"), rate, reps)
                .near(published, 200)
                .at_most(0.08)
        })
        .collect();
    for (name, null) in &nulls {
        for frozen in [Frozen::Both, Frozen::Pilot] {
            let reps = length.of(400, 40);
            let rate = null.rate_alarms(frozen, reps as usize, SEED);
            let what = format!("A/A, {name}, shift {tau} us, limit of {frozen:?}: declared");
            lines.push(ResultLine::rate(what, rate, reps).at_most(0.08));
        }
    }
    lines
}

fn halved_rate(length: Length) -> Vec<ResultLine> {
    let reps = length.of(2000, 300);
    let found = pair::halved_rate(30, reps as usize, SEED);
    let pairs = RatePairs::halved().found_better(reps as usize, SEED);
    vec![
        // From the two Poisson laws: 0.5627; the larger maximum is A's in proportion to the rates.
        ResultLine::rate("1 spike a minute halved, 30 min: binomial finds it", found.conditional, reps)
            .near(0.56, 200)
            .at_least(0.53),
        ResultLine::rate("the same: Mann-Whitney finds it", found.mann_whitney, reps)
            .near(0.08, 200)
            .note("not used"),
        ResultLine::rate("the same: A had the larger maximum", found.larger_maximum, reps)
            .near(2.0 / 3.0, 100_000)
            .note("no test; published 0.745 of 200"),
        ResultLine::rate("the same: 8 pairs find it", pairs, reps).at_least(0.97),
    ]
}

fn sign_flip(length: Length) -> Vec<ResultLine> {
    let reps = length.of(20_000, 3000);
    let mut rng = Rng::new(SEED);
    let rejected = (0..reps).filter(|_| {
        let differences: Vec<f64> = (0..8).map(|_| rng.normal()).collect();
        sign_flip::relabelled(&differences).p_two_sided(0.0) <= 0.05
    });
    let rate = rejected.count() as f64 / f64::from(reps);
    // Exactly 12 of 256.
    vec![
        ResultLine::rate("8 pairs, no effect: sign-flip p <= 0.05", rate, reps)
            .near(0.0513, 3000)
            .at_least(0.042)
            .at_most(0.052),
    ]
}
