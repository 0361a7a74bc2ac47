//! Times at which changes were found, and their notifications: each is sent once, also across
//! restarts of the server.

use model::error::Result;
use sqlx::{Any, AnyConnection, Transaction};

use crate::changes::{ChangeIdentity, NotedChanges};
use crate::store::{FarmStore, to_u64, trouble};

/// State of a change's notification.
const WAITS: i64 = 0;
const TOLD: i64 = 1;
const GIVEN_UP: i64 = 2;
/// It precedes the first notification, and is not sent.
const OLDER: i64 = 3;
/// It was found, and is not to be sent so far.
const FOUND: i64 = 4;

/// A stored change, as others refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundChange {
    /// Id that stays, also if the change is later dated to another day.
    pub id: String,
    /// Time at which it was found, in seconds since 1970.
    pub at: i64,
}

/// Stored state of a change.
struct NotedChange {
    id: String,
    state: i64,
    /// Time at which it was found.
    noted: i64,
    /// Last time at which it is known to have continued: [`ChangeIdentity::until`].
    until: i64,
}

impl NotedChange {
    /// Id of the stored change, if the change has since continued up to another time.
    fn moved_to(&self, of: &ChangeIdentity) -> Option<&str> {
        (self.until != of.until).then_some(self.id.as_str())
    }
}

/// A change with the text of its notification.
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

/// Numbers of stored notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticesNoted {
    pub new: u64,
    /// Number of those without room in the queue.
    pub given_up: u64,
    /// Changes that precede the first notification: they are not sent.
    pub older: u64,
}

impl FarmStore {
    /// Stores the time at which new changes were found, and updates the known ones.
    pub async fn note_found(&self, all: &[ChangeIdentity], now: i64) -> Result<()> {
        let known: NotedChanges<NotedChange> = self.noted_changes().await?.into_iter().collect();
        let new: Vec<&ChangeIdentity> = all.iter().filter(|of| known.find(of).is_none()).collect();
        let moved: Vec<(&str, &ChangeIdentity)> =
            all.iter().filter_map(|of| Some((known.find(of)?.moved_to(of)?, of))).collect();
        if new.is_empty() && moved.is_empty() {
            return Ok(());
        }
        let mut all = self.begin().await?;
        for of in new {
            let notice = ChangeNotice { identity: of.clone(), document: String::new() };
            insert(&mut all, &notice, now, FOUND).await.map_err(trouble)?;
        }
        for (id, of) in moved {
            follow(&mut all, id, of).await.map_err(trouble)?;
        }
        all.commit().await.map_err(trouble)
    }

    /// The stored changes.
    pub async fn found_changes(&self) -> Result<NotedChanges<FoundChange>> {
        let found = |known: NotedChange| FoundChange { id: known.id, at: known.noted };
        Ok(self.noted_changes().await?.into_iter().map(|(of, known)| (of, found(known))).collect())
    }

    async fn noted_changes(&self) -> Result<Vec<(ChangeIdentity, NotedChange)>> {
        let mut by = self.pool.acquire().await.map_err(trouble)?;
        noted_changes(&mut by).await.map_err(trouble)
    }

    /// Queues notifications of changes that have none yet, up to a limit of waiting ones.
    pub async fn note_changes(&self, notices: &[ChangeNotice], now: i64, most: u64) -> Result<NoticesNoted> {
        let mut all = self.begin().await?;
        let noted = note(&mut all, notices, now, most).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(noted)
    }

