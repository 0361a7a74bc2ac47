//! Exchangeability of the blocks, on which counting rests: a gate's result on level, dependence,
//! evenness or a period holds for a count as well as for a fit.

use serde::Serialize;

use super::answer::Holds;
use super::extrapolate::Extrapolation;
use super::gates::Gate;
use super::steadiness::MIN_BLOCKS;
use crate::series::Series;
use model::units::Nanos;

/// Gates on which counting rests, in the order in which their refusals are named.
const GATES: [&str; 4] = ["G1", "G6", "G3", "G2"];
/// Gates without which exchangeability is unknown; G6 is not, as few blocks show no period.
const NEEDED: [&str; 3] = ["G1", "G2", "G3"];

/// Exchangeability of the blocks, an assumption of counting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Exchangeability {
    /// `yes`, `no`, or `unknown` if there was too little data to judge.
    pub holds: Holds,
    /// Gates that refuse it.
    pub gates: Vec<&'static str>,
    /// Reason why it does not hold, or is unknown, as a sentence; `""` if it holds.
    pub reason: String,
    /// Assumption in every sentence of counting: `if the maxima did not rise (G1, G3)`; else `""`.
    pub condition: String,
    /// Length of blocks without memory: events within it count once. Longer than the recorded ones
    /// if only these have memory.
    pub block_ns: Nanos,
    /// True if it is unknown for enough blocks with different values, which bars a claim.
    #[serde(skip)]
    pub open: bool,
}

impl Exchangeability {
    /// Result of the gates.
    pub fn of(gates: &[Gate], series: &Series, beyond: &Extrapolation) -> Exchangeability {
        let gate = |id: &str| gates.iter().find(|gate| gate.id == id);
        let refusing: Vec<&Gate> = GATES
            .iter()
            .filter_map(|id| gate(id))
            .filter(|gate| gate.judged && !gate.passed && !gate.condition.is_empty())
            .collect();
        let block_ns = beyond.block_ns.filter(|_| beyond.memory).unwrap_or(series.block);
        if let Some(first) = refusing.first() {
            let mut ids: Vec<&str> = refusing.iter().map(|gate| gate.id).collect();
            ids.sort_unstable();
            return Exchangeability {
                holds: Holds::No,
                condition: format!("{} ({})", first.condition, ids.join(", ")),
                gates: ids,
                reason: first.refusal.clone(),
                block_ns,
                open: false,
            };
        }
        let open = NEEDED.iter().filter_map(|id| gate(id)).find(|gate| !gate.judged);
        let holds = if open.is_some() { Holds::Unknown } else { Holds::Yes };
        let reason = open.map_or_else(String::new, |gate| {
            let why = gate.detail.trim_start_matches("not judged: ");
            format!("It was not possible to check whether the blocks are alike: {why}.")
        });
        // A constant is steady as far as it was recorded, and with fewer than ten blocks counting
        // claims little in any case.
        let mut maxima = series.blocks.maxima();
        let first = maxima.next();
        let varies = maxima.any(|max| Some(max) != first);
        let open = open.is_some() && varies && series.blocks.len() >= MIN_BLOCKS;
        Exchangeability { holds, reason, block_ns, open, ..Exchangeability::default() }
    }

    /// True if no claim can rest on it: a gate refuses it, or could not judge blocks of which there
    /// were enough.
    pub fn bars(&self) -> bool {
        self.refused() || self.open
    }

    /// True if a gate refuses it.
    pub fn refused(&self) -> bool {
        self.holds == Holds::No
    }
}
