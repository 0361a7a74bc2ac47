//! Environments of a board during a recording: each is sent once, before the rows that name it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bundle::record::read::{RecordItem, RecordReader};
use model::error::Failure;
use model::text::{hex, quoted};
use model::watch::WatchEnvironment;
use sha2::{Digest, Sha256};

use super::link::LinkFault;
use super::receipt::is_of;
use super::session::{PushAllowance, PushRound, RoundEnd};

/// Sends the environments that rows name and the farm lacks, with all others of the record that it
/// lacks: the record is read once for all of them.
pub fn send_named(
    round: &mut PushRound<'_>,
    record: &Path,
    named: &BTreeSet<String>,
) -> Result<(), RoundEnd> {
    let is_new = |env: &String| !env.is_empty() && !round.log.environments.contains(env);
    if !named.iter().any(is_new) {
        return Ok(());
    }
    let found = match read(record) {
        Ok(found) => found,
        Err(what) => {
            round.remark(what);
            return Ok(());
        }
    };
    for (env, environment) in found {
        if !round.log.environments.contains(&env) {
            send(round, &environment)?;
        }
    }
    // A name without an environment in the record is not searched for again.
    round.log.environments.extend(named.iter().filter(|env| !env.is_empty()).cloned());
    Ok(())
}

/// Environments of a record, by the names that rows use.
fn read(record: &Path) -> Result<BTreeMap<String, WatchEnvironment>, String> {
    let mut reader = RecordReader::open_folder(record).map_err(|failure: Failure| failure.message)?;
    let mut found = BTreeMap::new();
    let read = reader.each_item(|item| {
        if let RecordItem::Environment(environment) = item {
            found.insert(environment.env.clone(), *environment);
        }
    });
    match read {
        Ok(()) => Ok(found),
        Err(error) => Err(format!("the environments of {} cannot be read ({error})", quoted(record))),
    }
}

fn send(round: &mut PushRound<'_>, environment: &WatchEnvironment) -> Result<(), RoundEnd> {
    round.may(PushAllowance::Rows)?;
    let text = serde_json::to_vec(environment).map_err(|error| LinkFault::Source(error.to_string()))?;
    let digest = hex(&Sha256::digest(&text));
    let answer = round.link.put(&format!("/v1/environments/{digest}"), &text)?;
    match answer.status {
        200 | 201 if is_of(&answer, &digest) => {}
        200..=299 => return Err(LinkFault::no_farm().into()),
        status if !answer.is_own_refusal() => {
            let detail = format!("an environment of the board is refused ({status}: {})", answer.detail());
            return Err(LinkFault::Later { detail, after_s: None }.into());
        }
        status => {
            let detail = answer.detail();
            round.outcome.refused += 1;
            round.remark(format!("an environment of the board is skipped ({status}: {detail})"));
        }
    }
    round.log.environments.insert(environment.env.clone());
    round.keep()
}
