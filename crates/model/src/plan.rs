//! Document of changes, `onbeat.plan/1`: planned, applied or undone (the contract's `tune plan`,
//! `apply`, `status`, `undo`).

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::setting::Setting;
use crate::text::quoted;

/// The name and version of the JSON.
pub const PLAN_SCHEMA: &str = "onbeat.plan/1";

/// State of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeState {
    /// Not applied yet.
    Planned,
    /// Applied, and read back.
    Applied,
    /// Applied, with effect from the next event: an interrupt that has not occurred since.
    Pending,
    /// Refused by the kernel, or accepted with another effect.
    Refused,
    /// Not undone: another program has changed the value since.
    Kept,
    /// Without effect: the machine was booted since, or the thread has ended.
    Void,
    Undone,
    /// Still in force although the time to undo it has passed.
    Overdue,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    #[serde(flatten)]
    pub setting: Setting,
    /// Path of the file; for a thread its folder below `/proc`.
    #[serde(default)]
    pub path: String,
    /// Rule that asks for it; `""` if a user or a partition asks for it.
    #[serde(default)]
    pub rule: String,
    /// Value when the plan was made, `""` if there was none.
    #[serde(default)]
    pub now: String,
    /// Lifetime: `runtime`.
    #[serde(default)]
    pub lasts: String,
    pub state: ChangeState,
    /// Reason for the change; after an attempt, its outcome where that needs words.
    #[serde(default)]
    pub why: String,
    /// Cost of the change, in words.
    #[serde(default)]
    pub cost: String,
    /// Value before the change, in a list of applied changes; `""` elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The journal's entry in a list of several; `""` elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// Time in ns until its entry undoes itself, in a list of several entries; null if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_in_ns: Option<i64>,
    /// True if confirming keeps such an entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmable: bool,
}

impl PlannedChange {
    /// A planned change for a setting that reads `now`.
    pub fn new(setting: Setting, rule: &str, now: &str) -> PlannedChange {
        PlannedChange {
            path: setting.key.path(),
            setting,
            rule: rule.to_owned(),
            now: now.to_owned(),
            lasts: "runtime".to_owned(),
            state: ChangeState::Planned,
            why: String::new(),
            cost: String::new(),
            before: String::new(),
            entry: String::new(),
            undone_in_ns: None,
            confirmable: false,
        }
    }
}

/// Remedy for a change that is skipped because it removes a safeguard.
pub const WITH_CONSENT: &str = "add --yes";

/// A failing rule for which nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub rule: String,
    /// Reason why nothing is changed.
    pub why: String,
    /// Alternative for the user.
    pub instead: String,
}

/// Text to copy to one place of a machine, with the settings that a failing audit asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBlock {
    /// Destination: `/etc/sysctl.d/90-onbeat.conf`.
    pub place: String,
    /// Effect there, in a sentence.
    pub how: String,
    pub text: String,
}

/// Changes in the order in which they are applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    pub schema: String,
    /// The journal's entry, `""` before there is one.
    #[serde(default)]
    pub id: String,
    /// Boot in which it was made, as `/proc/sys/kernel/random/boot_id`; `""` for a capture.
    #[serde(default)]
    pub boot: String,
    pub changes: Vec<PlannedChange>,
    /// Failing rules without a change, with the alternative.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

impl PlanDocument {
    pub fn new(boot: &str, changes: Vec<PlannedChange>, left_out: Vec<LeftOut>) -> PlanDocument {
        PlanDocument {
            schema: PLAN_SCHEMA.to_owned(),
            id: String::new(),
            boot: boot.to_owned(),
            changes,
            left_out,
        }
    }

    /// Parses a plan from a file of any origin.
    ///
    /// # Errors
    /// Usage: not a plan, or one of another version.
    pub fn parse(text: &str, name: &str) -> Result<PlanDocument, Failure> {
        let refuse = |what: String| {
            Failure::usage(format!(
                "{} is not a plan ({what}): give the file that `onbeat tune plan -o` wrote",
                quoted(name)
            ))
        };
        let plan: PlanDocument = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        match plan.schema.as_str() {
            PLAN_SCHEMA => Ok(plan),
            other => Err(refuse(format!("its schema is {}", quoted(other)))),
        }
    }
}
