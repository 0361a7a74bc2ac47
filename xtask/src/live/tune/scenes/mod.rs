//! The scenes, one file per subject.

mod exported;
mod isolated;
mod killed;
mod others;
mod undone;
mod witness;

use super::scene::Scene;

/// The scenes.
pub fn all() -> Vec<Scene> {
    let groups = [
        witness::scenes(),
        undone::scenes(),
        killed::scenes(),
        others::scenes(),
        exported::scenes(),
        isolated::scenes(),
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
