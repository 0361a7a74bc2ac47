//! Runs that the farm refused because they were removed there: once a day it is asked whether they
//! may come again.

use std::path::Path;

use model::text::quoted;
use model::units::Nanos;

use crate::link::LinkFault;
use crate::receipt::removed_of;
use crate::session::{PushAllowance, PushRound, RoundEnd};

/// Interval between two questions, in wall-clock time: a program that is started each hour asks no
/// more often.
const EVERY_S: u64 = 86_400;
/// Limit of runs in one request: their ids are in its URL.
const AT_ONCE: usize = 32;
/// Limit of runs to ask about: the newest ones.
const MOST: usize = 512;

/// Notes a run that the farm refused as removed, by its folder.
pub fn note(round: &mut PushRound<'_>, key: String, id: String) {
    if round.log.removed.is_empty() {
        round.log.removed_asked_s = now_s();
    }
    round.log.removed.insert(key, id);
}

/// Asks whether removed runs may come again, and forgets the refusal of those that may, so that
/// this round sends them.
pub fn ask_again(round: &mut PushRound<'_>) -> Result<(), RoundEnd> {
    let is_due = now_s().abs_diff(round.log.removed_asked_s) >= EVERY_S;
    // Runs are not sent during a measurement either.
    if round.log.removed.is_empty() || !is_due || (round.allowed)() < PushAllowance::All {
        return Ok(());
    }
    let mut removed: Vec<(String, String)> =
        round.log.removed.iter().map(|(key, id)| (key.clone(), id.clone())).collect();
    // The newest first: the names of their folders begin with their time.
    removed.sort_by(|a, b| Path::new(&b.0).file_name().cmp(&Path::new(&a.0).file_name()));
    removed.truncate(MOST);
    let mut allowed = Vec::new();
    for some in removed.chunks(AT_ONCE) {
        round.may(PushAllowance::All)?;
        let ids: Vec<&str> = some.iter().map(|(_, id)| id.as_str()).collect();
        let answer = round.link.get(&format!("/v1/me/removed?runs={}", ids.join(",")))?;
        match (answer.status, removed_of(&answer, &ids)) {
            (200..=299, Some(still)) => {
                let may_come = |id: &str| !still.contains(&id);
                allowed.extend(some.iter().filter(|(_, id)| may_come(id)).map(|(key, _)| key.clone()));
            }
            (200..=299, None) => return Err(LinkFault::no_farm().into()),
            (status, _) => {
                let detail = answer.detail();
                let detail = format!("cannot list what was removed from the farm ({status}: {detail})");
                return Err(LinkFault::Later { detail, after_s: None }.into());
            }
        }
    }
    round.log.removed_asked_s = now_s();
    for key in &allowed {
        round.log.runs.remove(key);
        round.log.refused.remove(key);
        round.log.removed.remove(key);
        round.remark(format!("{} was removed from the farm and is allowed again", quoted(key)));
    }
    round.keep()
}

fn now_s() -> i64 {
    (host::clock::monotonic() + host::clock::wall_offset()).0.div_euclid(Nanos::SECOND.0)
}
