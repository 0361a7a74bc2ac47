//! Users, and their sessions by digest: a role is read for each request, so that a removal or a
//! change of role takes effect at once.

use model::error::Result;

use crate::store::{FarmStore, trouble};
use crate::users::{FarmUser, Role};

impl FarmStore {
    /// Adds a user; returns false if the name is in use.
    pub async fn add_user(&self, of: &FarmUser, password: &str) -> Result<bool> {
        let insert = sqlx::query(
            "insert into user_account (name, role, password, created) values ($1, $2, $3, $4) on conflict do \
             nothing",
        );
        let insert = insert.bind(&of.name).bind(of.role.word()).bind(password).bind(of.created);
        Ok(insert.execute(&self.pool).await.map_err(trouble)?.rows_affected() == 1)
    }

    /// All users by name.
    pub async fn users(&self) -> Result<Vec<FarmUser>> {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("select name, role, created from user_account order by name")
                .fetch_all(&self.pool)
                .await
                .map_err(trouble)?;
        Ok(rows.into_iter().map(|(name, role, created)| user(name, &role, created)).collect())
    }

    /// True if anybody exists who may log in.
    pub async fn has_users(&self) -> Result<bool> {
        let found: Option<i64> =
            sqlx::query_scalar("select created from user_account where role <> 'script' limit 1")
                .fetch_optional(&self.pool)
                .await
                .map_err(trouble)?;
        Ok(found.is_some())
    }

    /// Script with a token, by the token's digest.
    pub async fn script(&self, token: &str) -> Result<Option<FarmUser>> {
        let row: Option<(String, String, i64)> = sqlx::query_as(
            "select name, role, created from user_account where role = 'script' and password = $1",
        )
        .bind(token)
        .fetch_optional(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(row.map(|(name, role, created)| user(name, &role, created)))
    }

    /// Digest of a user's password.
    pub async fn password_of(&self, name: &str) -> Result<Option<String>> {
        let found = sqlx::query_scalar("select password from user_account where name = $1").bind(name);
        found.fetch_optional(&self.pool).await.map_err(trouble)
    }

    /// Changes a user's password, which ends the sessions; returns false for an unknown user.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<bool> {
        let mut all = self.begin().await?;
        let set =
            sqlx::query("update user_account set password = $1 where name = $2").bind(password).bind(name);
        let done = set.execute(&mut *all).await.map_err(trouble)?;
        let end = sqlx::query("delete from session where account = $1").bind(name);
        end.execute(&mut *all).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(done.rows_affected() == 1)
    }

    /// Changes a user's role; returns false for an unknown user, and for a script, which has no
    /// password.
    pub async fn set_role(&self, name: &str, role: Role) -> Result<bool> {
        let set = sqlx::query("update user_account set role = $1 where name = $2 and role <> 'script'");
        let set = set.bind(role.word()).bind(name);
        Ok(set.execute(&self.pool).await.map_err(trouble)?.rows_affected() == 1)
    }

    /// Removes a user with all sessions; returns false for an unknown user.
    pub async fn remove_user(&self, name: &str) -> Result<bool> {
        let remove = sqlx::query("delete from user_account where name = $1").bind(name);
        Ok(remove.execute(&self.pool).await.map_err(trouble)?.rows_affected() == 1)
    }

    /// Begins a session that is valid until a time, if the password is still the one that was
    /// compared; removes expired sessions.
    pub async fn begin_session(
        &self,
        name: &str,
        password: &str,
        hash: &[u8],
        now: i64,
        until: i64,
    ) -> Result<bool> {
        let mut all = self.begin().await?;
        let over = sqlx::query("delete from session where until <= $1").bind(now);
        over.execute(&mut *all).await.map_err(trouble)?;
        let insert = sqlx::query(
            "insert into session (hash, account, created, until) select $1, name, $2, $3 from user_account \
             where name = $4 and password = $5",
        );
        let insert = insert.bind(hash).bind(now).bind(until).bind(name).bind(password);
        let done = insert.execute(&mut *all).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(done.rows_affected() == 1)
    }

