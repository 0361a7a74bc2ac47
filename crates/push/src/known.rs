//! What the farm has of what is noted as sent. A farm that went back to a backup has less: that is
//! forgotten here, and sent again.

use model::text::{excerpt, several};
use model::units::Nanos;
use serde_json::Value;

use super::link::LinkFault;
use super::sent::SentRows;
use super::session::{FarmComparison, PushAllowance, PushRound, RoundEnd};

/// Between two comparisons.
const EVERY: Nanos = Nanos(86_400 * Nanos::SECOND.0);

/// Asks which runs the farm has; the answer.
pub fn learn(round: &mut PushRound<'_>) -> Result<Value, RoundEnd> {
    round.may(PushAllowance::Rows)?;
    let answer = round.link.get("/v1/me")?;
    if answer.status != 200 {
        let detail = excerpt(answer.body["detail"].as_str().unwrap_or_default());
        let detail = format!("the farm does not say what it has ({}: {detail})", answer.status);
        return Err(LinkFault::Later { detail, after_s: None }.into());
    }
    let runs = answer.body["runs"].as_array().into_iter().flatten();
    round.known = Some(runs.map(|run| (text(run, "id"), text(run, "digest"))).collect());
    Ok(answer.body)
}

/// Forgets rows that the farm has no longer.
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
    let told = learn(round)?;
    // Where a part is named alone, as by an earlier farm, what is not named may be there.
    if told["whole"].as_bool() != Some(true) {
        round.comparison = FarmComparison::Done(now);
        return Ok(());
    }
    let forgotten = round.log.forget_but(&rows_of(&told));
    if forgotten > 0 {
        // What they name went back with them.
        round.log.environments.clear();
        tell_lost(round, &several(forgotten, "row", "rows"));
        round.keep()?;
    }
    round.comparison = FarmComparison::RunsLeft;
    Ok(())
}

/// Says that the farm lost something.
pub fn tell_lost(round: &mut PushRound<'_>, what: &str) {
    round.remark(format!(
        "the farm has no longer {what} that it had, as after a backup was restored or a run removed: what \
         of that is still here is offered again"
    ));
}

/// The rows that an answer names.
fn rows_of(told: &Value) -> Vec<SentRows> {
    let mut all: Vec<SentRows> = Vec::new();
    for stretch in told["stretches"].as_array().into_iter().flatten() {
        let (Some(first), Some(last)) = (stretch["first"].as_u64(), stretch["last"].as_u64()) else {
            continue;
        };
        let names = ["recording", "boot", "series"].map(|name| text(stretch, name));
        // Those of one series follow each other.
        if !all.last().is_some_and(|rows| rows.is(&names[0], &names[1], &names[2])) {
            let [recording, boot, series] = names;
            all.push(SentRows { recording, boot, series, ..SentRows::default() });
        }
        if let Some(rows) = all.last_mut() {
            rows.done.insert(first, last);
        }
    }
    all
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
