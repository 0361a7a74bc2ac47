//! What is found on boards whose days are made for it. Here is what they are made with.

mod again;
mod budgets;
mod environments;
mod rates;
mod silence;
mod within_day;

use model::rows::RowCounts;
use model::units::Cpu;
use stats::rng::{Rng, SEED};
use stats::time::fixture::poisson_counts;

use super::*;
use crate::fixture::recorded_run;
use crate::records::{CpuRows, SeriesKey, TierRow};
use crate::store::BulkRows;
use crate::store::engines::on_page_engines;

async fn found(store: &FarmStore, of: &FoundChanges) -> Vec<FarmChange> {
    let all = of.all(store, &store.boards().await.unwrap()).await;
    all.unwrap_or_else(|refusal| panic!("{}", refusal.detail))
}

fn day(t: i64, late: u64) -> (Tier, TierRow) {
    let rows = RowCounts::of_rows([(300, 86_000_000), (450, late)]);
    let (n, max_ns) = (86_000_000 + late, Some(Nanos(100_000)));
    let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
    (Tier::Day, TierRow { t, n, max_ns, cpus, ..TierRow::default() })
}

/// The days of a series up to one, each with so many late wake-ups.
async fn put_series(store: &FarmStore, board: &str, name: &str, last: i64, counts: &[u64]) {
    let key = SeriesKey { series: name.into(), plan: "p".into() };
    let begin = Tier::Day.begin(last) - counts.len() as i64 * DAY;
    let tiers = (0..).zip(counts).map(|(at, late)| day(begin + at * DAY, *late)).collect();
    store.put_bulk(board, &BulkRows { key, tiers, ..BulkRows::default() }).await.unwrap();
}

/// As a store has it whose farm had a clock that was ahead.
#[test]
fn the_newest_day_is_no_day_of_the_future() {
    let today = Tier::Day.begin(believed(now()));
    let board = |last: i64| FarmBoard { last_day: last, ..FarmBoard::default() };
    assert_eq!(newest(&[board(today - 3 * DAY)]), today - 3 * DAY);
    assert_eq!((newest(&[board(today - 3 * DAY), board(today + 27_000 * DAY)]), newest(&[])), (today, 0));
}
