//! Slots, and the histograms of five minutes, hours and days.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Cpu;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::QueryAs;
use sqlx::{Any, AssertSqlSafe, FromRow, Transaction};

use crate::encoding::{pack_peaks, pack_rows, unpack_peaks, unpack_rows};
use crate::records::{FarmSlot, SeriesKey, Tier, TierRow};
use crate::store::hist::largest_left::largest_left;
use crate::store::many::{by_keys, pieces, statement, values};
use crate::store::{FarmStore, nanos, plain, storable, to_i64, to_u64, trouble};

/// Start of a histogram, its counts, its maximum, and its CPUs in packed form.
pub type PackedTierRow = (i64, i64, i64, Option<i64>, Vec<u8>);

pub fn made(row: PackedTierRow) -> sqlx::Result<TierRow> {
    let (t, n, missed, max_ns, cpus) = row;
    let cpus = unpack_rows(&cpus).ok_or_else(|| damaged("histogram", t))?;
    Ok(TierRow { t, n: to_u64(n), missed: to_u64(missed), max_ns: nanos(max_ns), cpus })
}

/// Error for data that would be overwritten if they were taken for empty.
pub fn damaged(what: &str, t: i64) -> sqlx::Error {
    sqlx::Error::Decode(format!("a {what} at {t} is damaged: `onbeat-farm check` lists all of them").into())
}

/// Columns of a slot; the last number is 1 if its run is invalid.
pub type SlotRow =
    (i64, i64, i64, Option<i64>, Option<i64>, Option<i64>, String, String, String, i64, Vec<u8>);

/// Columns of a slot `s`.
pub const SLOT_COLUMNS: &str = "s.t, s.n, s.missed, s.max_ns, s.max_cpu, s.max_at, s.culprit, s.victim, \
                                s.recording, cast(case when r.id is null then 0 else 1 end as bigint), \
                                s.peaks";
/// Join with its run if that is invalid.
pub const RUN_OF_SLOT: &str = "left join run r on r.board_id = s.board_id and r.id = s.recording \
                               and r.invalid > 0";

pub fn made_slot(row: SlotRow) -> sqlx::Result<FarmSlot> {
    let (t, n, missed, max_ns, max_cpu, max_at, culprit, victim, run, invalid, peaks) = row;
    Ok(FarmSlot {
        t,
        n: to_u64(n),
        missed: to_u64(missed),
        max_ns: nanos(max_ns),
        max_cpu: max_cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu),
        max_at,
        culprit,
        victim,
        run,
        invalid: invalid != 0,
        cpus: unpack_peaks(&peaks).ok_or_else(|| damaged("slot", t))?,
    })
}

/// Key of a slot: its board, its series, and its number within the recording.
pub struct SlotPlace<'a> {
    pub board: i64,
    pub key: &'a SeriesKey,
    pub seq: i64,
}

