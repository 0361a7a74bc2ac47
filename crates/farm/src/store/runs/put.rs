//! Storage of a bundle, in one transaction.

use model::error::{Failure, Result};
use sqlx::{Any, Transaction};

use crate::encoding::pack_rows;
use crate::records::BundleRecord;
use crate::store::hist::dropped::{note_added, of_others};
use crate::store::hist::tiers::{SlotPlace, add_to_tiers, put_slots, put_tiers};
use crate::store::runs::earlier::{EarlierRun, PutOutcome, earlier_run, judged_anew};
use crate::store::runs::environments::environment_id;
use crate::store::runs::forgotten::judged_now;
use crate::store::runs::labels::put_run_labels;
use crate::store::{FarmStore, plain, storable, to_i64, trouble};

impl FarmStore {
    /// Stores a bundle; a repetition adds nothing.
    pub async fn put(&self, record: &BundleRecord) -> Result<PutOutcome> {
        let mut all = self.begin().await?;
        let outcome = self.put_in(&mut all, record).await.map_err(trouble)?;
        match outcome {
            PutOutcome::Stored | PutOutcome::Replaced => all.commit().await.map_err(trouble)?,
            PutOutcome::Had | PutOutcome::Refused(_) => all.rollback().await.map_err(trouble)?,
        }
        Ok(outcome)
    }

    /// Replaces the stored state of a run that is, or was, running, even if both have the same
    /// document.
    pub async fn put_anew(&self, record: &BundleRecord) -> Result<PutOutcome> {
        let mut all = self.begin().await?;
        let known = earlier_run(&mut all, &record.run.id).await.map_err(trouble)?;
        let outcome = known.as_ref().map_or(PutOutcome::Stored, |known| judged_anew(known, record));
        if matches!(outcome, PutOutcome::Refused(_)) {
            return Ok(outcome);
        }
        self.put_over(&mut all, known.as_ref(), record).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(outcome)
    }

    /// Number of the board with a key; it is created if it does not exist.
    pub async fn board_for(&self, key: &str, name: &str) -> Result<i64> {
        let mut all = self.begin().await?;
        let id = board_id(&mut all, key, name).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(id)
    }

    /// Outcome of storing a bundle now, for callers that need it before they change a copy.
    pub async fn outcome_of(&self, record: &BundleRecord) -> Result<PutOutcome> {
        let mut one = self.pool.acquire().await.map_err(trouble)?;
        let known = earlier_run(&mut one, &record.run.id).await.map_err(trouble)?;
        judged_now(&mut one, known.as_ref(), record).await.map_err(trouble)
    }

    /// Changes the place of a run.
    pub async fn moved(&self, id: &str, place: &str) -> Result<()> {
        let place = self.folder.written(place);
        let moved = sqlx::query("update run set place = $1 where id = $2").bind(place).bind(id);
        let done = moved.execute(&self.pool).await.map_err(trouble)?;
        match done.rows_affected() {
            1 => Ok(()),
            _ => Err(Failure::internal("the run is no longer in the store: import it again")),
        }
    }

    /// Stores a bundle in a transaction.
    pub async fn put_in(
        &self,
        all: &mut Transaction<'static, Any>,
        record: &BundleRecord,
    ) -> sqlx::Result<PutOutcome> {
        let known = earlier_run(all, &record.run.id).await?;
        let outcome = judged_now(all, known.as_ref(), record).await?;
        if matches!(outcome, PutOutcome::Stored | PutOutcome::Replaced) {
            self.put_over(all, known.as_ref(), record).await?;
        }
        Ok(outcome)
    }

    /// Stores a state of a run, replacing an existing one.
    async fn put_over(
        &self,
        all: &mut Transaction<'static, Any>,
        known: Option<&EarlierRun>,
        record: &BundleRecord,
    ) -> sqlx::Result<()> {
        if let Some(known) = known {
            let times: Vec<i64> = known.slots.iter().map(|slot| slot.t).collect();
            let others = of_others(all, &record.run.id, known.board, &known.key, &times).await?;
            known.take_out(all, record).await?;
            // Samples that it did not add must not be subtracted.
            put_tiers(all, &others.iter().collect::<Vec<_>>()).await?;
        }
        let board = board_id(all, &record.run.board, &record.board_name).await?;
        let environment = environment_id(all, &record.environment).await?;
        let place = self.folder.written(&record.run.place);
        put_run(all, record, board, environment, &place).await?;
        if !record.rows.is_empty() {
            note_added(all, board, &record.run.id).await?;
        }
        let key = &record.run.key;
        let slots = (0..).zip(&record.slots).map(|(seq, slot)| (SlotPlace { board, key, seq }, slot));
        put_slots(all, &slots.collect::<Vec<_>>()).await?;
        let (tiers, counted) = record.counted();
        let rows: Vec<_> = counted.iter().map(|row| (board, key, row.t, row)).collect();
        add_to_tiers(all, tiers, &rows).await?;
        put_culprits(all, record, board).await?;
        put_run_labels(all, board, &record.run.id, &record.run.labels).await
    }
}

