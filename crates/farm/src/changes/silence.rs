//! A board that sends nothing any more.

use report::words::several;

use super::{ChangeKind, FarmChange};
use crate::pages::parts::{date, escaped};
use crate::records::{FarmBoard, Tier};

/// A day may be cut at both ends.
const LEAST_DAYS: i64 = 2;
/// The longest gap of a board so many times: one that measures each Monday is not silent on Sunday.
const TIMES: i64 = 3;

/// Fewer days do not say how often there is to be one.
const LEAST_KNOWN: usize = 3;

/// Whether a board is silent on a day, by the days on which it used to send. One that is to send is
/// silent also where it sent on fewer days than say how often it does, or never.
pub fn silent(board: &FarmBoard, today: i64) -> Option<FarmChange> {
    // Also a run that does not count came.
    let days = board.days_with_samples();
    let (day, is_known) = (Tier::Day.seconds(), days.len() >= LEAST_KNOWN);
    let is_new = board.last_day <= 0;
    if !board.sends && (is_new || !is_known) {
        return None;
    }
    let last = if is_new { Tier::Day.begin(board.enrolled) } else { board.last_day };
    let gaps = days.windows(2).map(|pair| pair[1] - pair[0]);
    let usual = gaps.max().filter(|_| is_known).unwrap_or(day);
    let since = (Tier::Day.begin(today) - last) / day;
    let allowed = (TIMES * usual / day).max(LEAST_DAYS);
    (since >= allowed).then(|| FarmChange {
        board: board.board.clone(),
        kind: ChangeKind::Silent,
        t: last + allowed * day,
        from: last,
        says: match is_new {
            true => format!("Nothing came since it was enrolled on {}.", date(last)),
            false => format!("Nothing came since {}.", date(last)),
        },
        evidence: vec![match usual / day {
            _ if is_new => format!("That is {since} days; it has a valid token, and never sent anything."),
            _ if !is_known => {
                let days = several(days.len() as u64, "day", "days");
                format!("That is {since} days; before, it had samples of {days}.")
            }
            1 => format!("That is {since} days; before, it had samples of each day."),
            days => format!("That is {since} days; before, it was {days} days from one to the next at most."),
        }],
        p: None,
        settings: Vec::new(),
        address: format!("/b/{}", escaped(&board.board)),
        subject: "silent".to_owned(),
        acknowledged: None,
        conditions: Vec::new(),
    })
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
            let evidence = format!("That is 3 days; before, it had samples of {} day", days.len());
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
}
