//! Settings for a phase of a suite or an arm of an experiment, through the journal of changes: the
//! preemption model, a limit of real-time tasks, a partition, rules.

use crate::cli::Environment;
use crate::cli::journal::{self, LockedJournal, UndoTime};
use ::suite::setting::SuiteSetting;
use ::tune::apply::{ApplyOptions, ApplyResult, apply, cuts_off};
use ::tune::expiry::expire;
use ::tune::isolate::steps::IsolationRequest;
use ::tune::plan::{PlanRequest, RuleRequest, high_risk};
use ::tune::rt_limit;
use ::tune::undo::{entries, undo_abandoned};
use facts::survey::{Survey, SurveyRequest, survey};
use host::settings::{Journal, JournalRecord, Kernel, Opened, read_entry, restore, start_keeper};
use host::{MachineFiles, process_start, rt};
use model::cure::CureThread;
use model::error::{Exit, Failure, ItemFailure, Result};
use model::plan::{ChangeState, PlanDocument, PlannedChange};
use model::setting::{Key, Risk, Setting, TaskSetting};
use model::text::clean;
use model::units::{CpuSet, Nanos};
use rules::change::ThreadId;
use rules::controls;
use rules::intent::Profile;
use rules::setting::of_thread;
use study::audit::MachineSource;
use study::isolating::plan_isolation;
use study::tuning::{boot_id, plan_tuning};

const SWITCH: &str = "/sys/kernel/debug/sched/preempt";

/// Rule for this setting.
const RULE: &str = "preemption-model";

/// Models that the kernel can switch to, or the reason why it cannot.
pub fn offered() -> Result<Vec<String>, String> {
    let files = MachineFiles::live();
    let read = files.read_text(SWITCH);
    match read.known() {
        Some(text) => {
            Ok(text.split_whitespace().map(|word| word.trim_matches(['(', ')']).to_owned()).collect())
        }
        None => Err(format!(
            "the preemption model cannot be changed: {SWITCH} cannot be read (absent if the kernel cannot \
             switch; else run as root, with debugfs mounted)"
        )),
    }
}

/// Settings for a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepWish {
    /// Preemption model; `""` for the present one.
    pub model: String,
    pub settings: Vec<SuiteSetting>,
    /// Threads of programs that are to run elsewhere.
    pub threads: Vec<CureThread>,
    /// Kernel files, in the order in which they are written.
    pub files: Vec<FileWish>,
}

/// Value of a kernel file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWish {
    pub path: String,
    pub value: String,
}

/// Interrupt that has not moved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmovedInterrupt {
    pub irq: u32,
    /// Number of its occurrences; none if the kernel does not report it.
    pub count: Option<u64>,
}

/// Settings in force. The earlier ones are restored when this is dropped or this process is killed.
pub struct StepSettings<'a> {
    environment: &'a Environment,
    /// Measured CPUs.
    cpus: &'a CpuSet,
    /// True if safeguards may be removed.
    yes: bool,
    in_force: StepWish,
    /// Purpose of the changes, for the text of a refusal.
    purpose: &'static str,
    /// Locked at the first change, so that no other onbeat changes settings.
    journal: Option<LockedJournal>,
    /// Journal entry in force.
    entry: Option<String>,
    /// True if switches wait until interrupts have moved.
    patient: bool,
}

