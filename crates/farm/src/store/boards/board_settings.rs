//! User-defined properties of boards, and budgets.
//!
//! Each board has a row here, even with default settings: Citus requires that a subquery per board
//! depends on a distributed table, and `board` is not one.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;

use crate::board_settings::{BoardSettings, BoardState, BudgetsDocument, FarmBudgets, lab_of};
use crate::store::{FarmStore, trouble};

impl FarmStore {
    /// Properties of each board within a range of keys, by its number.
    pub async fn settings(&self, first: &str, last: &str) -> Result<BTreeMap<i64, BoardSettings>> {
        type Row = (i64, String, i64, String, Option<i64>);
        let rows: Vec<Row> = sqlx::query_as(
            "select s.board_id, s.state, s.since, s.tags, s.budget_ns from board_setting s \
             join board b on b.id = s.board_id where b.key >= $1 and b.key <= $2",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(id, state, since, tags, budget): Row| {
            let tags: Vec<String> =
                tags.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
            let settings = BoardSettings {
                state: BoardState::of_word(&state).unwrap_or(BoardState::Unknown),
                state_since: since,
                lab: lab_of(&tags),
                tags,
                own_budget: budget.map(Nanos),
                ..BoardSettings::default()
            };
            (id, settings)
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// Another board that has this name, or this key: one with an equal name would be mistaken for
    /// it.
    pub async fn other_of_name(&self, board: &str, name: &str) -> Result<Option<String>> {
        sqlx::query_scalar(
            "select key from board where key <> $1 and (key = $2 or name = $3) order by key limit 1",
        )
        .bind(board)
        .bind(name)
        .bind(name)
        .fetch_optional(&self.pool)
        .await
        .map_err(trouble)
    }

    /// Sets the properties and the name of a board, both or neither; returns false if there is no
    /// such board.
    pub async fn set_settings(&self, board: &str, name: &str, of: &BoardSettings) -> Result<bool> {
        let mut all = self.begin().await?;
        let rename = sqlx::query("update board set name = $1 where key = $2").bind(name).bind(board);
        if rename.execute(&mut *all).await.map_err(trouble)?.rows_affected() != 1 {
            return Ok(false);
        }
        sqlx::query(
            "insert into board_setting (board_id, state, since, tags, budget_ns) \
             select id, $1, $2, $3, $4 from board where key = $5 \
             on conflict (board_id) do update set state = excluded.state, since = excluded.since, \
             tags = excluded.tags, budget_ns = excluded.budget_ns",
        )
        .bind(of.state.word())
        .bind(of.state_since)
        .bind(of.tags.join(" "))
        .bind(of.own_budget.map(|limit| limit.0))
        .bind(board)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(true)
    }

    /// The budgets of the fleet and of tags.
    pub async fn budgets(&self) -> Result<FarmBudgets> {
        let rows: Vec<(String, i64)> = sqlx::query_as("select tag, limit_ns from budget order by tag")
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
        let mut budgets = FarmBudgets::default();
        for (tag, limit) in rows {
            if tag.is_empty() {
                budgets.fleet = Some(Nanos(limit));
            } else {
                budgets.tags.push((tag, Nanos(limit)));
            }
        }
        Ok(budgets)
    }

    /// All that are set, those of single boards too.
    pub async fn all_budgets(&self) -> Result<BudgetsDocument> {
        let budgets = self.budgets().await?;
        let boards = self.boards().await?.into_iter();
        let own = boards.filter_map(|board| Some((board.board, board.settings.own_budget?)));
        Ok(BudgetsDocument::of(budgets, own))
    }

    /// Sets the budget of a tag, or of the fleet for `""`; `None` removes it.
    pub async fn set_budget(&self, tag: &str, limit: Option<Nanos>) -> Result<()> {
        let statement = match limit {
            Some(_) => {
                "insert into budget (tag, limit_ns) values ($1, $2) \
                 on conflict (tag) do update set limit_ns = excluded.limit_ns"
            }
            None => "delete from budget where tag = $1 and $2 = 0",
        };
        let set = sqlx::query(statement).bind(tag).bind(limit.map_or(0, |limit| limit.0));
        set.execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;

    use crate::store::engines::on_each_engine;

    #[test]
    fn settings_and_budgets_are_found_again() {
        on_each_engine(async |store| {
            let record = recorded_run("hunt", "a");
            store.put(&record).await.unwrap();
            let mut wanted = BoardSettings {
                state: BoardState::Muted,
                state_since: 7,
                tags: vec!["arm".into(), "lab".into()],
                own_budget: Some(Nanos(50)),
                ..BoardSettings::default()
            };
            assert!(!store.set_settings("b", "B", &wanted).await.unwrap());
            assert!(store.set_settings("a", "Ann's", &wanted).await.unwrap());
            assert!(store.settings("b", "z").await.unwrap().is_empty());
            store.board_for("b", "Bob's").await.unwrap();
            for (board, name, other) in [
                ("a", "b", Some("b")),
                ("a", "Bob's", Some("b")),
                ("b", "Ann's", Some("a")),
                ("b", "a", Some("a")),
                ("a", "a", None),
                ("a", "Ann's", None),
                ("a", "bob's", None),
            ] {
                assert_eq!(store.other_of_name(board, name).await.unwrap().as_deref(), other, "{board}");
            }
            let maxima = store.last_day_maxima("a", "a").await.unwrap();
            assert_eq!(maxima.into_values().collect::<Vec<_>>(), record.run.max_ns.as_slice());
            assert!(store.last_day_maxima("b", "z").await.unwrap().is_empty());
            assert_eq!(
                store.settings("", "a").await.unwrap().into_values().collect::<Vec<_>>(),
                [wanted.clone()]
            );
            wanted.own_budget = None;
            assert!(store.set_settings("a", "A", &wanted).await.unwrap());
            let board = store.boards_of(Some("a")).await.unwrap().remove(0);
            assert_eq!((board.name.as_str(), board.settings.state), ("A", BoardState::Muted));
            assert_eq!((board.settings.budget_ns, board.settings.max24_ns), (None, None));
            assert!(store.set_settings("a", "A", &wanted).await.unwrap());
            store.set_budget("", Some(Nanos(9))).await.unwrap();
            store.set_budget("lab", Some(Nanos(5))).await.unwrap();
            store.set_budget("lab", Some(Nanos(6))).await.unwrap();
            let board = store.boards_of(Some("a")).await.unwrap().remove(0);
            assert_eq!(
                (board.settings.budget_ns, board.settings.budget_of.as_str()),
                (Some(Nanos(6)), "tag lab")
            );
            assert_eq!((board.settings.max24_ns, board.settings.is_over()), (record.run.max_ns, true));
            store.set_budget("lab", None).await.unwrap();
            let budgets = store.budgets().await.unwrap();
            assert_eq!((budgets.fleet, budgets.tags.len()), (Some(Nanos(9)), 0));
        });
    }
}
