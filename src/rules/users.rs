//! What users are given at login, for the rules about limits.

use super::case::{Case, unread};
use super::judgement::Judgement;
use super::words::{short, some_of};
use crate::facts::Fact;
use crate::facts::limits_conf::{Domain, Item, Kind};

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
    let names = some_of(given.map(|grant| short(&grant.domain.to_string())));
    if names.is_empty() && conf.unread > 0 {
        return Err(Judgement::unknown(format!("not all of {FILES} can be read: run as root")));
    }
    Ok((!names.is_empty()).then_some(names))
}
