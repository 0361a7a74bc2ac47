//! Decision to continue, and the result of the pairs.
//!
//! The unit is the pair. The sign of its log ratio is a fair coin if the change has no effect,
//! regardless of drift; ties are ignored. The e-value of the coins may be evaluated after each pair
//! (`stats::pair::sign_sequence`).

use model::experiment::{CountedUnit, ExperimentPlan};
use model::text::several;
use stats::pair::conditional_binomial::{self, Exposure};
use stats::pair::sign_sequence::{interval, ln_sign_e_value};
use stats::pair::verdict::Verdict;

use crate::carry_over::CarryOver;
use crate::design::DROPPED_SHARE;
use crate::drift::ExperimentDrift;
use crate::tally::{CountedPair, PairTally};
use crate::veto::{LoadWork, vetoes, works};

/// Late wake-ups per segment from which the interval of the typical pair's ratio contains that of
/// the rates (simulated with ratios from 0.1 to 1).
const LATE_A_SEGMENT: u64 = 5;

/// Reason for the end of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// The e-value reached its level.
    EValue,
    /// All allowed pairs are measured.
    Fixed,
    /// The remaining pairs cannot make up for the dropped ones.
    Dropped,
    /// No result of the remaining pairs could decide.
    Futile,
}

impl ExperimentEnd {
    /// Name in the document.
    pub const fn name(self) -> &'static str {
        match self {
            ExperimentEnd::EValue => "e-value",
            ExperimentEnd::Fixed | ExperimentEnd::Dropped | ExperimentEnd::Futile => "fixed",
        }
    }
}

/// Result of the pairs, of B against A.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub verdict: Verdict,
    pub counted: CountedUnit,
    /// Reason for an unclear result, or objections to the change; `""` if there are none.
    pub reason: String,
    /// None while the next pair is to be measured.
    pub end: Option<ExperimentEnd>,
    /// Counted pairs; `wins` are those in which B has fewer late wake-ups, `ties` those with equal
    /// numbers.
    pub pairs: u64,
    pub wins: u64,
    pub ties: u64,
    pub dropped: u32,
    /// Dropped pairs with segments of different lengths.
    pub unequal: u32,
    pub interrupted: u32,
    /// Counted pairs with interrupts on CPUs that do not belong to their arm.
    pub astray: u64,
    pub e_value: f64,
    /// e-value needed for the side that has won more pairs.
    pub level: f64,
    /// B's rate of late wake-ups over A's, for all pairs together; none without one in A.
    pub rate_ratio: Option<f64>,
    /// Interval of 95 % for the typical pair's ratio, valid at any stop. The ratio of the sums may
    /// be outside.
    pub interval: Option<[f64; 2]>,
    /// Late wake-ups of A and B.
    pub late: [u64; 2],
    /// Number of further pairs that would decide if all of them agreed with the majority.
    pub fewest_more: u32,
    pub carry_over: CarryOver,
    pub drift: Option<ExperimentDrift>,
    pub works: Vec<LoadWork>,
}

/// Result of the segments so far.
pub fn prove(plan: &ExperimentPlan, tally: &PairTally) -> Proof {
    let logs: Vec<f64> = tally.pairs.iter().map(CountedPair::log_ratio).collect();
    let wins = logs.iter().filter(|&&log| log < 0.0).count() as u64;
    let losses = logs.iter().filter(|&&log| log > 0.0).count() as u64;
    let ln_e = ln_sign_e_value(wins, wins + losses);
    let level = level(plan, wins > losses);
    let decided = ln_e >= level.ln();
    let [a, b] = sums(&tally.pairs);
    let factors = interval(&logs, plan.stop_at).map(|ends| ends.map(f64::exp));
    let rate_ratio = (a.events > 0).then(|| (b.events as f64 / b.time) / (a.events as f64 / a.time));
    let mut proof = Proof {
        verdict: Verdict::Inconclusive,
        counted: plan.counted(),
        reason: String::new(),
        end: end(plan, tally, decided, [wins, losses]),
        pairs: logs.len() as u64,
        wins,
        ties: logs.len() as u64 - wins - losses,
        dropped: tally.dropped,
        unequal: tally.unequal,
        interrupted: tally.interrupted,
        astray: tally.pairs.iter().filter(|pair| pair.is_astray()).count() as u64,
        e_value: ln_e.exp(),
        level,
        rate_ratio,
        interval: factors,
        late: [a.events, b.events],
        fewest_more: fewest_more(plan, wins, losses),
        carry_over: CarryOver::of(&tally.pairs),
        drift: ExperimentDrift::of(&tally.pairs),
        works: works(plan, &tally.pairs),
    };
    proof.decide(plan, tally, decided);
    proof
}

