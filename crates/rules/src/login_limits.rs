//! Limits of users at login, for the rules about them.

use super::change::AdviceReason;
use super::intent::Profile;
use super::judgement::{Judged, Judgement};
use super::remedy::Remedy;
use super::words::{truncate, truncate_list};
use crate::unknown::unknown_from;
use crate::view::MachineView;
use facts::Fact;
use facts::limits_conf::{Domain, Item, Kind};
use model::error::run_with;

/// Files with the limits.
const FILES: &str = "/etc/security/limits.conf and limits.d";

/// Files that container managers create in containers.
pub const CONTAINER: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];

/// The remedy in a container, where no login and no systemd unit sets limits; none elsewhere. For
/// rules that read [`CONTAINER`].
pub fn of_container(machine: &MachineView, options: &str) -> Option<Remedy> {
    let is_there = |path| matches!(machine.parsed(path, |_| Ok(())), Ok(Some(())));
    CONTAINER.into_iter().any(is_there).then(|| {
        let words = format!("start the container with {options} (docker and podman run)");
        Remedy::advice(AdviceReason::Program, words)
    })
}

/// Users that pam_limits gives enough of something, in words without their names; none if there are
/// none.
pub fn granted(
    machine: &MachineView,
    item: Item,
    enough: fn(u64) -> bool,
) -> Result<Option<String>, Judgement> {
    let conf = match &machine.survey.limits_conf {
        Fact::Known(conf) => conf,
        Fact::Absent => return Ok(None),
        other => return Err(unknown_from(FILES, other)),
    };
    // A soft limit cannot exceed the present hard one.
    let given = conf.grants.iter().filter(|grant| {
        grant.item == item
            && grant.domain != Domain::Root
            && grant.kind != Kind::Soft
            && grant.value.is_none_or(enough)
    });
    let names = truncate_list(given.map(|grant| truncate(&grant.domain.to_string())));
    if names.is_empty() && conf.unread > 0 {
        return Err(Judgement::unknown(format!(
            "not all of {FILES} can be read: {}",
            run_with("CAP_DAC_READ_SEARCH")
        )));
    }
    Ok((!names.is_empty()).then_some(names))
}

/// Value to which a limit may be raised without a capability, in words; `""` if it may not.
pub fn may_be_raised(soft: Option<u64>, hard: Option<u64>, show: fn(u64) -> String) -> String {
    match hard {
        Some(hard) if soft.is_some_and(|soft| hard <= soft) => String::new(),
        Some(hard) => format!(", may be raised to {}", show(hard)),
        None => ", may be raised".to_owned(),
    }
}

/// The remedy if some users have enough of it already; `unit` is the line for a service.
pub fn join(users: &str, unit: &str) -> Remedy {
    Remedy::advice(
        AdviceReason::Program,
        format!("limits.conf gives it to {users}: join, and log in again; for a service, {unit} in its unit"),
    )
}

/// The judgement for a process with a capability, which needs no limit: only users can lack it, and
/// only the audio profile is certain to have users. `nobody` is the judgement if no user has
/// enough.
pub fn judge_privileged(
    machine: &MachineView,
    capability: &str,
    users: Result<Option<String>, Judgement>,
    nobody: Judgement,
) -> Judged {
    match (users, machine.has_profile(Profile::Audio)) {
        (Ok(Some(users)), _) => Ok(Judgement::pass(format!("{capability}; users: {users}"))),
        (Err(unknown), true) => Err(unknown),
        (Ok(None), true) => Ok(nobody),
        (Ok(None), false) => Ok(Judgement::pass(format!("{capability}; no user has a higher limit"))),
        (Err(_), false) => Ok(Judgement::pass(capability)),
    }
}
