//! Audits of a machine's settings: this machine, a copy of its files, or a capture.

use std::path::Path;

pub use super::machine_source::MachineSource;

use super::kernel_texts::{MachineTexts, open_machine};
use bundle::read::Bundle;
use facts::Fact;
use facts::boot_texts::find_cmdline;
use facts::cmdline::{Cmdline, parse_cmdline};
use facts::survey::{Survey, SurveyRequest, survey_with};
use host::MachineFiles;
use host::access::redact;
use model::error::{Failure, Result};
use model::plan::CopyBlock;
use model::text::quoted;
use model::units::CpuSet;
use model::vocabulary::Command;
use report::audit::gains::HuntGains;
use report::audit::page::AuditAids;
use report::html::PageParts;
use report::map::{self, Map};
use rules::audit::{Audit, audit};
use rules::intent::{Intent, Profile, intent};
use tune::export::{ExportInput, copy_blocks};
use tune::plan::{PlanRequest, plan};
use tune::reading;

/// An audit with its input.
pub struct Audited {
    pub audit: Audit,
    files: MachineFiles,
    survey: Survey,
    intent: Intent,
}

impl Audited {
    /// Roles of the CPUs.
    pub fn map(&self) -> Map {
        Map::of(&self.survey, &self.intent)
    }

    /// Page of the findings with a picture of the machine; ordered by the gain of each setting, if
    /// a hunt shows it.
    pub fn page(&self, gains: Option<&HuntGains>) -> Result<String> {
        self.parts(gains).map(PageParts::page)
    }

    /// Parts of the page, for embedding in another frame.
    pub fn parts(&self, gains: Option<&HuntGains>) -> Result<PageParts> {
        let blocks = self.copy_blocks()?;
        report::audit::page::parts(&self.audit, &self.map(), &AuditAids { blocks: &blocks, gains })
    }

    /// Text to copy, one block per file, for failing settings that a file can set; nothing is
    /// written.
    pub fn copy_blocks(&self) -> Result<Vec<CopyBlock>> {
        let request = PlanRequest::default();
        let now = |key: &_| reading::read(&self.files, key);
        let document = plan(&self.survey, &self.audit, &request, "", &now)?;
        let none = Cmdline::default();
        let input = ExportInput {
            audit: &self.audit,
            plan: &document,
            in_force: &[],
            request: &request,
            booted: self.survey.facts.cmdline.known().unwrap_or(&none),
        };
        Ok(copy_blocks(&input, self.source_of_words().as_deref()))
    }

    /// The boot loader's file from which the kernel's words come; none if what it holds is not what
    /// the kernel was booted with.
    fn source_of_words(&self) -> Option<String> {
        if let Some(texts) = &self.audit.texts {
            return texts.cmdline.clone();
        }
        let (path, line) = find_cmdline(&self.files)?;
        let handed = redact("/proc/cmdline", line.known()?.clone().into_bytes());
        let handed = parse_cmdline(&String::from_utf8_lossy(&handed)).ok()?;
        let booted = &self.survey.facts.cmdline.known()?.params;
        let is_whole = !handed.params.is_empty() && handed.params.iter().all(|word| booted.contains(word));
        is_whole.then_some(path)
    }
}

/// Files that an audit reads: those of the rules, and of the map of the machine.
pub fn survey_request() -> SurveyRequest {
    let mut wanted = rules::survey_request();
    wanted.texts.extend(map::READS);
    wanted
}

/// Judges a machine's settings for a profile and the CPUs that were named; else for those that are
/// isolated, or all.
pub fn judge(machine: MachineSource, profile: Profile, cpus: Option<&CpuSet>) -> Result<Audited> {
    judge_with(machine, None, profile, cpus)
}

/// Like [`judge`], with a kernel configuration that replaces the machine's; for this machine, the
/// configuration alone is audited.
pub fn judge_with(
    machine: MachineSource,
    kconfig: Option<&Path>,
    profile: Profile,
    cpus: Option<&CpuSet>,
) -> Result<Audited> {
    let MachineTexts { files, texts, judged } = open_machine(machine, kconfig)?;
    let survey = survey_with(&texts, &files, &survey_request());
    if let (Some(path), Fact::Malformed(why)) = (kconfig, &survey.facts.kconfig) {
        let why = why.strip_prefix("not used: ").unwrap_or(why);
        return Err(Failure::usage(format!(
            "--kconfig: {}: {why}: give the configuration of this machine's kernel",
            quoted(path)
        )));
    }
    let intent = intent(&survey, profile, cpus).map_err(Failure::usage)?;
    let audit = Audit { texts: judged, ..audit(&survey, &intent) };
    Ok(Audited { audit, files, survey, intent })
}

/// Gain of each setting according to a hunt.
///
/// # Errors
/// Usage: the bundle is of another command, or no culprit of it has a setting that cures it.
pub fn hunt_gains(path: &Path) -> Result<HuntGains> {
    let run = Bundle::open(path)?.run;
    let refused = |why: String| Err(Failure::usage(format!("--hunt: {}: {why}", quoted(path))));
    if run.command != Command::Hunt {
        return refused(format!("a run of `onbeat {}`: give one of `onbeat hunt`", run.command));
    }
    if run.culprits.iter().all(|culprit| culprit.knobs.is_empty()) {
        return refused("none of its culprits is cured by a setting: remove --hunt".to_owned());
    }
    let title = path.file_name().map_or_else(|| run.id.clone(), |name| name.to_string_lossy().into_owned());
    Ok(HuntGains::of(&title, &run))
}
