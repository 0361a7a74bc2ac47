//! Labels of runs and of rows: those of a run apply to all of it, those of rows to the time spans
//! of rows with them.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::labels::Labels;
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::records::{FarmRun, RunFilter, SLOT};
use crate::store::many::{among, pieces, values};
use crate::store::{FarmStore, trouble};

const INSERT: &str = "insert into label (board_id, recording, name, value, from_t, to_t) values ";

/// A label of a board, with the times that it is of; a run's begins and ends with the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardLabel {
    pub name: String,
    pub value: String,
    /// Number of runs with it.
    pub runs: u64,
    /// Start of the first and the last of these, or of five minutes with it, in seconds since 1970.
    pub first: Option<i64>,
    pub last: Option<i64>,
}

/// A row with labels.
pub struct LabelledRow<'a> {
    pub board: i64,
    /// Name of the recording, as in its slot.
    pub recording: String,
    /// Its first five minutes, and its last.
    pub from: i64,
    pub to: i64,
    pub labels: &'a Labels,
}

/// Stores the labels of a run.
pub async fn put_run_labels(
    all: &mut Transaction<'static, Any>,
    board: i64,
    run: &str,
    labels: &Labels,
) -> sqlx::Result<()> {
    let labels: Vec<(&str, &str)> = labels.iter().collect();
    for piece in pieces(&labels) {
        let mut insert = sqlx::query(AssertSqlSafe(values(INSERT, 6, piece.len())));
        for (name, value) in piece {
            insert = insert.bind(board).bind(run).bind(*name).bind(*value).bind(i64::MIN).bind(i64::MAX);
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// Drops the labels of a run whose later state has others; keeps those of rows that name it as
/// their recording.
pub async fn drop_run_labels(all: &mut Transaction<'static, Any>, board: i64, run: &str) -> sqlx::Result<()> {
    let drop = sqlx::query("delete from label where board_id = $1 and recording = $2 and from_t = $3");
    drop.bind(board).bind(run).bind(i64::MIN).execute(&mut **all).await?;
    Ok(())
}

/// Board, recording, name and value.
type LabelKey<'a> = (i64, &'a str, &'a str, &'a str);
type Stretches = BTreeSet<(i64, i64)>;

/// Stores the labels of rows; adjacent spans are merged.
pub async fn put_row_labels(
    all: &mut Transaction<'static, Any>,
    rows: &[LabelledRow<'_>],
) -> sqlx::Result<()> {
    let mut new: BTreeMap<LabelKey<'_>, Stretches> = BTreeMap::new();
    for row in rows {
        for (name, value) in row.labels.iter() {
            let key = (row.board, row.recording.as_str(), name, value);
            new.entry(key).or_default().insert((row.from, row.to));
        }
    }
    for ((board, recording, name, value), mut stretches) in new {
        // Except for that of a run of this name, which is removed with the run.
        let known: Vec<(i64, i64)> = sqlx::query_as(
            "select from_t, to_t from label where board_id = $1 and recording = $2 and name = $3 \
             and value = $4 and from_t > $5",
        )
        .bind(board)
        .bind(recording)
        .bind(name)
        .bind(value)
        .bind(i64::MIN)
        .fetch_all(&mut **all)
        .await?;
        let before: Stretches = known.into_iter().collect();
        stretches.extend(&before);
        let after = joined(&stretches);
        for (from, _) in before.difference(&after) {
            sqlx::query(
                "delete from label where board_id = $1 and recording = $2 and name = $3 and value = $4 \
                 and from_t = $5",
            )
            .bind(board)
            .bind(recording)
            .bind(name)
            .bind(value)
            .bind(from)
            .execute(&mut **all)
            .await?;
        }
        for (from, to) in after.difference(&before) {
            let insert = sqlx::query(AssertSqlSafe(values(INSERT, 6, 1))).bind(board).bind(recording);
            insert.bind(name).bind(value).bind(from).bind(to).execute(&mut **all).await?;
        }
    }
    Ok(())
}

/// Merges spans without a slot between them.
fn joined(all: &Stretches) -> Stretches {
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for &(from, to) in all {
        match joined.last_mut().filter(|last| from <= last.1.saturating_add(SLOT)) {
            Some(last) => last.1 = last.1.max(to),
            None => joined.push((from, to)),
        }
    }
    joined.into_iter().collect()
}

/// Condition that a slot `s` has each of that many labels, with arguments from a position on.
pub fn slot_has(labels: usize, mut place: usize) -> String {
    let mut text = String::new();
    for _ in 0..labels {
        text += &format!(
            " and exists (select 1 from label l where l.board_id = s.board_id and l.recording = s.recording \
             and l.name = ${} and l.value = ${} and l.from_t <= s.t and l.to_t >= s.t)",
            place,
            place + 1
        );
        place += 2;
    }
    text
}

impl FarmStore {
    /// Runs, the latest first, limited in number.
    pub async fn find_runs(&self, filter: &RunFilter, most: i64) -> Result<Vec<FarmRun>> {
        let mut text = "1 = 1".to_owned();
        let mut place = 0;
        let mut next = || {
            place += 1;
            place
        };
        if filter.board.is_some() {
            text += &format!(" and b.key = ${}", next());
        }
        if filter.before.is_some() {
            text += &format!(" and (r.started < ${}", next());
            text += &format!(" or r.started = ${} and r.id < ${})", next(), next());
        }
        for _ in &filter.labels {
            let of = "(r.board_id, r.id) in (select board_id, recording from label";
            text += &format!(" and {of} where name = ${} and value = ${})", next(), next());
        }
        let query = crate::store::runs::of(&format!(
            "where {text} order by r.started desc, r.id desc limit ${}",
            next()
        ));
        let mut query = sqlx::query(AssertSqlSafe(query));
        query = filter.board.iter().fold(query, |query, board| query.bind(board));
        if let Some(before) = filter.before {
            let run = filter.before_run.as_deref().unwrap_or_default();
            query = query.bind(before).bind(before).bind(run);
        }
        query = filter.labels.iter().fold(query, |query, (name, value)| query.bind(name).bind(value));
        let rows = query.bind(most).fetch_all(&self.pool).await.map_err(trouble)?;
        self.labelled(crate::store::runs::all(&rows)?).await
    }

    /// Adds labels and the places of their bundles to runs.
    pub async fn labelled(&self, mut runs: Vec<FarmRun>) -> Result<Vec<FarmRun>> {
        const OF: &str = "select b.key, l.recording, l.name, l.value from label l \
                          join board b on b.id = l.board_id where ";
        let mut found: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
        for piece in pieces(&runs) {
            let text = format!("{OF}{}", among(&["b.key", "l.recording"], piece.len()));
            let mut select = sqlx::query_as::<_, (String, String, String, String)>(AssertSqlSafe(text));
            select = piece.iter().fold(select, |select, run| select.bind(&run.board));
            select = piece.iter().fold(select, |select, run| select.bind(&run.id));
            for (board, id, name, value) in select.fetch_all(&self.pool).await.map_err(trouble)? {
                found.entry((board, id)).or_default().push((name, value));
            }
        }
        for run in &mut runs {
            let of = (run.board.clone(), run.id.clone());
            run.labels = found.remove(&of).unwrap_or_default().into_iter().collect();
            run.place = self.folder.shown(&run.place);
        }
        Ok(runs)
    }

    /// Labels of a board's runs and rows, by name and value, limited in number.
    pub async fn labels(&self, board: &str, most: i64) -> Result<Vec<BoardLabel>> {
        type Row = (String, String, i64, Option<i64>, Option<i64>);
        let rows: Vec<Row> = sqlx::query_as(
            "select l.name, l.value, \
             cast(sum(case when l.from_t = $1 then 1 else 0 end) as bigint), \
             min(case when l.from_t = $2 then r.started else l.from_t end), \
             max(case when l.from_t = $3 then r.started else l.to_t end) \
             from label l join board b on b.id = l.board_id \
             left join run r on r.board_id = l.board_id and r.id = l.recording and l.from_t = $4 \
             where b.key = $5 group by l.name, l.value order by l.name, l.value limit $6",
        )
        .bind(i64::MIN)
        .bind(i64::MIN)
        .bind(i64::MIN)
        .bind(i64::MIN)
        .bind(board)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let label = |(name, value, runs, first, last): Row| BoardLabel {
            name,
            value,
            runs: crate::store::to_u64(runs),
            first,
            last,
        };
        Ok(rows.into_iter().map(label).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;

    use crate::ingest::rows::{self, RowsOf};
    use crate::records::{BundleRecord, SeriesKey};
    use crate::store::engines::on_each_engine;
    use crate::store::{AskedSlots, PutOutcome, RowBatch, RunRemoval, TimeStretch};
    use model::rows::RowCounts;
    use model::units::{Cpu, Nanos};
    use model::watch::WatchRow;
    use proptest::prelude::*;

    fn labels(texts: &[&str]) -> Labels {
        Labels::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn made(id: &str, board: &str, started: i64, of: &[&str]) -> BundleRecord {
        let mut record = recorded_run("measured", board);
        record.run.id = id.to_owned();
        (record.run.started, record.run.labels) = (started, labels(of));
        record.slots.iter_mut().for_each(|slot| slot.run = id.to_owned());
        record.digest = id.into();
        record
    }

    fn with(texts: &[&str]) -> RunFilter {
        let labels = texts.iter().map(|text| model::labels::parse_label(text).unwrap()).collect();
        RunFilter { labels, ..RunFilter::default() }
    }

    #[test]
    fn runs_are_found_by_their_labels() {
        on_each_engine(async |store| {
            for (id, board, started, of) in [
                ("r1", "a", 10, &["build=1", "commit=x"][..]),
                ("r2", "a", 20, &["build=2", "commit=x"]),
                ("r3", "b", 30, &["build=2"]),
                ("r4", "b", 40, &[]),
            ] {
                assert_eq!(store.put(&made(id, board, started, of)).await.unwrap(), PutOutcome::Stored);
            }
            let found = async |filter: &RunFilter| -> Vec<String> {
                store.find_runs(filter, 9).await.unwrap().into_iter().map(|run| run.id).collect()
            };
            assert_eq!(found(&RunFilter::default()).await, ["r4", "r3", "r2", "r1"]);
            assert_eq!(found(&with(&["build=2"])).await, ["r3", "r2"]);
            assert_eq!(found(&with(&["build=2", "commit=x"])).await, ["r2"]);
            assert!(found(&with(&["build=2", "build=1"])).await.is_empty());
            assert!(found(&with(&["x='; drop table label; --"])).await.is_empty());
            let of_b = RunFilter { board: Some("b".into()), before: Some(40), ..with(&["build=2"]) };
            assert_eq!(found(&of_b).await, ["r3"]);
            assert_eq!(store.find_runs(&with(&["build=2"]), 1).await.unwrap().len(), 1);
            assert_eq!(store.run("r1").await.unwrap().unwrap().labels, labels(&["build=1", "commit=x"]));
            assert_eq!(store.runs("b", 9).await.unwrap()[1].labels, labels(&["build=2"]));
            let of_board = store.labels("a", 9).await.unwrap();
            let times = |at: usize| of_board[at].first.zip(of_board[at].last);
            let one = |at: usize| (of_board[at].value.as_str(), of_board[at].runs, times(at));
            let of_two = ("x", 2, Some((10, 20)));
            assert_eq!((one(0), one(2), of_board.len()), (("1", 1, Some((10, 10))), of_two, 3));
        });
    }

    #[test]
    fn a_later_state_of_a_run_has_its_own_labels() {
        on_each_engine(async |store| {
            let mut record = made("r", "a", 10, &["build=1", "old=x"]);
            (record.run.complete, record.digest) = (false, b"first".to_vec());
            store.put(&record).await.unwrap();
            (record.run.complete, record.digest) = (true, b"second".to_vec());
            record.run.labels = labels(&["build=1"]);
            assert_eq!(store.put(&record).await.unwrap(), PutOutcome::Replaced);
            assert_eq!(store.run("r").await.unwrap().unwrap().labels, labels(&["build=1"]));
        });
    }

    /// Rows of a boot, each five minutes, from a number on.
    fn batch(boot: &str, numbers: std::ops::Range<u64>, of: &[&str]) -> RowBatch {
        let rows_of = RowsOf { boot: boot.into(), recording: "rec".into(), series: "timer".into() };
        // The schema is first.
        let header = format!(
            "{{\"schema\":\"onbeat.rows/1\",\"boot\":\"{boot}\",\"recording\":\"rec\",\
             \"series\":\"timer\",\"plan\":\"p\",\"labels\":{}}}",
            serde_json::to_string(&labels(of)).unwrap()
        );
        let line = |seq: u64| {
            let hist = RowCounts::of_rows([(200, 1)]);
            let row = WatchRow { cpu: Some(Cpu(0)), n: 1, hist, ..WatchRow::default() };
            let mono = seq as i64 * SLOT * Nanos::SECOND.0;
            let span = SLOT * Nanos::SECOND.0;
            serde_json::json!({
                "seq": seq, "mono_ns": mono, "wall_ns": mono, "span_ns": span, "cpus": [row],
            })
            .to_string()
        };
        let lines = std::iter::once(header).chain(numbers.map(line));
        let text: String = lines.map(|line| line + "\n").collect();
        let rows = rows::read(&rows_of, text.as_bytes()).unwrap();
        RowBatch { board_id: 1, of: rows_of, clock: None, received_ns: i64::MAX, rows }
    }

    #[test]
    fn slots_are_found_by_the_labels_of_their_rows() {
        on_each_engine(async |store| {
            store.put(&made("r", "a", 10, &["build=0"])).await.unwrap();
            // The newest first, then the backlog, then once more.
            for rows in [9..10, 0..4, 4..9, 0..10] {
                store.put_rows(&[batch("b1", rows, &["build=1", "image=i"])]).await.unwrap();
            }
            store.put_rows(&[batch("b1", 20..25, &["build=2", "image=i"])]).await.unwrap();
            store.put_rows(&[batch("b1", 30..32, &[])]).await.unwrap();
            let key = SeriesKey { series: "timer".into(), plan: "p".into() };
            let all = TimeStretch { from: i64::MIN, to: i64::MAX };
            let slots = async |texts: &[&str]| -> Vec<i64> {
                let labels = with(texts).labels;
                let of = AskedSlots { board: "a".into(), key: key.clone(), within: all, labels };
                let (found, _) = store.slots_after(&of, None, 99).await.unwrap();
                assert_eq!(store.count_slots(&of, 99).await.unwrap(), found.len() as u64);
                found.iter().map(|slot| slot.t / SLOT).collect()
            };
            assert_eq!(slots(&[]).await.len(), 17);
            assert_eq!(slots(&["build=1"]).await, (0..10).collect::<Vec<_>>());
            assert_eq!(slots(&["image=i", "build=2"]).await, (20..25).collect::<Vec<_>>());
            assert_eq!(slots(&["image=i"]).await.len(), 15);
            assert!(slots(&["build=1", "build=2"]).await.is_empty());
            let found = store.labels("a", 9).await.unwrap();
            let image = found.iter().find(|label| label.name == "image").unwrap();
            assert_eq!((image.runs, image.first, image.last), (0, Some(0), Some(24 * SLOT)));
            let stretches: i64 =
                sqlx::query_scalar("select count(*) from label").fetch_one(&store.pool).await.unwrap();
            assert_eq!(stretches, 1 + 2 + 2, "stretches that touch are one");
            // A run and rows that share a label: its times are those of both, and of no other
            // board.
            store.put(&made("q", "a", 40 * SLOT, &["build=1"])).await.unwrap();
            store.put(&made("s", "b", 50 * SLOT, &["build=1"])).await.unwrap();
            let found = store.labels("a", 9).await.unwrap();
            let both = found.iter().find(|label| label.value == "1").unwrap();
            assert_eq!((both.runs, both.first, both.last), (1, Some(0), Some(40 * SLOT)));
        });
    }

    #[test]
    fn labels_of_rows_stay_where_a_run_that_they_name_has_a_later_state_and_where_another_goes() {
        on_each_engine(async |store| {
            let mut run = made("rec", "a", 10, &["build=1", "of=run"]);
            (run.run.complete, run.digest) = (false, b"first".to_vec());
            store.put(&run).await.unwrap();
            let board_id = store.board_for("b", "b").await.unwrap();
            let rows = || batch("b1", 0..4, &["build=1", "image=i"]);
            store.put_rows(&[rows(), RowBatch { board_id, ..rows() }]).await.unwrap();
            let shown = async |board: &str| -> Vec<_> {
                let all = store.labels(board, 9).await.unwrap().into_iter();
                all.map(|label| (label.name + "=" + &label.value, label.runs, label.last)).collect()
            };
            let of_row = |label: &str| (label.to_owned(), 0u64, Some(3 * SLOT));
            let of_rows = vec![of_row("build=1"), of_row("image=i")];
            (run.run.complete, run.digest) = (true, b"second".to_vec());
            assert_eq!(store.put(&run).await.unwrap(), PutOutcome::Replaced);
            assert_eq!(shown("a").await[1], of_rows[1]);
            let of_both = shown("a").await;
            let started = recorded_run("measured", "a").run.started;
            let other = made("other", "a", started, &["build=1", "of=other"]);
            store.put(&other).await.unwrap();
            assert_ne!(shown("a").await, of_both);
            let removal = store.forget_run("other", Some(&other), None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
            assert_eq!((shown("a").await, shown("b").await), (of_both, of_rows));
        });
    }

    proptest! {
        #[test]
        fn joined_stretches_have_the_same_slots_and_do_not_touch(
            all in prop::collection::btree_set((0i64..60, 0i64..4), 0..30)
        ) {
            let all: Stretches =
                all.into_iter().map(|(from, more)| (from * SLOT, (from + more) * SLOT)).collect();
            let joined: Vec<(i64, i64)> = joined(&all).into_iter().collect();
            let slots = |all: &[(i64, i64)]| -> BTreeSet<i64> {
                all.iter().flat_map(|&(from, to)| (from / SLOT)..=(to / SLOT)).collect()
            };
            prop_assert_eq!(slots(&joined), slots(&all.into_iter().collect::<Vec<_>>()));
            prop_assert!(joined.windows(2).all(|pair| pair[0].1 + SLOT < pair[1].0));
        }
    }
}
