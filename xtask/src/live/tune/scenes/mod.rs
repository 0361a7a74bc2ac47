//! The scenes, one file per subject.

mod cure_ends;
mod cure_killed;
mod cured;
mod documented;
mod exported;
mod isolated;
mod killed;
mod offline;
mod others;
mod planted;
mod proofs;
mod suites;
mod undone;
mod watched;
mod witness;

use super::scene::UndoScene;

/// The scenes.
pub fn all() -> Vec<UndoScene> {
    let groups = [
        witness::scenes(),
        undone::scenes(),
        killed::scenes(),
        others::scenes(),
        exported::scenes(),
        isolated::scenes(),
        suites::scenes(),
        planted::scenes(),
        proofs::scenes(),
        cured::scenes(),
        cure_ends::scenes(),
        cure_killed::scenes(),
        offline::scenes(),
        watched::scenes(),
        documented::scenes(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::MACHINES;
    use super::*;
    use crate::live::frames::Reply;
    use std::collections::BTreeSet;

    #[test]
    fn no_script_sends_two_things_under_one_label() {
        for (scene, script) in
            all().iter().flat_map(|scene| scene.boots.iter().map(|script| (scene.name, script)))
        {
            let mut labels = BTreeSet::new();
            let sent = script.lines().filter_map(|line| {
                let mut words = line.split_whitespace();
                matches!(words.next()?, "send" | "state").then(|| words.next())?
            });
            for label in sent.filter(|label| !label.contains('$')) {
                assert!(labels.insert(label), "{} sends {label} twice", scene);
            }
        }
    }

    #[test]
    fn names_are_unique_and_no_judge_is_content_with_silence() {
        for machine in MACHINES {
            let scenes = all();
            let names: BTreeSet<&str> = scenes.iter().map(|scene| scene.name).collect();
            assert_eq!(names.len(), scenes.len());
            for scene in scenes {
                let silent: Vec<Reply> = scene.boots.iter().map(|_| Reply::default()).collect();
                assert!((scene.judge)(&silent, machine).is_err(), "{} accepts nothing", scene.name);
            }
        }
    }
}
