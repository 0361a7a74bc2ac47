//! A board that sends nothing any more.

use report::words::several;

use super::{ChangeKind, FarmChange};
use crate::records::{FEW_DAYS, FarmBoard, Tier};
use crate::sent_days::SentGap;
use crate::words::{date, escaped};

/// Multiple of the usual gap: a board that measures each Monday is not silent on Sunday.
const TIMES: i64 = 3;

/// Usual distance of days with samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsualGap {
    /// One day, always as far as known.
    Daily,
    /// That number of seconds, by [`crate::sent_days::SentDays::usual_gap`].
    Of(i64),
    /// Unknown, with the number of days in a year, which are too few.
    Unknown(usize),
}

impl UsualGap {
    fn of(board: &FarmBoard) -> UsualGap {
        // An invalid run counts as received, too.
        let count = board.sent.count.max(board.days_with_samples().len());
        if count < FEW_DAYS {
            UsualGap::Unknown(count)
        } else if board.sent.gaps.is_empty() {
            UsualGap::Daily
        } else {
            UsualGap::Of(board.sent.usual_gap(board.last_day))
        }
    }
}

/// Detects silence of a board on a day, by the days on which it used to send. A board that is
/// expected to send is silent also if it sent on too few days for an estimate, or never.
pub fn silent(board: &FarmBoard, today: i64) -> Option<FarmChange> {
    let (day, usual, is_new) = (Tier::Day.seconds(), UsualGap::of(board), board.last_heard() <= 0);
    if !board.sends && (is_new || matches!(usual, UsualGap::Unknown(_))) {
        return None;
    }
    let last = if is_new { Tier::Day.begin(board.enrolled) } else { board.last_heard() };
    let gap = match usual {
        UsualGap::Of(gap) => gap / day,
        UsualGap::Daily | UsualGap::Unknown(_) => 1,
    };
    let since = (Tier::Day.begin(today) - last) / day;
    // As long as it was off before it is off again.
    let pause = board.sent.pause.map(|pause| pause / day).filter(|pause| *pause >= TIMES * gap);
    let allowed = pause.map_or(TIMES * gap, |pause| pause + 1);
    (since >= allowed).then(|| FarmChange {
        board: board.board.clone(),
        kind: ChangeKind::Silent,
        t: last + allowed * day,
        from: last,
        says: if is_new {
            format!("Nothing was received since it was enrolled on {}.", date(last))
        } else {
            format!("Nothing was received since {}.", date(last))
        },
        claim: if is_new { "never sent anything".to_owned() } else { "silent".to_owned() },
        evidence: vec![format!("That is {since} days; {}{}.", before(usual, is_new), pauses(pause))],
        p: None,
        settings: Vec::new(),
        address: format!("/b/{}", escaped(&board.board)),
        subject: "silent".to_owned(),
        since: None,
        acknowledged: None,
        conditions: Vec::new(),
    })
}

/// Clause on earlier pauses of that many days, after the usual gap.
fn pauses(pause: Option<i64>) -> String {
    pause.map_or_else(String::new, |days| format!("; it paused at least twice for up to {days} days"))
}

