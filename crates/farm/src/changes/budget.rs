//! A board that is later than it may be.

use model::units::Nanos;
use report::words::{several, span};

use super::{ChangeKind, FarmChange};
use crate::board_settings::{OF_A_TAG, OF_THE};
use crate::records::{FarmBoard, SeriesKey, Tier};
use crate::words::address;
use crate::words::{date, escaped};

/// Number of days within the budget after which the next day beyond it begins another change.
pub const BUDGET_APART: i64 = 7;

/// The largest latency of a board's day, of the series and runs that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetDay {
    /// The first second of the day.
    pub t: i64,
    pub max_ns: Nanos,
    /// Series that it was measured in.
    pub key: SeriesKey,
    /// Page that shows it.
    pub shown: BudgetPlace,
}

/// Page that shows the largest latency of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetPlace {
    /// The worst five minutes of the day.
    Day,
    /// These five minutes, as something larger on the day does not count.
    Slot(i64),
    /// A run without five minutes.
    Run(String),
}

impl BudgetDay {
    /// The page that shows it.
    fn address(&self, board: &str) -> String {
        match &self.shown {
            BudgetPlace::Day => address(board, &self.key, self.t) + "&worst=day",
            BudgetPlace::Slot(t) => address(board, &self.key, *t),
            BudgetPlace::Run(id) => format!("/runs/{}", escaped(id)),
        }
    }
}

/// Removes the name of the tag that sets the budget from the evidence.
pub fn without_tag(evidence: &mut [String]) {
    let named = format!("The budget is {OF_THE}tag ");
    for one in evidence.iter_mut().filter(|one| one.starts_with(&named)) {
        *one = format!("The budget is {OF_A_TAG}.");
    }
}

/// Detects a day over the budget from a time on, by the largest latency of each of a board's days,
/// oldest first. The [`BUDGET_APART`] days before show if it began earlier.
pub fn over_budget(board: &FarmBoard, all: &[BudgetDay], from: i64) -> Option<FarmChange> {
    let limit = board.settings.budget_ns?;
    let hardware = Tier::Day.begin(board.settings.hardware_since().unwrap_or(0));
    let is_over = |day: &&BudgetDay| day.t >= hardware && day.max_ns > limit;
    let (older, all) = all.split_at(all.partition_point(|day| day.t < from));
    let over: Vec<&BudgetDay> = all.iter().filter(is_over).collect();
    let far = |pair: &[&BudgetDay]| is_apart(pair[0], pair[1]);
    let begin = over.windows(2).rposition(far).map_or(0, |at| at + 1);
    let (before, over) = over.split_at(begin);
    let (first, last) = (over.first()?, over.last()?);
    let worst = over.iter().max_by_key(|day| (day.max_ns, day.t))?;
    let since = all.iter().filter(|day| day.t >= first.t).count();
    let whose = board.settings.budget_words();
    let is_older = older.iter().rfind(is_over).is_some_and(|day| before.is_empty() && !is_apart(day, first));
    let when = match date(first.t) {
        day if is_older => format!("since {day} or before"),
        day if first.t == last.t => format!("on {day}"),
        day => format!("since {day}"),
    };
    let mut evidence = vec![
        format!("The largest latency was {} on {}.", span(worst.max_ns), date(worst.t)),
        format!(
            "{} of {since} with samples since then exceeded the budget.",
            several(over.len() as u64, "day", "days")
        ),
        format!("The budget is {whose}."),
    ];
    if let Some(last) = before.last() {
        let days = several(before.len() as u64, "day", "days");
        evidence.push(format!("It was exceeded on {days} before, too, the last on {}.", date(last.t)));
    }
    Some(FarmChange {
        board: board.board.clone(),
        kind: ChangeKind::OverBudget,
        t: last.t,
        from: first.t,
        says: format!("Its budget of {} was exceeded {when}.", span(limit)),
        claim: format!("over its budget of {} by up to {}", span(limit), span(worst.max_ns - limit)),
        evidence,
        p: None,
        settings: Vec::new(),
        address: worst.address(&board.board),
        // With another budget it is another question.
        subject: format!("budget {}", limit.0),
        since: None,
        acknowledged: None,
        conditions: Vec::new(),
    })
}

