//! What a server does with the folders of `--runs`: it looks through them, again and again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::text::several;

use super::say;
use super::scan::{ScanOutcome, SeenRuns, scan};
use crate::store::FarmStore;
use crate::web::App;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(30);

pub async fn watch(app: Arc<App>, roots: Vec<PathBuf>) {
    let mut seen = SeenRuns::default();
    let (mut first, mut has_gone) = (true, false);
    loop {
        let mut all = look(&app.store, &roots, &mut seen).await;
        has_gone |= all.vanished;
        // A farm that keeps nothing shows what is there: it begins again where something has gone.
        // That waits for folders that could not be looked through: theirs would be gone as well.
        if has_gone && !all.failed && app.intake.is_none() {
            match app.store.forget_measured().await {
                Ok(()) => {
                    (seen, first, has_gone) = (SeenRuns::default(), true, false);
                    all = look(&app.store, &roots, &mut seen).await;
                }
                Err(failure) => say(&format!("onbeat-farm: {failure}")),
            }
        }
        if first || all.stored + all.new_records > 0 {
            say(&format!("onbeat-farm: {}", shown(&all)));
        }
        app.set_refused(all.refused);
        first = false;
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(store: &FarmStore, roots: &[PathBuf], seen: &mut SeenRuns) -> ScanOutcome {
    let mut all = ScanOutcome::default();
    for root in roots {
        match scan(store, root, seen).await {
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
    let mut shown = several(all.stored + all.had, "run", "runs");
    if all.new_records + all.known_records > 0 {
        let records = several(all.new_records + all.known_records, "record", "records");
        shown += &format!(" and {records}");
    }
    format!("{shown} shown, {} refused", all.refused.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_where_there_are_some() {
        let mut all = ScanOutcome { stored: 2, had: 1, ..ScanOutcome::default() };
        assert_eq!(shown(&all), "3 runs shown, 0 refused");
        all.new_records = 1;
        assert_eq!(shown(&all), "3 runs and 1 record shown, 0 refused");
    }
}
