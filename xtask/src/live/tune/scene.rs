//! A scene: a script of the guest for each of its boots, and a judge of the results.

use std::collections::BTreeSet;

use super::noise::Noise;
use super::state::{ChangedKey, MachineState, differences};
use crate::live::frames::Reply;
use crate::live::judge::require;
use crate::live::machine::Machine;
use crate::live::qemu::CmdlineEdit;
use crate::live::tree;

/// Measurements, in lines; or the fault.
pub type Measured = Result<Vec<String>, String>;

/// The judge of a scene, over one reply per boot.
pub type SceneJudge = fn(&[Reply], &Machine) -> Measured;

/// A requirement on a real kernel, in one or more boots.
pub struct UndoScene {
    /// Also the name of the check.
    pub name: &'static str,
    /// True if it runs without `--all`.
    pub first: bool,
    /// True if systemd is the guest's first process.
    pub systemd: bool,
    /// True if the guest has the faults of lab/onbeat_fault and lab/user_faults.
    pub faults: bool,
    /// True if the guest has the programs of examples/robot.
    pub robots: bool,
    /// Scripts of the guest, one per boot; the disk persists.
    pub boots: Vec<String>,
    /// Changes to a boot's command line, from the replies of earlier boots.
    pub words: fn(&[Reply]) -> CmdlineEdit,
    /// Judge of the results.
    pub judge: SceneJudge,
    /// A place in the kernel that may warn, if the scene is about a defect of the kernel itself; ""
    /// for none.
    pub may_warn: &'static str,
}

impl UndoScene {
    /// A scene of one boot.
    pub fn new(name: &'static str, script: &str, judge: SceneJudge) -> UndoScene {
        UndoScene {
            name,
            first: false,
            systemd: false,
            faults: false,
            robots: false,
            boots: vec![script.to_string()],
            words: |_| CmdlineEdit::default(),
            judge,
            may_warn: "",
        }
    }
}

/// Number of lines of a kernel's warning that are printed.
const WARNED_LINES: usize = 16;

/// Last line of a script that cuts the power.
pub const POWER_LOSS: &str = "power_loss\n";

/// True if a script cuts the power, so that its end is not reported.
pub fn ends_by_itself(script: &str) -> bool {
    script.ends_with(POWER_LOSS)
}

/// A state that the guest sent.
pub fn state(reply: &Reply, label: &str, machine: &Machine) -> Result<MachineState, String> {
    let bytes = tree::unpacked(reply, label, &format!("{}-state", machine.name))?;
    MachineState::parse(&String::from_utf8_lossy(&bytes))
}

/// Interrupts that did not occur during one of the undos of a boot.
///
/// An interrupt that one of them did not move is in the same place for the next.
pub fn idle(reply: &Reply) -> Result<BTreeSet<String>, String> {
    let lists =
        reply.values.iter().filter(|(label, _)| label.ends_with(".idle") || label.starts_with("idle."));
    let lists: Vec<&String> = lists.map(|(_, list)| list).collect();
    require(!lists.is_empty(), || "the guest does not say which interrupts were idle".to_string())?;
    Ok(lists.into_iter().flat_map(|list| list.split_whitespace()).map(str::to_string).collect())
}

/// Fails if the kernel warned (WARN) while a script ran, with the place and its cause; counts the
/// warnings of the permitted place.
pub fn warnings(replies: &[Reply], may_warn: &str) -> Result<usize, String> {
    let mut expected = 0;
    for (boot, reply) in replies.iter().enumerate() {
        let Ok(log) = reply.file("kernel.warnings") else { continue };
        let mut places = log.lines().filter(|line| line.contains("WARNING:")).peekable();
        let any = places.peek().is_some();
        if any && !may_warn.is_empty() && places.clone().all(|line| line.contains(may_warn)) {
            expected += places.count();
            continue;
        }
        // The first line of a warning, and the calls that led to it.
        let told = log.lines().filter(|line| line.contains("WARNING:") || line.contains("+0x"));
        let told: Vec<&str> = told.take(WARNED_LINES).map(without_time).collect();
        let told = if told.is_empty() { "its log does not say why".to_string() } else { told.join("; ") };
        return Err(format!("boot {}: the kernel warned: {told}", boot + 1));
    }
    Ok(expected)
}

/// A line of the log without the time in brackets before it.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    rest.map_or(line, |(_, text)| text).trim()
}

/// Differences other than noise; and a line with the number of compared keys.
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

/// Differences other than noise, if the second state has some files and the threads only.
pub fn compared_as(
    before: &MachineState,
    after: &MachineState,
    idle: &BTreeSet<String>,
    whole: bool,
) -> (Vec<ChangedKey>, String) {
    if whole { compared(before, after, idle) } else { compared(&before.of_the_keys_of(after), after, idle) }
}

/// Fails with the differences, if any.
pub fn none_left(left: &[ChangedKey], what: &str) -> Result<(), String> {
    if left.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = left.iter().take(12).map(ChangedKey::told).collect();
    Err(format!("{what}: {} differ: {}", left.len(), told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_warns_fails_the_scene_and_is_quoted() {
        let quiet = Reply::default();
        let mut loud = Reply::default();
        let log = "[    9.1] ------------[ cut here ]------------\n\
            [    9.1] WARNING: CPU: 2 PID: 7 at kernel/x.c:12 set+0x1/0x2\n[    9.1] Modules linked in: a\n\
            [    9.2] Call Trace:\n[    9.2]  write+0x3/0x4\n";
        loud.files.insert("kernel.warnings".into(), Some(log.into()));
        assert_eq!(warnings(std::slice::from_ref(&quiet), ""), Ok(0));
        assert_eq!(warnings(std::slice::from_ref(&loud), "kernel/x.c:12 set+"), Ok(1));
        assert!(warnings(std::slice::from_ref(&loud), "kernel/y.c:12 set+").is_err());
        let told = warnings(&[quiet, loud], "").unwrap_err();
        let wanted = "WARNING: CPU: 2 PID: 7 at kernel/x.c:12 set+0x1/0x2; write+0x3/0x4";
        assert_eq!(told, format!("boot 2: the kernel warned: {wanted}"));
        // An overwritten log counts as a warning.
        let mut cut = Reply::default();
        cut.files.insert("kernel.warnings".into(), Some(String::new()));
        assert!(warnings(&[cut], "kernel/x.c:12 set+").is_err());
    }
}
