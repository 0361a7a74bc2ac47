//! Looks through folders again and again: those of `serve --runs`, and of `import --watch`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::text::several;

use crate::cli::say;
use crate::intake::{Keeping, ScanOptions, ScanOutcome, SeenRuns, scan};
use crate::store::FarmStore;
use crate::web::App;

/// Interval between two scans.
const EVERY: Duration = Duration::from_secs(30);

/// Shows the folders of a server. A farm without a store shows what exists: it starts over if
/// something was removed. That waits while folders are unreadable, as theirs would be dropped as
/// well.
pub async fn show(app: Arc<App>, roots: Vec<PathBuf>) {
    let mut has_gone = false;
    let options = ScanOptions { keeping: &Keeping::InPlace, board: None, progress: &() };
    loop {
        let begins_again = |all: &ScanOutcome| {
            has_gone |= all.vanished;
            app.set_refused(all.all_refused());
            has_gone && !all.failed && app.intake.is_none()
        };
        watch(&app.store, &roots, &options, begins_again).await;
        match app.store.forget_measured().await {
            Ok(()) => has_gone = false,
            Err(failure) => {
                say(&format!("onbeat-farm: {failure}"));
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

/// Imports new bundles, until the callback for each look ends it.
pub async fn watch(
    store: &FarmStore,
    roots: &[PathBuf],
    options: &ScanOptions<'_>,
    mut is_enough: impl FnMut(&ScanOutcome) -> bool,
) {
    let (mut seen, mut first) = (SeenRuns::default(), true);
    loop {
        let all = look(store, roots, &mut seen, options).await;
        if is_enough(&all) {
            return;
        }
        if first || all.stored() + all.new_records > 0 {
            say(&format!("onbeat-farm: {}", shown(&all)));
        }
        first = false;
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(
    store: &FarmStore,
    roots: &[PathBuf],
    seen: &mut SeenRuns,
    options: &ScanOptions<'_>,
) -> ScanOutcome {
    let mut all = ScanOutcome::default();
    for root in roots {
        match scan(store, root, seen, options).await {
            Ok(outcome) => {
                outcome.remarks.iter().for_each(|remark| say(&format!("onbeat-farm: {remark}")));
                all.add(outcome);
            }
            Err(failure) => say(&format!("onbeat-farm: {failure}")),
        }
    }
    all
}

fn shown(all: &ScanOutcome) -> String {
    let mut shown = several(all.stored() + all.had(), "run", "runs");
    if !all.records.is_empty() {
        shown += &format!(" and {}", several(all.records.len() as u64, "record", "records"));
    }
    format!("{shown} shown, {} refused", all.all_refused().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::RecordOutcome;

    #[test]
    fn records_are_told_where_there_are_some() {
        let some = |n: usize| vec![String::new(); n];
        let mut all = ScanOutcome { stored: some(2), had: some(1), ..ScanOutcome::default() };
        assert_eq!(shown(&all), "3 runs shown, 0 refused");
        all.records.push(RecordOutcome::default());
        assert_eq!(shown(&all), "3 runs and 1 record shown, 0 refused");
    }
}
