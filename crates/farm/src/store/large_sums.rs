//! Sums beyond the range of both engines: a thousand boards that always measure exceed a bigint of
//! nanoseconds in four months, and either engine fails a statement whose sum overflows.
//!
//! A statement adds up both halves, `sum(n / 4294967296)` and `sum(n % 4294967296)`, which have
//! room for two thousand million rows of any number. Their sum is made here.

/// The sum of two halves.
pub fn of_halves(high: i64, low: i64) -> i128 {
    i128::from(high) * (1 << 32) + i128::from(low)
}

/// The same, saturated at the bounds.
pub fn shown(high: i64, low: i64) -> i64 {
    let most = i128::from(i64::MAX);
    i64::try_from(of_halves(high, low).clamp(-most, most)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::ingest::plausible::{LONGEST, MOST_SAMPLES};
    use crate::store::engines::on_each_engine;
    use crate::store::trouble;
    use model::units::Nanos;

    #[test]
    fn halves_are_the_number_again() {
        for n in [0, 1, -1, 4_294_967_295, 4_294_967_296, -4_294_967_297, i64::MAX, i64::MIN] {
            assert_eq!(of_halves(n / 4_294_967_296, n % 4_294_967_296), i128::from(n));
        }
        assert_eq!(
            (shown(i64::MAX, 0), shown(1, 7), shown(i64::MIN, 0)),
            (i64::MAX, (1 << 32) + 7, -i64::MAX)
        );
    }

    #[test]
    fn sums_that_no_engine_can_count_stop_no_page() {
        on_each_engine(async |store| {
            for (board, id) in [("a", "r1"), ("a", "r2"), ("a", "r3"), ("b", "r4")] {
                let mut record = recorded_run("hunt", board);
                record.run.id = id.to_owned();
                record.slots.iter_mut().for_each(|slot| slot.run = id.to_owned());
                store.put(&record).await.unwrap();
            }
            let (before, kernels) = (store.culprits(None, 99).await.unwrap(), store.kernels().await.unwrap());
            for change in [
                "update culprit_run set total_ns = $1, spikes = $2 where run <> 'r4'",
                "update run set length_ns = $1, spikes = $2 where id <> 'r4'",
            ] {
                let change = sqlx::query(change).bind(LONGEST.0).bind(i64::MAX);
                change.execute(&store.pool).await.unwrap();
            }
            let plain = "select cast(sum(total_ns) as bigint) from culprit_run";
            assert!(sqlx::query_scalar::<_, i64>(plain).fetch_one(&store.pool).await.is_err());
            let all = store.culprits(None, 99).await.unwrap();
            assert_eq!(all.len(), before.len());
            assert!(all.iter().all(|one| one.total_ns == Nanos(i64::MAX) && one.spikes == i64::MAX as u64));
            let of_b = store.culprits(Some("b"), 99).await.unwrap();
            assert!(of_b.len() == before.len() && of_b.iter().all(|one| one.total_ns < LONGEST));
            assert_eq!(store.culprits_since("a", 0, None).await.unwrap().len(), before.len());
            let long = store.kernels().await.unwrap();
            assert_eq!(long.len(), kernels.len());
            assert!(long.iter().any(|one| one.length_ns >= i64::MAX as u64));
            let faults = store.faults().await.unwrap();
            assert!(!faults.iter().any(|line| line.starts_with("b: ")), "{faults:#?}");
        });
    }

    #[test]
    fn the_store_refuses_numbers_that_no_machine_reaches_and_rows_without_their_board() {
        on_each_engine(async |store| {
            store.put(&recorded_run("hunt", "a")).await.unwrap();
            let most = i64::try_from(MOST_SAMPLES).unwrap();
            for (table, column, limit) in [
                ("run", "cycles", most),
                ("run", "missed", most),
                ("run", "length_ns", LONGEST.0),
                ("run", "max_ns", LONGEST.0),
                ("slot", "n", most),
                ("slot", "missed", most),
                ("slot", "max_ns", LONGEST.0),
                ("hist", "max_ns", LONGEST.0),
                ("culprit_run", "total_ns", LONGEST.0),
            ] {
                for (value, is_taken) in [(limit, true), (limit + 1, false)] {
                    let change = sqlx::AssertSqlSafe(format!("update {table} set {column} = {value}"));
                    let done = sqlx::query(change).execute(&store.pool).await.map_err(trouble);
                    assert_eq!(done.is_ok(), is_taken, "{table} {column} {value}");
                    let refused = done.err().map(|failure| failure.message).unwrap_or_default();
                    assert!(is_taken || refused.contains("refuses contradictory rows"), "{refused}");
                }
            }
            for broken in [
                "update board_setting set state = 'gone'",
                "delete from environment",
                "delete from plan",
                "delete from culprit",
                "insert into boot (board_id, boot, offset_ns, source) values (9, 'b', 0, '')",
            ] {
                let failed = sqlx::query(broken).execute(&store.pool).await.map_err(trouble).unwrap_err();
                assert!(failed.message.contains("refuses contradictory rows"), "{broken}: {failed}");
            }
            assert!(store.pin(&recorded_run("hunt", "a").run.id, "ann", "", 5).await.unwrap());
            assert!(sqlx::query("delete from run").execute(&store.pool).await.is_err(), "it is pinned");
        });
    }
}
