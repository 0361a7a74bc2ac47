//! Gates G1 to G3 and the comb of G6: one level of the blocks, no memory, and an even spread of
//! their large values. Counting rests on them as well as a fit.

use std::borrow::Cow;

use super::conditions::{ONCE, TREAT};
use super::diagnosis::{self, Course};
use super::gates::{ALPHA, Gate};
use super::numbers::p_value;
use crate::levels::Levels;
use crate::series::Series;
use crate::steady::homogeneity::{self, BusyStretch, Homogeneity};
use crate::steady::scan::{self, ScanWindow};
use crate::steady::scores::{Placed, Scores, ValueRanking};
use crate::steady::{kpss, ljung_box, mann_kendall, ranks, runs};
use crate::time::epochs::{self, Recurring};
use crate::time::period_name;
use crate::values::SeriesValues;
use model::column::Column;
use model::text::several;
use model::units::Nanos;

const TOO_FEW: &str = "too few blocks";
const ALIKE: &str = "all blocks have the same value";
const SHARED: &str = "more than half of the blocks share one value";
const REMEDY: &str = "Find what changed, let the machine settle, or analyse the parts separately.";

/// Number of lags of the test of dependence.
const LAGS: usize = 10;
/// Least number of blocks that show a trend or memory.
pub const MIN_BLOCKS: usize = 10;
/// Share of the level for each of two tests in one gate.
const HALF: f64 = ALPHA / 2.0;
/// Share of the level for each of the two counts of G3, which has three tests.
const QUARTER: f64 = ALPHA / 4.0;
/// Limits of p for the fullest window and the strongest comb, whose bounds are three to four times
/// too large: one clean run in a hundred is below the first, two are below the second.
const WINDOW: f64 = 0.02;
const COMB: f64 = 0.05;

/// A run for these gates: the recorded blocks, and those of the fit, which may be longer.
///
/// A change of level or a burst correlates neighbours, which leads to longer and fewer blocks for
/// the fit: tests that allow for short memory use the recorded ones.
pub struct Steadiness<'a> {
    series: &'a Series,
    finest: SeriesValues<'a>,
    values: SeriesValues<'a>,
    block: Nanos,
    ranking: Option<(ValueRanking, Scores)>,
    homogeneity: Option<Homogeneity>,
    window: Option<ScanWindow>,
}

