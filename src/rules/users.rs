//! What users are given at login, for the rules about limits.

use super::case::{Case, unread};
use super::judgement::Judgement;
use crate::facts::Fact;
use crate::facts::limits_conf::{Domain, Item, Kind};

/// So many groups are named, the rest is counted.
const SHOWN: usize = 3;

/// Where it is said.
const FILES: &str = "/etc/security/limits.conf and limits.d";

/// Those whom pam_limits gives enough of something, in words; users are not named. None where there is nobody.
pub fn granted(case: &Case, item: Item, enough: fn(u64) -> bool) -> Result<Option<String>, Judgement> {
    let conf = match &case.survey.limits_conf {
        Fact::Known(conf) => conf,
        Fact::Absent => return Ok(None),
        other => return Err(unread(FILES, other)),
    };
    // A soft limit alone reaches no further than the hard one that is there already.
    let given = conf.grants.iter().filter(|grant| {
        grant.item == item
            && grant.domain != Domain::Root
            && grant.kind != Kind::Soft
            && grant.value.is_none_or(enough)
    });
    let mut names: Vec<String> = Vec::new();
    for name in given.map(|grant| grant.domain.to_string().chars().take(40).collect::<String>()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() && conf.unread > 0 {
        return Err(Judgement::unknown(format!("not all of {FILES} can be read: run as root")));
    }
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok((!names.is_empty()).then(|| names.join(", ") + &more))
}
