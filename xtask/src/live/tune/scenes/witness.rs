//! Tests of the witness: no difference without a change, and every change made by hand.

use std::collections::BTreeSet;

use super::super::scene::{Measured, UndoScene, compared, none_left, state};
use crate::live::frames::Reply;
use crate::live::judge::require;
use crate::live::machine::Machine;

const SCRIPT: &str = include_str!("../../guest/tune-witness.sh");
/// Fewer keys are not those of a whole machine.
const KEYS: usize = 4000;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("tune-witness", SCRIPT, witness)]
}

fn witness(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    let [first, second, changed, restored] =
        ["first", "second", "changed", "restored"].map(|label| state(reply, label, machine));
    let (first, second, changed, restored) = (first?, second?, changed?, restored?);
    require(first.len() >= KEYS, || format!("{} keys are too few", first.len()))?;
    let (left, quiet) = compared(&first, &second, &BTreeSet::new());
    none_left(&left, "without any change")?;
    let (found, _) = compared(&second, &changed, &BTreeSet::new());
    let mut lines = vec![quiet];
    for wanted in reply.file("by-hand")?.lines() {
        require(found.iter().any(|difference| difference.key == wanted), || {
            format!("the witness does not see that {wanted} was changed")
        })?;
    }
    lines.push(format!("by hand {}, seen {}", reply.file("by-hand")?.lines().count(), found.len()));
    // Its list was restored, but not its effective target.
    let moved = BTreeSet::from([reply.value("moved")?.to_string()]);
    let (left, _) = compared(&second, &restored, &moved);
    none_left(&left, "put back by hand")?;
    Ok(lines)
}
