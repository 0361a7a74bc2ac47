//! Slots of a time span read in batches, for responses that are streamed.

use model::error::Result;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, FromRow, Row};

use crate::records::{FarmSlot, SeriesKey};
use crate::store::hist::tiers::{RUN_OF_SLOT, SLOT_COLUMNS, SlotRow, TimeStretch, made_slot};
use crate::store::runs::labels::slot_has;
use crate::store::{FarmStore, to_u64, trouble};

/// The columns of a slot before the number of its row.
const COLUMNS: usize = 11;

/// Query for slots.
#[derive(Clone, Debug)]
pub struct AskedSlots {
    pub board: String,
    pub key: SeriesKey,
    pub within: TimeStretch,
    /// Names and values; a slot has all of them.
    pub labels: Vec<(String, String)>,
}

/// Position of a slot in its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterSlot {
    t: i64,
    recording: String,
    seq: i64,
}

impl FarmStore {
    /// Slots of a time span, oldest first, limited in number.
    pub async fn slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
        most: i64,
    ) -> Result<Vec<FarmSlot>> {
        let of = AskedSlots { board: board.to_owned(), key: key.clone(), within, labels: Vec::new() };
        Ok(self.slots_after(&of, None, most).await?.0)
    }

    /// Number of slots, up to a limit.
    pub async fn count_slots(&self, of: &AskedSlots, most: i64) -> Result<u64> {
        let text = format!(
            "select count(*) from (select s.t from slot s join board b on b.id = s.board_id \
             where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5{} \
             limit $6) counted",
            slot_has(of.labels.len(), 7)
        );
        let select = sqlx::query_scalar::<Any, i64>(AssertSqlSafe(text)).bind(&of.board);
        let select = select.bind(&of.key.series).bind(&of.key.plan);
        let select = select.bind(of.within.from).bind(of.within.to).bind(most);
        let select = of.labels.iter().fold(select, |select, (name, value)| select.bind(name).bind(value));
        let count = select.fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(to_u64(count))
    }

    /// The next slots in the order of their times, limited in number, and the position of the last;
    /// without a position the first ones.
    pub async fn slots_after(
        &self,
        of: &AskedSlots,
        after: Option<&AfterSlot>,
        most: i64,
    ) -> Result<(Vec<FarmSlot>, Option<AfterSlot>)> {
        let text = format!(
            "select {SLOT_COLUMNS}, s.seq from slot s join board b on b.id = s.board_id {RUN_OF_SLOT} \
             where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5 \
             and (s.t > $6 or s.recording > $7 or (s.recording = $8 and s.seq > $9)){} \
             order by s.t, s.recording, s.seq limit $10",
            slot_has(of.labels.len(), 11)
        );
        // Before all that there can be.
        let first = AfterSlot { t: of.within.from, recording: String::new(), seq: i64::MIN };
        let after = after.unwrap_or(&first);
        let select = sqlx::query::<Any>(AssertSqlSafe(text)).bind(&of.board).bind(&of.key.series);
        let select = select.bind(&of.key.plan).bind(after.t).bind(of.within.to).bind(after.t);
        let select = select.bind(&after.recording).bind(&after.recording).bind(after.seq).bind(most);
        let select = of.labels.iter().fold(select, |select, (name, value)| select.bind(name).bind(value));
        let rows: Vec<AnyRow> = select.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut last = None;
        let mut slots = Vec::with_capacity(rows.len());
        for row in rows {
            let slot = made_slot(SlotRow::from_row(&row).map_err(trouble)?).map_err(trouble)?;
            let seq = row.try_get(COLUMNS).map_err(trouble)?;
            last = Some(AfterSlot { t: slot.t, recording: slot.run.clone(), seq });
            slots.push(slot);
        }
        Ok((slots, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MadeFleet, recorded_run};
    use crate::store::engines::on_each_engine;

    #[test]
    fn parts_of_any_size_are_all_slots_in_their_order() {
        on_each_engine(async |store| {
            let (measured, hunt) = (recorded_run("measured", "a"), recorded_run("hunt", "a"));
            let end = 1_795_392_000;
            let fleet = MadeFleet { boards: 1, days: 2, end, measured, hunt, fine_days: 2 };
            fleet.fill(&store, |_| ()).await.unwrap();
            let board = store.boards().await.unwrap().remove(0).board;
            let within = TimeStretch { from: 0, to: i64::MAX };
            let mut checked = 0;
            for key in store.series(&board).await.unwrap().into_iter().map(|series| series.key) {
                let whole = store.slots(&board, &key, within, 9_999).await.unwrap();
                let of = AskedSlots { board: board.clone(), key, within, labels: Vec::new() };
                assert_eq!(store.count_slots(&of, 9_999).await.unwrap(), whole.len() as u64);
                for most in [1, 7, 300].into_iter().filter(|most| *most > 1 || whole.len() < 700) {
                    let (mut all, mut after) = (Vec::new(), None);
                    loop {
                        let (part, last) = store.slots_after(&of, after.as_ref(), most).await.unwrap();
                        if part.is_empty() {
                            break;
                        }
                        all.extend(part);
                        after = last;
                    }
                    assert!(all == whole, "{most}: {} of {}", all.len(), whole.len());
                }
                checked += whole.len();
                assert_eq!(store.count_slots(&of, 1).await.unwrap(), whole.len().min(1) as u64);
            }
            assert!(checked > 300, "{checked}");
        });
    }
}