fn is_apart(a: &BudgetDay, b: &BudgetDay) -> bool {
    b.t - a.t > BUDGET_APART * Tier::Day.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board_settings::{BoardSettings, BoardState};

    fn maxima(days: &[(i64, i64)]) -> Vec<BudgetDay> {
        let one = |&(day, max): &(i64, i64)| {
            let key = SeriesKey { series: "timer+wakeup".into(), plan: format!("p{day}") };
            BudgetDay { t: day * 86_400, max_ns: Nanos(max), key, shown: BudgetPlace::Day }
        };
        days.iter().map(one).collect()
    }

    fn board(limit: Option<i64>) -> FarmBoard {
        let settings = BoardSettings {
            budget_ns: limit.map(Nanos),
            budget_of: "tag lab".into(),
            ..BoardSettings::default()
        };
        FarmBoard { board: "a".into(), settings, ..FarmBoard::default() }
    }

    #[test]
    fn a_broken_budget_is_told_from_the_day_on_which_it_began() {
        let mut days = maxima(&[(1, 900), (2, 10), (12, 60_000), (13, 9), (14, 70_000), (15, 5)]);
        let over = |limit| over_budget(&board(Some(limit)), &days, 0);
        let found = over(50_000).unwrap();
        assert_eq!((found.from, found.t), (12 * 86_400, 14 * 86_400));
        assert_eq!(found.subject, "budget 50000");
        assert!(found.says.contains("since 1970-01-13"), "{}", found.says);
        assert!(found.evidence[1].starts_with("2 days of 4") && found.evidence[2].contains("tag lab"));
        assert_eq!(found.address, "/b/a/at/1209600?series=timer%2Bwakeup&plan=p14&worst=day");
        let evidence = over(500).unwrap().evidence;
        assert!(
            evidence[3].contains("exceeded on 1 day before, too, the last on 1970-01-02"),
            "{evidence:?}"
        );
        // An excess long before is another change.
        assert_eq!(over(500).unwrap().from, 12 * 86_400);
        let first = over_budget(&board(Some(500)), &days[..2], 0).unwrap();
        assert!(first.says.contains("on 1970-01-02"));
        assert!(over(70_000).is_none());
        // Other hardware had another budget to hold.
        let mut replaced = board(Some(500));
        replaced.settings.state = BoardState::Replaced;
        replaced.settings.state_since = 13 * 86_400 + 5;
        assert_eq!(over_budget(&replaced, &days, 0).unwrap().from, 14 * 86_400);
        assert!(over_budget(&board(None), &days, 0).is_none());
        assert!(over_budget(&board(Some(1)), &[], 0).is_none());
        // The worst of that day is something that does not count.
        days[4].shown = BudgetPlace::Slot(14 * 86_400 + 600);
        let address = over_budget(&board(Some(50_000)), &days, 0).unwrap().address;
        assert_eq!(address, "/b/a/at/1210200?series=timer%2Bwakeup&plan=p14");
        // It is from another tool, without five minutes.
        days[4].shown = BudgetPlace::Run("r 1".into());
        assert_eq!(over_budget(&board(Some(50_000)), &days, 0).unwrap().address, "/runs/r%201");
    }

    #[test]
    fn what_is_broken_on_the_first_day_may_have_begun_before() {
        let of = |days: &[(i64, i64)], from: i64| {
            over_budget(&board(Some(500)), &maxima(days), from * 86_400).map(|found| found.says)
        };
        let all: Vec<(i64, i64)> = (0..130).map(|day| (day, 900)).collect();
        let ends = |days: &[(i64, i64)], from, end: &str| {
            let says = of(days, from).unwrap();
            assert!(says.ends_with(end), "{says} is not {end}");
        };
        ends(&all, 40, "since 1970-02-10 or before.");
        ends(&[(39, 900), (46, 900)], 40, "since 1970-02-16 or before.");
        // Further apart they are two changes, and a board that is new has none before.
        ends(&[(38, 900), (46, 900)], 40, "on 1970-02-16.");
        ends(&[(39, 9), (40, 900), (41, 900)], 40, "since 1970-02-10.");
        ends(&all[40..], 40, "since 1970-02-10.");
        // Only the last of the changes may be as old.
        ends(&[(39, 900), (40, 900), (60, 900)], 40, "on 1970-03-02.");
        assert_eq!(of(&[(39, 900), (40, 9)], 40), None);
        let mut replaced = board(Some(500));
        replaced.settings.state = BoardState::Replaced;
        replaced.settings.state_since = 40 * 86_400;
        let says = over_budget(&replaced, &maxima(&all), 40 * 86_400).unwrap().says;
        assert!(says.ends_with("since 1970-02-10."), "{says}");
    }
}
