//! Slots of a series for an export, some at a time, however many there are.

use model::error::Result;

use crate::records::{FarmSlot, SeriesKey};
use crate::store::{FarmStore, TimeStretch};

/// The first slots of a time span, at most `most`, and the start of the next ones. A recorder with
/// an interval of a second has hundreds in the same five minutes, which stay together.
pub async fn next_slots(
    store: &FarmStore,
    board: &str,
    key: &SeriesKey,
    within: TimeStretch,
    most: i64,
) -> Result<(Vec<FarmSlot>, i64)> {
    let mut slots = store.slots(board, key, within, most).await?;
    let is_full = slots.len() as i64 >= most;
    let (first, last) = (slots.first().map(|slot| slot.t), slots.last().map(|slot| slot.t));
    match last.filter(|_| is_full && first != last) {
        // Not all of its last five minutes may be there.
        Some(last) => {
            slots.retain(|slot| slot.t < last);
            Ok((slots, last))
        }
        None => Ok((slots, within.to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows;
    use crate::store::engines::on_each_engine;

    #[test]
    fn all_slots_come_in_order_and_each_once() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            store.put_rows(&[named_rows::batch(0, 30, "x", "")]).await.unwrap();
            let key = store.series("a").await.unwrap().remove(0).key;
            for most in [2, 7, 29, 30, 99] {
                let (mut from, mut found) = (0, Vec::new());
                while from < 9_000 {
                    let within = TimeStretch { from, to: 9_000 };
                    let (slots, next) = next_slots(&store, "a", &key, within, most).await.unwrap();
                    found.extend(slots.iter().map(|slot| slot.t));
                    from = next;
                }
                assert_eq!(found, (0..30).map(|n| n * 300).collect::<Vec<i64>>(), "{most}");
            }
        });
    }
}
