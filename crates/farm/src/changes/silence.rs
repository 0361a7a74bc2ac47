//! A board that sends nothing any more.

use report::words::several;

use super::{ChangeKind, FarmChange};
use crate::pages::parts::{date, escaped};
use crate::records::{FEW_DAYS, FarmBoard, Tier};

/// A day may be cut at both ends.
const LEAST_DAYS: i64 = 2;
/// What is usual so many times: one that measures each Monday is not silent on Sunday.
const TIMES: i64 = 3;

/// How long it was from one day with samples to the next, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsualGap {
    /// In its last 30 days, at most.
    OfMonth(i64),
    /// In a year, more than once: a board may have been away, and come back.
    OfYear(i64),
    /// Too few days say so: how many there are of a year.
    Unknown(usize),
}

impl UsualGap {
    fn of(board: &FarmBoard) -> UsualGap {
        let gaps = |days: &[i64]| -> Vec<i64> {
            let mut gaps: Vec<i64> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_unstable_by_key(|gap| std::cmp::Reverse(*gap));
            gaps
        };
        // Also a run that does not count came.
        let (days, of_year) = (board.days_with_samples(), &board.sent_days);
        match (gaps(&days).first(), gaps(of_year).get(1)) {
            (Some(longest), _) if days.len() >= FEW_DAYS => UsualGap::OfMonth(*longest),
            (_, Some(second)) => UsualGap::OfYear(*second),
            _ => UsualGap::Unknown(days.len().max(of_year.len())),
        }
    }
}

/// Whether a board is silent on a day, by the days on which it used to send. One that is to send is
/// silent also where it sent on fewer days than say how often it does, or never.
pub fn silent(board: &FarmBoard, today: i64) -> Option<FarmChange> {
    let (day, usual, is_new) = (Tier::Day.seconds(), UsualGap::of(board), board.last_heard() <= 0);
    if !board.sends && (is_new || matches!(usual, UsualGap::Unknown(_))) {
        return None;
    }
    let last = if is_new { Tier::Day.begin(board.enrolled) } else { board.last_heard() };
    let gap = match usual {
        UsualGap::OfMonth(gap) | UsualGap::OfYear(gap) => gap / day,
        UsualGap::Unknown(_) => 1,
    };
    let since = (Tier::Day.begin(today) - last) / day;
    let allowed = (TIMES * gap).max(LEAST_DAYS);
    (since >= allowed).then(|| FarmChange {
        board: board.board.clone(),
        kind: ChangeKind::Silent,
        t: last + allowed * day,
        from: last,
        says: match is_new {
            true => format!("Nothing came since it was enrolled on {}.", date(last)),
            false => format!("Nothing came since {}.", date(last)),
        },
        evidence: vec![format!("That is {since} days; {}.", before(usual, is_new))],
        p: None,
        settings: Vec::new(),
        address: format!("/b/{}", escaped(&board.board)),
        subject: "silent".to_owned(),
        since: None,
        acknowledged: None,
        conditions: Vec::new(),
    })
}