impl<'a> StepSettings<'a> {
    pub fn new(
        environment: &'a Environment,
        cpus: &'a CpuSet,
        yes: bool,
        purpose: &'static str,
    ) -> StepSettings<'a> {
        let in_force = StepWish::default();
        StepSettings { environment, cpus, yes, in_force, purpose, journal: None, entry: None, patient: false }
    }

    /// Locks the journal before the first change, and undoes changes of a killed command.
    ///
    /// # Errors
    /// Not permitted: this is not root, or another onbeat is changing settings.
    pub fn lock(&mut self) -> Result<&mut LockedJournal> {
        let boot = boot_id()?;
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(journal::lock(self.purpose)?),
        };
        undo_abandoned(&mut journal.kernel, journal.store.as_mut(), &boot)?;
        undo_orphaned(journal, &boot)?;
        Ok(journal)
    }

    /// Sets what a step requests, after restoring the settings of another.
    ///
    /// # Errors Refused: a setting cannot be made. Fatal: the journal cannot be used, or the
    /// earlier settings cannot be restored.
    pub fn switch(&mut self, wanted: StepWish) -> Result<(), ItemFailure> {
        if self.in_force == wanted {
            return Ok(());
        }
        self.put_back()?;
        if wanted == StepWish::default() {
            return Ok(());
        }
        self.entry = Some(self.make(&wanted)?);
        self.in_force = wanted;
        if let Some(journal) = self.journal.as_mut().filter(|_| self.patient) {
            journal.kernel.settle_interrupts();
        }
        Ok(())
    }

    /// From now on, waits at each switch, at most this long, until interrupts that occur soon have
    /// moved; only then does a change count as made or undone.
    pub fn be_patient(&mut self, most: Nanos) {
        self.patient = true;
        if let Some(journal) = &mut self.journal {
            journal.kernel.be_patient(most);
        }
    }

    /// Interrupts that are not where the settings in force put them, each with its count up to now.
    pub fn unmoved(&self) -> Vec<UnmovedInterrupt> {
        let Some(journal) = &self.journal else { return Vec::new() };
        let of = |irq| UnmovedInterrupt { irq, count: journal.kernel.interrupt_count(irq) };
        journal.kernel.unmoved_interrupts(self.entry.is_some()).into_iter().map(of).collect()
    }

    /// Those of these interrupts that occurred since.
    pub fn astray(&self, unmoved: &[UnmovedInterrupt]) -> Vec<u32> {
        let Some(journal) = &self.journal else { return Vec::new() };
        let came = |one: &&UnmovedInterrupt| journal.kernel.interrupt_count(one.irq) != one.count;
        unmoved.iter().filter(came).map(|one| one.irq).collect()
    }

    /// Journal entry in force; `""` for none.
    pub fn entry(&self) -> &str {
        self.entry.as_deref().unwrap_or_default()
    }

    /// Leaves the settings in force after the end of this process.
    ///
    /// # Errors
    /// The journal cannot be written: they are undone with this process then.
    pub fn leave(&mut self) -> Result<()> {
        let (Some(id), Some(journal)) = (&self.entry, &mut self.journal) else { return Ok(()) };
        let noted = Journal::resume(journal.store.as_mut(), id)
            .and_then(|mut journal| journal.note(&JournalRecord::Confirmed));
        noted.map_err(|error| {
            let what = "cannot record in the journal that a change stays";
            Failure::of_call(what, &error, Exit::Internal, "free some space")
        })?;
        (self.entry, self.in_force) = (None, StepWish::default());
        Ok(())
    }

    /// True if an entry in force is permanent; none if it is undone or does not exist.
    pub fn stays(&mut self, id: &str) -> Result<Option<bool>> {
        let entry = read_entry(self.lock()?.store.as_ref(), id).map_err(|error| {
            Failure::of_call("cannot read the journal of changes", &error, Exit::Internal, "run as root")
        })?;
        Ok(entry.filter(|entry| entry.is_live()).map(|entry| entry.confirmed))
    }

    fn make(&mut self, wanted: &StepWish) -> Result<String, ItemFailure> {
        let (boot, cpus, yes) = (boot_id()?, self.cpus, self.yes);
        let environment = self.environment;
        let journal = self.lock()?;
        let changes = changes(wanted, cpus, yes, &journal.kernel).map_err(ItemFailure::Refused)?;
        if let Some(change) = changes.iter().find(|change| cuts_off(&change.setting.key)) {
            if environment.over_ssh {
                let reason = format!("{} can disconnect this ssh session", change.setting.key);
                return Err(ItemFailure::Refused(reason));
            }
        }
        let plan = PlanDocument::new(&boot, changes, Vec::new());
        let opened = journal::opened(&boot, &cpus.to_string(), environment, UndoTime::WithProcess);
        let options = ApplyOptions { keep_going: false, stop: &rt::stop_pending, started: &start_keeper };
        let result = apply(&mut journal.kernel, journal.store.as_mut(), opened, plan, &options)?;
        match refusal(&result) {
            Some(reason) => Err(ItemFailure::Refused(reason)),
            None => Ok(result.document.id),
        }
    }

    /// Restores the earlier settings.
    pub fn put_back(&mut self) -> Result<()> {
        self.in_force = StepWish::default();
        let (Some(id), Some(journal)) = (self.entry.take(), &mut self.journal) else { return Ok(()) };
        let failed = |error: std::io::Error| {
            let what = "cannot restore the settings";
            Failure::of_call(what, &error, Exit::Limit, "run `onbeat tune undo`")
        };
        let Some(entry) = read_entry(journal.store.as_ref(), &id).map_err(failed)? else {
            return Ok(());
        };
        let (restored, noted) = restore(&mut journal.kernel, journal.store.as_mut(), &entry, false);
        noted.map_err(failed)?;
        let left = restored.iter().find(|done| {
            // Another program's value stays, and `tune status` reports it.
            done.state == ChangeState::Refused
        });
        match left {
            None => Ok(()),
            Some(left) => Err(Failure {
                exit: Exit::Limit,
                message: format!(
                    "{} could not be restored ({}): run `onbeat tune undo`",
                    left.change.setting.key, left.why
                ),
            }),
        }
    }
}

/// Undoes changes that end with a process that has ended: their keeper cannot do that while this
/// process has the lock.
fn undo_orphaned(journal: &mut LockedJournal, boot: &str) -> Result<()> {
    let ended = |opened: &Opened| {
        opened.boot == boot && opened.with_process && process_start(opened.pid) != Some(opened.start)
    };
    let all = entries(journal.store.as_ref())?;
    let orphaned =
        all.iter().rev().filter(|entry| ended(&entry.opened) && !entry.confirmed && entry.is_live());
    for entry in orphaned {
        expire(&mut journal.kernel, journal.store.as_mut(), &entry.opened.id, boot)?;
    }
    Ok(())
}

