//! Remaining delays at the end of a cure, with the actions that they need.

use model::cure::{CureCandidate, CureCulprit, CureHunt, CureRemaining, CureRun};

use super::is_untried;
use super::negligible::{is_negligible, share};

/// Remaining delays by the last hunt.
pub fn remaining(record: &CureRun) -> Vec<CureRemaining> {
    let Some(hunt) = record.hunts.last() else { return Vec::new() };
    // A culprit seen after the change against it was kept is not cured by that change.
    let before = hunt.changes < record.kept_changes();
    let cured = |name: &str| before && record.steps.iter().any(|step| step.kept && step.culprit == name);
    let untraced = unexplained(hunt).filter(|_| !before && !record.held);
    let mut all: Vec<CureRemaining> = untraced.into_iter().collect();
    for culprit in hunt.culprits.iter().filter(|culprit| !cured(&culprit.name)) {
        let of_it = |is_kept: bool| -> Vec<&str> {
            let steps =
                record.steps.iter().filter(|step| step.culprit == culprit.name && step.kept == is_kept);
            steps.map(|step| step.change.as_str()).collect()
        };
        let (cures, in_vain) = (of_it(true), of_it(false));
        let decision =
            |what: String| CureRemaining { culprit: culprit.name.clone(), needs: "decision".into(), what };
        // Changes not tried, for lack of time or after a stop; a limit that is held needs none.
        let open = culprit.candidates.iter().filter(|candidate| is_untried(record, candidate));
        let open: Vec<String> = open.filter(|_| !record.held).map(CureCandidate::name).collect();
        if !open.is_empty() {
            let so_far =
                if is_negligible(culprit, hunt) { took(culprit, hunt) } else { "not tried yet".into() };
            all.push(decision(format!("{so_far}: {}", open.join(", "))));
        }
        all.extend(culprit.left.iter().cloned());
        if !cures.is_empty() {
            all.push(decision(format!("it still takes time with the kept changes: {}", cures.join(", "))));
        }
        if !in_vain.is_empty() {
            let what = format!("tried, but not proven to help: {}", in_vain.join(", "));
            all.push(decision(what));
        }
    }
    // Not measured, and so neither cured nor tried: listed even if the limit is held.
    all.extend(record.program_findings.iter().cloned());
    all
}

/// Unexplained time, if no culprit took as much: no setting cures it.
fn unexplained(hunt: &CureHunt) -> Option<CureRemaining> {
    let most = hunt.culprits.iter().map(|culprit| culprit.lost_ns).max().unwrap_or_default();
    (hunt.unexplained_ns > most).then(|| CureRemaining {
        culprit: "no kernel event".into(),
        needs: "hardware".into(),
        what:
            "most of the late time is due to hardware, firmware or a hypervisor, or is not traced: `onbeat \
             probe spin` detects time lost outside the kernel"
                .into(),
    })
}

/// Text for a negligible culprit, against which no change is tried.
fn took(culprit: &CureCulprit, hunt: &CureHunt) -> String {
    let percent = 100.0 * share(culprit, hunt).unwrap_or_default();
    let part = if percent < 0.05 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") };
    format!("not tried, because it took {part} of the time lost")
}
