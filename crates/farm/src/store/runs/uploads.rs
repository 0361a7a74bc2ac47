//! Runs that boards sent: their manifests, and their sizes.

use model::error::Result;

use sqlx::{Any, Transaction};

use crate::records::BundleRecord;
use crate::store::runs::earlier::PutOutcome;
use crate::store::{FarmStore, to_i64, to_u64, trouble};

/// Data on a sent bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentBundle {
    pub board_id: i64,
    /// The digest of its manifest.
    pub manifest: Vec<u8>,
    pub bytes: u64,
}

impl FarmStore {
    /// The manifest of a run that a board sent, as its digest.
    pub async fn manifest(&self, board_id: i64, run: &str) -> Result<Option<Vec<u8>>> {
        let manifest: Option<Option<Vec<u8>>> =
            sqlx::query_scalar("select manifest from sent_run where board_id = $1 and run = $2")
                .bind(board_id)
                .bind(run)
                .fetch_optional(&self.pool)
                .await
                .map_err(trouble)?;
        Ok(manifest.flatten())
    }

    /// Stores a bundle that a board sent, and that it has sent it, both or neither.
    pub async fn put_sent(&self, record: &BundleRecord, sent: &SentBundle) -> Result<PutOutcome> {
        let mut all = self.begin().await?;
        let outcome = self.put_in(&mut all, record).await.map_err(trouble)?;
        if !matches!(outcome, PutOutcome::Refused(_)) {
            note(&mut all, &record.run.id, sent).await.map_err(trouble)?;
            all.commit().await.map_err(trouble)?;
        }
        Ok(outcome)
    }

    /// Bytes of the runs that a board sent.
    pub async fn kept_bytes_of(&self, board: &str) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar(
            "select cast(coalesce(sum(k.bytes), 0) as bigint) from sent_run k \
             join board b on b.id = k.board_id where b.key = $1",
        )
        .bind(board)
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(to_u64(bytes))
    }

    /// The digest of a run's document.
    pub async fn run_digest(&self, run: &str) -> Result<Option<Vec<u8>>> {
        let digest = sqlx::query_scalar("select digest from run where id = $1").bind(run);
        digest.fetch_optional(&self.pool).await.map_err(trouble)
    }

    /// The same, if the run's bundle is still at a place.
    pub async fn run_digest_at(&self, run: &str, place: &str) -> Result<Option<Vec<u8>>> {
        let digest = sqlx::query_scalar("select digest from run where id = $1 and place = $2");
        digest.bind(run).bind(self.folder.written(place)).fetch_optional(&self.pool).await.map_err(trouble)
    }

    /// Bytes of the runs that a board sent, except for one.
    pub async fn kept_bytes(&self, board_id: i64, but: &str) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar(
            "select cast(coalesce(sum(bytes), 0) as bigint) from sent_run where board_id = $1 and run <> $2",
        )
        .bind(board_id)
        .bind(but)
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(to_u64(bytes))
    }
}

async fn note(all: &mut Transaction<'static, Any>, run: &str, sent: &SentBundle) -> sqlx::Result<()> {
    sqlx::query(
        "insert into sent_run (board_id, run, manifest, bytes) values ($1, $2, $3, $4) \
         on conflict (board_id, run) do update set manifest = excluded.manifest, bytes = excluded.bytes",
    )
    .bind(sent.board_id)
    .bind(run)
    .bind(&sent.manifest)
    .bind(to_i64(sent.bytes))
    .execute(&mut **all)
    .await?;
    Ok(())
}
