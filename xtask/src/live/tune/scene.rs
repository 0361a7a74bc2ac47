//! A scene: what the guest does in each of its boots, and a judge over what came back.

use std::collections::BTreeSet;

use super::noise::Noise;
use super::state::{ChangedKey, MachineState, differences};
use crate::live::frames::Reply;
use crate::live::judge::require;
use crate::live::machine::Machine;
use crate::live::tree;

/// What was measured, in lines; or what is wrong.
pub type Measured = Result<Vec<String>, String>;

/// The judge of a scene, over one reply per boot.
pub type SceneJudge = fn(&[Reply], &Machine) -> Measured;

/// One thing that must hold on a real kernel, in one or more boots.
pub struct UndoScene {
    /// Also the name of the check.
    pub name: &'static str,
    /// Whether it runs without `--all`.
    pub first: bool,
    /// Whether systemd is the guest's first process.
    pub systemd: bool,
    /// What the guest does, boot by boot; the disk stays.
    pub boots: Vec<String>,
    /// What a boot's command line gets besides, from the replies of those before it.
    pub words: fn(&[Reply]) -> String,
    /// What must have come back.
    pub judge: SceneJudge,
}

impl UndoScene {
    /// A scene of one boot.
    pub fn new(name: &'static str, script: &str, judge: SceneJudge) -> UndoScene {
        UndoScene {
            name,
            first: false,
            systemd: false,
            boots: vec![script.to_string()],
            words: |_| String::new(),
            judge,
        }
    }
}

/// The last line of a script that takes the power away.
pub const POWER_LOSS: &str = "power_loss\n";

/// Whether a script takes the power away, so that its end is not reported.
pub fn ends_by_itself(script: &str) -> bool {
    script.ends_with(POWER_LOSS)
}

/// A state that the guest sent.
pub fn state(reply: &Reply, label: &str, machine: &Machine) -> Result<MachineState, String> {
    let bytes = tree::unpacked(reply, label, &format!("{}-state", machine.name))?;
    MachineState::parse(&String::from_utf8_lossy(&bytes))
}

/// The interrupts that did not come while one of the undos of a boot went on.
///
/// What one of them left where it was is where the next finds it.
pub fn idle(reply: &Reply) -> Result<BTreeSet<String>, String> {
    let lists =
        reply.values.iter().filter(|(label, _)| label.ends_with(".idle") || label.starts_with("idle."));
    let lists: Vec<&String> = lists.map(|(_, list)| list).collect();
    require(!lists.is_empty(), || "the guest does not say which interrupts were idle".to_string())?;
    Ok(lists.into_iter().flat_map(|list| list.split_whitespace()).map(str::to_string).collect())
}

/// What differs and is no noise; and a line that says how much was compared.
pub fn compared(
    before: &MachineState,
    after: &MachineState,
    idle: &BTreeSet<String>,
) -> (Vec<ChangedKey>, String) {
    let all = differences(before, after, idle);
    let found = all.len();
    let (left, used) = Noise::read().without(all);
    let line = format!(
        "{} keys compared, {} threads, {found} differ, {} of them noise of {} patterns",
        before.len(),
        before.tasks().count(),
        found - left.len(),
        used.len()
    );
    (left, line)
}

/// What differs and is no noise, where the second state is of some files and the threads only.
pub fn compared_as(
    before: &MachineState,
    after: &MachineState,
    idle: &BTreeSet<String>,
    whole: bool,
) -> (Vec<ChangedKey>, String) {
    if whole { compared(before, after, idle) } else { compared(&before.of_the_keys_of(after), after, idle) }
}

/// An error that names what differs, unless nothing does.
pub fn none_left(left: &[ChangedKey], what: &str) -> Result<(), String> {
    if left.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = left.iter().take(12).map(ChangedKey::told).collect();
    Err(format!("{what}: {} differ: {}", left.len(), told.join("; ")))
}
