//! Changes that are told elsewhere: each once, also when the server was ended in between.

use model::error::Result;
use sqlx::{Any, Transaction};

use super::{FarmStore, to_u64, trouble};
use crate::changes::ChangeIdentity;

/// What became of a change.
const WAITS: i64 = 0;
const TOLD: i64 = 1;
const GIVEN_UP: i64 = 2;
/// It was there before anybody wanted to be told.
const OLDER: i64 = 3;

/// A change to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeNotice {
    pub identity: ChangeIdentity,
    pub document: String,
}

/// A notice that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingNotice {
    pub board_id: i64,
    pub id: String,
    pub tries: u64,
    pub document: String,
}

/// What was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticesNoted {
    pub new: u64,
    /// Those for which there was no room.
    pub given_up: u64,
    /// Those that were there when the first was noted: nobody is told of them.
    pub older: u64,
}

impl FarmStore {
    /// Notes changes that are not noted yet, no more than so many that wait.
    pub async fn note_changes(&self, notices: &[ChangeNotice], now: i64, most: u64) -> Result<NoticesNoted> {
        let mut all = self.begin().await?;
        let noted = note(&mut all, notices, now, most).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(noted)
    }

    /// Those that are due, the oldest first.
    pub async fn due_notices(&self, now: i64, most: i64) -> Result<Vec<WaitingNotice>> {
        let rows: Vec<(i64, String, i64, String)> = sqlx::query_as(
            "select board_id, id, tries, document from told where state = $1 and due <= $2 \
             order by noted, id limit $3",
        )
        .bind(WAITS)
        .bind(now)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one =
            |(board_id, id, tries, document)| WaitingNotice { board_id, id, tries: to_u64(tries), document };
        Ok(rows.into_iter().map(one).collect())
    }

    /// How many wait.
    pub async fn waiting_notices(&self) -> Result<u64> {
        let waiting = sqlx::query_scalar("select count(*) from told where state = $1").bind(WAITS);
        Ok(to_u64(waiting.fetch_one(&self.pool).await.map_err(trouble)?))
    }

    /// It was told.
    pub async fn notice_told(&self, of: &WaitingNotice) -> Result<()> {
        self.set_notice(of, TOLD, 0).await
    }

    /// It was not: when it is tried again; none where it is given up.
    pub async fn notice_failed(&self, of: &WaitingNotice, again: Option<i64>) -> Result<()> {
        self.set_notice(of, if again.is_some() { WAITS } else { GIVEN_UP }, again.unwrap_or_default()).await
    }

    async fn set_notice(&self, of: &WaitingNotice, state: i64, due: i64) -> Result<()> {
        let set = "update told set state = $1, due = $2, tries = tries + 1 where board_id = $3 and id = $4";
        let set = sqlx::query(set).bind(state).bind(due).bind(of.board_id).bind(&of.id);
        set.execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }
}

async fn note(
    all: &mut Transaction<'static, Any>,
    notices: &[ChangeNotice],
    now: i64,
    most: u64,
) -> sqlx::Result<NoticesNoted> {
    let first = sqlx::query("insert into meta (name, value) values ('told', $1) on conflict do nothing");
    let is_first = first.bind(now).execute(&mut **all).await?.rows_affected() == 1;
    let mut known = known(all).await?;
    let waiting = sqlx::query_scalar::<_, i64>("select count(*) from told where state = $1").bind(WAITS);
    let mut waiting = to_u64(waiting.fetch_one(&mut **all).await?);
    let mut noted = NoticesNoted::default();
    for notice in notices {
        if known.iter().any(|one| one.is(&notice.identity)) {
            continue;
        }
        let state = match () {
            () if is_first => OLDER,
            () if waiting >= most => GIVEN_UP,
            () => WAITS,
        };
        insert(all, notice, now, state).await?;
        match state {
            OLDER => noted.older += 1,
            GIVEN_UP => noted.given_up += 1,
            _ => {
                noted.new += 1;
                waiting += 1;
            }
        }
        known.push(notice.identity.clone());
    }
    Ok(noted)
}

async fn known(all: &mut Transaction<'static, Any>) -> sqlx::Result<Vec<ChangeIdentity>> {
    let rows: Vec<(String, String, String, i64)> = sqlx::query_as(
        "select b.key, w.kind, w.subject, w.began from told w join board b on b.id = w.board_id",
    )
    .fetch_all(&mut **all)
    .await?;
    let one = |(board, kind, subject, began)| ChangeIdentity { board, kind, subject, began };
    Ok(rows.into_iter().map(one).collect())
}

async fn insert(
    all: &mut Transaction<'static, Any>,
    notice: &ChangeNotice,
    now: i64,
    state: i64,
) -> sqlx::Result<()> {
    let of = &notice.identity;
    sqlx::query(
        "insert into told (board_id, id, kind, subject, began, noted, state, tries, due, document) \
         select id, $1, $2, $3, $4, $5, $6, 0, 0, $7 from board where key = $8 on conflict do nothing",
    )
    .bind(of.id())
    .bind(&of.kind)
    .bind(&of.subject)
    .bind(of.began)
    .bind(now)
    .bind(state)
    .bind(&notice.document)
    .bind(&of.board)
    .execute(&mut **all)
    .await?;
    Ok(())
}
