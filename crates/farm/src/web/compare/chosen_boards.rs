//! Choice of the boards of both sides of a comparison of days, if too many match.

use std::collections::{BTreeMap, BTreeSet};

use crate::sides::{MOST_BOARDS, boards_to_look_at, boards_to_read};
use crate::store::{FarmStore, TimeStretch};
use crate::web::edge::answer::Refusal;

/// Boards with the time in which they may have days of a side.
pub type BoardTimes = BTreeMap<String, TimeStretch>;

/// Boards of both sides whose days are read, and the numbers of excluded ones.
pub struct ChosenBoards {
    named: [usize; 2],
    looked_at: [usize; 2],
    measured: [usize; 2],
    pub read: [Vec<String>; 2],
}

impl ChosenBoards {
    /// Chooses among the boards with maxima in their time. If all named boards can be read, the
    /// store is not asked.
    pub async fn of(store: &FarmStore, named: &[BoardTimes; 2]) -> Result<ChosenBoards, Refusal> {
        let names = named.each_ref().map(|side| side.keys().cloned().collect::<BTreeSet<_>>());
        let counts = names.each_ref().map(BTreeSet::len);
        let (mut looked_at, mut measured) = (counts, names);
        if counts.iter().any(|count| *count > MOST_BOARDS) {
            let boards = boards_to_look_at(measured.each_ref());
            looked_at = boards.each_ref().map(Vec::len);
            measured = [
                with_maxima(store, &boards[0], &named[0]).await?,
                with_maxima(store, &boards[1], &named[1]).await?,
            ];
        }
        let read = boards_to_read(measured.each_ref());
        Ok(ChosenBoards { named: counts, looked_at, measured: measured.each_ref().map(BTreeSet::len), read })
    }

    pub fn left_out(&self, name: &str, at: usize) -> Option<String> {
        let (named, looked_at, measured) = (self.named[at], self.looked_at[at], self.measured[at]);
        if named <= MOST_BOARDS {
            return None;
        }
        let spread = "those of both sides first, evenly spread by name";
        let read = self.read[at].len();
        let looked = format!("Of {named} boards of {name}, {looked_at} are examined, {spread}.");
        let have = format!(
            "Of {looked_at} boards of {name}, {measured} have valid maxima of five minutes in that time."
        );
        let taken = format!("Of {measured} boards of {name}, {read} are used, {spread}.");
        let parts = [(looked_at < named, looked), (measured < looked_at, have), (read < measured, taken)];
        let parts: Vec<String> =
            parts.into_iter().filter(|(is_left_out, _)| *is_left_out).map(|(_, words)| words).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

async fn with_maxima(
    store: &FarmStore,
    boards: &[String],
    times: &BoardTimes,
) -> Result<BTreeSet<String>, Refusal> {
    let all: Vec<(&str, TimeStretch)> =
        boards.iter().filter_map(|board| Some((board.as_str(), *times.get(board)?))).collect();
    let asked =
        quarters(&all).map(|some| async move { Ok::<_, Refusal>(store.boards_with_maxima(some).await?) });
    Ok(beside_each_other(asked).await?.into_iter().collect())
}

/// Parts of a list that are read at the same time, one for each connection of a store on SQLite:
/// most of a short statement's time is the way to the database and back.
pub fn quarters<T>(all: &[T]) -> [&[T]; 4] {
    std::array::from_fn(|at| &all[at * all.len() / 4..(at + 1) * all.len() / 4])
}

/// Results of the parts, in their order.
pub async fn beside_each_other<T>(
    parts: [impl Future<Output = Result<Vec<T>, Refusal>>; 4],
) -> Result<Vec<T>, Refusal> {
    let [first, second, third, last] = parts;
    let (first, second, third, last) = tokio::try_join!(first, second, third, last)?;
    Ok([first, second, third, last].into_iter().flatten().collect())
}