impl Drop for StepSettings<'_> {
    fn drop(&mut self) {
        // The keeper tries again, and so does the next onbeat.
        let _ = self.put_back();
    }
}

/// First change that the kernel refused, or another reason for the end.
fn refusal(result: &ApplyResult) -> Option<String> {
    let failure = result.failure.as_ref()?;
    let refused = result.document.changes.iter().find(|change| change.state == ChangeState::Refused);
    Some(match refused.filter(|_| failure.exit == Exit::NotSupported) {
        Some(change) => {
            let (key, wanted) = (&change.setting.key, &change.setting.wanted);
            format!("{key} could not be set to {wanted}: {}", change.why)
        }
        None => failure.message.clone(),
    })
}

/// Changes of the running machine for all settings, in their order.
fn changes(
    wanted: &StepWish,
    cpus: &CpuSet,
    yes: bool,
    kernel: &dyn Kernel,
) -> Result<Vec<PlannedChange>, String> {
    let survey = survey(&MachineFiles::live(), &SurveyRequest::default());
    let mut all = Vec::new();
    if !wanted.model.is_empty() {
        let change = file_change(&survey, SWITCH, &wanted.model, kernel)?;
        all.push(PlannedChange { rule: RULE.to_owned(), ..change });
    }
    for FileWish { path, value } in &wanted.files {
        let change = file_change(&survey, path, value, kernel)?;
        all.extend((!change.setting.is_met_by(&change.now)).then_some(change));
    }
    for setting in &wanted.settings {
        all.extend(match setting {
            // The permission to remove the limit was checked before.
            SuiteSetting::RtLimit(limit) => rt_limit::changes(&survey, cpus, *limit)?,
            SuiteSetting::Isolate => {
                let request = IsolationRequest { cpus: cpus.clone(), ..IsolationRequest::default() };
                let plan = plan_isolation(Profile::ControlLoop, &request, false);
                plan.map_err(|failure| failure.message)?.changes
            }
            SuiteSetting::Rule { rule, value } => of_rule(rule, value.as_deref(), cpus, yes)?,
        });
    }
    for thread in &wanted.threads {
        all.extend(thread_change(thread, kernel)?);
    }
    Ok(all)
}

/// Change for a thread; none if it is already set.
fn thread_change(thread: &CureThread, kernel: &dyn Kernel) -> Result<Option<PlannedChange>, String> {
    let limit = MachineFiles::live().read_text("/proc/sys/kernel/sched_rt_runtime_us");
    if limit.known().is_none_or(|limit| limit.trim() == "-1") {
        return Err(
            "real-time throttling is off, so no thread is moved: one that never sleeps could not be stopped"
                .to_owned(),
        );
    }
    let id = ThreadId { tid: thread.tid, start: thread.start };
    let setting = of_thread(id, TaskSetting::Affinity, &thread.cpus)?;
    let read = kernel.read(&setting.key);
    let Some(now) = read.known() else {
        return Err(format!("the thread {} ({}) has ended", clean(&thread.comm), thread.tid));
    };
    let setting = Setting { risk: Risk::Medium, optional: false, ..setting };
    let is_so = setting.is_met_by(now);
    Ok((!is_so).then(|| PlannedChange::new(setting, "", now.trim())))
}

/// Change of a kernel file.
fn file_change(
    survey: &Survey,
    path: &str,
    value: &str,
    kernel: &dyn Kernel,
) -> Result<PlannedChange, String> {
    let key = Key::of_path(path);
    let control = controls::find(path);
    let setting = control.and_then(|control| control.setting(path, value, survey));
    let (Some(key), Some(setting)) = (key, setting) else {
        return Err(format!("onbeat has no control for {path}: report this"));
    };
    let now = kernel.read(&key).known().cloned().unwrap_or_default();
    Ok(PlannedChange::new(setting, "", now.trim()))
}

fn of_rule(rule: &str, value: Option<&str>, cpus: &CpuSet, yes: bool) -> Result<Vec<PlannedChange>, String> {
    let request = RuleRequest { rule: rule.to_owned(), value: value.map(str::to_owned) };
    let request = PlanRequest { rules: vec![request], without: Vec::new() };
    let planned = plan_tuning(MachineSource::Live, Profile::ControlLoop, Some(cpus), &request, false);
    let plan = planned.map_err(|failure| failure.message)?.document;
    match (high_risk(&plan).as_slice(), plan.left_out.first()) {
        ([risky, ..], _) if !yes => Err(format!("{risky} removes a safeguard: add --yes")),
        (_, Some(left)) if plan.changes.is_empty() => Err(format!("{}: {}", left.rule, left.why)),
        _ => Ok(plan.changes),
    }
}