/// Adds slots.
pub async fn put_slots(
    all: &mut Transaction<'static, Any>,
    slots: &[(SlotPlace<'_>, &FarmSlot)],
) -> sqlx::Result<()> {
    const SLOT: &str = "insert into slot (board_id, series, plan, t, recording, seq, n, missed, max_ns, \
                        max_cpu, max_at, culprit, victim, peaks) values ";
    for piece in pieces(slots) {
        let mut insert = sqlx::query(statement(all, values(SLOT, 14, piece.len())));
        for (of, slot) in piece {
            insert = insert.bind(of.board).bind(&of.key.series).bind(&of.key.plan);
            insert = insert.bind(slot.t).bind(&slot.run).bind(of.seq);
            insert = insert.bind(to_i64(slot.n)).bind(to_i64(slot.missed)).bind(plain(slot.max_ns));
            insert = insert.bind(slot.max_cpu.map(|cpu| i64::from(cpu.0))).bind(slot.max_at);
            insert = insert.bind(storable(&slot.culprit)).bind(storable(&slot.victim));
            insert = insert.bind(pack_peaks(&slot.cpus));
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// Key of a histogram.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TierPlace {
    pub board: i64,
    pub key: SeriesKey,
    pub tier: Tier,
    /// The first second of its stretch.
    pub t: i64,
}

/// Histograms by their places: those that are there.
pub async fn tier_rows(
    all: &mut Transaction<'static, Any>,
    places: &[TierPlace],
) -> sqlx::Result<BTreeMap<TierPlace, TierRow>> {
    const KEY: [&str; 5] = ["board_id", "series", "plan", "tier", "t"];
    type PlacedRow = (i64, String, String, i64, i64, i64, i64, Option<i64>, Vec<u8>);
    let mut found = BTreeMap::new();
    for piece in pieces(places) {
        let text = by_keys(
            "select board_id, series, plan, tier, t, n, missed, max_ns, cpus from hist",
            &KEY,
            piece.len(),
        );
        let mut select = sqlx::query_as::<_, PlacedRow>(statement(all, text));
        for place in piece {
            select = select.bind(place.board).bind(&place.key.series).bind(&place.key.plan);
            select = select.bind(place.tier.number()).bind(place.t);
        }
        for (board, series, plan, tier, t, n, missed, max_ns, cpus) in select.fetch_all(&mut **all).await? {
            let Some(tier) = Tier::ALL.into_iter().find(|known| known.number() == tier) else { continue };
            let place = TierPlace { board, key: SeriesKey { series, plan }, tier, t };
            found.insert(place, made((t, n, missed, max_ns, cpus))?);
        }
    }
    Ok(found)
}

/// Writes histograms over the existing ones; each key occurs once.
pub async fn put_tiers(
    all: &mut Transaction<'static, Any>,
    rows: &[(&TierPlace, &TierRow)],
) -> sqlx::Result<()> {
    const HIST: &str = "insert into hist (board_id, series, plan, tier, t, n, missed, max_ns, cpus) values ";
    for piece in pieces(rows) {
        let text = values(HIST, 9, piece.len())
            + " on conflict (board_id, series, plan, tier, t) do update set n = excluded.n, \
               missed = excluded.missed, max_ns = excluded.max_ns, cpus = excluded.cpus";
        let mut insert = sqlx::query(statement(all, text));
        for (place, row) in piece {
            insert = insert.bind(place.board).bind(&place.key.series).bind(&place.key.plan);
            insert = insert.bind(place.tier.number()).bind(place.t);
            insert = insert.bind(to_i64(row.n)).bind(to_i64(row.missed)).bind(plain(row.max_ns));
            insert = insert.bind(pack_rows(&row.cpus));
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// Histograms with a board's number, a series, and a time.
pub type PlacedRows<'a> = [(i64, &'a SeriesKey, i64, &'a TierRow)];

/// Sums of the rows in each histogram of these tiers.
fn by_place(tiers: &[Tier], rows: &PlacedRows<'_>) -> BTreeMap<TierPlace, TierRow> {
    let mut all: BTreeMap<TierPlace, TierRow> = BTreeMap::new();
    for &(board, key, t, row) in rows {
        for &tier in tiers {
            let t = tier.begin(t);
            let place = TierPlace { board, key: key.clone(), tier, t };
            all.entry(place).or_insert_with(|| TierRow { t, ..TierRow::default() }).add(row);
        }
    }
    all
}

/// Adds histograms to all that they are part of, each of which is read and written once.
pub async fn add_to_tiers(
    all: &mut Transaction<'static, Any>,
    tiers: &[Tier],
    rows: &PlacedRows<'_>,
) -> sqlx::Result<()> {
    let mut added = by_place(tiers, rows);
    let places: Vec<TierPlace> = added.keys().cloned().collect();
    for (place, known) in tier_rows(all, &places).await? {
        if let Some(sum) = added.get_mut(&place) {
            sum.add(&known);
        }
    }
    put_tiers(all, &added.iter().collect::<Vec<_>>()).await
}

/// Subtracts earlier contributions, which others replace; dropped histograms stay dropped. The
/// slots of the subtracted ones have to be removed before.
pub async fn take_out_of_tiers(
    all: &mut Transaction<'static, Any>,
    gone_tiers: &[Tier],
    gone: &PlacedRows<'_>,
    later_tiers: &[Tier],
    later: &PlacedRows<'_>,
) -> sqlx::Result<()> {
    let (gone, later) = (by_place(gone_tiers, gone), by_place(later_tiers, later));
    let places: Vec<TierPlace> = gone.keys().cloned().collect();
    let mut left: BTreeMap<TierPlace, TierRow> = BTreeMap::new();
    for (place, mut row) in tier_rows(all, &places).await? {
        let Some(gone) = gone.get(&place) else { continue };
        row.take_out(gone);
        let later = later.get(&place);
        if later.is_none() && row.n == 0 && row.missed == 0 {
            drop_tier(all, &place).await?;
            continue;
        }
        if row.max_ns == gone.max_ns && later.and_then(|later| later.max_ns) < gone.max_ns {
            row.max_ns = largest_left(all, place.board, &place.key, place.tier, place.t, &row).await?;
        }
        left.insert(place, row);
    }
    put_tiers(all, &left.iter().collect::<Vec<_>>()).await
}

async fn drop_tier(all: &mut Transaction<'static, Any>, place: &TierPlace) -> sqlx::Result<()> {
    let drop = sqlx::query(
        "delete from hist where board_id = $1 and series = $2 and plan = $3 and tier = $4 and t = $5",
    );
    let drop = drop.bind(place.board).bind(&place.key.series).bind(&place.key.plan);
    drop.bind(place.tier.number()).bind(place.t).execute(&mut **all).await?;
    Ok(())
}

/// A stretch of time, its end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStretch {
    pub from: i64,
    pub to: i64,
}

/// Query for a series' histograms within a time span.
const OF_STRETCH: &str = "select {} from hist h join board b on b.id = h.board_id where b.key = $1 \
                          and h.series = $2 and h.plan = $3 and h.tier = $4 and h.t >= $5 and h.t < $6";

fn of_stretch<'q, O>(
    text: &'q str,
    board: &'q str,
    key: &'q SeriesKey,
    tier: Tier,
    within: TimeStretch,
) -> QueryAs<'q, Any, O, AnyArguments>
where
    O: for<'r> FromRow<'r, AnyRow>,
{
    let query = sqlx::query_as(AssertSqlSafe(text)).bind(board).bind(&key.series).bind(&key.plan);
    query.bind(tier.number()).bind(within.from).bind(within.to)
}

impl FarmStore {
    /// Number of histograms within a time span, and bytes of their packed CPUs.
    pub async fn size_of_tiers(
        &self,
        board: &str,
        key: &SeriesKey,
        tier: Tier,
        within: TimeStretch,
    ) -> Result<(u64, u64)> {
        let text = OF_STRETCH.replace("{}", "count(*), cast(coalesce(sum(length(h.cpus)), 0) as bigint)");
        let size = of_stretch(&text, board, key, tier, within);
        let (rows, bytes): (i64, i64) = size.fetch_one(&self.pool).await.map_err(trouble)?;
        Ok((to_u64(rows), to_u64(bytes)))
    }

    /// The histograms of a stretch, oldest first.
    pub async fn tiers(
        &self,
        board: &str,
        key: &SeriesKey,
        tier: Tier,
        within: TimeStretch,
    ) -> Result<Vec<TierRow>> {
        self.first_tiers(board, key, tier, within, i64::MAX).await
    }

    /// The first of them, limited in number: the next query starts after the last.
    pub async fn first_tiers(
        &self,
        board: &str,
        key: &SeriesKey,
        tier: Tier,
        within: TimeStretch,
        most: i64,
    ) -> Result<Vec<TierRow>> {
        let text =
            OF_STRETCH.replace("{}", "h.t, h.n, h.missed, h.max_ns, h.cpus") + " order by h.t limit $7";
        let some = of_stretch(&text, board, key, tier, within).bind(most);
        let rows: Vec<PackedTierRow> = some.fetch_all(&self.pool).await.map_err(trouble)?;
        rows.into_iter().map(made).collect::<sqlx::Result<_>>().map_err(trouble)
    }
}