    /// User of a session, with the current role.
    pub async fn session(&self, hash: &[u8], now: i64) -> Result<Option<FarmUser>> {
        let row: Option<(String, String, i64)> = sqlx::query_as(
            "select p.name, p.role, p.created from session s join user_account p on p.name = s.account \
             where s.hash = $1 and s.until > $2",
        )
        .bind(hash)
        .bind(now)
        .fetch_optional(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(row.map(|(name, role, created)| user(name, &role, created)))
    }

    /// Ends a session.
    pub async fn end_session(&self, hash: &[u8]) -> Result<()> {
        let end = sqlx::query("delete from session where hash = $1").bind(hash);
        end.execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }
}

/// An unknown role, of another version, may read.
fn user(name: String, role: &str, created: i64) -> FarmUser {
    FarmUser { name, role: Role::of_word(role).unwrap_or(Role::Viewer), created }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn who_is_removed_or_changed_is_so_at_once() {
        on_each_engine(async |store| {
            assert!(!store.has_users().await.unwrap());
            let ann = FarmUser { name: "ann".into(), role: Role::Admin, created: 5 };
            assert!(store.add_user(&ann, "digest").await.unwrap());
            assert!(!store.add_user(&ann, "other").await.unwrap());
            assert_eq!(store.password_of("ann").await.unwrap().as_deref(), Some("digest"));
            assert_eq!(
                (store.users().await.unwrap(), store.has_users().await.unwrap()),
                (vec![ann.clone()], true)
            );
            // A session begins with the password that was compared, or not at all.
            assert!(!store.begin_session("ann", "old", &[1], 10, 20).await.unwrap());
            assert!(!store.begin_session("bob", "digest", &[1], 10, 20).await.unwrap());
            assert!(store.begin_session("ann", "digest", &[1], 10, 20).await.unwrap());
            assert_eq!(store.session(&[1], 19).await.unwrap(), Some(ann));
            assert_eq!(store.session(&[1], 20).await.unwrap(), None);
            assert!(
                store.set_role("ann", Role::Viewer).await.unwrap()
                    && !store.set_role("x", Role::Admin).await.unwrap()
            );
            assert_eq!(store.session(&[1], 19).await.unwrap().unwrap().role, Role::Viewer);
            assert!(store.set_password("ann", "new").await.unwrap());
            assert_eq!(store.session(&[1], 19).await.unwrap(), None);
            assert!(store.begin_session("ann", "new", &[2], 10, 20).await.unwrap());
            store.end_session(&[2]).await.unwrap();
            assert_eq!(store.session(&[2], 11).await.unwrap(), None);
            assert!(store.begin_session("ann", "new", &[3], 10, 20).await.unwrap());
            assert!(store.remove_user("ann").await.unwrap() && !store.remove_user("ann").await.unwrap());
            // One of the same name is another user.
            let again = FarmUser { name: "ann".into(), role: Role::Viewer, created: 6 };
            assert!(store.add_user(&again, "digest").await.unwrap());
            assert_eq!(store.session(&[3], 11).await.unwrap(), None);
            // The digest of a token finds scripts only, and a script is no account for a login.
            assert!(store.remove_user("ann").await.unwrap());
            let script = FarmUser { name: "grafana".into(), role: Role::Script, created: 7 };
            assert!(store.add_user(&script, "token").await.unwrap());
            assert!(
                !store.has_users().await.unwrap() && !store.set_role("grafana", Role::Admin).await.unwrap()
            );
            assert!(store.add_user(&again, "digest").await.unwrap());
            assert_eq!(store.script("token").await.unwrap(), Some(script));
            assert_eq!(store.script("digest").await.unwrap(), None);
            assert!(store.set_password("grafana", "other").await.unwrap());
            assert_eq!(store.script("token").await.unwrap(), None);
        });
    }
}
