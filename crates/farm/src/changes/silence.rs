//! A board that sends nothing any more.

use super::{ChangeKind, FarmChange};
use crate::pages::parts::{date, escaped};
use crate::records::{FarmBoard, Tier};

/// A day may be cut at both ends.
const LEAST_DAYS: i64 = 2;
/// The longest gap of a board so many times: one that measures each Monday is not silent on Sunday.
const TIMES: i64 = 3;

/// Whether a board is silent on a day, by the days on which it used to send.
pub fn silent(board: &FarmBoard, today: i64) -> Option<FarmChange> {
    let usual = board.days.windows(2).map(|pair| pair[1].t - pair[0].t).max().unwrap_or(Tier::Day.seconds());
    // One day alone does not say how often there is to be one.
    if board.days.len() < 3 || board.last_day <= 0 {
        return None;
    }
    let since = (Tier::Day.begin(today) - board.last_day) / Tier::Day.seconds();
    let allowed = (TIMES * usual / Tier::Day.seconds()).max(LEAST_DAYS);
    (since >= allowed).then(|| FarmChange {
        board: board.board.clone(),
        kind: ChangeKind::Silent,
        t: board.last_day + allowed * Tier::Day.seconds(),
        from: board.last_day,
        says: format!("Nothing came since {}.", date(board.last_day)),
        evidence: vec![match usual / Tier::Day.seconds() {
            1 => format!("That is {since} days; before, it had samples of each day."),
            days => format!("That is {since} days; before, it was {days} days from one to the next at most."),
        }],
        p: None,
        settings: Vec::new(),
        address: format!("/b/{}", escaped(&board.board)),
        subject: "silent".to_owned(),
        acknowledged: None,
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
        FarmBoard { last_day: days.last().unwrap().t, days, ..FarmBoard::default() }
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
    }
}
