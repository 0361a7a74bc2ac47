//! Switch of the machine between the arms: settings through the journal, or the user's script.

use std::path::{Path, PathBuf};

use super::chosen::ChosenProof;
use super::script_keeper::{self, how_it_ended};
use crate::cli::Environment;
use crate::cli::outputs::remark;
use crate::cli::step_settings::{StepSettings, StepWish, UnmovedInterrupt};
use host::rt;
use host::switch_script::{ScriptEnd, SwitchScript};
use model::error::{Exit, Failure, ItemFailure, Result};
use model::experiment::ExperimentArm;
use model::text::quoted;
use model::units::Nanos;

/// Switch, and its state.
pub enum ArmSwitch<'a> {
    Settings { settings: Box<StepSettings<'a>>, wish: StepWish },
    Script(ScriptSwitch),
}

/// Script, its time limit, and the arm in force; none if that is unknown.
pub struct ScriptSwitch {
    script: SwitchScript,
    at_most: Nanos,
    in_force: Option<ExperimentArm>,
    /// True if the script was called at least once.
    called: bool,
    /// Marker file of its keeper; none without a keeper.
    marker: Option<PathBuf>,
}

impl<'a> ArmSwitch<'a> {
    /// A switch that is ready: with the journal's lock, if settings are changed.
    ///
    /// # Errors
    /// Not permitted: this is not root, or another onbeat is changing settings.
    pub fn of(chosen: &'a ChosenProof, environment: &'a Environment, yes: bool) -> Result<ArmSwitch<'a>> {
        if let Some(script) = &chosen.script {
            let script = script.clone();
            let at_most = chosen.script_time;
            let switch = ScriptSwitch { script, at_most, in_force: None, called: false, marker: None };
            return Ok(ArmSwitch::Script(switch));
        }
        let mut settings = StepSettings::new(environment, &chosen.cpus, yes, "proving a change");
        settings.lock()?;
        let wish = StepWish { settings: chosen.settings.clone(), ..StepWish::default() };
        Ok(ArmSwitch::Settings { settings: Box::new(settings), wish })
    }

    /// Starts the keeper that reverts a script's change if this process is killed, and reverts a
    /// change left in force by a killed experiment.
    pub fn begin(&mut self, folder: &Path) -> Result<()> {
        let ArmSwitch::Script(switch) = self else { return Ok(()) };
        let found = script_keeper::start(&switch.script, switch.at_most, folder)?;
        switch.marker = Some(found.path);
        if !found.why.is_empty() {
            remark(&format!("onbeat: after the kill, {}; trying again now", found.why));
        }
        if found.left { switch.to(ExperimentArm::A, &rt::stop_pending) } else { Ok(()) }
    }

    pub fn to(&mut self, arm: ExperimentArm) -> Result<()> {
        match self {
            ArmSwitch::Script(switch) => switch.to(arm, &rt::stop_pending),
            ArmSwitch::Settings { settings, wish } => {
                let settings_of_arm = match arm {
                    ExperimentArm::A => StepWish::default(),
                    ExperimentArm::B => wish.clone(),
                };
                settings.switch(settings_of_arm).map_err(|failure| match failure {
                    ItemFailure::Refused(reason) => Failure::not_supported(reason),
                    ItemFailure::Fatal(failure) => failure,
                })
            }
        }
    }

    /// Requires interrupts to move before an arm counts as reached; waits at most this long.
    pub fn be_patient(&mut self, most: Nanos) {
        if let ArmSwitch::Settings { settings, .. } = self {
            settings.be_patient(most);
        }
    }

    /// Interrupts that are not where the arm in force puts them.
    pub fn unmoved(&self) -> Vec<UnmovedInterrupt> {
        match self {
            ArmSwitch::Settings { settings, .. } => settings.unmoved(),
            // A script has to wait for the interrupts that it moves.
            ArmSwitch::Script(_) => Vec::new(),
        }
    }

    /// Those of these interrupts that occurred since.
    pub fn astray(&self, unmoved: &[UnmovedInterrupt]) -> Vec<u32> {
        match self {
            ArmSwitch::Settings { settings, .. } => settings.astray(unmoved),
            ArmSwitch::Script(_) => Vec::new(),
        }
    }

    /// Restores the machine, whatever signal is pending.
    pub fn put_back(&mut self) -> Result<()> {
        match self {
            ArmSwitch::Settings { settings, .. } => settings.put_back(),
            ArmSwitch::Script(switch) if !switch.called => Ok(()),
            ArmSwitch::Script(switch) => switch.to(ExperimentArm::A, &|| false).map_err(|failure| Failure {
                exit: Exit::Limit,
                message: format!("the change may still be in force: {}", failure.message),
            }),
        }
    }
}

impl ScriptSwitch {
    /// Calls the script, until `is_stopped` returns true.
    fn to(&mut self, arm: ExperimentArm, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        if self.in_force == Some(arm) {
            return Ok(());
        }
        let (path, word) = (quoted(self.script.path()).to_string(), arm.name());
        self.in_force = None;
        self.called = true;
        // Before the call: it may be half done when this process is killed.
        self.mark("b")?;
        let mark = self.marker.as_deref().unwrap_or(Path::new(""));
        let ended = self.script.call(word, self.at_most, mark, is_stopped).map_err(|error| {
            let what = format!("--script: cannot start {path}");
            Failure::of_call(what, &error, Exit::Usage, "give it an existing interpreter (#!)")
        })?;
        if ended != ScriptEnd::Done {
            let message = format!("--script: {path} {word} {}", how_it_ended(&ended, self.at_most));
            let exit = if ended == ScriptEnd::Stopped { Exit::Interrupted } else { Exit::Usage };
            return Err(Failure { exit, message });
        }
        self.in_force = Some(arm);
        self.mark(word)
    }

    fn mark(&self, word: &str) -> Result<()> {
        self.marker.as_ref().map_or(Ok(()), |marker| script_keeper::mark(marker, word))
    }
}
