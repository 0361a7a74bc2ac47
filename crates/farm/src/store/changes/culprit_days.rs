//! The days on which recorders named a culprit, a part at a time.

use model::error::Result;
use model::units::Nanos;
use serde::Deserialize;
use sqlx::AssertSqlSafe;

use crate::records::CulpritDay;
use crate::store::{FarmStore, to_u64, trouble};

/// The rest of a culprit's list: days are sorted from the latest on, and the boards of a day by
/// key.
const OF_CULPRIT: &str = "from culprit_day d join board b on b.id = d.board_id \
     where d.culprit_id = (select id from culprit where fingerprint = $1) \
     and (d.t < $2 or (d.t = $3 and b.key > $4))";

/// Position in a list of a culprit's days, latest first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CulpritDaysFrom {
    /// Days before this time, in seconds since 1970.
    pub before: i64,
    /// Only later keys of that day, if a board is given.
    pub before_board: String,
}

impl Default for CulpritDaysFrom {
    fn default() -> CulpritDaysFrom {
        CulpritDaysFrom { before: i64::MAX, before_board: String::new() }
    }
}

impl CulpritDaysFrom {
    /// Position after an entry of the list.
    pub fn after(one: &CulpritDay) -> CulpritDaysFrom {
        CulpritDaysFrom { before: one.t, before_board: one.board.clone() }
    }

    /// Day of which the later boards follow; an impossible one if no board is given.
    pub fn same_day(&self) -> i64 {
        if self.before_board.is_empty() { i64::MIN } else { self.before }
    }
}

impl FarmStore {
    /// Latest days on which recorders named a culprit, from a position in the list on. At most
    /// `most` rows are read, one for each series of a day; a board's day is represented by the
    /// series with the most five minutes.
    pub async fn culprit_days(
        &self,
        fingerprint: &str,
        from: &CulpritDaysFrom,
        most: i64,
    ) -> Result<Vec<CulpritDay>> {
        let text = format!(
            "select b.key, d.t, d.from_t, d.series, d.slots, d.total_ns {OF_CULPRIT} \
             order by d.t desc, b.key, d.slots desc, d.series limit $5"
        );
        let rows: Vec<(String, i64, i64, String, i64, i64)> = sqlx::query_as(AssertSqlSafe(text))
            .bind(fingerprint)
            .bind(from.before)
            .bind(from.same_day())
            .bind(&from.before_board)
            .bind(most)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
        let day = |(board, t, first, series, slots, total)| CulpritDay {
            board,
            t,
            first,
            series,
            five_minutes: to_u64(slots),
            total_ns: Nanos(total),
        };
        let mut days: Vec<CulpritDay> = rows.into_iter().map(day).collect();
        days.dedup_by(|next, one| (next.t, &next.board) == (one.t, &one.board));
        Ok(days)
    }

    /// Total number of board days in such a list.
    pub async fn count_culprit_days(&self, fingerprint: &str, from: &CulpritDaysFrom) -> Result<u64> {
        let text = format!("select count(*) from (select distinct d.t, d.board_id {OF_CULPRIT}) k");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(text))
            .bind(fingerprint)
            .bind(from.before)
            .bind(from.same_day())
            .bind(&from.before_board)
            .fetch_one(&self.pool)
            .await
            .map_err(trouble)?;
        Ok(to_u64(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::batch_of;
    use crate::store::engines::on_each_engine;

    #[test]
    fn a_list_of_days_goes_on_where_a_part_of_it_ended() {
        on_each_engine(async |store| {
            // Three boards on each of five days; one of them has two series.
            for board in ["a", "b", "c"] {
                let board_id = store.board_for(board, board).await.unwrap();
                for day in 0..5 {
                    for series in ["timer", "wakeup"].into_iter().take(if board == "b" { 2 } else { 1 }) {
                        let rows = batch_of(series, day * 288, day * 288 + 3, "hog", "");
                        store.put_rows(&[crate::store::RowBatch { board_id, ..rows }]).await.unwrap();
                    }
                }
            }
            let fingerprint = store.culprits(None, 9).await.unwrap().remove(0).fingerprint;
            let all = CulpritDaysFrom::default();
            assert_eq!(store.count_culprit_days(&fingerprint, &all).await.unwrap(), 15);
            let (mut from, mut seen) = (all, Vec::new());
            loop {
                let part = store.culprit_days(&fingerprint, &from, 2).await.unwrap();
                let Some(last) = part.last() else { break };
                let next = CulpritDaysFrom::after(last);
                let (here, left) = (
                    store.count_culprit_days(&fingerprint, &from).await.unwrap(),
                    store.count_culprit_days(&fingerprint, &next).await.unwrap(),
                );
                assert_eq!(here - left, part.len() as u64, "{from:?}");
                seen.extend(part.iter().map(|day| (day.t / 86_400, day.board.clone())));
                from = next;
            }
            let wanted: Vec<(i64, String)> =
                (0..5).rev().flat_map(|day| ["a", "b", "c"].map(|board| (day, board.to_owned()))).collect();
            assert_eq!(seen, wanted);
            // A time alone is that before which the days are.
            let before = CulpritDaysFrom { before: 2 * 86_400, ..CulpritDaysFrom::default() };
            assert_eq!(store.count_culprit_days(&fingerprint, &before).await.unwrap(), 6);
        });
    }
}
