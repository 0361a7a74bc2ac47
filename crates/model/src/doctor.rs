//! Commands that work on a machine, and the needs that it lacks: the document `onbeat.doctor/1`.

use serde::Serialize;

use crate::error::Exit;

/// Name and version of the JSON.
pub const DOCTOR_SCHEMA: &str = "onbeat.doctor/1";

/// Ability of a command on a machine; the order is from the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandState {
    Works,
    /// It works, with less in its result.
    Partly,
    /// The machine refuses it to this user.
    NotPermitted,
    /// This kernel or machine cannot do it.
    NotSupported,
}

impl CommandState {
    /// Name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            CommandState::Works => "works",
            CommandState::Partly => "partly",
            CommandState::NotPermitted => "not-permitted",
            CommandState::NotSupported => "not-supported",
        }
    }

    /// Exit code of the command.
    pub fn exit(self) -> Exit {
        match self {
            CommandState::Works | CommandState::Partly => Exit::Ok,
            CommandState::NotPermitted => Exit::NotPermitted,
            CommandState::NotSupported => Exit::NotSupported,
        }
    }
}

/// Command and its needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandAbility {
    pub command: &'static str,
    pub state: CommandState,
    /// Needs without which the command is refused.
    pub requires: Vec<&'static str>,
    /// Needs without which its result has less.
    pub uses: Vec<&'static str>,
    /// Those of both that are missing.
    pub missing: Vec<&'static str>,
}

/// Requirement of commands on the machine or the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NeedState {
    pub need: &'static str,
    pub found: bool,
    /// Reason and remedy if it is missing, else `""`.
    pub why: String,
}

/// Machine that was examined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExaminedHost {
    pub release: String,
    pub machine: String,
    pub preempt: String,
    #[serde(rename = "virtual")]
    pub virtualization: String,
    /// True if the effective user is root.
    pub root: bool,
}

/// Commands and needs of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorDocument {
    pub schema: &'static str,
    pub version: &'static str,
    pub host: ExaminedHost,
    pub commands: Vec<CommandAbility>,
    pub needs: Vec<NeedState>,
}
