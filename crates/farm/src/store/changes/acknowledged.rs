//! Acknowledged changes.

use model::error::Result;

use crate::changes::Acknowledgement;
use crate::store::{FarmStore, trouble};

/// An acknowledged change, by its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcknowledgedChange {
    pub board: String,
    pub subject: String,
    /// [`crate::changes::ChangeIdentity::until`].
    pub t: i64,
    pub by: Acknowledgement,
}

impl FarmStore {
    /// Stores an acknowledgement of a change.
    pub async fn acknowledge(&self, of: &AcknowledgedChange) -> Result<()> {
        sqlx::query(
            "insert into acknowledged (board_id, subject, t, who, note, at) \
             select id, $1, $2, $3, $4, $5 from board where key = $6 \
             on conflict (board_id, subject, t) do update set who = excluded.who, note = excluded.note, \
             at = excluded.at",
        )
        .bind(&of.subject)
        .bind(of.t)
        .bind(&of.by.who)
        .bind(&of.by.note)
        .bind(of.by.at)
        .bind(&of.board)
        .execute(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(())
    }

    /// Moves an acknowledgement to another time, unless one is stored for that.
    pub async fn move_acknowledged(&self, of: &AcknowledgedChange, t: i64) -> Result<()> {
        sqlx::query(
            "update acknowledged set t = $1 where subject = $2 and t = $3 \
             and board_id in (select id from board where key = $4) and not exists (select 1 \
             from acknowledged o where o.board_id = acknowledged.board_id \
             and o.subject = acknowledged.subject and o.t = $5)",
        )
        .bind(t)
        .bind(&of.subject)
        .bind(of.t)
        .bind(&of.board)
        .bind(t)
        .execute(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(())
    }

    /// Removes an acknowledgement.
    pub async fn reopen(&self, of: &AcknowledgedChange) -> Result<()> {
        let reopen = sqlx::query(
            "delete from acknowledged where subject = $1 and t = $2 \
             and board_id in (select id from board where key = $3)",
        );
        let reopen = reopen.bind(&of.subject).bind(of.t).bind(&of.board);
        reopen.execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }

    /// Acknowledgements of changes from a time on.
    pub async fn acknowledged(&self, since: i64) -> Result<Vec<AcknowledgedChange>> {
        type Row = (String, String, i64, String, String, i64);
        let rows: Vec<Row> = sqlx::query_as(
            "select b.key, a.subject, a.t, a.who, a.note, a.at from acknowledged a \
             join board b on b.id = a.board_id where a.t >= $1 order by b.key, a.subject, a.t",
        )
        .bind(since)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(board, subject, t, who, note, at): Row| AcknowledgedChange {
            board,
            subject,
            t,
            by: Acknowledgement { who, note, at },
        };
        Ok(rows.into_iter().map(one).collect())
    }
}
