//! Whether to go on, and what the pairs show.
//!
//! The unit is the pair. The sign of its log ratio is a fair coin where the change does nothing,
//! however the machine drifts; ties say nothing and are left out. The e-value of the coins may be
//! looked at after each pair (`stats::pair::sign_sequence`).

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

/// From so many late wake-ups a segment on the interval of the typical pair's ratio holds that of
/// the rates (drawn with ratios from 0.1 to 1).
const LATE_A_SEGMENT: u64 = 5;

/// Why no further pair is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// The e-value reached its level.
    EValue,
    /// All pairs that were allowed are measured.
    Fixed,
    /// So many were dropped that the rest could not make up for it.
    Dropped,
    /// However the rest went, they would not decide.
    Futile,
}

impl ExperimentEnd {
    /// As the document has it.
    pub const fn name(self) -> &'static str {
        match self {
            ExperimentEnd::EValue => "e-value",
            ExperimentEnd::Fixed | ExperimentEnd::Dropped | ExperimentEnd::Futile => "fixed",
        }
    }
}

/// What the pairs show, of B against A.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub verdict: Verdict,
    pub counted: CountedUnit,
    /// Why it is no clearer, or what speaks against the change; `""` where nothing is to be added.
    pub reason: String,
    /// None while the next pair is to be measured.
    pub end: Option<ExperimentEnd>,
    /// Pairs that count, those in which B has fewer late wake-ups, and those in which both have as
    /// many.
    pub pairs: u64,
    pub wins: u64,
    pub ties: u64,
    pub dropped: u32,
    /// Those of them whose segments were of different length.
    pub unequal: u32,
    pub interrupted: u32,
    /// Pairs that count in which interrupts came that were not where an arm has them.
    pub astray: u64,
    pub e_value: f64,
    /// The e-value that decides for the side that has won more pairs.
    pub level: f64,
    /// B's rate of late wake-ups over A's, all pairs together; none without one in A.
    pub rate_ratio: Option<f64>,
    /// Where the typical pair's ratio lies with 95 %, whenever one stops. That of the sums need not
    /// lie within.
    pub interval: Option<[f64; 2]>,
    /// Late wake-ups of A and of B.
    pub late: [u64; 2],
    /// Pairs that would decide if all of them went the way that most went.
    pub fewest_more: u32,
    pub carry_over: CarryOver,
    pub drift: Option<ExperimentDrift>,
    pub works: Vec<LoadWork>,
}

/// What the segments so far come to.
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

/// The e-value that decides for the change, or against it.
fn level(plan: &ExperimentPlan, for_it: bool) -> f64 {
    if for_it && plan.win_at > 0.0 { plan.win_at } else { plan.stop_at }
}

/// Whether neither side could reach its level if it won all pairs that are left.
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

    /// Where the typical pair's ratio lies with 95 %. None where so few were late that the half
    /// which is added to each count would move it.
    pub fn typical(&self) -> Option<[f64; 2]> {
        let most = self.late[0].max(self.late[1]);
        self.interval.filter(|_| most >= self.pairs.saturating_mul(LATE_A_SEGMENT))
    }

    /// The same, with the ratio of the sums within it: that is of the pairs with most late
    /// wake-ups, which need not be typical.
    pub fn enclosing(&self) -> Option<[f64; 2]> {
        self.typical().map(|ends| around(ends, self.rate_ratio))
    }

    /// Whether all wake-ups together say the opposite of most pairs: a few segments with many late
    /// ones outweigh the others.
    fn contradicts(&self, more: bool) -> bool {
        self.rate_ratio.is_some_and(|ratio| if more { ratio <= 1.0 } else { ratio >= 1.0 })
    }

    /// The typical pair, the sums of all events and those of the seconds with any lie within the
    /// margin: late wake-ups that come in bursts are fewer than they seem. Where in most pairs
    /// nothing was late, those are alike and nothing is known.
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

    /// What arms that are alike show: nothing, where interrupts belonged to neither of them.
    fn alike(&self) -> (Verdict, String) {
        match self.astray.saturating_mul(u64::from(DROPPED_SHARE)) > self.pairs {
            false => (Verdict::Equivalent, String::new()),
            true => (
                Verdict::Inconclusive,
                format!(
                    "in {} of {} an interrupt was not where the change, or its undoing, has it",
                    self.astray,
                    several(self.pairs, "pair", "pairs")
                ),
            ),
        }
    }

    /// Why a test that has decided says nothing.
    fn torn(&self) -> String {
        let [a, b] = self.late;
        let fewer = if self.wins > self.pairs - self.ties - self.wins { "fewer" } else { "more" };
        format!(
            "in most pairs {fewer} were late with the change, and in all together {b} with it and {a} without"
        )
    }

    /// Why the pairs decide nothing.
    fn open(&self) -> String {
        match self.late {
            [0, 0] => "nothing was late with or without the change: choose a lower limit, or more load",
            _ if self.end == Some(ExperimentEnd::Futile) => {
                "neither side could win any more, however the pairs that were left went"
            }
            _ if self.pairs < 2 * self.ties => "in most pairs as much was late with the change as without it",
            _ => "the difference is neither sure nor surely small",
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

/// Seconds with late wake-ups, in place of those.
fn seconds(pairs: &[CountedPair]) -> [Exposure; 2] {
    let mut sums = sums(pairs);
    for (at, sum) in sums.iter_mut().enumerate() {
        let of = |pair: &CountedPair| if at == 0 { pair.a.late_blocks } else { pair.b.late_blocks };
        sum.events = pairs.iter().flat_map(of).fold(0, u64::saturating_add);
    }
    sums
}

/// An interval, widened until it holds a ratio.
fn around([lower, upper]: [f64; 2], ratio: Option<f64>) -> [f64; 2] {
    let ratio = ratio.unwrap_or(upper);
    [lower.min(ratio), upper.max(ratio)]
}

/// Pairs that decide where all of them agree.
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
