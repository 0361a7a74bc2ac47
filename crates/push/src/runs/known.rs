//! Comparison of the log with what the farm has. A farm that was restored from a backup has less:
//! what it lacks is forgotten here, and sent again.

use std::collections::BTreeMap;

use model::text::several;
use model::units::Nanos;
use serde_json::Value;

use crate::link::LinkFault;
use crate::receipt::is_of_board;
use crate::sent::SentRows;
use crate::session::{FarmComparison, PushAllowance, PushRound, RoundEnd};

/// Interval between two comparisons.
const EVERY: Nanos = Nanos(86_400 * Nanos::SECOND.0);
/// Limit of runs, and of stretches of rows, in one answer: each answer is held in memory.
const MOST_NAMED: usize = 1_000;
/// Limit of answers, should the farm's list not end.
const MOST_ANSWERS: usize = 1_000;

/// Reads the farm's inventory: stores its runs in the round and returns its rows; none if the
/// answers name only a part.
pub fn learn(round: &mut PushRound<'_>) -> Result<Option<Vec<SentRows>>, RoundEnd> {
    let (mut runs, mut rows) = (BTreeMap::new(), Vec::new());
    let (mut next, mut is_whole) = (format!("most={MOST_NAMED}"), false);
    for _ in 0..MOST_ANSWERS {
        round.may(PushAllowance::Rows)?;
        let answer = round.link.get(&format!("/v1/me?{next}"))?;
        if !(200..300).contains(&answer.status) {
            let (status, detail) = (answer.status, answer.detail());
            let detail = format!("cannot list what the farm has ({status}: {detail})");
            return Err(LinkFault::Later { detail, after_s: None }.into());
        }
        // Anything that the answer does not name would be forgotten.
        if !is_of_board(&answer) {
            return Err(LinkFault::no_farm().into());
        }
        let body = answer.body;
        let named = body["runs"].as_array().into_iter().flatten();
        // Only the manifest covers the last seconds of a run that was killed.
        let state = |run: &Value| if run["manifest"].is_string() { "manifest" } else { "digest" };
        runs.extend(named.map(|run| (text(run, "id"), text(run, state(run)))));
        add_rows(&mut rows, &body);
        is_whole = body["whole"].as_bool() == Some(true);
        match body["next"].as_str() {
            Some(more) => next = more.to_owned(),
            None => break,
        }
    }
    round.known = Some(runs);
    Ok(is_whole.then_some(rows))
}

/// Forgets rows that the farm no longer has.
pub fn compare_rows(round: &mut PushRound<'_>) -> Result<(), RoundEnd> {
    let now = host::clock::monotonic();
    match round.comparison {
        FarmComparison::RunsLeft => return Ok(()),
        FarmComparison::Done(at) if now - at < EVERY => return Ok(()),
        FarmComparison::Due | FarmComparison::Done(_) => {}
    }
    if round.log.rows.is_empty() && round.log.runs.is_empty() {
        round.comparison = FarmComparison::Done(now);
        return Ok(());
    }
    // With a partial list, an item that is not named may still be there.
    let Some(there) = learn(round)? else {
        round.remark(
            "the farm lists only a part of what it has, so losses there are not detected: update onbeat-farm"
                .to_owned(),
        );
        round.comparison = FarmComparison::Done(now);
        return Ok(());
    };
    let forgotten = round.log.forget_but(&there);
    if forgotten > 0 {
        // The farm may have lost the environments that these rows name.
        round.log.environments.clear();
        tell_lost(round, &several(forgotten, "row", "rows"));
        round.keep()?;
    }
    round.comparison = FarmComparison::RunsLeft;
    Ok(())
}

/// Reports that the farm lost something.
pub fn tell_lost(round: &mut PushRound<'_>, what: &str) {
    round.remark(format!(
        "the farm no longer has {what}, for example after a restored backup or a removed run: what is still \
         here is offered again"
    ));
}

/// Adds the rows that an answer names.
fn add_rows(all: &mut Vec<SentRows>, told: &Value) {
    for stretch in told["stretches"].as_array().into_iter().flatten() {
        let (Some(first), Some(last)) = (stretch["first"].as_u64(), stretch["last"].as_u64()) else {
            continue;
        };
        let names = ["recording", "boot", "series"].map(|name| text(stretch, name));
        // Stretches of one series are consecutive.
        if !all.last().is_some_and(|rows| rows.is(&names[0], &names[1], &names[2])) {
            let [recording, boot, series] = names;
            all.push(SentRows { recording, boot, series, ..SentRows::default() });
        }
        if let Some(rows) = all.last_mut() {
            rows.done.insert(first, last);
        }
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
