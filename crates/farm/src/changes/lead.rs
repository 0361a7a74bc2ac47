//! Sentences that lead the first page: what changed on a board, since when, and what it coincides
//! with.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::text::excerpt;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ChangeIdentity, ChangeKind, FarmChange};
use crate::board_names::BoardNames;
use crate::environments::{KERNEL_CONFIGURATION, RELEASE, WORD};
use crate::setting_changes::SettingChange;
use crate::wall_clock::DAY;
use crate::words::{date, escaped};

/// Kinds of a change for the worse, the gravest first: a breached budget hides no other change.
const GRAVEST: [ChangeKind; 5] = [
    ChangeKind::MoreOften,
    ChangeKind::Worse,
    ChangeKind::NewCulprit,
    ChangeKind::Silent,
    ChangeKind::OverBudget,
];
/// Distance, in seconds, within which two reports are of one event: a rate is dated to the day, or
/// a few off.
const SAME_EVENT_S: i64 = 7 * DAY;
/// Limit of settings in a sentence, besides the kernel.
const MAX_SETTINGS: usize = 2;

/// Changes of a board for the worse, as one sentence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BoardLead {
    pub board: String,
    pub name: String,
    /// The gravest of its open changes.
    pub kind: ChangeKind,
    /// Estimated start, in seconds since 1970.
    pub from: i64,
    pub says: String,
    /// The page with the evidence.
    pub address: String,
    /// Parts of the sentence: the link, and what follows the date.
    #[serde(skip)]
    pub claim: String,
    #[serde(skip)]
    pub rest: String,
}

/// A sentence for each board with an open change, the gravest first and the latest of these first.
/// Without names, nothing is said of settings.
pub fn lead(all: &[FarmChange], names: &BoardNames, unnamed: bool) -> Vec<BoardLead> {
    let mut by_board: BTreeMap<&str, Vec<&FarmChange>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.is_open()) {
        by_board.entry(&one.board).or_default().push(one);
    }
    let mut found: Vec<BoardLead> =
        by_board.into_values().filter_map(|open| sentence(&open, names, unnamed)).collect();
    found.sort_by_key(|one| (one.kind, Reverse(one.from)));
    found
}

fn sentence(open: &[&FarmChange], names: &BoardNames, unnamed: bool) -> Option<BoardLead> {
    let mut all = GRAVEST.into_iter().filter_map(|kind| latest(open, kind));
    let main = all.next()?;
    // The environment that came with it is not a separate event.
    let (same, others): (Vec<_>, Vec<_>) =
        all.partition(|one| one.kind == ChangeKind::Worse && (one.from - main.from).abs() <= SAME_EVENT_S);
    let known = std::iter::once(main).chain(same).map(|one| &one.settings).find(|known| !known.is_empty());
    let mut rest = match known {
        _ if unnamed || matches!(main.kind, ChangeKind::Silent | ChangeKind::OverBudget) => String::new(),
        Some(settings) => format!(", with {}", coincidence(settings)),
        None => ", with no known change of its settings".to_owned(),
    };
    for one in others {
        rest += &format!("; {} since {}", one.claim, date(one.from));
    }
    let (board, name) = (main.board.clone(), names.of(&main.board).to_owned());
    Some(BoardLead {
        says: format!("{name}: {} since {}{rest}.", main.claim, date(main.from)),
        kind: main.kind,
        from: main.from,
        address: format!("/changes?board={}#{}", escaped(&board), ChangeIdentity::of(main).id()),
        claim: main.claim.clone(),
        rest,
        board,
        name,
    })
}

/// The last event of a kind: of its reports, one for each series, the most certain.
fn latest<'a>(open: &[&'a FarmChange], kind: ChangeKind) -> Option<&'a FarmChange> {
    let of_kind = || open.iter().copied().filter(|one| one.kind == kind);
    let last = of_kind().map(|one| one.from).max()?;
    let here = of_kind().filter(|one| last - one.from <= SAME_EVENT_S);
    here.min_by(|a, b| a.p.unwrap_or(1.0).total_cmp(&b.p.unwrap_or(1.0)))
}

/// Changed settings in words: the kernel, then words of its command line, then others.
fn coincidence(of: &[SettingChange]) -> String {
    let kernel = of.iter().find(|one| one.what == RELEASE && !one.after.is_empty());
    let is_other =
        |one: &&SettingChange| one.what != RELEASE && (kernel.is_none() || one.what != KERNEL_CONFIGURATION);
    let mut settings: Vec<&SettingChange> = of.iter().filter(is_other).collect();
    settings.sort_by_key(|one| !one.what.starts_with(WORD));
    let mut others: Vec<String> = Vec::new();
    for words in settings.into_iter().map(words) {
        // A list of CPUs is a word of the command line, too.
        if !others.contains(&words) {
            others.push(words);
        }
    }
    let more = others.len().saturating_sub(MAX_SETTINGS);
    others.truncate(MAX_SETTINGS);
    others.extend((more > 0).then(|| format!("{more} more")));
    let others = others.join(", ");
    match kernel {
        Some(kernel) if others.is_empty() => format!("kernel {}", excerpt(&kernel.after)),
        Some(kernel) => format!("kernel {} ({others})", excerpt(&kernel.after)),
        None => others,
    }
}

