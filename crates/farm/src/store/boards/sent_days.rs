//! Frequency of the data of boards that do not send daily.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use crate::ingest::plausible::latest_now;
use crate::records::{DayMaximum, Tier};
use crate::sent_days::{SentDays, SentGap};
use crate::store::boards::DAYS;
use crate::store::many::{among, pieces};
use crate::store::{FarmStore, trouble};

/// Number of days up to the last one that are read.
const WITHIN: i64 = 366;
/// The same for a board that sent on more than half of the last 30, as a year of such takes long to
/// read. These days contain gaps of up to a month that ended in the last 90 days.
const WITHIN_OFTEN: i64 = 121;

/// The same for the earlier pauses of a silent board, about three years.
const WITHIN_PAUSES: i64 = 1_098;
/// Limit of boards with such a search, the latest senders first.
const MOST_PAUSED: usize = 256;
/// Days without data after which a board may be off.
const OFF: i64 = 3;

/// The first day with samples, and the gaps of more than a day.
type Gaps = (i64, Vec<SentGap>);

impl FarmStore {
    /// Frequency of the data of boards, by their numbers, for those without data on some of their
    /// last days, which are given.
    pub(in crate::store) async fn sent_days(
        &self,
        days: &BTreeMap<i64, Vec<DayMaximum>>,
    ) -> Result<BTreeMap<i64, SentDays>> {
        let not_daily = days.iter().filter(|(_, days)| (days.len() as i64) < DAYS);
        let (often, seldom): (Vec<_>, Vec<_>) = not_daily.partition(|(_, days)| days.len() as i64 > DAYS / 2);
        let numbers =
            |of: Vec<(&i64, &Vec<DayMaximum>)>| -> Vec<i64> { of.into_iter().map(|(id, _)| *id).collect() };
        let mut gaps = self.sent_gaps(&numbers(often), WITHIN_OFTEN).await?;
        gaps.append(&mut self.sent_gaps(&numbers(seldom), WITHIN).await?);
        let last = |id: i64| Some(days.get(&id)?.last()?.t);
        let sent = |(id, (first, gaps)): (i64, Gaps)| Some((id, SentDays::new(first, last(id)?, gaps)));
        let mut sent: BTreeMap<i64, SentDays> = gaps.into_iter().filter_map(sent).collect();
        for (id, (_, gaps)) in self.sent_gaps(&off(days), WITHIN_PAUSES).await? {
            if let Some(pause) = last(id).and_then(|last| SentGap::pause(&gaps, last)) {
                sent.entry(id).or_default().pause = Some(pause);
            }
        }
        Ok(sent)
    }

    /// Gaps of more than a day between days with samples; the database finds them, as they are
    /// fewer than the days.
    async fn sent_gaps(&self, boards: &[i64], within: i64) -> Result<BTreeMap<i64, Gaps>> {
        let day = Tier::Day.seconds();
        let mut all: BTreeMap<i64, Gaps> = BTreeMap::new();
        for piece in pieces(boards) {
            let (of, place) = (among(&["s.board_id"], piece.len()), piece.len());
            // The first day has none before it.
            let text = format!(
                "select g.board_id, g.t, g.gap from (select h.board_id, h.t, \
                 h.t - lag(h.t) over (partition by h.board_id order by h.t) as gap \
                 from board_setting s cross join hist h \
                 where h.board_id = s.board_id and {of} and h.tier = 2 and h.max_ns is not null \
                 and h.t > ${} + (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 2 \
                 and l.t <= ${}) and h.t <= ${}) g \
                 where g.gap is null or g.gap > {day} order by g.board_id, g.t",
                place + 1,
                place + 2,
                place + 3
            );
            let mut select = sqlx::query_as::<_, (i64, i64, Option<i64>)>(AssertSqlSafe(text));
            for board in piece {
                select = select.bind(*board);
            }
            let select = select.bind(-within * day).bind(latest_now()).bind(latest_now());
            for (board, ended, gap) in select.fetch_all(&self.pool).await.map_err(trouble)? {
                let (_, gaps) = all.entry(board).or_insert_with(|| (ended, Vec::new()));
                gaps.extend(gap.map(|length| SentGap { ended, length }));
            }
        }
        Ok(all)
    }
}