/// What was before a silence, as its sentence ends.
fn before(usual: UsualGap, is_new: bool) -> String {
    let days = |seconds: i64| several((seconds / Tier::Day.seconds()).unsigned_abs(), "day", "days");
    match usual {
        _ if is_new => "it has a valid token, and never sent anything".to_owned(),
        UsualGap::OfMonth(gap) if gap == Tier::Day.seconds() => {
            "before, it had samples of each day".to_owned()
        }
        UsualGap::OfMonth(gap) => {
            format!("in the 30 days up to then it was {} from one to the next at most", days(gap))
        }
        UsualGap::OfYear(gap) => {
            format!("in the year up to then up to {} from one to the next were usual", days(gap))
        }
        UsualGap::Unknown(count) => {
            let days = several(count as u64, "day", "days");
            format!("in the year up to then it had samples of {days}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::DayMaximum;
    use model::units::Nanos;

    fn board(days: &[i64]) -> FarmBoard {
        let days: Vec<DayMaximum> =
            days.iter().map(|day| DayMaximum { t: day * 86_400, max_ns: Nanos(1) }).collect();
        FarmBoard { last_day: days.last().map_or(0, |day| day.t), days, ..FarmBoard::default() }
    }

    #[test]
    fn silence_is_longer_than_usual() {
        let today = |day: i64| day * 86_400 + 3_600;
        assert!(silent(&board(&[1, 2, 3]), today(5)).is_none());
        let found = silent(&board(&[1, 2, 3]), today(6)).unwrap();
        assert!(found.t == 6 * 86_400 && found.evidence[0].contains("3 days"));
        // Once a week.
        assert!(silent(&board(&[1, 8, 15]), today(30)).is_none());
        assert!(silent(&board(&[1, 8, 15]), today(40)).is_some());
        assert!(silent(&board(&[1]), today(99)).is_none());
        // Five minutes without samples came.
        let idle = FarmBoard { last_slot: 6 * 86_400 + 300, ..board(&[1, 2, 3]) };
        assert!(silent(&idle, today(8)).is_none());
        let found = silent(&idle, today(9)).unwrap();
        assert!(found.from == 6 * 86_400 && found.evidence[0].contains("3 days"), "{found:?}");
        // What came and does not count is no silence.
        let found = silent(&FarmBoard { uncounted: vec![2 * 86_400], ..board(&[1, 3]) }, today(6)).unwrap();
        assert!(found.evidence[0].contains("samples of each day"), "{found:?}");
    }

    #[test]
    fn what_has_a_token_is_silent_also_after_few_days_or_none() {
        let today = |day: i64| day * 86_400 + 3_600;
        let sends = |days: &[i64]| FarmBoard { sends: true, enrolled: 5 * 86_400 + 9, ..board(days) };
        for (days, last) in [(&[7][..], 7), (&[7, 8][..], 8), (&[7, 40][..], 40)] {
            assert!(silent(&sends(days), today(last + 2)).is_none());
            let found = silent(&sends(days), today(last + 3)).unwrap();
            assert_eq!((found.from, found.t), (last * 86_400, (last + 3) * 86_400));
            let evidence =
                format!("That is 3 days; in the year up to then it had samples of {} day", days.len());
            assert!(found.evidence[0].starts_with(&evidence), "{found:?}");
        }
        // With three of them it is known how often it sends.
        assert!(silent(&sends(&[7, 40, 41]), today(60)).is_none());
        // From the day on which it was enrolled.
        assert!(silent(&sends(&[]), today(7)).is_none());
        let found = silent(&sends(&[]), today(8)).unwrap();
        assert_eq!(found.from, 5 * 86_400);
        assert!(found.says.contains("enrolled on 1970-01-06"), "{found:?}");
        assert!(silent(&board(&[]), today(99)).is_none());
    }

    #[test]
    fn what_sends_seldom_is_known_by_the_days_of_a_year() {
        let today = |day: i64| day * 86_400 + 3_600;
        let seldom = |sent: &[i64], sends: bool| {
            let last = *sent.last().unwrap();
            let in_month: Vec<i64> = sent.iter().copied().filter(|day| last - day < 30).collect();
            let sent_days = sent.iter().map(|day| day * 86_400).collect();
            FarmBoard { sends, sent_days, ..board(&in_month) }
        };
        for every in [16, 31] {
            let sent: Vec<i64> = (0..13).map(|at| at * every).collect();
            let last = 12 * every;
            for sends in [true, false] {
                assert!(silent(&seldom(&sent, sends), today(last + 3 * every - 1)).is_none(), "{every}");
                let found = silent(&seldom(&sent, sends), today(last + 3 * every)).unwrap();
                let usual = format!("in the year up to then up to {every} days from one to the next");
                assert!(found.evidence[0].contains(&usual), "{found:?}");
            }
        }
        // One that was away for long and came back is not waited for that long again.
        let back = seldom(&[1, 2, 3, 200, 201], true);
        assert!(silent(&back, today(203)).is_none() && silent(&back, today(204)).is_some());
        // Two days say nothing.
        assert!(silent(&seldom(&[1, 32], false), today(400)).is_none());
        let found = silent(&seldom(&[1, 32], true), today(35)).unwrap();
        assert!(found.evidence[0].ends_with("samples of 2 days."), "{found:?}");
    }
}
