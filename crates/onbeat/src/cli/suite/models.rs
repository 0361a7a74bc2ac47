//! Switching the kernel's preemption model for some phases, through the journal of changes.

use crate::cli::Environment;
use crate::cli::journal::{self, LockedJournal, UndoTime};
use ::tune::apply::{ApplyOptions, apply};
use ::tune::undo::undo_abandoned;
use facts::survey::{SurveyRequest, survey};
use host::MachineFiles;
use host::settings::{Kernel, read_entry, restore, start_keeper};
use model::error::{Exit, Failure, Result};
use model::plan::{PlanDocument, PlannedChange};
use model::setting::Key;
use rules::controls;
use study::tuning::boot_id;

const SWITCH: &str = "/sys/kernel/debug/sched/preempt";

/// The rule whose setting it is.
const RULE: &str = "preemption-model";

/// The models that the kernel can switch to, or why it cannot.
pub fn offered() -> Result<Vec<String>, String> {
    let files = MachineFiles::live();
    let read = files.read_text(SWITCH);
    match read.known() {
        Some(text) => {
            Ok(text.split_whitespace().map(|word| word.trim_matches(['(', ')']).to_owned()).collect())
        }
        None => Err(format!(
            "the preemption model is the one in use: {SWITCH} cannot be read (a kernel that cannot \
             switch has none; else run as root, with debugfs mounted)"
        )),
    }
}

/// The journal, held while the suite runs; the model that was found comes back when it is dropped,
/// and when this process is killed.
pub struct Switched {
    journal: LockedJournal,
    boot: String,
    /// The entry in force.
    entry: Option<String>,
}

impl Switched {
    pub fn begin() -> Result<Switched> {
        let mut journal = journal::lock("switching the preemption model")?;
        let boot = boot_id()?;
        undo_abandoned(&mut journal.kernel, journal.store.as_mut(), &boot)?;
        Ok(Switched { journal, boot, entry: None })
    }

    /// Puts back what was found, then switches to another model.
    pub fn switch(&mut self, model: &str, environment: &Environment) -> Result<()> {
        self.put_back()?;
        let survey = survey(&MachineFiles::live(), &SurveyRequest::default());
        let key = Key::of_path(SWITCH);
        let control = controls::find(SWITCH);
        let setting = control.and_then(|control| control.setting(SWITCH, model, &survey));
        let (Some(key), Some(setting)) = (key, setting) else {
            return Err(Failure::internal("the switch of the preemption model has no record"));
        };
        let now = self.journal.kernel.read(&key).known().cloned().unwrap_or_default();
        let change = PlannedChange::new(setting, RULE, now.trim());
        let plan = PlanDocument::new(&self.boot, vec![change], Vec::new());
        let opened = journal::opened(&self.boot, "", environment, UndoTime::WithProcess);
        let options = ApplyOptions { keep_going: false, stop: &|| false, started: &start_keeper };
        let result = apply(&mut self.journal.kernel, self.journal.store.as_mut(), opened, plan, &options)?;
        match result.failure {
            Some(failure) => Err(failure),
            None => {
                self.entry = Some(result.document.id);
                Ok(())
            }
        }
    }

    /// Restores the model that was found.
    pub fn put_back(&mut self) -> Result<()> {
        let Some(id) = self.entry.take() else { return Ok(()) };
        let failed = |error: std::io::Error| {
            let what = "the preemption model could not be restored";
            Failure::of_call(what, &error, Exit::Limit, "run `onbeat tune undo`")
        };
        let Some(entry) = read_entry(self.journal.store.as_ref(), &id).map_err(failed)? else {
            return Ok(());
        };
        let (_, noted) = restore(&mut self.journal.kernel, self.journal.store.as_mut(), &entry, false);
        noted.map_err(failed)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // The keeper tries again, and so does the next onbeat.
        let _ = self.put_back();
    }
}