/// The boards that sent nothing for some days, of these with their last ones.
fn off(days: &BTreeMap<i64, Vec<DayMaximum>>) -> Vec<i64> {
    let since = latest_now() - OFF * Tier::Day.seconds();
    let last = days.iter().filter_map(|(id, days)| Some((days.last()?.t, *id)));
    let mut all: Vec<(i64, i64)> = last.filter(|(last, _)| *last <= since).collect();
    all.sort_unstable_by_key(|one| std::cmp::Reverse(*one));
    all.into_iter().take(MOST_PAUSED).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::BundleRecord;
    use crate::store::engines::on_each_engine;

    const DAY: i64 = 86_400;

    /// A day with samples of a board.
    async fn put_day(store: &FarmStore, recorded: &BundleRecord, board: &str, day: i64) {
        let mut record = recorded.clone();
        record.run.board = board.to_owned();
        record.run.id = format!("{board}-{day}");
        (record.run.started, record.whole.t) = (day, day);
        (record.slots, record.rows) = (Vec::new(), Vec::new());
        store.put(&record).await.unwrap();
    }

    #[test]
    fn what_does_not_send_daily_has_the_gaps_of_a_year() {
        on_each_engine(async |store| {
            let recorded = recorded_run("measured", "often");
            let last = Tier::Day.begin(recorded.run.started);
            for (board, back) in [
                ("often", (0..40).collect::<Vec<i64>>()),
                ("monthly", (0..14).map(|at| at * 31).collect()),
                ("seldom", (0..20).map(|at| at * 16).collect()),
                ("new", vec![0]),
                ("back", (0..9).map(|at| 400 + at * 16).chain([0, 16]).collect()),
                // Three days in a row each 30.
                ("bursts", (0..180).filter(|day| day % 30 < 3).collect()),
                // All but two of ten days, for longer than is looked at.
                ("days off", (0..200).filter(|day| day % 10 < 8).collect()),
            ] {
                for days in back {
                    put_day(&store, &recorded, board, last - days * DAY).await;
                }
            }
            let boards = store.boards().await.unwrap();
            // Number of days, and the end and length of each gap, in days before the last.
            let sent = |name: &str| -> (usize, Vec<(i64, i64)>) {
                let sent = &boards.iter().find(|one| one.board == name).unwrap().sent;
                let gaps = sent.gaps.iter().map(|gap| ((last - gap.ended) / DAY, gap.length / DAY));
                (sent.count, gaps.collect())
            };
            // Its days of the month suffice.
            assert_eq!(sent("often"), (0, Vec::new()));
            let gaps = |each: i64, count: i64, length: i64| -> Vec<(i64, i64)> {
                (0..count).rev().map(|at| (at * each, length)).collect()
            };
            // Of 31 days those of three times as long.
            assert_eq!((sent("monthly"), sent("seldom")), ((12, gaps(31, 3, 31)), (20, gaps(16, 6, 16))));
            assert_eq!((sent("new"), sent("back")), ((1, Vec::new()), (2, vec![(0, 16)])));
            assert_eq!(sent("bursts"), (18, vec![(62, 28), (32, 28), (2, 28)]));
            let off = (0..9).rev().map(|at| (at * 10 + 7, 3)).collect();
            assert_eq!(sent("days off"), (97, off));
        });
    }

    #[test]
    fn a_board_that_pauses_has_its_pause_also_where_it_sent_on_each_of_its_last_days() {
        on_each_engine(async |store| {
            let recorded = recorded_run("measured", "on and off");
            let last = Tier::Day.begin(recorded.run.started) - 10 * DAY;
            // Newest first: 40 days of samples and 20 off: three pauses, and one.
            for (board, until) in [("on and off", 240), ("once", 80)] {
                for days in (0..until).filter(|day| day % 60 < 40) {
                    put_day(&store, &recorded, board, last - days * DAY).await;
                }
            }
            let boards = store.boards().await.unwrap();
            let pauses = boards.iter().map(|one| (one.board.as_str(), one.sent.pause.map(|gap| gap / DAY)));
            assert_eq!(pauses.collect::<Vec<_>>(), [("on and off", Some(21)), ("once", None)]);
        });
    }
}