    /// Notifications that are due, the oldest first.
    pub async fn due_notices(&self, now: i64, most: i64) -> Result<Vec<WaitingNotice>> {
        let rows: Vec<(i64, String, i64, String)> = sqlx::query_as(
            "select board_id, id, tries, document from notification where state = $1 and due <= $2 \
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

    /// Number of waiting notifications.
    pub async fn waiting_notices(&self) -> Result<u64> {
        let waiting = sqlx::query_scalar("select count(*) from notification where state = $1").bind(WAITS);
        Ok(to_u64(waiting.fetch_one(&self.pool).await.map_err(trouble)?))
    }

    /// Marks a notification as sent.
    pub async fn notice_told(&self, of: &WaitingNotice) -> Result<()> {
        self.set_notice(of, TOLD, 0).await
    }

    /// Marks a notification as failed, with the time of the next attempt; `None` gives it up.
    pub async fn notice_failed(&self, of: &WaitingNotice, again: Option<i64>) -> Result<()> {
        self.set_notice(of, if again.is_some() { WAITS } else { GIVEN_UP }, again.unwrap_or_default()).await
    }

    async fn set_notice(&self, of: &WaitingNotice, state: i64, due: i64) -> Result<()> {
        let set =
            "update notification set state = $1, due = $2, tries = tries + 1 where board_id = $3 and id = $4";
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
    let first =
        sqlx::query("insert into meta (name, value) values ('notified since', $1) on conflict do nothing");
    let is_first = first.bind(now).execute(&mut **all).await?.rows_affected() == 1;
    let mut known: NotedChanges<NotedChange> = noted_changes(all).await?.into_iter().collect();
    let waiting =
        sqlx::query_scalar::<_, i64>("select count(*) from notification where state = $1").bind(WAITS);
    let mut waiting = to_u64(waiting.fetch_one(&mut **all).await?);
    let mut noted = NoticesNoted::default();
    for notice in notices {
        let found = match known.find(&notice.identity) {
            Some(one) if one.state == FOUND => Some((one.id.clone(), one.noted)),
            Some(one) => {
                if let Some(id) = one.moved_to(&notice.identity) {
                    follow(all, id, &notice.identity).await?;
                }
                continue;
            }
            None => None,
        };
        let state = match () {
            () if is_first => OLDER,
            () if waiting >= most => GIVEN_UP,
            () => WAITS,
        };
        match &found {
            Some((id, _)) => take_up(all, notice, id, state).await?,
            None => insert(all, notice, now, state).await?,
        }
        match state {
            OLDER => noted.older += 1,
            GIVEN_UP => noted.given_up += 1,
            _ => {
                noted.new += 1;
                waiting += 1;
            }
        }
        let (id, noted) = (notice.identity.id(), found.map_or(now, |(_, noted)| noted));
        let until = notice.identity.until;
        known.add(notice.identity.clone(), NotedChange { id, state, noted, until });
    }
    Ok(noted)
}

async fn noted_changes(by: &mut AnyConnection) -> sqlx::Result<Vec<(ChangeIdentity, NotedChange)>> {
    type Row = (String, String, String, i64, String, i64, i64);
    let rows: Vec<Row> = sqlx::query_as(
        "select b.key, w.kind, w.subject, w.began, w.id, w.state, w.noted from notification w \
         join board b on b.id = w.board_id order by w.noted, w.id",
    )
    .fetch_all(&mut *by)
    .await?;
    let one = |(board, kind, subject, until, id, state, noted): Row| {
        let of = ChangeIdentity { board, kind, subject, began: until, until, since: None };
        (of, NotedChange { id, state, noted, until })
    };
    Ok(rows.into_iter().map(one).collect())
}

/// Stores the last time at which a change continues.
async fn follow(
    all: &mut Transaction<'static, Any>,
    known_as: &str,
    of: &ChangeIdentity,
) -> sqlx::Result<()> {
    sqlx::query(
        "update notification set began = $1 where id = $2 \
         and board_id in (select id from board where key = $3)",
    )
    .bind(of.until)
    .bind(known_as)
    .bind(&of.board)
    .execute(&mut **all)
    .await?;
    Ok(())
}

/// Queues a known change in its current form, unless one with the same start is queued.
async fn take_up(
    all: &mut Transaction<'static, Any>,
    notice: &ChangeNotice,
    known_as: &str,
    state: i64,
) -> sqlx::Result<()> {
    let of = &notice.identity;
    sqlx::query(
        "update notification set id = $1, began = $2, state = $3, document = $4 where id = $5 \
         and board_id in (select id from board where key = $6) and not exists (select 1 from notification o \
         where o.board_id = notification.board_id and o.id = $7 and o.id <> notification.id)",
    )
    .bind(of.id())
    .bind(of.until)
    .bind(state)
    .bind(&notice.document)
    .bind(known_as)
    .bind(&of.board)
    .bind(of.id())
    .execute(&mut **all)
    .await?;
    Ok(())
}

async fn insert(
    all: &mut Transaction<'static, Any>,
    notice: &ChangeNotice,
    noted: i64,
    state: i64,
) -> sqlx::Result<()> {
    let of = &notice.identity;
    sqlx::query(
        "insert into notification (board_id, id, kind, subject, began, noted, state, tries, due, document) \
         select id, $1, $2, $3, $4, $5, $6, 0, 0, $7 from board where key = $8 \
         on conflict (board_id, id) do update set began = excluded.began",
    )
    .bind(of.id())
    .bind(&of.kind)
    .bind(&of.subject)
    .bind(of.until)
    .bind(noted)
    .bind(state)
    .bind(&notice.document)
    .bind(&of.board)
    .execute(&mut **all)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;

    const DAY: i64 = 86_400;

    fn change(kind: &str, day: i64) -> ChangeIdentity {
        let subject = if kind == "more-often" { "rate" } else { kind };
        let (board, subject, began) = ("a".into(), subject.into(), day * DAY);
        ChangeIdentity { board, kind: kind.into(), subject, began, until: began, since: None }
    }

    /// A budget that is broken from a day to another.
    fn over(from: i64, until: i64) -> ChangeIdentity {
        ChangeIdentity { until: until * DAY, ..change("over-budget", from) }
    }

    async fn found(store: &FarmStore, of: &ChangeIdentity) -> Option<i64> {
        store.found_changes().await.unwrap().find(of).map(|found| found.at)
    }

    #[test]
    fn a_change_has_the_time_at_which_it_was_found_first() {
        on_each_engine(async |store| {
            store.put(&recorded_run("measured", "a")).await.unwrap();
            let (worse, rate) = (change("worse", 3), change("more-often", 3));
            store.note_found(std::slice::from_ref(&worse), 7 * DAY).await.unwrap();
            store.note_found(&[worse.clone(), rate.clone()], 10 * DAY).await.unwrap();
            // The day moves on which a rate seems to have changed.
            let moved = change("more-often", 6);
            store.note_found(std::slice::from_ref(&moved), 11 * DAY).await.unwrap();
            for (of, at) in [(&worse, 7), (&rate, 10), (&moved, 10)] {
                assert_eq!(found(&store, of).await, Some(at * DAY), "{of:?}");
            }
            assert_eq!(found(&store, &change("worse", 4)).await, None);
        });
    }

    #[test]
    fn what_was_found_before_anybody_is_told_is_not_told_and_what_comes_then_is_once() {
        on_each_engine(async |store| {
            store.put(&recorded_run("measured", "a")).await.unwrap();
            let (old, new) = (change("worse", 3), change("more-often", 20));
            let notice = |of: &ChangeIdentity| ChangeNotice {
                identity: of.clone(),
                document: format!("{{\"id\":\"{}\"}}", of.id()),
            };
            store.note_found(std::slice::from_ref(&old), 7 * DAY).await.unwrap();
            let noted = store.note_changes(&[notice(&old)], 8 * DAY, 9).await.unwrap();
            assert_eq!(noted, NoticesNoted { older: 1, ..NoticesNoted::default() });
            store.note_found(&[old.clone(), new.clone()], 22 * DAY).await.unwrap();
            assert_eq!(store.waiting_notices().await.unwrap(), 0);
            // It is sent in its form at that time.
            let moved = change("more-often", 19);
            let all = [notice(&old), notice(&moved)];
            let noted = store.note_changes(&all, 23 * DAY, 9).await.unwrap();
            assert_eq!(noted, NoticesNoted { new: 1, ..NoticesNoted::default() });
            let due = store.due_notices(23 * DAY, 9).await.unwrap();
            assert_eq!(due.len(), 1);
            assert_eq!((due[0].id.clone(), due[0].document.clone()), (moved.id(), all[1].document.clone()));
            assert_eq!(
                (found(&store, &moved).await, found(&store, &old).await),
                (Some(22 * DAY), Some(7 * DAY))
            );
            assert_eq!(store.note_changes(&all, 24 * DAY, 9).await.unwrap(), NoticesNoted::default());
            // Without room in the queue it is given up.
            store.note_found(&[change("worse", 30)], 31 * DAY).await.unwrap();
            let noted = store.note_changes(&[notice(&change("worse", 30))], 31 * DAY, 1).await.unwrap();
            assert_eq!(noted, NoticesNoted { given_up: 1, ..NoticesNoted::default() });
        });
    }

    #[test]
    fn a_broken_budget_is_told_once_however_long_and_the_next_one_is_told() {
        on_each_engine(async |store| {
            store.put(&recorded_run("measured", "a")).await.unwrap();
            let notice = |of: &ChangeIdentity| ChangeNotice { identity: of.clone(), document: String::new() };
            store.note_changes(&[], DAY, 9).await.unwrap();
            let told = async |of: ChangeIdentity, now: i64| {
                store.note_found(std::slice::from_ref(&of), now * DAY).await.unwrap();
                let noted = store.note_changes(&[notice(&of)], now * DAY, 9).await.unwrap();
                (noted.new, found(&store, &of).await)
            };
            assert_eq!(told(over(6, 6), 6).await, (1, Some(6 * DAY)));
            assert_eq!(told(over(6, 13), 13).await, (0, Some(6 * DAY)));
            // Seven days within it.
            assert_eq!(told(over(21, 21), 21).await, (1, Some(21 * DAY)));
            // It lasts longer than the days that are searched.
            for last in [40, 90, 120, 200, 280] {
                let from = (last - 89).max(21);
                assert_eq!(told(over(from, last), last).await, (0, Some(21 * DAY)), "{last}");
            }
            assert_eq!(told(over(288, 288), 288).await, (1, Some(288 * DAY)));
            // Late rows merge two of them.
            store.note_found(&[over(296, 296)], 296 * DAY).await.unwrap();
            assert_eq!(told(over(288, 296), 297).await.1, Some(296 * DAY));
            assert_eq!(store.waiting_notices().await.unwrap(), 3);
        });
    }
}