/// Last clause on the time before a silence.
fn before(usual: UsualGap, is_new: bool) -> String {
    let days = |seconds: i64| several((seconds / Tier::Day.seconds()).unsigned_abs(), "day", "days");
    match usual {
        _ if is_new => "it has a valid token and never sent anything".to_owned(),
        UsualGap::Daily => "before, it had samples on each day".to_owned(),
        UsualGap::Of(gap) => {
            let said = if gap > Tier::Day.seconds() {
                format!("at least two gaps between samples were {} or more", days(gap))
            } else {
                "at most one gap between samples was longer than a day".to_owned()
            };
            format!("in the {} up to then {said}", days(SentGap::recent(gap)))
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
    use crate::sent_days::SentDays;
    use model::units::Nanos;

    /// A board in the store that sent on these days.
    fn board(sent: &[i64]) -> FarmBoard {
        let last = sent.last().copied().unwrap_or_default();
        let days: Vec<DayMaximum> = sent
            .iter()
            .filter(|day| last - **day < 30)
            .map(|day| DayMaximum { t: day * 86_400, max_ns: Nanos(1) })
            .collect();
        let within = if days.len() > 15 { 121 } else { 366 };
        let sent: Vec<i64> =
            sent.iter().filter(|day| last - **day < within).map(|day| day * 86_400).collect();
        let sent = if days.len() < 30 { SentDays::of(&sent) } else { SentDays::default() };
        FarmBoard { last_day: last * 86_400, days, sent, ..FarmBoard::default() }
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
        // Five minutes without samples arrived.
        let idle = FarmBoard { last_slot: 6 * 86_400 + 300, ..board(&[1, 2, 3]) };
        assert!(silent(&idle, today(8)).is_none());
        let found = silent(&idle, today(9)).unwrap();
        assert!(found.from == 6 * 86_400 && found.evidence[0].contains("3 days"), "{found:?}");
        // A board that sends only invalid runs is not silent.
        let uncounted = FarmBoard { sent: board(&[1, 2, 3]).sent, ..board(&[1, 3]) };
        let found = silent(&FarmBoard { uncounted: vec![2 * 86_400], ..uncounted }, today(6)).unwrap();
        assert!(found.evidence[0].contains("samples on each day"), "{found:?}");
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
        // Three of them suffice to know its gap, and that it was away.
        assert!(silent(&sends(&[7, 40, 41]), today(43)).is_none());
        let found = silent(&sends(&[7, 40, 41]), today(44)).unwrap();
        assert!(
            found.evidence[0].ends_with("at most one gap between samples was longer than a day."),
            "{found:?}"
        );
        // From the day on which it was enrolled.
        assert!(silent(&sends(&[]), today(7)).is_none());
        let found = silent(&sends(&[]), today(8)).unwrap();
        assert_eq!(found.from, 5 * 86_400);
        assert!(found.says.contains("enrolled on 1970-01-06"), "{found:?}");
        assert!(silent(&board(&[]), today(99)).is_none());
    }

    #[test]
    fn a_board_is_silent_after_three_times_what_is_usual() {
        let today = |day: i64| day * 86_400 + 3_600;
        let all = |days: &dyn Fn(i64) -> bool| (0..366).filter(|day| days(*day)).collect::<Vec<i64>>();
        let monthly = (0..13).map(|at| at * 31).collect::<Vec<i64>>();
        // Number of days until the report, and the text on the time before.
        for (sent, after, said) in [
            (all(&|_| true), 3, "before, it had samples on each day."),
            // Away once, for long: it is not waited for that long again.
            (
                all(&|day| !(150..355).contains(&day)),
                3,
                "at most one gap between samples was longer than a day.",
            ),
            (
                all(&|day| day % 7 < 5),
                9,
                "in the 90 days up to then at least two gaps between samples were 3 days or more",
            ),
            (all(&|day| day % 7 == 0), 21, "at least two gaps between samples were 7 days or more."),
            (all(&|day| day % 16 == 0), 48, "at least two gaps between samples were 16 days or more."),
            (monthly, 93, "in the 93 days up to then at least two gaps between samples were 31 days or more"),
            // Three days in a row, and ten.
            (all(&|day| day % 30 < 3), 84, "at least two gaps between samples were 28 days or more."),
            (all(&|day| day % 30 < 10), 63, "at least two gaps between samples were 21 days or more."),
            // Another habit since half a year ago.
            (all(&|day| day % 30 == 0 || day > 183), 3, "before, it had samples on each day."),
            (
                all(&|day| day % 30 == 0 || day < 183),
                90,
                "at least two gaps between samples were 30 days or more",
            ),
            (vec![1, 2, 3, 200, 201], 3, "at most one gap between samples was longer than a day."),
        ] {
            let last = *sent.last().unwrap();
            for sends in [true, false] {
                let board = FarmBoard { sends, ..board(&sent) };
                assert!(silent(&board, today(last + after - 1)).is_none(), "{said}");
                let found = silent(&board, today(last + after)).unwrap();
                assert!(found.evidence[0].contains(said), "{found:?}");
                assert_eq!((found.from, found.t), (last * 86_400, (last + after) * 86_400));
            }
        }
        // Two days are not enough.
        assert!(silent(&board(&[1, 32]), today(400)).is_none());
        let found = silent(&FarmBoard { sends: true, ..board(&[1, 32]) }, today(35)).unwrap();
        assert!(found.evidence[0].ends_with("samples of 2 days."), "{found:?}");
    }

    #[test]
    fn one_that_pauses_is_silent_once_its_pause_is_exceeded() {
        let today = |day: i64| day * 86_400 + 3_600;
        let with = |pause: i64| {
            let daily = board(&(0..60).collect::<Vec<i64>>());
            let sent = SentDays { pause: Some(pause * 86_400), ..daily.sent.clone() };
            FarmBoard { sent, ..daily }
        };
        assert!(silent(&with(31), today(59 + 31)).is_none());
        let found = silent(&with(31), today(59 + 32)).unwrap();
        assert_eq!((found.from, found.t), (59 * 86_400, (59 + 32) * 86_400));
        assert!(
            found.evidence[0].ends_with("each day; it paused at least twice for up to 31 days."),
            "{found:?}"
        );
    }
}
