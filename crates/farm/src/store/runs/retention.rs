//! Stored bundles, the data for their retention, and their removed parts.

use std::collections::BTreeMap;

use model::error::Result;

use crate::store::{FarmStore, to_i64, trouble};

/// A bundle, by its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBundle {
    pub run: String,
    pub board_id: i64,
    pub place: String,
    /// Start of the run, in seconds since 1970.
    pub started: i64,
    pub spikes: i64,
    pub max_ns: Option<i64>,
    pub pinned: bool,
    /// Parts that are removed, or were about to be, and the time of that record.
    pub thinned: String,
    pub thinned_at: i64,
}

/// Part of a bundle that is removed by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinnedPart {
    /// The records of its seconds.
    Blocks,
    /// Traces around its spikes.
    Windows,
}

impl ThinnedPart {
    /// All parts, in the order in which a run names them.
    pub const ALL: [ThinnedPart; 2] = [ThinnedPart::Blocks, ThinnedPart::Windows];

    /// Word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            ThinnedPart::Blocks => "blocks",
            ThinnedPart::Windows => "windows",
        }
    }

    /// Words of the selected parts, separated by a blank.
    pub fn words(has: impl Fn(ThinnedPart) -> bool) -> String {
        let words = ThinnedPart::ALL.into_iter().filter(|part| has(*part)).map(ThinnedPart::word);
        words.collect::<Vec<_>>().join(" ")
    }
}

/// A part of a bundle that may be removed now.
#[derive(Debug)]
pub struct BegunThinning<'a> {
    bundle: &'a KeptBundle,
    /// Parts that were removed before.
    before: String,
}

impl FarmStore {
    /// All bundles.
    pub async fn bundles(&self) -> Result<Vec<KeptBundle>> {
        type Row = (String, i64, String, i64, i64, Option<i64>, i64, String, i64);
        let rows: Vec<Row> = sqlx::query_as(
            "select r.id, r.board_id, r.place, r.started, r.spikes, r.max_ns, \
             cast(case when p.run is null then 0 else 1 end as bigint), coalesce(h.parts, ''), \
             coalesce(h.t, 0) from run r left join pin p on p.board_id = r.board_id and p.run = r.id \
             left join thinned h on h.board_id = r.board_id and h.run = r.id order by r.started, r.id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let bundle = |(run, board_id, place, started, spikes, max_ns, pinned, thinned, thinned_at): Row| {
            let (pinned, place) = (pinned != 0, self.folder.shown(&place));
            KeptBundle { run, board_id, place, started, spikes, max_ns, pinned, thinned, thinned_at }
        };
        Ok(rows.into_iter().map(bundle).collect())
    }

