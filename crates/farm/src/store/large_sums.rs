//! Sums that no engine can count: a thousand boards that always measure have more nanoseconds in
//! four months than a bigint holds, and either engine ends a statement whose sum overflows.
//!
//! A statement adds up both halves, `sum(n / 4294967296)` and `sum(n % 4294967296)`, which have
//! room for two thousand million rows of any number. Their sum is made here.

/// The sum of two halves.
pub fn of_halves(high: i64, low: i64) -> i128 {
    i128::from(high) * (1 << 32) + i128::from(low)
}

/// The same where more than there can be is as much as there can be.
pub fn shown(high: i64, low: i64) -> i64 {
    let most = i128::from(i64::MAX);
    i64::try_from(of_halves(high, low).clamp(-most, most)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;
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

    /// As a store may have them from a version that took them.
    #[test]
    fn numbers_that_no_machine_reaches_stop_no_page_and_are_named() {
        on_each_engine(async |store| {
            for (board, id) in [("a", "r1"), ("a", "r2"), ("b", "r3")] {
                let mut record = recorded_run("hunt", board);
                record.run.id = id.to_owned();
                record.slots.iter_mut().for_each(|slot| slot.run = id.to_owned());
                store.put(&record).await.unwrap();
            }
            let latest = i64::MAX / 2;
            assert_eq!(store.out_of_range(latest).await.unwrap(), [""; 0]);
            let (before, kernels) = (store.culprits(None, 99).await.unwrap(), store.kernels().await.unwrap());
            assert_eq!(store.culprits(Some("b"), 99).await.unwrap().len(), before.len());
            for change in [
                "update culprit_run set total_ns = 9223372036854775807, spikes = 9223372036854775807 \
                 where run <> 'r3'",
                "update run set length_ns = 9223372036854775807 where id <> 'r3'",
                "update slot set n = 9223372036854775807 where recording <> 'r3'",
                "update hist set n = 9223372036854775807 where board_id in \
                 (select board_id from run where id = 'r1')",
            ] {
                sqlx::query(change).execute(&store.pool).await.unwrap();
            }
            let plain = "select cast(sum(total_ns) as bigint) from culprit_run";
            let failed = sqlx::query_scalar::<_, i64>(plain).fetch_one(&store.pool).await.unwrap_err();
            let told = super::super::trouble(failed).message;
            assert!(told.contains("`onbeat-farm check` names it") && !told.contains("disk"), "{told}");
            let all = store.culprits(None, 99).await.unwrap();
            assert_eq!(all.len(), before.len());
            assert!(all.iter().all(|one| one.total_ns == Nanos(i64::MAX) && one.spikes == i64::MAX as u64));
            let of_b = store.culprits(Some("b"), 99).await.unwrap();
            assert_eq!(of_b.len(), before.len());
            assert!(of_b.iter().all(|one| one.total_ns < Nanos(i64::MAX) && one.runs == 1));
            assert_eq!(store.culprits_since("a", 0, None).await.unwrap().len(), before.len());
            let long = store.kernels().await.unwrap();
            assert_eq!(long.len(), kernels.len());
            assert!(long.iter().any(|one| one.length_ns >= i64::MAX as u64));
            let named = store.out_of_range(latest).await.unwrap();
            for told in ["a: the run r1 has a length_ns", "a: the run r2", "in the run r1", "a: the slot of"]
            {
                assert!(named.iter().any(|line| line.contains(told)), "{told}: {named:#?}");
            }
            assert!(named.iter().all(|line| line.starts_with("a: ")), "{named:#?}");
            // The rest is looked at, too.
            let faults = store.faults().await.unwrap();
            assert!(faults.iter().any(|line| line.starts_with("a: the runs of hunt")), "{faults:#?}");
            assert!(!faults.iter().any(|line| line.starts_with("b: ")), "{faults:#?}");
            let future = store.out_of_range(5).await.unwrap();
            assert!(future.iter().any(|line| line.starts_with("b: the run r3 began")), "{future:#?}");
        });
    }
}
