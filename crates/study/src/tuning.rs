//! A plan of changes for a machine: what an audit of it asks for.

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

/// A plan, with the audit that asks for it.
pub struct PlannedTuning {
    pub document: PlanDocument,
    pub audit: Audit,
    pub intent: Intent,
    /// The command line that its kernel was booted with; empty where that could not be read.
    pub booted: Cmdline,
}

/// Audits a machine and plans what is to be changed; nothing is written.
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
    // A plan for another machine is for reading: no boot of this one is its own.
    let boot = match files.is_live() {
        true => boot_id()?,
        false => String::new(),
    };
    let now = |key: &_| reading::read(&files, key);
    let mut document = plan(&survey, &audit, request, &boot, &now)?;
    rivals::leave_out(&survey, &files, &mut document, take_over);
    let booted = survey.facts.cmdline.known().cloned().unwrap_or_default();
    Ok(PlannedTuning { document, audit, intent, booted })
}

/// Makes a plan of other programs' files for a machine; nothing is written, nothing in them is run.
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
    let boot = match files.is_live() {
        true => boot_id()?,
        false => String::new(),
    };
    let target = ImportTarget { files: &files, survey: &survey };
    let mut document = import(&documents, request, target, &boot)?;
    rivals::leave_out(&survey, &files, &mut document, take_over);
    Ok(document)
}

/// A plan from a file, as far as it is one for the running machine.
///
/// # Errors
/// Usage: it is of another boot, or has what no plan of this version would have.
pub fn admitted_plan(plan: PlanDocument) -> Result<PlanDocument> {
    require_boot(&plan, &boot_id()?)?;
    let files = MachineSource::Live.open()?;
    let survey = survey(&files, &survey_request());
    admit(plan, ImportTarget { files: &files, survey: &survey })
}

/// The id of the running boot.
///
/// # Errors
/// Not supported: the kernel does not say.
pub fn boot_id() -> Result<String> {
    match host::MachineFiles::live().read_text("/proc/sys/kernel/random/boot_id") {
        Fact::Known(id) => Ok(id.trim().to_owned()),
        _ => Err(Failure::not_supported(
            "/proc/sys/kernel/random/boot_id cannot be read, which tells this boot from others: mount /proc",
        )),
    }
}
