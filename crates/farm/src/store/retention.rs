//! Which bundles are kept, what of them is asked for later, and what of them is gone.

use std::collections::BTreeMap;

use model::error::Result;

use super::{FarmStore, to_i64, trouble};
use crate::records::Tier;

/// A bundle, by its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBundle {
    pub run: String,
    pub board_id: i64,
    pub place: String,
    /// When the run began, in seconds since 1970.
    pub started: i64,
    pub spikes: i64,
    pub max_ns: Option<i64>,
    pub pinned: bool,
    /// What of it is gone already.
    pub thinned: String,
}

/// What a bundle no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreedParts<'a> {
    pub bundle: &'a KeptBundle,
    /// `blocks`, `windows`, both with a blank between: all that is gone.
    pub parts: String,
    /// What it takes less.
    pub bytes: u64,
    pub t: i64,
}

impl FarmStore {
    /// All bundles.
    pub async fn bundles(&self) -> Result<Vec<KeptBundle>> {
        type Row = (String, i64, String, i64, i64, Option<i64>, i64, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select r.id, r.board_id, r.place, r.started, r.spikes, r.max_ns, \
             cast(case when p.run is null then 0 else 1 end as bigint), coalesce(h.parts, '') from run r \
             left join pin p on p.board_id = r.board_id and p.run = r.id \
             left join thinned h on h.board_id = r.board_id and h.run = r.id order by r.started, r.id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let bundle = |(run, board_id, place, started, spikes, max_ns, pinned, thinned): Row| {
            let pinned = pinned != 0;
            KeptBundle { run, board_id, place, started, spikes, max_ns, pinned, thinned }
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

    /// Notes what a bundle no longer has, and that its board has so much more room.
    pub async fn note_freed(&self, of: &FreedParts<'_>) -> Result<()> {
        let bundle = of.bundle;
        let mut all = self.begin().await?;
        sqlx::query(
            "insert into thinned (board_id, run, parts, t) values ($1, $2, $3, $4) \
             on conflict (board_id, run) do update set parts = excluded.parts, t = excluded.t",
        )
        .bind(bundle.board_id)
        .bind(&bundle.run)
        .bind(&of.parts)
        .bind(of.t)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        let less = to_i64(of.bytes);
        sqlx::query(
            "update kept set bytes = case when bytes > $1 then bytes - $2 else 0 end \
             where board_id = $3 and run = $4",
        )
        .bind(less)
        .bind(less)
        .bind(bundle.board_id)
        .bind(&bundle.run)
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        all.commit().await.map_err(trouble)
    }

    /// How many histograms of a tier [`FarmStore::prune`] would drop.
    pub async fn prunable(&self, tier: Tier, before: i64) -> Result<u64> {
        let count = sqlx::query_scalar("select count(*) from hist where tier = $1 and t < $2");
        let count = count.bind(tier.number()).bind(Tier::Day.begin(before));
        let count: i64 = count.fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(super::to_u64(count))
    }
}

#[cfg(test)]
mod tests {
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::store::engines::on_each_engine;
    use crate::store::{FreedParts, SentBundle};

    #[test]
    fn what_is_pinned_and_what_is_gone_is_known_of_each_run() {
        on_each_engine(async |store| {
            let place =
                std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt");
            let record = read(&FoundBundle { place, board: Some("a".into()) }).unwrap().0;
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

            let freed = |bytes| FreedParts { bundle: &bundles[0], parts: "blocks".into(), bytes, t: 9 };
            store.note_freed(&freed(30)).await.unwrap();
            assert_eq!(store.kept_bytes(1, "").await.unwrap(), 70);
            store.note_freed(&freed(300)).await.unwrap();
            assert_eq!(store.kept_bytes(1, "").await.unwrap(), 0);
            assert_eq!(store.run(&id).await.unwrap().unwrap().thinned, "blocks");
        });
    }
}
