//! A cure that is killed at every point: unproven changes are undone automatically, kept ones stay
//! in `tune status`, and the measurements count.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, require};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("cure-killed", include_str!("../../guest/cure-killed.sh"), killed)]
}

/// Parts in which it is killed, and true if a change may stay.
const PARTS: [(&str, bool); 3] = [("beginning", false), ("trying", false), ("keeping", true)];

/// Time limit for undoing a killed command's changes, in ms.
const PATIENCE: i64 = 10_000;

fn killed(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let found = reply.value("found")?.trim();
    let mut lines = Vec::new();
    for (part, may_stay) in PARTS {
        let code = reply.number(&format!("{part}.exit"))?;
        require(matches!(code, 0 | 3 | 7), || format!("{part} without a kill ended with {code}"))?;
        let whole = reply.value(&format!("{part}.whole"))?.trim();
        require((whole == found) != may_stay, || format!("{part} without a kill leaves {whole}"))?;
        lines.push(killed_while(reply, part, may_stay, found)?);
    }
    require(reply.value("after")?.trim() == found, || "the change is still in force".to_string())?;
    require(reply.value("left")?.trim().is_empty(), || "something of onbeat's is left running".to_string())?;
    let status = document(reply, "status.out")?;
    let changes = status["changes"].as_array().ok_or("tune status has no changes")?;
    require(changes.is_empty(), || format!("tune status still has {changes:?}"))?;
    Ok(lines)
}

fn killed_while(reply: &Reply, part: &str, may_stay: bool, found: &str) -> Result<String, String> {
    let points = reply.number(&format!("{part}.points"))?;
    let (mut kills, mut stayed, mut over, mut resumed, mut runs) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    for point in 1..=points {
        let kill = CureKill::parse(reply.value(&format!("{part}.{point}"))?)?;
        let undone = reply.value(&format!("{part}.{point}.undone"))?.trim();
        require(undone == found, || format!("killed at {}: {undone} after tune undo", kill.place))?;
        // One run may find what another created, and so end before its last points.
        if kill.code == 137 {
            kills += 1;
            stayed += usize::from(kill.value != found);
            over = over.max(kill.over);
            wrong.extend(kill.wrong(found, may_stay));
        }
        let Ok(code) = reply.number(&format!("{part}.{point}.resumed")) else { continue };
        resumed += 1;
        let lost = reply.value(&format!("{part}.{point}.lost"))?;
        let set = reply.value(&format!("{part}.{point}.set"))?.trim();
        if !matches!(code, 0 | 3 | 7) || !lost.starts_with("no ") || (set != found) != may_stay {
            wrong.push(format!("killed at {}, gone on with: exit {code}, {set}, {lost}", kill.place));
        }
        runs += lost.split(' ').nth(1).and_then(|runs| runs.parse::<u32>().ok()).unwrap_or(0);
    }
    let line = format!(
        "{part}: killed at {kills} of {points} points, the change stayed after {stayed}, over after {over} ms \
         at most; gone on with after {resumed}, {runs} runs counted on"
    );
    require(wrong.is_empty(), || format!("{line}; wrong: {}", wrong.join(" | ")))?;
    require(kills >= 2 && kills + 2 >= points && (stayed > 0) == may_stay, || line.clone())?;
    require(resumed > 0 || part == "beginning", || line.clone())?;
    Ok(line)
}

/// State after a kill of a cure.
struct CureKill<'a> {
    code: i64,
    /// Until nothing of onbeat's ran any more, in ms.
    over: i64,
    value: &'a str,
    /// Number of changes in `tune status`, and of those kept by the record.
    listed: i64,
    kept: i64,
    place: String,
}

impl CureKill<'_> {
    fn parse(said: &str) -> Result<CureKill<'_>, String> {
        let words: Vec<&str> = said.split_whitespace().collect();
        let [code, over, value, listed, kept, place @ ..] = words.as_slice() else {
            return Err(format!("a kill is told as {said:?}"));
        };
        let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number in {said:?}"));
        Ok(CureKill {
            code: number(code)?,
            over: number(over)?,
            value,
            listed: number(listed)?,
            kept: number(kept)?,
            place: place.join(" "),
        })
    }

    /// Fault of the state: a change in force must be listed and in the record, and no other.
    fn wrong(&self, found: &str, may_stay: bool) -> Option<String> {
        let stays = self.value != found;
        let fits = if stays { may_stay && self.listed == 1 && self.kept == 1 } else { self.listed == 0 };
        (!fits || self.over >= PATIENCE).then(|| {
            let (value, listed, kept, over) = (self.value, self.listed, self.kept, self.over);
            format!("killed at {}: {value}, {listed} listed, {kept} kept, after {over} ms", self.place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_has_to_be_proven_listed_and_in_the_record() {
        let wrong = |said: &str, may_stay| CureKill::parse(said).unwrap().wrong("2", may_stay).is_some();
        assert!(!wrong("137 300 2 0 0 7 before-flush /a", false) && !wrong("137 300 10 1 1 7 x", true));
        assert!(wrong("137 300 10 1 1 7 x", false), "it is not proven");
        assert!(wrong("137 300 10 0 1 7 x", true) && wrong("137 300 10 1 0 7 x", true));
        assert!(wrong("137 300 2 1 1 7 x", true), "it is listed and not in force");
        assert!(!wrong("137 300 2 0 1 7 x", true), "it was undone, and is kept anew");
        assert!(wrong("137 10050 2 0 0 7 x", false));
        assert!(CureKill::parse("137 300").is_err() && CureKill::parse("x 300 2 0 0").is_err());
    }
}