/// e-value needed to decide for the change, or against it.
fn level(plan: &ExperimentPlan, for_it: bool) -> f64 {
    if for_it && plan.win_at > 0.0 { plan.win_at } else { plan.stop_at }
}

/// True if neither side could reach its level by winning all remaining pairs.
fn is_futile(plan: &ExperimentPlan, pairs: u64, [wins, losses]: [u64; 2]) -> bool {
    let left = u64::from(plan.most_pairs).saturating_sub(pairs);
    let reaches = |more: u64, for_it: bool| {
        ln_sign_e_value(more + left, wins + losses + left) >= level(plan, for_it).ln()
    };
    plan.win_at > 0.0 && !reaches(wins, true) && !reaches(losses, false)
}

fn end(plan: &ExperimentPlan, tally: &PairTally, decided: bool, signed: [u64; 2]) -> Option<ExperimentEnd> {
    if tally.is_lost(plan.most_pairs) {
        return Some(ExperimentEnd::Dropped);
    }
    if decided && tally.unfair().is_none() {
        return Some(ExperimentEnd::EValue);
    }
    let pairs = tally.pairs.len() as u64;
    if pairs >= u64::from(plan.most_pairs) {
        return Some(ExperimentEnd::Fixed);
    }
    is_futile(plan, pairs, signed).then_some(ExperimentEnd::Futile)
}

impl Proof {
    fn decide(&mut self, plan: &ExperimentPlan, tally: &PairTally, decided: bool) {
        if let Some(unfair) = tally.unfair() {
            self.reason = unfair;
            return;
        }
        if self.end.is_none() {
            let pairs = several(self.pairs, "pair", "pairs");
            self.reason = format!("it was ended after {pairs}, before they decided");
            return;
        }
        let against = vetoes(plan, &tally.pairs);
        let losses = self.pairs - self.ties - self.wins;
        (self.verdict, self.reason) = match decided {
            true if self.contradicts(self.wins < losses) => (Verdict::Inconclusive, self.torn()),
            true if self.wins < losses => (Verdict::Worse, String::new()),
            _ if !against.is_empty() => (Verdict::Worse, against.join("; ")),
            true => (Verdict::Better, String::new()),
            false if self.is_equivalent(plan, tally) => self.alike(),
            false => (Verdict::Inconclusive, self.open()),
        };
    }

    /// Interval of 95 % for the typical pair's ratio. None with so few late wake-ups that the half
    /// added to each count would move it.
    pub fn typical(&self) -> Option<[f64; 2]> {
        let most = self.late[0].max(self.late[1]);
        self.interval.filter(|_| most >= self.pairs.saturating_mul(LATE_A_SEGMENT))
    }

    /// Interval extended to the ratio of the sums, which is dominated by pairs with many late
    /// wake-ups, and need not be typical.
    pub fn enclosing(&self) -> Option<[f64; 2]> {
        self.typical().map(|ends| around(ends, self.rate_ratio))
    }

    /// True if all wake-ups together contradict most pairs: a few segments with many late ones
    /// outweigh the others.
    fn contradicts(&self, more: bool) -> bool {
        self.rate_ratio.is_some_and(|ratio| if more { ratio <= 1.0 } else { ratio >= 1.0 })
    }

