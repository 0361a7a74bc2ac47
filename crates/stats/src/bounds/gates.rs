//! A gate: a test that can refuse an extrapolation, with its observation.

use serde::Serialize;

/// Level of each gate: a clean run is refused by all of them together about once in twenty times.
pub const ALPHA: f64 = 0.01;

/// Assumption of a count on a run with an outlying stretch.
pub const BUNCHED: &str = "if the spikes were not bunched";

/// Reason why a gate that needs the order of the samples is not judged.
pub const LOST: &str = "a histogram has no times";

/// Outcome of a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// `G1` to `G11`.
    pub id: &'static str,
    pub name: &'static str,
    /// True if the extrapolation may pass; false also if it could not be judged.
    pub passed: bool,
    /// True if there was enough data to judge.
    pub judged: bool,
    /// Observation, with its numbers.
    pub detail: String,
    /// Reason why that forbids an extrapolation, as a sentence; `""` if it passed.
    pub refusal: String,
    /// Remedy; `""` if it passed.
    pub remedy: String,
    /// Assumption of counting that this gate refuses, as a clause: `if the maxima did not rise`;
    /// omitted if there is none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub condition: &'static str,
}

impl Gate {
    /// A gate that passes.
    pub fn passed(id: &'static str, name: &'static str, detail: String) -> Gate {
        Gate {
            id,
            name,
            passed: true,
            judged: true,
            detail,
            refusal: String::new(),
            remedy: String::new(),
            condition: "",
        }
    }

    /// A gate that refuses.
    pub fn refused(
        id: &'static str,
        name: &'static str,
        detail: String,
        refusal: String,
        remedy: &str,
    ) -> Gate {
        Gate {
            id,
            name,
            passed: false,
            judged: true,
            detail,
            refusal,
            remedy: remedy.to_owned(),
            condition: "",
        }
    }

    /// The same gate, with an assumption of counting that it refuses.
    pub fn on(self, condition: &'static str) -> Gate {
        Gate { condition, ..self }
    }

    /// True if it refuses an outlying stretch, not a moving level.
    pub fn on_bunched(&self) -> bool {
        self.condition == BUNCHED
    }

    /// A gate that had too little data; that is not a pass.
    pub fn not_judged(id: &'static str, name: &'static str, why: &str) -> Gate {
        Gate {
            id,
            name,
            passed: false,
            judged: false,
            detail: format!("not judged: {why}"),
            refusal: String::new(),
            remedy: String::new(),
            condition: "",
        }
    }
}

/// Order of importance of refusals: the kind of run, its length, changes of its level, a mechanism
/// in it, then the rest. A moving level also spreads the large values unevenly: it is named first.
const ORDER: [&str; 10] = ["G11", "G7", "G1", "G6", "G3", "G5", "G2", "G4", "G9", "G8"];

/// True if all gates pass; G10 only warns.
pub fn all_pass(gates: &[Gate]) -> bool {
    gates.iter().all(|gate| gate.passed || gate.id == "G10")
}

/// Gate with the most informative refusal, if any refuses.
pub fn most_informative(gates: &[Gate]) -> Option<&Gate> {
    let refusing =
        |id: &str| gates.iter().find(|gate| gate.id == id && !gate.passed && !gate.refusal.is_empty());
    ORDER.iter().find_map(|id| refusing(id))
}
