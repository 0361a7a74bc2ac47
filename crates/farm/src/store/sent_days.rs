//! How often boards send that do not do so each day.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use super::many::{among, pieces};
use super::{FarmStore, to_u64, trouble};
use crate::ingest::plausible::latest_now;
use crate::records::Tier;
use crate::sent_days::{SentDays, SentGap};

/// Of so many days up to the last one.
const WITHIN: i64 = 366;

impl FarmStore {
    /// On how many days of a year boards sent, by their numbers, and after which gaps. The database
    /// finds the gaps: there are fewer of them than days.
    pub(super) async fn sent_days(&self, boards: &[i64]) -> Result<BTreeMap<i64, SentDays>> {
        type Row = (i64, i64, Option<i64>, i64);
        let (day, recent, times) = (Tier::Day.seconds(), SentGap::RECENT, SentGap::TIMES);
        let mut all: BTreeMap<i64, SentDays> = BTreeMap::new();
        for piece in pieces(boards) {
            let (of, place) = (among(&["s.board_id"], piece.len()), piece.len());
            // The first day has no gap before it, and says how many there are.
            let text = format!(
                "select g.board_id, g.t, g.gap, g.days from (select d.board_id, d.t, \
                 d.t - lag(d.t) over (partition by d.board_id order by d.t) as gap, \
                 count(*) over (partition by d.board_id) as days, \
                 max(d.t) over (partition by d.board_id) as newest from \
                 (select h.board_id, h.t from board_setting s cross join hist h \
                 where h.board_id = s.board_id and {of} and h.tier = 2 and h.max_ns is not null \
                 and h.t > ${} + (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 2 \
                 and l.t <= ${}) and h.t <= ${} group by h.board_id, h.t) d) g \
                 where g.gap is null or (g.gap > {day} \
                 and (g.t > g.newest - {recent} or g.t > g.newest - {times} * g.gap)) \
                 order by g.board_id, g.t",
                place + 1,
                place + 2,
                place + 3
            );
            let mut select = sqlx::query_as::<_, Row>(AssertSqlSafe(text));
            for board in piece {
                select = select.bind(*board);
            }
            let select = select.bind(-WITHIN * day).bind(latest_now()).bind(latest_now());
            for (board, ended, gap, days) in select.fetch_all(&self.pool).await.map_err(trouble)? {
                let sent = all.entry(board).or_default();
                sent.count = usize::try_from(to_u64(days)).unwrap_or(usize::MAX);
                sent.gaps.extend(gap.map(|length| SentGap { ended, length }));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;

    const DAY: i64 = 86_400;

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
            ] {
                for days in back {
                    let mut record = recorded.clone();
                    record.run.board = board.to_owned();
                    record.run.id = format!("{board}-{days}");
                    (record.run.started, record.whole.t) = (last - days * DAY, last - days * DAY);
                    (record.slots, record.rows) = (Vec::new(), Vec::new());
                    store.put(&record).await.unwrap();
                }
            }
            let boards = store.boards().await.unwrap();
            // How many days, and when which gaps ended, in days before the last.
            let sent = |name: &str| -> (usize, Vec<(i64, i64)>) {
                let sent = &boards.iter().find(|one| one.board == name).unwrap().sent;
                let gaps = sent.gaps.iter().map(|gap| ((last - gap.ended) / DAY, gap.length / DAY));
                (sent.count, gaps.collect())
            };
            // It is known by the days of the month.
            assert_eq!(sent("often"), (0, Vec::new()));
            let gaps = |each: i64, count: i64, length: i64| -> Vec<(i64, i64)> {
                (0..count).rev().map(|at| (at * each, length)).collect()
            };
            // Of 31 days those of three times as long.
            assert_eq!((sent("monthly"), sent("seldom")), ((12, gaps(31, 3, 31)), (20, gaps(16, 6, 16))));
            assert_eq!((sent("new"), sent("back")), ((1, Vec::new()), (2, vec![(0, 16)])));
            assert_eq!(sent("bursts"), (18, vec![(62, 28), (32, 28), (2, 28)]));
        });
    }
}
