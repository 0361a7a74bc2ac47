//! Displayed names of the boards on a page.

use std::collections::BTreeSet;

use model::error::Result;
use sqlx::AssertSqlSafe;

use crate::board_names::BoardNames;
use crate::store::many::{by_keys, pieces};
use crate::store::{FarmStore, trouble};

impl FarmStore {
    /// Names of these boards; duplicates are looked up once.
    pub async fn names_of(&self, boards: Vec<&str>) -> Result<BoardNames> {
        let boards: BTreeSet<&str> = boards.into_iter().collect();
        let boards: Vec<&str> = boards.into_iter().collect();
        let mut all: Vec<(String, String)> = Vec::new();
        for piece in pieces(&boards) {
            let text = by_keys("select key, name from board", &["key"], piece.len());
            let mut select = sqlx::query_as::<_, (String, String)>(AssertSqlSafe(text));
            for board in piece {
                select = select.bind(*board);
            }
            all.extend(select.fetch_all(&self.pool).await.map_err(trouble)?);
        }
        Ok(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::store::engines::on_each_engine;

    #[test]
    fn boards_have_the_names_that_users_gave_them() {
        on_each_engine(async |store| {
            for at in 0..12 {
                store.board_for(&format!("b-{at}"), &format!("Board <{at}>")).await.unwrap();
            }
            let asked: Vec<String> = (0..12).map(|at| format!("b-{at}")).collect();
            let asked = asked.iter().map(String::as_str).chain(["b-3", "none"]).collect();
            let names = store.names_of(asked).await.unwrap();
            let of = |board: &str| names.of(board).to_owned();
            assert_eq!(
                (of("b-3"), of("b-11"), of("none")),
                ("Board <3>".into(), "Board <11>".into(), "none".into())
            );
            assert_eq!(store.names_of(Vec::new()).await.unwrap().of("b-1"), "b-1");
        });
    }
}