fn words(of: &SettingChange) -> String {
    let path = of.what.trim_start_matches(WORD).trim_start_matches("host.");
    let name = excerpt(path.rsplit('/').next().unwrap_or(path));
    match (of.before.as_str(), of.after.as_str()) {
        (_, "") => format!("{name} gone"),
        ("", "given") => format!("{name} new"),
        ("", after) => format!("{name} {} new", excerpt(after)),
        (before, after) => format!("{name} {} -> {}", excerpt(before), excerpt(after)),
    }
}

/// A multiple, as text: `20 times as often`; `None` if there was nothing before.
pub(super) fn times(factor: f64) -> Option<String> {
    let decimals = usize::from(factor < 9.95);
    factor.is_finite().then(|| format!("{factor:.decimals$} times as often"))
}

#[cfg(test)]
mod tests {
    use super::super::made::made_change;
    use super::*;

    fn setting(what: &str, before: &str, after: &str) -> SettingChange {
        SettingChange { what: what.into(), before: before.into(), after: after.into() }
    }

    fn change(board: &str, kind: ChangeKind, day: i64, claim: &str) -> FarmChange {
        FarmChange { claim: claim.into(), ..made_change(board, kind, day * DAY) }
    }

    fn says(all: &[FarmChange], unnamed: bool) -> Vec<String> {
        let names: BoardNames = [("p2".to_owned(), "press-2".to_owned())].into_iter().collect();
        lead(all, &names, unnamed).into_iter().map(|one| one.says).collect()
    }

    #[test]
    fn what_got_worse_leads_with_its_kernel_and_a_budget_does_not_hide_it() {
        let settings = vec![
            setting("/proc/sys/kernel/sched_rt_runtime_us", "950000", "-1"),
            setting("cmdline nohz_full", "2-3", ""),
            setting("host.nohz_full", "2-3", ""),
            setting("host.release", "6.12.20-rt9", "6.12.41-rt12"),
            setting("kernel configuration", "a", "b"),
        ];
        let worse = FarmChange { settings, ..change("p2", ChangeKind::Worse, 100, "larger latencies") };
        let often = "late wake-ups 20 times as often";
        let all = [
            change("mill", ChangeKind::OverBudget, 130, "over its budget of 50.0 us by up to 1.0 ms"),
            change("p2", ChangeKind::OverBudget, 130, "over its budget of 50.0 us by up to 9.0 ms"),
            change("saw", ChangeKind::Silent, 120, "silent"),
            worse,
            change("p2", ChangeKind::MoreOften, 101, often),
            change("saw", ChangeKind::Better, 125, "better"),
            change("lathe", ChangeKind::NewCulprit, 90, "new culprit tlb-flush"),
        ];
        let with = "with kernel 6.12.41-rt12 (nohz_full gone, sched_rt_runtime_us 950000 -> -1)";
        let budget = "over its budget of 50.0 us by up to";
        assert_eq!(
            says(&all, false),
            [
                format!("press-2: {often} since 1970-04-12, {with}; {budget} 9.0 ms since 1970-05-11."),
                "lathe: new culprit tlb-flush since 1970-04-01, with no known change of its settings.".into(),
                "saw: silent since 1970-05-01.".into(),
                format!("mill: {budget} 1.0 ms since 1970-05-11."),
            ]
        );
        assert!(!says(&all, true).concat().contains("with"), "settings have names");
        let lead = lead(&all, &BoardNames::default(), false);
        let of = ChangeIdentity::of(&all[4]).id();
        assert_eq!(lead[0].address, format!("/changes?board=p2#{of}"));
    }

    #[test]
    fn of_several_series_the_most_certain_of_the_last_event_is_told() {
        let one = |day, p, claim| FarmChange { p: Some(p), ..change("a", ChangeKind::MoreOften, day, claim) };
        let all = [one(100, 0.01, "new"), one(99, 1e-6, "sure"), one(50, 1e-9, "old")];
        assert_eq!(says(&all, true), ["a: sure since 1970-04-10."]);
        // Of another day, it is another event.
        let worse = change("a", ChangeKind::Worse, 60, "larger latencies");
        let says = says(&[all[1].clone(), worse], true);
        assert_eq!(says, ["a: sure since 1970-04-10; larger latencies since 1970-03-02."]);
    }

    #[test]
    fn settings_are_named_by_their_last_word_and_the_others_counted() {
        for (settings, wanted) in [
            (vec![setting("cmdline quiet", "", "given")], "quiet new"),
            (vec![setting("cmdline isolcpus", "", "2-3")], "isolcpus 2-3 new"),
            (vec![setting("host.release", "6.1", "6.12")], "kernel 6.12"),
            (["a", "b", "c", "d"].map(|name| setting(name, "1", "2")).to_vec(), "a 1 -> 2, b 1 -> 2, 2 more"),
            (vec![setting(KERNEL_CONFIGURATION, "a", "b")], "kernel configuration a -> b"),
        ] {
            assert_eq!(coincidence(&settings), wanted);
        }
        let words = [f64::INFINITY, 9.94, 20.8].map(times);
        assert_eq!(words, [None, Some("9.9 times as often".into()), Some("21 times as often".into())]);
    }
}