    /// True if the typical pair, the sums of all events and those of the seconds with any are
    /// within the margin: late wake-ups in bursts are effectively fewer. If most pairs have none,
    /// the arms are alike but nothing is known.
    fn is_equivalent(&self, plan: &ExperimentPlan, tally: &PairTally) -> bool {
        let empty = tally.pairs.iter().filter(|pair| pair.a.late == 0 && pair.b.late == 0).count();
        let within = |lower: f64, upper: f64| 1.0 / plan.rate_margin < lower && upper < plan.rate_margin;
        let alike = |[a, b]: [Exposure; 2]| {
            let sums = conditional_binomial::rate_ratio(a, b, 1.0 - 2.0 / plan.stop_at);
            sums.is_some_and(|sums| within(sums.lower, sums.upper))
        };
        2 * empty <= tally.pairs.len()
            && self
                .interval
                .map(|ends| around(ends, self.rate_ratio))
                .is_some_and(|[low, high]| within(low, high))
            && alike(sums(&tally.pairs))
            && alike(seconds(&tally.pairs))
    }

    /// Verdict on arms that are alike: inconclusive if interrupts were on the wrong CPUs.
    fn alike(&self) -> (Verdict, String) {
        match self.astray.saturating_mul(u64::from(DROPPED_SHARE)) > self.pairs {
            false => (Verdict::Equivalent, String::new()),
            true => (
                Verdict::Inconclusive,
                format!(
                    "in {} of {} an interrupt was not on the CPUs that the change, or its undo, sets",
                    self.astray,
                    several(self.pairs, "pair", "pairs")
                ),
            ),
        }
    }

    /// Reason for which a decided test is inconclusive.
    fn torn(&self) -> String {
        let [a, b] = self.late;
        let fewer = if self.wins > self.pairs - self.ties - self.wins { "fewer" } else { "more" };
        format!(
            "in most pairs {fewer} were late with the change, and in all together {b} with it and {a} without"
        )
    }

    /// Reason for which the pairs are inconclusive.
    fn open(&self) -> String {
        match self.late {
            [0, 0] => "nothing was late with or without the change: choose a lower limit, or more load",
            _ if self.end == Some(ExperimentEnd::Futile) => {
                "neither side could win any more, whatever the remaining pairs showed"
            }
            _ if self.pairs < 2 * self.ties => "in most pairs as much was late with the change as without it",
            _ => "the difference is neither certain nor certainly small",
        }
        .to_owned()
    }
}

fn sums(pairs: &[CountedPair]) -> [Exposure; 2] {
    let mut sums = [Exposure { events: 0, time: 0.0 }; 2];
    for one in pairs.iter().map(CountedPair::exposures) {
        for (sum, unit) in sums.iter_mut().zip(one) {
            sum.events = sum.events.saturating_add(unit.events);
            sum.time += unit.time;
        }
    }
    sums
}

/// Seconds with late wake-ups, instead of their number.
fn seconds(pairs: &[CountedPair]) -> [Exposure; 2] {
    let mut sums = sums(pairs);
    for (at, sum) in sums.iter_mut().enumerate() {
        let of = |pair: &CountedPair| if at == 0 { pair.a.late_blocks } else { pair.b.late_blocks };
        sum.events = pairs.iter().flat_map(of).fold(0, u64::saturating_add);
    }
    sums
}

/// Interval extended to contain a ratio.
fn around([lower, upper]: [f64; 2], ratio: Option<f64>) -> [f64; 2] {
    let ratio = ratio.unwrap_or(upper);
    [lower.min(ratio), upper.max(ratio)]
}

/// Number of pairs that decide if all of them agree.
pub fn fewest_pairs(plan: &ExperimentPlan) -> u32 {
    fewest_more(plan, 0, 0)
}

fn fewest_more(plan: &ExperimentPlan, wins: u64, losses: u64) -> u32 {
    let (more, all) = (wins.max(losses), wins + losses);
    let level = level(plan, wins >= losses).ln();
    let decides = |added: &u32| ln_sign_e_value(more + u64::from(*added), all + u64::from(*added)) >= level;
    (0..10_000).find(decides).unwrap_or(10_000)
}

#[cfg(test)]
mod tests;
