//! A plan of changes for a machine, as requested by its audit.

use std::path::Path;

use facts::cmdline::Cmdline;
use facts::survey::survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::plan::PlanDocument;
use model::units::CpuSet;
use rules::audit::{Audit, audit};
use rules::intent::{Intent, Profile, intent};
use tune::admission::admit;
use tune::apply::require_boot;
pub use tune::import::ImportRequest;
use tune::import::{ImportTarget, NamingMachine, import, read_documents};
use tune::plan::{PlanRequest, plan};
use tune::reading;
use tune::rivals;

use crate::audit::{MachineSource, survey_request};

/// A plan, with the audit that requests it.
pub struct PlannedTuning {
    pub document: PlanDocument,
    pub audit: Audit,
    pub intent: Intent,
    /// Command line of its booted kernel; empty if that could not be read.
    pub booted: Cmdline,
}

/// Audits a machine and plans the changes; nothing is written.
pub fn plan_tuning(
    machine: MachineSource,
    profile: Profile,
    cpus: Option<&CpuSet>,
    request: &PlanRequest,
    take_over: bool,
) -> Result<PlannedTuning> {
    let files = machine.open()?;
    let survey = survey(&files, &survey_request());
    let intent = intent(&survey, profile, cpus).map_err(Failure::usage)?;
    let audit = audit(&survey, &intent);
    // A plan for another machine is for reading only, so no boot of this machine matches it.
    let boot = if files.is_live() { boot_id()? } else { String::new() };
    let now = |key: &_| reading::read(&files, key);
    let mut document = plan(&survey, &audit, request, &boot, &now)?;
    rivals::leave_out(&survey, &files, &mut document, take_over);
    let booted = survey.facts.cmdline.known().cloned().unwrap_or_default();
    Ok(PlannedTuning { document, audit, intent, booted })
}

/// Converts other programs' files into a plan for a machine; writes and runs nothing.
pub fn import_tuning(
    from: &Path,
    request: &ImportRequest,
    machine: MachineSource,
    take_over: bool,
) -> Result<PlanDocument> {
    let root = match machine {
        MachineSource::Live => Some(Path::new("/")),
        MachineSource::Tree(root) => Some(root),
        MachineSource::Captured(_) | MachineSource::Foreign(_) => None,
    };
    let files = machine.open()?;
    let documents = read_documents(from, &NamingMachine { files: &files, root })?;
    let survey = survey(&files, &survey_request());
    let boot = if files.is_live() { boot_id()? } else { String::new() };
    let target = ImportTarget { files: &files, survey: &survey };
    let mut document = import(&documents, request, target, &boot)?;
    rivals::leave_out(&survey, &files, &mut document, take_over);
    Ok(document)
}

/// The part of a plan file that is valid for the running machine.
///
/// # Errors
/// Usage: it is of another boot, or has contents that no plan of this version has.
pub fn admitted_plan(plan: PlanDocument) -> Result<PlanDocument> {
    require_boot(&plan, &boot_id()?)?;
    let files = MachineSource::Live.open()?;
    let survey = survey(&files, &survey_request());
    admit(plan, ImportTarget { files: &files, survey: &survey })
}

/// The id of the running boot.
///
/// # Errors
/// Not supported: the kernel does not provide it.
pub fn boot_id() -> Result<String> {
    match host::MachineFiles::live().read_text("/proc/sys/kernel/random/boot_id") {
        Fact::Known(id) => Ok(id.trim().to_owned()),
        _ => Err(Failure::not_supported(
            "cannot read /proc/sys/kernel/random/boot_id, which identifies this boot: mount /proc",
        )),
    }
}