async fn board_id(all: &mut Transaction<'static, Any>, key: &str, name: &str) -> sqlx::Result<i64> {
    sqlx::query("insert into board (key, name) values ($1, $2) on conflict do nothing")
        .bind(key)
        .bind(name)
        .execute(&mut **all)
        .await?;
    sqlx::query(
        "insert into board_setting (board_id, state, since, tags) \
         select id, 'active', 0, '' from board where key = $1 on conflict do nothing",
    )
    .bind(key)
    .execute(&mut **all)
    .await?;
    sqlx::query_scalar("select id from board where key = $1").bind(key).fetch_one(&mut **all).await
}

async fn put_run(
    all: &mut Transaction<'static, Any>,
    record: &BundleRecord,
    board: i64,
    environment: i64,
    place: &str,
) -> sqlx::Result<()> {
    let run = &record.run;
    sqlx::query("insert into plan (series, plan, words) values ($1, $2, $3) on conflict do nothing")
        .bind(&run.key.series)
        .bind(&run.key.plan)
        .bind(storable(&record.plan_words))
        .execute(&mut **all)
        .await?;
    sqlx::query(
        "insert into run (board_id, id, environment_id, command, series, plan, started, length_ns, \
         complete, by_rows, cpus, cycles, missed, max_ns, p9999_ns, invalid, spikes, place, digest, whole) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
         on conflict (board_id, id) do update set environment_id = excluded.environment_id, \
         command = excluded.command, series = excluded.series, plan = excluded.plan, \
         started = excluded.started, length_ns = excluded.length_ns, complete = excluded.complete, \
         by_rows = excluded.by_rows, cpus = excluded.cpus, cycles = excluded.cycles, \
         missed = excluded.missed, max_ns = excluded.max_ns, p9999_ns = excluded.p9999_ns, \
         invalid = excluded.invalid, spikes = excluded.spikes, place = excluded.place, \
         digest = excluded.digest, whole = excluded.whole",
    )
    .bind(board)
    .bind(&run.id)
    .bind(environment)
    .bind(&run.command)
    .bind(&run.key.series)
    .bind(&run.key.plan)
    .bind(run.started)
    .bind(plain(run.length_ns))
    .bind(i64::from(run.complete))
    .bind(i64::from(!record.rows.is_empty()))
    .bind(to_i64(run.cpus))
    .bind(to_i64(run.cycles))
    .bind(run.missed.map(to_i64))
    .bind(plain(run.max_ns))
    .bind(plain(run.p9999_ns))
    .bind(to_i64(run.invalid))
    .bind(to_i64(run.spikes))
    .bind(place)
    .bind(&record.digest)
    .bind(pack_rows(&record.whole.cpus))
    .execute(&mut **all)
    .await?;
    Ok(())
}

async fn put_culprits(
    all: &mut Transaction<'static, Any>,
    record: &BundleRecord,
    board: i64,
) -> sqlx::Result<()> {
    for one in &record.culprits {
        sqlx::query(
            "insert into culprit (fingerprint, rule, name, kind, remedy) values ($1, $2, $3, $4, $5) \
             on conflict (fingerprint) do update set name = excluded.name, remedy = excluded.remedy",
        )
        .bind(&one.fingerprint)
        .bind(storable(&one.rule))
        .bind(storable(&one.name))
        .bind(storable(&one.kind))
        .bind(storable(&one.remedy))
        .execute(&mut **all)
        .await?;
        sqlx::query(
            "insert into culprit_run (board_id, run, culprit_id, t, spikes, total_ns) \
             select $1, $2, id, $3, $4, $5 from culprit where fingerprint = $6 \
             on conflict (board_id, run, culprit_id) do update set \
             spikes = culprit_run.spikes + excluded.spikes, total_ns = culprit_run.total_ns + \
              excluded.total_ns",
        )
        .bind(board)
        .bind(&record.run.id)
        .bind(record.run.started)
        .bind(to_i64(one.spikes))
        .bind(one.total_ns.0)
        .bind(&one.fingerprint)
        .execute(&mut **all)
        .await?;
    }
    Ok(())
}