impl<'a> Steadiness<'a> {
    /// Judges a series by its recorded maxima, and by those of the fit with their length.
    pub fn of(
        series: &'a Series,
        finest: impl Into<SeriesValues<'a>>,
        values: impl Into<SeriesValues<'a>>,
        block: Nanos,
    ) -> Steadiness<'a> {
        let (finest, values) = (finest.into(), values.into());
        let ranking = ValueRanking::of(finest).map(|ranking| {
            let scores = ranking.scores();
            (ranking, scores)
        });
        let window = ranking
            .as_ref()
            .and_then(|(ranking, scores)| scan::fullest(Placed { places: ranking.places(), scores }));
        let mut found = Steadiness { series, finest, values, block, ranking, homogeneity: None, window };
        // In blocks with memory large values come in clusters: the longer blocks account for that.
        found.homogeneity = if found.cured() {
            homogeneity::of_top_blocks(values)
                .map(|found| of_longer(found, series.block, block, finest.len()))
        } else {
            homogeneity::of_top_blocks(finest)
        };
        found
    }

    /// G1 to G3.
    pub fn gates(&self) -> [Gate; 3] {
        [self.level(), self.dependence(), self.evenness()]
    }

    /// Outlying window, if there is one.
    fn standing_out(&self) -> Option<&ScanWindow> {
        self.window.as_ref().filter(|window| window.p < WINDOW)
    }

    fn course(&self) -> Course {
        diagnosis::course(self.finest, self.homogeneity.as_ref(), self.standing_out())
    }

    /// Refuses with the course of the maxima as the reason.
    fn refuse(&self, id: &'static str, name: &'static str, detail: String, course: Course) -> Gate {
        let refusal = format!("{}.", course.clause(self.finest, self.series.block));
        let remedy = match course {
            Course::Bunched(_) => "Find what ran then; bound that part separately.",
            _ => REMEDY,
        };
        Gate::refused(id, name, detail, refusal, remedy).on(course.condition())
    }

    /// G1: one level from beginning to end, in the blocks of the fit and in the recorded ones.
    fn level(&self) -> Gate {
        const NAME: &str = "level";
        let (values, _) = self.judged();
        let tests =
            kpss::level(values).zip(mann_kendall::trend(values)).filter(|_| values.len() >= MIN_BLOCKS);
        let Some((kpss, trend)) = tests else { return Gate::not_judged("G1", NAME, self.why()) };
        let fine = kpss::level(self.finest).unwrap_or(kpss);
        let statistic = kpss.statistic.max(fine.statistic);
        let detail = format!(
            "KPSS {statistic:.3} (refused above 0.739), Mann-Kendall p {} (refused below {HALF})",
            p_value(trend.p)
        );
        let steady = !kpss.rejects_at_1_percent && !fine.rejects_at_1_percent;
        if steady && trend.p >= HALF {
            return Gate::passed("G1", NAME, detail);
        }
        self.refuse("G1", NAME, detail, self.course())
    }

    /// G2: blocks without memory.
    fn dependence(&self) -> Gate {
        const NAME: &str = "dependence";
        let (values, block) = self.judged();
        let memory = ljung_box::test(values, LAGS).filter(|_| values.len() >= MIN_BLOCKS);
        let Some(memory) = memory else { return Gate::not_judged("G2", NAME, self.why()) };
        // If more than half share one value, there may be no value on one side of the median.
        let runs = runs::about_median(values)
            .map_or_else(|| "not known".to_owned(), |runs| format!("p {}", p_value(runs.p)));
        let recorded = if self.cured() {
            format!("; recorded blocks of {} have memory", self.series.block.spoken())
        } else {
            String::new()
        };
        let detail = format!(
            "Ljung-Box p {} over {} lags, runs about the median {runs} (blocks of {}){recorded}",
            p_value(memory.p),
            memory.lags,
            block.spoken()
        );
        if !remember(values) {
            return Gate::passed("G2", NAME, detail);
        }
        let refusal = format!(
            "Neighbouring blocks resemble each other, even blocks of {}: this run has less information than its length suggests.",
            block.spoken()
        );
        let remedy = "Measure longer, so that enough longer blocks remain.";
        Gate::refused("G2", NAME, detail, refusal, remedy).on("if neighbouring blocks were independent")
    }

    /// Blocks of the fit; the recorded ones if those are too few or all equal, because such blocks
    /// show nothing.
    fn judged(&self) -> (SeriesValues<'a>, Nanos) {
        if self.values.len() >= MIN_BLOCKS && ranks::varies(self.values) {
            return (self.values, self.block);
        }
        (self.finest, self.series.block)
    }

    /// Reason why a test could not be done on the recorded blocks.
    fn why(&self) -> &'static str {
        match (self.finest.len() >= MIN_BLOCKS, ranks::varies(self.finest)) {
            (false, _) => TOO_FEW,
            (true, false) => ALIKE,
            (true, true) => SHARED,
        }
    }

    /// True if the recorded blocks have memory and the longer ones of the fit have none.
    pub fn cured(&self) -> bool {
        self.block > self.series.block && remember(self.finest) && forgets(self.values)
    }

    /// G3: no stretch of larger values among the recorded blocks, which are the most, and the
    /// largest twentieth of the blocks spread over the run; of the recorded ones if they have no
    /// memory.
    fn evenness(&self) -> Gate {
        const NAME: &str = "evenness";
        if self.homogeneity.is_none() && self.window.is_none() {
            return Gate::not_judged("G3", NAME, self.why());
        }
        let at = |blocks: usize| Nanos(self.series.block.0.saturating_mul(blocks as i64)).spoken();
        let fullest = self.window.map_or_else(String::new, |window| {
            format!(
                "; most within {} from {} on (p {})",
                at(window.blocks),
                at(window.first),
                p_value(window.p)
            )
        });
        // If more than half of the blocks share the largest value, there are no largest blocks.
        let counts = self.homogeneity.as_ref().map_or_else(
            || SHARED.to_owned(),
            |found| {
                format!(
                    "of the {} largest blocks {} in the first half (p {}), dispersion over ten windows p {}",
                    found.large,
                    found.first_half,
                    p_value(found.halves_p),
                    p_value(found.dispersion_p)
                )
            },
        );
        let detail = format!("{counts}{fullest}");
        let even = |found: &Homogeneity| found.halves_p >= QUARTER && found.dispersion_p >= QUARTER;
        let spread = self.homogeneity.as_ref().is_none_or(even);
        if spread && self.standing_out().is_none() {
            return Gate::passed("G3", NAME, detail);
        }
        self.refuse("G3", NAME, detail, self.course())
    }

    /// Refusal of G6 for blocks that are later than the rest once in a period, if there are any.
    pub fn recurring(&self) -> Option<Gate> {
        let (ranking, scores) = self.ranking.as_ref()?;
        let (places, late) = (placed(self.series, ranking), ranking.late_scores());
        let of = |scores| Placed { places: &places, scores };
        let found = epochs::comb(of(scores), of(&late), self.series.block, COMB)?;
        let at = Nanos(self.series.block.0.saturating_mul(found.first as i64)).spoken();
        let (teeth, rest) = self.apart(&found);
        let block = self.series.block.as_secs();
        // Error of the slope of the teeth, each of which is known to a block.
        let k = found.teeth as f64;
        let error = block / (k * (k * k - 1.0)).sqrt();
        let period = period_name::spoken(found.period * block, error);
        let detail = format!(
            "folded at {period}: {} from {at} on exceed the rest by {:.1} standard deviations (p {})",
            several(found.teeth as u64, "block", "blocks"),
            found.z,
            p_value(found.p)
        );
        let refusal = format!(
            "Later blocks recur every {period}, the first {at} into the run: typically {teeth}, the others {rest}."
        );
        Some(Gate::refused("G6", "periodicity", detail, refusal, TREAT).on(ONCE))
    }

    /// Typical latency of the teeth of a comb, and of the other blocks.
    fn apart(&self, found: &Recurring) -> (String, String) {
        let first = self.series.blocks.first().map_or(0, |block| block.index);
        let is_tooth = |index: i64| {
            let turns = (index - first - found.first as i64) as f64 / found.period;
            // A tooth lies in the block in which its time does.
            ((turns.round() * found.period + found.first as f64).floor() as i64) == index - first
        };
        let typical = |of_comb: bool| {
            let all = self.series.blocks.iter().filter(|block| is_tooth(block.index) == of_comb);
            let levels = Levels::of(all.map(|block| block.max.0 as f64), self.finest.len());
            Nanos(levels.median().unwrap_or_default().min(9e18) as i64).spaced()
        };
        (typical(true), typical(false))
    }
}

