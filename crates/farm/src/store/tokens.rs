//! Codes that enrol a board once, and tokens that identify it afterwards; of both only digests.

use model::error::Result;
use sqlx::{Any, Transaction};

use crate::board_settings::BoardState;
use crate::store::{FarmStore, trouble};

/// Board of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenOwner {
    pub board_id: i64,
    pub board: String,
}

/// Outcome of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnrolOutcome {
    Enrolled,
    /// The code is used, too old, or none.
    BadCode,
    /// A board of this name is there, and the code was not made for it.
    NameTaken,
    /// The code was made for this board, which has a valid token.
    HasToken,
    /// The code was made for this other board.
    OtherBoard(String),
}

impl FarmStore {
    /// Adds a code that is valid until a time; the board that enrols with it gets these tags.
    pub async fn add_code(&self, hash: &[u8], until: i64, tags: &[String]) -> Result<()> {
        let mut all = self.begin().await?;
        put_code(&mut all, hash, until, tags, None).await?;
        all.commit().await.map_err(trouble)
    }

    /// Adds a code for one board, which may exist already: it keeps its data and its tags. Returns
    /// false, and adds no code, if it has a valid token.
    pub async fn add_code_for(&self, board: &str, hash: &[u8], until: i64, tags: &[String]) -> Result<bool> {
        let mut all = self.begin().await?;
        if has_token(&mut all, board).await? {
            return Ok(false);
        }
        put_code(&mut all, hash, until, tags, Some(board)).await?;
        all.commit().await.map_err(trouble)?;
        Ok(true)
    }

    /// Uses a code and creates the board's token, and the board if it does not exist; or changes
    /// nothing. A repetition, while the code would be valid, gets the same result.
    pub async fn enrol(
        &self,
        code: &[u8],
        now: i64,
        key: &str,
        name: &str,
        token: &[u8],
    ) -> Result<EnrolOutcome> {
        let mut all = self.begin().await?;
        let used = sqlx::query("update code set used = $1 where hash = $2 and used = 0 and until > $3");
        let used = used.bind(now).bind(code).bind(now).execute(&mut *all).await.map_err(trouble)?;
        if used.rows_affected() != 1 {
            let was_it = was_enrolled(&mut all, code, now, key, token).await?;
            return Ok(if was_it { EnrolOutcome::Enrolled } else { EnrolOutcome::BadCode });
        }
        let made_for: Option<String> = sqlx::query_scalar("select board from code where hash = $1")
            .bind(code)
            .fetch_one(&mut *all)
            .await
            .map_err(trouble)?;
        let is_named = made_for.is_some();
        if let Some(other) = made_for.filter(|board| board != key) {
            return Ok(EnrolOutcome::OtherBoard(other));
        }
        let made = sqlx::query("insert into board (key, name) values ($1, $2) on conflict do nothing");
        let made = made.bind(key).bind(name).execute(&mut *all).await.map_err(trouble)?;
        if made.rows_affected() != 1 {
            // A code without a name must not give its sender the runs of a known board.
            if !is_named {
                return Ok(EnrolOutcome::NameTaken);
            }
            if has_token(&mut all, key).await? {
                return Ok(EnrolOutcome::HasToken);
            }
        }
        sqlx::query(
            "insert into token (hash, board_id, created, revoked) select $1, id, $2, 0 from board where \
             key = $3",
        )
        .bind(token)
        .bind(now)
        .bind(key)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        sqlx::query(
            "insert into board_setting (board_id, state, since, tags) \
             select b.id, $1, 0, c.tags from board b join code c on c.hash = $2 where b.key = $3 \
             on conflict do nothing",
        )
        .bind(BoardState::Active.word())
        .bind(code)
        .bind(key)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(EnrolOutcome::Enrolled)
    }

    /// Board of a token; `None` if the token is unknown or revoked.
    pub async fn owner(&self, token: &[u8]) -> Result<Option<TokenOwner>> {
        self.owner_of(token, "t.revoked = 0").await
    }

    /// The board of a token that was revoked.
    pub async fn revoked_owner(&self, token: &[u8]) -> Result<Option<TokenOwner>> {
        self.owner_of(token, "t.revoked <> 0").await
    }

    async fn owner_of(&self, token: &[u8], state: &'static str) -> Result<Option<TokenOwner>> {
        let query = format!(
            "select b.id, b.key from token t join board b on b.id = t.board_id where t.hash = $1 and {state}"
        );
        let row: Option<(i64, String)> = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(token)
            .fetch_optional(&self.pool)
            .await
            .map_err(trouble)?;
        Ok(row.map(|(board_id, board)| TokenOwner { board_id, board }))
    }

    /// Revokes all tokens of a board; returns their number.
    pub async fn revoke(&self, board: &str, now: i64) -> Result<u64> {
        let revoke = sqlx::query(
            "update token set revoked = $1 where revoked = 0 and board_id in (select id from board where \
             key = $2)",
        );
        Ok(revoke.bind(now).bind(board).execute(&self.pool).await.map_err(trouble)?.rows_affected())
    }
}

async fn put_code(
    all: &mut Transaction<'static, Any>,
    hash: &[u8],
    until: i64,
    tags: &[String],
    board: Option<&str>,
) -> Result<()> {
    let insert = sqlx::query("insert into code (hash, until, used, tags, board) values ($1, $2, 0, $3, $4)");
    let insert = insert.bind(hash).bind(until).bind(tags.join(" ")).bind(board);
    insert.execute(&mut **all).await.map_err(trouble)?;
    Ok(())
}

/// True if a code that would be valid still gave a board this very token.
async fn was_enrolled(
    all: &mut Transaction<'static, Any>,
    code: &[u8],
    now: i64,
    key: &str,
    token: &[u8],
) -> Result<bool> {
    let tokens: i64 = sqlx::query_scalar(
        "select count(*) from token t join board b on b.id = t.board_id \
         where t.hash = $1 and t.revoked = 0 and b.key = $2 and exists \
         (select 1 from code c where c.hash = $3 and c.until > $4)",
    )
    .bind(token)
    .bind(key)
    .bind(code)
    .bind(now)
    .fetch_one(&mut **all)
    .await
    .map_err(trouble)?;
    Ok(tokens > 0)
}

/// True if a board has a valid token.
async fn has_token(all: &mut Transaction<'static, Any>, board: &str) -> Result<bool> {
    let valid: i64 = sqlx::query_scalar(
        "select count(*) from token t join board b on b.id = t.board_id where b.key = $1 and t.revoked = 0",
    )
    .bind(board)
    .fetch_one(&mut **all)
    .await
    .map_err(trouble)?;
    Ok(valid > 0)
}
