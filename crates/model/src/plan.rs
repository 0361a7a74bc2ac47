//! The document of changes, `onbeat.plan/1`: planned, made, or undone (the contract's `tune plan`,
//! `apply`, `status`, `undo`).

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::setting::Setting;
use crate::text::quoted;

/// The name and version of the JSON.
pub const PLAN_SCHEMA: &str = "onbeat.plan/1";

/// What has become of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeState {
    /// It is to be made.
    Planned,
    /// It was made, and read back.
    Applied,
    /// It was made, and takes effect with the next event: an interrupt that has not come since.
    Pending,
    /// The kernel refused it, or took it and did something else.
    Refused,
    /// It was not undone: another program has changed the value since.
    Kept,
    /// The machine was booted since, or the thread has ended: nothing of it is left.
    Void,
    Undone,
    /// The time to undo it has passed, and it is still in force.
    Overdue,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    #[serde(flatten)]
    pub setting: Setting,
    /// The file; of a thread its folder below `/proc`.
    #[serde(default)]
    pub path: String,
    /// The rule that asks for it; `""` for one that a user or a partition asks for.
    #[serde(default)]
    pub rule: String,
    /// The value when the plan was made, `""` where there was none.
    #[serde(default)]
    pub now: String,
    /// How long it lasts: `runtime`.
    #[serde(default)]
    pub lasts: String,
    pub state: ChangeState,
    /// Why it is wanted; once it was tried, what became of it where that needs words.
    #[serde(default)]
    pub why: String,
    /// What it costs.
    #[serde(default)]
    pub cost: String,
    /// The value before the change, in a list of changes that were made; `""` elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The journal's entry in a list of several; `""` elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// In so many ns its entry undoes itself, in a list of several entries; none where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_in_ns: Option<i64>,
    /// Whether confirming keeps such an entry.
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

/// What to do instead where a change is left out because it takes a safeguard away.
pub const WITH_CONSENT: &str = "add --yes";

/// A rule that fails, and of which nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub rule: String,
    /// Why it is left out.
    pub why: String,
    /// What to do instead.
    pub instead: String,
}

/// Text that is copied to one place of a machine, so that a failing audit's settings are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBlock {
    /// Where it goes: `/etc/sysctl.d/90-onbeat.conf`.
    pub place: String,
    /// What becomes of it there, in a sentence.
    pub how: String,
    pub text: String,
}

/// Changes in the order in which they are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    pub schema: String,
    /// The journal's entry, `""` before there is one.
    #[serde(default)]
    pub id: String,
    /// The boot in which it was made, as `/proc/sys/kernel/random/boot_id`; `""` of a capture.
    #[serde(default)]
    pub boot: String,
    pub changes: Vec<PlannedChange>,
    /// What is not changed, with what to do instead.
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

    /// A plan from a file, which may come from anywhere.
    ///
    /// # Errors
    /// Usage: it is no plan, or one of another version.
    pub fn parse(text: &str, name: &str) -> Result<PlanDocument, Failure> {
        let refuse = |what: String| {
            Failure::usage(format!(
                "{} is no plan ({what}): give the file that `onbeat tune plan -o` wrote",
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