/// True if blocks have memory: by Ljung-Box, or by their runs about the median.
pub fn remember(values: SeriesValues) -> bool {
    ljung_box::test(values, LAGS).is_some_and(|test| test.p < ALPHA)
        || runs::about_median(values).is_some_and(|test| test.p < HALF)
}

/// True if blocks are known to have no memory; false for blocks that are all equal, or few.
pub fn forgets(values: SeriesValues) -> bool {
    values.len() >= MIN_BLOCKS && ranks::varies(values) && !remember(values)
}

/// Result of longer blocks, with its stretch in recorded ones.
fn of_longer(found: Homogeneity, recorded: Nanos, longer: Nanos, n: usize) -> Homogeneity {
    let times = (longer.0 / recorded.0.max(1)).max(1) as usize;
    let first = (found.stretch.first * times).min(n.saturating_sub(1));
    let blocks = (found.stretch.blocks * times).min(n - first);
    Homogeneity { stretch: BusyStretch { first, blocks, ..found.stretch }, ..found }
}

/// Ranks at their places in time: missing blocks count as ordinary ones.
fn placed<'a>(series: &Series, ranking: &'a ValueRanking) -> Cow<'a, Column> {
    let ends = series.blocks.first().zip(series.blocks.iter().last());
    let span = ends.map_or(0, |(first, last)| last.index.saturating_sub(first.index).saturating_add(1));
    let n = ranking.places().len() as i64;
    // If most are missing, their order in time shows nothing.
    if span <= n || span > 2 * n {
        return Cow::Borrowed(ranking.places());
    }
    let first = ends.map_or(0, |(first, _)| first.index);
    let mut placed = Column::default();
    for (block, place) in series.blocks.iter().zip(ranking.places().iter()) {
        (placed.len() as i64..block.index - first).for_each(|_| placed.push(ranking.ordinary()));
        placed.push(place);
    }
    Cow::Owned(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::series::BLOCK;

    fn clean(seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..600).map(|_| 20_000.0 - 2_000.0 * rng.exponential().ln()).collect()
    }

    /// G1 to G3 of maxima in ns.
    fn gates(values: &[f64]) -> [Gate; 3] {
        let list: Vec<Option<Nanos>> = values.iter().map(|&ns| Some(Nanos(ns as i64))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        Steadiness::of(&series, values, values, BLOCK).gates()
    }

    /// The first of them that refuses.
    fn refusal(values: &[f64]) -> Gate {
        gates(values).into_iter().find(|gate| !gate.passed).expect("a gate that refuses")
    }

    fn edited(seed: u64, edit: impl Fn(usize, &mut f64)) -> Vec<f64> {
        let mut values = clean(seed);
        values.iter_mut().enumerate().for_each(|(i, value)| edit(i, value));
        values
    }

    #[test]
    fn a_steady_run_passes() {
        for gate in gates(&clean(1)) {
            assert!(gate.passed && gate.condition.is_empty(), "{gate:?}");
        }
    }

    #[test]
    fn a_shift_is_refused_with_its_place_and_its_way() {
        let gate = refusal(&edited(2, |i, x| *x += if i < 330 { 0.0 } else { 6_000.0 }));
        assert!(gate.id == "G1" && gate.refusal.contains("The maxima rose 5 min"), "{gate:?}");
        assert_eq!(gate.condition, "if the level had not changed");
        let gate = refusal(&edited(2, |i, x| *x += if i < 540 { 6_000.0 } else { 0.0 }));
        assert!(gate.refusal.contains("The maxima fell"), "{gate:?}");
        let late = edited(3, |i, x| *x += if i < 580 { 0.0 } else { 8_000.0 });
        let gate = refusal(&late);
        assert!(gate.refusal.contains("The maxima rose 9 min"), "{gate:?}");
    }

    #[test]
    fn a_climb_is_a_climb_with_its_rate_and_never_a_burst() {
        for seed in 0..4 {
            for (by, way) in [(6_000.0, "rise"), (-6_000.0, "fall"), (12_000.0, "rise")] {
                let drift = edited(seed, |i, x| *x += by * i as f64 / 600.0);
                let refusals: Vec<Gate> = gates(&drift).into_iter().filter(|gate| !gate.passed).collect();
                let level = refusals.iter().find(|gate| gate.id == "G1").expect("a drift moves the level");
                assert!(level.refusal.contains(&format!("The maxima {way} by ")), "{level:?}");
                assert!(level.refusal.contains(" us per hour ("), "{level:?}");
                assert!(refusals.iter().all(|gate| !gate.refusal.contains("bunched")), "{refusals:?}");
            }
        }
    }

    #[test]
    fn memory_is_refused() {
        let mut last = 0.0;
        let series: Vec<f64> = clean(3)
            .iter()
            .map(|x| {
                last = 0.6 * last + x;
                last
            })
            .collect();
        assert!(!gates(&series)[1].passed);
    }

    #[test]
    fn bunched_spikes_are_refused_with_their_stretch() {
        for (seed, by) in [(4, 30_000.0), (5, 6_000.0), (6, 8_000.0)] {
            let values = edited(seed, |i, x| *x += if (100..130).contains(&i) { by } else { 0.0 });
            let gate = &gates(&values)[2];
            assert!(!gate.passed && gate.refusal.contains("Spikes are bunched: for "), "{gate:?}");
            assert!(gate.refusal.contains("from 1 min 4") || gate.refusal.contains("from 9"), "{gate:?}");
        }
    }

    #[test]
    fn few_blocks_show_a_drift_and_fewer_nothing() {
        for n in [12, 20, 40] {
            let drift: Vec<f64> = clean(7)
                .iter()
                .take(n)
                .enumerate()
                .map(|(i, x)| x + 12_000.0 * i as f64 / n as f64)
                .collect();
            let gate = &gates(&drift)[0];
            assert!(gate.judged && !gate.passed, "{n}: {gate:?}");
        }
        let few = gates(&clean(7)[..9]);
        assert!(few[..2].iter().all(|gate| !gate.judged), "{few:?}");
    }

    #[test]
    fn two_values_in_a_row_are_judged() {
        let rows = edited(1, |i, x| *x = if i % 40 < 25 { 31_000.0 } else { 29_000.0 });
        let found = gates(&rows);
        assert!(found.iter().all(|gate| gate.judged) && !found[1].passed, "{found:?}");
        let why = |values: &[f64]| gates(values)[2].detail.clone();
        assert!(why(&[5.0; 100]).ends_with(ALIKE) && why(&[5.0, 6.0]).ends_with(TOO_FEW));
        assert!(!forgets((&[5.0; 100]).into()) && !forgets((&[]).into()));
    }

    #[test]
    fn what_cannot_be_judged_is_no_pass() {
        for values in [vec![], vec![5.0; 100]] {
            for gate in gates(&values) {
                assert!(!gate.passed && gate.detail.starts_with("not judged"), "{gate:?}");
            }
        }
    }
}
