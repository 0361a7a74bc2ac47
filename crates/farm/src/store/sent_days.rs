//! How often boards send that do so on few days of a month.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use super::many::{among, pieces};
use super::{FarmStore, trouble};
use crate::ingest::plausible::latest_now;
use crate::records::Tier;

/// Of so many days up to the last one with samples,
const WITHIN: i64 = 366;
/// so many with samples, the last ones: a year of one that sends once a month.
const MOST: usize = 13;

impl FarmStore {
    /// The last days with samples of boards, by their numbers, oldest first, runs that do not count
    /// included.
    pub(super) async fn sent_days(&self, boards: &[i64]) -> Result<BTreeMap<i64, Vec<i64>>> {
        let mut all: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for piece in pieces(boards) {
            let (of, place) = (among(&["s.board_id"], piece.len()), piece.len());
            let text = format!(
                "select h.board_id, h.t from board_setting s cross join hist h \
                 where h.board_id = s.board_id and {of} and h.tier = 2 and h.max_ns is not null \
                 and h.t > ${} + (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 2 \
                 and l.t <= ${}) and h.t <= ${} group by h.board_id, h.t order by h.board_id, h.t",
                place + 1,
                place + 2,
                place + 3
            );
            let mut select = sqlx::query_as::<_, (i64, i64)>(AssertSqlSafe(text));
            for board in piece {
                select = select.bind(*board);
            }
            let select = select.bind(-WITHIN * Tier::Day.seconds()).bind(latest_now()).bind(latest_now());
            for (board, t) in select.fetch_all(&self.pool).await.map_err(trouble)? {
                all.entry(board).or_default().push(t);
            }
        }
        for days in all.values_mut() {
            days.drain(..days.len().saturating_sub(MOST));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;

    const DAY: i64 = 86_400;

    #[test]
    fn what_sends_seldom_has_the_days_of_a_year() {
        on_each_engine(async |store| {
            let recorded = recorded_run("measured", "often");
            let last = Tier::Day.begin(recorded.run.started);
            for (board, back) in [
                ("often", (0..40).collect::<Vec<i64>>()),
                ("monthly", (0..14).map(|at| at * 31).collect()),
                ("seldom", (0..20).map(|at| at * 16).collect()),
                ("new", vec![0]),
                ("back", (0..9).map(|at| 400 + at * 16).chain([0, 16]).collect()),
            ] {
                for days in back {
                    let mut record = recorded.clone();
                    record.run.board = board.to_owned();
                    record.run.id = format!("{board}-{days}");
                    (record.run.started, record.whole.t) = (last - days * DAY, last - days * DAY);
                    (record.slots, record.rows) = (Vec::new(), Vec::new());
                    store.put(&record).await.unwrap();
                }
            }
            let boards = store.boards().await.unwrap();
            let sent = |name: &str| -> Vec<i64> {
                let board = boards.iter().find(|one| one.board == name).unwrap();
                board.sent_days.iter().map(|t| (last - t) / DAY).collect()
            };
            // It is known by the days of the month.
            assert!(sent("often").is_empty());
            let every = |days: i64, count: i64| (0..count).rev().map(|at| at * days).collect::<Vec<_>>();
            assert_eq!((sent("monthly"), sent("seldom")), (every(31, 12), every(16, 13)));
            assert_eq!((sent("new"), sent("back")), (vec![0], vec![16, 0]));
        });
    }
}
