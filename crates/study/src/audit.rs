//! A machine's settings judged: of this one, of a copy of its files, of a capture.

use std::path::Path;

use bundle::capture;
use facts::survey::{Survey, SurveyRequest, survey};
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::CpuSet;
use report::map::{self, Map};
use rules::audit::{Audit, audit};
use rules::intent::{Intent, Profile, intent};

/// Where the settings are read.
#[derive(Clone, Copy, Debug)]
pub enum MachineSource<'a> {
    /// The one that this runs on.
    Live,
    /// A copy of a file system: what it lacks counts as absent.
    Tree(&'a Path),
    /// A capture, or what a run's bundle holds of its machine: what it lacks is not captured.
    Captured(&'a Path),
}

/// An audit with what it was made from.
pub struct Audited {
    pub audit: Audit,
    survey: Survey,
    intent: Intent,
}

impl Audited {
    /// What each CPU does.
    pub fn map(&self) -> Map {
        Map::of(&self.survey, &self.intent)
    }

    /// The page of the findings, with a picture of the machine.
    pub fn page(&self) -> Result<String> {
        report::audit::page::html(&self.audit, &self.map())
    }
}

/// What an audit reads of a machine: all that the rules ask for, and what the map of the machine
/// needs as well.
pub fn survey_request() -> SurveyRequest {
    let mut wanted = rules::survey_request();
    wanted.texts.extend(map::READS);
    wanted
}

/// Judges a machine's settings for a profile and the CPUs that were named; else for those that are
/// isolated, or all.
pub fn judge(machine: MachineSource, profile: Profile, cpus: Option<&CpuSet>) -> Result<Audited> {
    let survey = survey(&machine.open()?, &survey_request());
    let intent = intent(&survey, profile, cpus).map_err(Failure::usage)?;
    Ok(Audited { audit: audit(&survey, &intent), survey, intent })
}

impl<'a> MachineSource<'a> {
    /// A capture or a tree where one is named, else this machine.
    pub fn of(bundle: Option<&'a Path>, root: Option<&'a Path>) -> MachineSource<'a> {
        match (bundle, root) {
            (Some(bundle), _) => MachineSource::Captured(bundle),
            (None, Some(root)) => MachineSource::Tree(root),
            (None, None) => MachineSource::Live,
        }
    }

    pub(crate) fn open(self) -> Result<MachineFiles> {
        match self {
            MachineSource::Live => Ok(MachineFiles::live()),
            MachineSource::Captured(bundle) => capture::open(bundle),
            MachineSource::Tree(root) => match host::is_dir(root) {
                Ok(true) => Ok(MachineFiles::tree(root)),
                Ok(false) => Err(Failure::usage(format!(
                    "--root: {} is no folder: give a copy of a file system",
                    quoted(root)
                ))),
                Err(error) => {
                    let what = format!("--root: cannot look at {}", quoted(root));
                    Err(Failure::of_call(what, &error, Exit::Usage, "give a copy of a file system"))
                }
            },
        }
    }
}