    /// The culprits that a run was the first of all to show, by runs.
    pub async fn first_of_culprits(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let rows: Vec<(String, String)> = sqlx::query_as(
            "select min(k.run), c.fingerprint from culprit_run k join \
             (select culprit_id, min(t) as t from culprit_run group by culprit_id) f \
             on f.culprit_id = k.culprit_id and f.t = k.t join culprit c on c.id = k.culprit_id \
             group by c.fingerprint order by c.fingerprint",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (run, fingerprint) in rows {
            found.entry(run).or_default().push(fingerprint);
        }
        Ok(found)
    }

    /// Records the removal of a bundle's part, unless its run is pinned: `None` then. It is
    /// recorded before the removal, so that a run that is pinned later names its missing parts; a
    /// removal that failed after the record is repeated by the next prune.
    pub async fn begin_thinning<'a>(
        &self,
        bundle: &'a KeptBundle,
        part: ThinnedPart,
        t: i64,
    ) -> Result<Option<BegunThinning<'a>>> {
        let mut all = self.begin().await?;
        let before: Option<String> =
            sqlx::query_scalar("select parts from thinned where board_id = $1 and run = $2")
                .bind(bundle.board_id)
                .bind(&bundle.run)
                .fetch_optional(&mut *all)
                .await
                .map_err(trouble)?;
        let before = before.unwrap_or_default();
        let noted = sqlx::query(
            "insert into thinned (board_id, run, parts, t) select r.board_id, r.id, $1, $2 from run r \
             where r.board_id = $3 and r.id = $4 and not exists (select 1 from pin p \
             where p.board_id = r.board_id and p.run = r.id) \
             on conflict (board_id, run) do update set parts = excluded.parts, t = excluded.t",
        )
        .bind(ThinnedPart::words(|one| one == part || before.contains(one.word())))
        .bind(t)
        .bind(bundle.board_id)
        .bind(&bundle.run)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok((noted.rows_affected() > 0).then_some(BegunThinning { bundle, before }))
    }

    /// Records that it is done, and reduces the bytes of its board's runs.
    pub async fn end_thinning(&self, of: BegunThinning<'_>, freed: u64) -> Result<()> {
        let less = to_i64(freed);
        sqlx::query(
            "update sent_run set bytes = case when bytes > $1 then bytes - $2 else 0 end \
             where board_id = $3 and run = $4 and bytes is not null",
        )
        .bind(less)
        .bind(less)
        .bind(of.bundle.board_id)
        .bind(&of.bundle.run)
        .execute(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(())
    }

    /// Notes that it could not be done: the bundle is as before.
    pub async fn give_up_thinning(&self, of: BegunThinning<'_>) -> Result<()> {
        let back = match of.before.as_str() {
            "" => sqlx::query("delete from thinned where board_id = $1 and run = $2"),
            before => {
                sqlx::query("update thinned set parts = $1 where board_id = $2 and run = $3").bind(before)
            }
        };
        let back = back.bind(of.bundle.board_id).bind(&of.bundle.run);
        back.execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{block_on, recorded_run};

    use crate::store::engines::on_each_engine;
    use crate::store::{SentBundle, ThinnedPart};

    #[test]
    fn what_is_pinned_and_what_is_gone_is_known_of_each_run() {
        on_each_engine(async |store| {
            let record = recorded_run("hunt", "a");
            let id = record.run.id.clone();
            let sent = SentBundle { board_id: 1, manifest: vec![1], bytes: 100 };
            store.put_sent(&record, &sent).await.unwrap();
            let bundles = store.bundles().await.unwrap();
            assert_eq!((bundles.len(), bundles[0].spikes > 0, bundles[0].pinned), (1, true, false));
            assert!(!store.pin("none", "ann", "", 5).await.unwrap());
            assert!(store.pin(&id, "ann", "before\0the release", 5).await.unwrap());
            assert!(store.pin(&id, "bob", "again", 6).await.unwrap());
            let pins = store.pins().await.unwrap();
            assert_eq!((pins.len(), pins[0].who.as_str(), pins[0].board.as_str()), (1, "bob", "a"));
            assert!(store.run(&id).await.unwrap().unwrap().pinned);
            assert!(store.bundles().await.unwrap()[0].pinned);
            assert!(store.unpin(&id).await.unwrap() && !store.unpin(&id).await.unwrap());

            let first = store.first_of_culprits().await.unwrap();
            assert_eq!(first.len(), 1);
            assert_eq!(first[&id].len(), record.culprits.len());

            let thinned = async || store.run(&id).await.unwrap().unwrap().thinned;
            let begin = async |part| store.begin_thinning(&bundles[0], part, 9).await.unwrap();
            let windows = begin(ThinnedPart::Windows).await.unwrap();
            store.end_thinning(windows, 30).await.unwrap();
            assert_eq!((store.kept_bytes(1, "").await.unwrap(), thinned().await.as_str()), (70, "windows"));
            let blocks = begin(ThinnedPart::Blocks).await.unwrap();
            assert_eq!(thinned().await, "blocks windows");
            store.give_up_thinning(blocks).await.unwrap();
            assert_eq!(thinned().await, "windows");
            let again = begin(ThinnedPart::Windows).await.unwrap();
            store.end_thinning(again, 300).await.unwrap();
            assert_eq!((store.kept_bytes(1, "").await.unwrap(), thinned().await.as_str()), (0, "windows"));
        });
    }

    #[test]
    fn of_a_pinned_run_nothing_begins_to_go_whatever_was_known_of_it_before() {
        on_each_engine(async |store| {
            let record = recorded_run("hunt", "a");
            let id = record.run.id.clone();
            store.put(&record).await.unwrap();
            let before = store.bundles().await.unwrap();
            assert!(!before[0].pinned);
            store.pin(&id, "ann", "", 5).await.unwrap();
            for part in ThinnedPart::ALL {
                assert!(store.begin_thinning(&before[0], part, 9).await.unwrap().is_none());
            }
            assert_eq!(store.run(&id).await.unwrap().unwrap().thinned, "");
            store.unpin(&id).await.unwrap();
            let begun = store.begin_thinning(&before[0], ThinnedPart::Blocks, 9).await.unwrap().unwrap();
            store.give_up_thinning(begun).await.unwrap();
            assert_eq!(store.run(&id).await.unwrap().unwrap().thinned, "");
            // One that was removed since is not thinned either.
            let gone = crate::store::KeptBundle { run: "none".into(), ..before[0].clone() };
            assert!(store.begin_thinning(&gone, ThinnedPart::Blocks, 9).await.unwrap().is_none());
        });
    }

    /// In either order: a run is either pinned and whole, or names its removed parts.
    #[test]
    fn a_pin_and_a_thinning_at_once_have_an_order() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let mut stores =
                vec![crate::store::FarmStore::file(&folder.path().join("farm.db")).await.unwrap()];
            if let Some(url) = crate::store::engines::database().await {
                stores.push(crate::store::FarmStore::postgres(&url).await.unwrap());
            }
            for store in stores {
                let mut record = recorded_run("hunt", "a");
                for n in 0..20 {
                    record.run.id = format!("r{n}");
                    record.slots.clear();
                    store.put(&record).await.unwrap();
                    let bundle =
                        store.bundles().await.unwrap().into_iter().find(|one| one.run == record.run.id);
                    let bundle = bundle.unwrap();
                    let (pinning, run) = (store.clone(), record.run.id.clone());
                    let pinned = tokio::spawn(async move { pinning.pin(&run, "ann", "", 5).await.unwrap() });
                    if n % 2 == 0 {
                        tokio::task::yield_now().await;
                    }
                    let begun = store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap();
                    assert!(pinned.await.unwrap());
                    let thinned = store.run(&record.run.id).await.unwrap().unwrap().thinned;
                    assert_eq!(thinned, if begun.is_some() { "blocks" } else { "" });
                    // From here on it does not change.
                    assert!(store.begin_thinning(&bundle, ThinnedPart::Windows, 9).await.unwrap().is_none());
                }
            }
        });
    }
}
