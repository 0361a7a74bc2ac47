//! Document of a plan as text: rule by rule, in the order of its changes.

use std::fmt::Write;

use crate::last_lines::LastLines;
use crate::palette::{BOLD, GREEN, Palette, RED, YELLOW};
use crate::words::{clean, filled, several, undone_in, wrapped};
use model::plan::{ChangeState, LeftOut, PlanDocument, PlannedChange, WITH_CONSENT};
use model::setting::{Comparison, Key, Risk, TaskSetting, marked};

/// Stage of the document, which decides its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Planned,
    Applied,
    InForce,
    Undone,
}

/// Layout of the text.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub columns: usize,
    pub color: bool,
    /// True for a line per key, with reasons and costs of successful changes as well.
    pub verbose: bool,
}

/// Document as text. `about` is its subject: `CPUs 2-3, control-loop`.
pub fn render(document: &PlanDocument, stage: Stage, about: &str, layout: Layout) -> String {
    let mut page = String::new();
    wrapped(&mut page, &summary(document, stage, about), layout.columns);
    let mut rest = document.changes.as_slice();
    while let [first, ..] = rest {
        // A change without a rule has the reason that its file gave.
        let is_told = |change: &PlannedChange| {
            stage != Stage::Planned || !change.rule.is_empty() || change.why == first.why
        };
        let same = |change: &&PlannedChange| {
            change.rule == first.rule && change.entry == first.entry && is_told(change)
        };
        let (own, others) = rest.split_at(rest.iter().take_while(same).count());
        of_rule(&mut page, own, stage, layout);
        rest = others;
    }
    left_out(&mut page, &document.left_out, stage, layout);
    page
}

/// Each planned change in a line, like ones of a rule joined, without reasons.
pub fn brief(document: &PlanDocument, columns: usize) -> String {
    let mut page = String::new();
    let mut rest = document.changes.as_slice();
    while let [first, ..] = rest {
        let alike = |change: &&PlannedChange| change.rule == first.rule && is_alike(change, first);
        let (group, others) = rest.split_at(rest.iter().take_while(alike).count().max(1));
        let rule = if first.rule.is_empty() { "requested" } else { &first.rule };
        let line = format!("{rule}: {} {}", keys(group), movement(first, Stage::Planned));
        filled(&mut page, "  ", &line, 4, columns);
        rest = others;
    }
    page
}

/// Answer of a plan as the last lines: changes, rules left out, next commands.
pub fn plan_answer(document: &PlanDocument, about: &str, layout: Layout) -> String {
    let mut answer = LastLines::default();
    answer.styled("answer", summary(document, Stage::Planned, about), BOLD);
    let lost = document.changes.iter().filter(|change| change.setting.risk == Risk::High).count() as u64;
    if lost > 0 {
        let which = several(lost, "change removes", "changes remove");
        let need = if lost == 1 { "needs" } else { "need" };
        answer.row("fair", format!("{which} a safeguard, and {need} --yes"));
    }
    if !document.left_out.is_empty() {
        let rules = several(document.left_out.len() as u64, "rule", "rules");
        answer.row("beyond", format!("{rules} not changed at run time"));
    }
    let next = if document.changes.is_empty() {
        "onbeat audit (failures that need a boot or more)"
    } else {
        "sudo onbeat tune apply with the same flags (undo: `onbeat tune undo`); onbeat tune export DIR \
         (permanent)"
    };
    answer.row("next", next).render(layout.columns, Palette(layout.color))
}

fn summary(document: &PlanDocument, stage: Stage, about: &str) -> String {
    let count = |state| document.changes.iter().filter(|change| change.state == state).count() as u64;
    let changes = |number: u64| several(number, "change", "changes");
    let all = document.changes.len() as u64;
    let others = |states: &[(ChangeState, &str)]| {
        let named = states.iter().filter(|(state, _)| count(*state) > 0);
        named.map(|(state, words)| format!(", {} {words}", count(*state))).collect::<String>()
    };
    match stage {
        Stage::Planned if all == 0 => format!("Nothing to change at run time for {about}."),
        Stage::Planned => format!("{} for {about}; nothing is changed yet.", changes(all)),
        Stage::Applied if all == 0 => format!("Nothing to change at run time for {about}."),
        Stage::Applied => format!(
            "Entry {}: {} for {about}{}.",
            document.id,
            format_args!("{} made", changes(count(ChangeState::Applied) + count(ChangeState::Pending))),
            others(&[
                (ChangeState::Pending, "of them taking effect at the next event"),
                (ChangeState::Refused, "refused"),
                (ChangeState::Void, "target no longer exists"),
                (ChangeState::Undone, "undone again"),
            ]),
        ),
        Stage::InForce if all == 0 => "No change by onbeat is in force.".to_owned(),
        Stage::InForce => format!(
            "{} in force{}.",
            changes(count(ChangeState::Applied) + count(ChangeState::Pending)),
            others(&[
                (ChangeState::Overdue, "overdue"),
                (ChangeState::Kept, "kept because another program changed them"),
                (ChangeState::Refused, "not undone"),
                (ChangeState::Undone, "undone"),
                (ChangeState::Void, "target no longer exists"),
            ]),
        ),
        Stage::Undone if all == 0 => "Nothing to undo.".to_owned(),
        Stage::Undone => format!(
            "{} undone{}.",
            changes(count(ChangeState::Undone)),
            others(&[
                (ChangeState::Kept, "kept because another program changed them (--force restores them)"),
                (ChangeState::Refused, "not undone"),
                (ChangeState::Void, "target no longer exists"),
            ]),
        ),
    }
}

fn of_rule(page: &mut String, changes: &[PlannedChange], stage: Stage, layout: Layout) {
    let palette = Palette(layout.color);
    let Some(first) = changes.first() else { return };
    let name = if first.rule.is_empty() { "requested" } else { &first.rule };
    let entry = match first.entry.as_str() {
        "" => String::new(),
        id => format!("  entry {id}{}", undone_in(first.undone_in_ns, first.confirmable)),
    };
    let risk = match changes.iter().map(|change| change.setting.risk).max() {
        Some(Risk::High) => palette.paint(RED, "  removes a safeguard; needs --yes"),
        _ => String::new(),
    };
    let _ = writeln!(page, "\n{}{entry}{risk}", palette.paint(BOLD, name));
    let mut rest = changes;
    while let [first, ..] = rest {
        let alike = |change: &&PlannedChange| !layout.verbose && is_alike(change, first);
        let number = rest.iter().take_while(alike).count().max(1);
        let (group, others) = rest.split_at(number);
        let line = format!("{} {}", keys(group), movement(first, stage));
        let state = state_of(first, stage, palette);
        filled(page, "  ", &format!("{line}{state}"), 4, layout.columns);
        rest = others;
    }
    if stage == Stage::Planned {
        filled(page, "  why   ", &clean(&first.why), 8, layout.columns);
        if !first.cost.is_empty() {
            filled(page, "  cost  ", &clean(&first.cost), 8, layout.columns);
        }
    }
}

/// True if both changes fit in one line.
fn is_alike(a: &PlannedChange, b: &PlannedChange) -> bool {
    let outcome = |change: &PlannedChange| (change.state, change.why.clone());
    std::mem::discriminant(&a.setting.key) == std::mem::discriminant(&b.setting.key)
        && pattern(&a.setting.key) == pattern(&b.setting.key)
        && (a.now == b.now, a.setting.wanted == b.setting.wanted) == (true, true)
        && a.before == b.before
        && outcome(a) == outcome(b)
}

/// Key without its digits.
fn pattern(key: &Key) -> String {
    key.to_string().chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn keys(group: &[PlannedChange]) -> String {
    let short = |change: &PlannedChange| match &change.setting.key {
        Key::Task { tid, what, .. } => match what {
            TaskSetting::Affinity => format!("thread {tid}"),
            TaskSetting::Policy => format!("policy of thread {tid}"),
            TaskSetting::Group => format!("group of process {tid}"),
        },
        key => key.to_string(),
    };
    match group {
        [] => String::new(),
        [one] => clean(&short(one)),
        [first, .., last] if group.len() == 2 => clean(&format!("{} and {}", short(first), short(last))),
        [first, ..] => clean(&format!("{} and {} similar", short(first), group.len() - 1)),
    }
}

fn movement(change: &PlannedChange, stage: Stage) -> String {
    let choice = change.setting.readback == Comparison::Choice;
    let now = if choice { marked(&change.now) } else { change.now.trim() };
    let before = if choice { marked(&change.before) } else { change.before.trim() };
    let empty = if change.setting.readback == Comparison::Unread { "(not read)" } else { "(none)" };
    let value = |text: &str| if text.is_empty() { empty.to_owned() } else { clean(text) };
    match stage {
        Stage::Planned | Stage::Applied => format!("{} -> {}", value(now), value(&change.setting.wanted)),
        Stage::InForce if change.setting.is_met_by(&change.now) || change.now.is_empty() => {
            format!("{}, was {}", value(&change.setting.wanted), value(before))
        }
        Stage::InForce => {
            format!("set to {}, was {}, reads {}", value(&change.setting.wanted), value(before), value(now))
        }
        Stage::Undone if change.state == ChangeState::Undone && !change.before.is_empty() => {
            format!("{} -> {}", value(&change.setting.wanted), value(before))
        }
        Stage::Undone => format!("from {}", value(&change.setting.wanted)),
    }
}

fn state_of(change: &PlannedChange, stage: Stage, palette: Palette) -> String {
    let (style, word) = match change.state {
        ChangeState::Planned => return String::new(),
        ChangeState::Applied if stage == Stage::InForce => return why_of(change, stage),
        ChangeState::Applied => (GREEN, "applied"),
        ChangeState::Pending => (YELLOW, "takes effect at its next event"),
        ChangeState::Refused => (RED, if stage == Stage::Undone { "not undone" } else { "refused" }),
        ChangeState::Kept => (YELLOW, "kept"),
        ChangeState::Void => (YELLOW, "target no longer exists"),
        ChangeState::Undone => (GREEN, "undone"),
        ChangeState::Overdue => (RED, "overdue"),
    };
    format!(", {}{}", palette.paint(style, word), why_of(change, stage))
}

/// Reason for the state; planned changes have theirs elsewhere.
fn why_of(change: &PlannedChange, stage: Stage) -> String {
    let fine = matches!(change.state, ChangeState::Applied | ChangeState::Pending);
    if change.why.is_empty() || (stage == Stage::Applied && fine) {
        String::new()
    } else {
        format!(" ({})", clean(&change.why))
    }
}

/// Rules that are not changed, or not undone, with the alternative; after changes were made, only
/// the number of rules they leave.
fn left_out(page: &mut String, left: &[LeftOut], stage: Stage, layout: Layout) {
    if left.is_empty() {
        return;
    }
    let title = match stage {
        Stage::Applied => {
            let (safeguards, left): (Vec<&LeftOut>, Vec<&LeftOut>) =
                left.iter().partition(|one| one.instead == WITH_CONSENT);
            if !safeguards.is_empty() {
                let names: Vec<&str> = safeguards.iter().map(|one| one.rule.as_str()).collect();
                let words = format!(
                    "\nNot changed, because this removes a safeguard: {}; {WITH_CONSENT} to change it, too.",
                    names.join(", ")
                );
                wrapped(page, &words, layout.columns);
            }
            if left.is_empty() {
                return;
            }
            let rules = several(left.len() as u64, "failing rule is", "failing rules are");
            let words = format!("\n{rules} not changed at run time: see `onbeat tune plan` for the reasons.");
            return wrapped(page, &words, layout.columns);
        }
        Stage::Planned => "not changed at run time",
        Stage::InForce => "not known whether in force",
        Stage::Undone => "not undone",
    };
    let palette = Palette(layout.color);
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, title));
    let (with, without): (Vec<&LeftOut>, Vec<&LeftOut>) =
        left.iter().partition(|one| !one.instead.is_empty());
    for one in with {
        let words = format!("{}: {}; instead, {}", one.rule, clean(&one.why), clean(&one.instead));
        filled(page, "  ", &words, 4, layout.columns);
    }
    // Many are unknown for the same reason.
    let mut reasons: Vec<&str> = without.iter().map(|one| one.why.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let rules = without.iter().filter(|one| one.why == reason).map(|one| one.rule.as_str());
        let words = format!("{}: {}", rules.collect::<Vec<_>>().join(", "), clean(reason));
        filled(page, "  ", &words, 4, layout.columns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::setting::Setting;

    const NARROW: Layout = Layout { columns: 76, color: false, verbose: false };

    fn change(key: &str, rule: &str, now: &str, wanted: &str) -> PlannedChange {
        let mut change = PlannedChange::new(Setting::new(key.parse().unwrap(), wanted), rule, now);
        change.why = "it runs there".to_owned();
        change
    }

    fn document() -> PlanDocument {
        let mut throttling = change("sysctl:kernel.sched_rt_runtime_us", "rt-throttling", "950000", "-1");
        throttling.setting.risk = Risk::High;
        throttling.cost = "A task that never sleeps takes its CPU.".to_owned();
        let irqs = ["irq:24", "irq:25", "irq:26"].map(|key| change(key, "irq-affinity", "0-3", "0-1"));
        let left = |rule: &str, why: &str, instead: &str| LeftOut {
            rule: rule.to_owned(),
            why: why.to_owned(),
            instead: instead.to_owned(),
        };
        let left = vec![
            left("nohz-full", "the kernel reads it at boot", "add nohz_full=2-3"),
            left("rcu-boost", "it is unknown: no configuration", ""),
            left("rcu-lazy", "it is unknown: no configuration", ""),
        ];
        PlanDocument::new("b", irqs.into_iter().chain([throttling]).collect(), left)
    }

    #[test]
    fn a_plan_says_what_why_at_what_cost_and_what_not() {
        assert_eq!(
            render(&document(), Stage::Planned, "CPUs 2-3 as control-loop", NARROW),
            "4 changes for CPUs 2-3 as control-loop; nothing is changed yet.\n\n\
             irq-affinity\n  irq:24 and 2 similar 0-3 -> 0-1\n  why   it runs there\n\n\
             rt-throttling  removes a safeguard; needs --yes\n  \
             sysctl:kernel.sched_rt_runtime_us 950000 -> -1\n  \
             why   it runs there\n  cost  A task that never sleeps takes its CPU.\n\n\
             not changed at run time\n  nohz-full: the kernel reads it at boot; instead, add \
             nohz_full=2-3\n  \
             rcu-boost, rcu-lazy: it is unknown: no configuration\n"
        );
    }

    #[test]
    fn what_became_of_each_change_stands_beside_it() {
        let mut document = document();
        document.id = "7".to_owned();
        document.changes[0].state = ChangeState::Applied;
        document.changes[1].state = ChangeState::Applied;
        document.changes[2].state = ChangeState::Pending;
        document.changes[3].state = ChangeState::Refused;
        document.changes[3].why = "the kernel refused it: EBUSY".to_owned();
        let wide = Layout { columns: 120, ..NARROW };
        let text = render(&document, Stage::Applied, "CPUs 2-3 as control-loop", wide);
        assert!(text.starts_with("Entry 7: 3 changes made for CPUs 2-3 as control-loop, 1 of them taking"));
        assert!(text.contains("irq:24 and irq:25 0-3 -> 0-1, applied\n"), "{text}");
        assert!(text.contains("refused (the kernel refused it: EBUSY)"), "{text}");
        assert!(
            text.ends_with(
                "3 failing rules are not changed at run time: see `onbeat tune plan` for the reasons.\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn each_reason_of_a_file_is_said() {
        let asked = |key, why: &str| PlannedChange { why: why.to_owned(), ..change(key, "", "1", "2") };
        let changes = vec![
            asked("sysctl:vm.swappiness", "a.conf asks for it"),
            asked("sysctl:vm.stat_interval", "a.conf asks for it"),
            asked("sysctl:kernel.nmi_watchdog", "b.conf asks for it"),
        ];
        let document = PlanDocument::new("b", changes, Vec::new());
        let text = render(&document, Stage::Planned, "x", NARROW);
        assert_eq!(text.matches("a.conf asks for it").count(), 1, "{text}");
        assert_eq!(text.matches("b.conf asks for it").count(), 1, "{text}");
        assert_eq!(render(&document, Stage::Undone, "x", NARROW).matches("requested").count(), 1);
    }

    #[test]
    fn a_value_that_is_not_read_is_not_called_none() {
        let mut planned = change("sysctl:kernel.nmi_watchdog", "", "", "0");
        planned.setting.readback = Comparison::Unread;
        let text = render(&PlanDocument::new("b", vec![planned], Vec::new()), Stage::Planned, "x", NARROW);
        assert!(text.contains("sysctl:kernel.nmi_watchdog (not read) -> 0"), "{text}");
    }

    #[test]
    fn what_is_not_understood_is_not_undone() {
        let left = LeftOut {
            rule: "entry 5".to_owned(),
            why: "1 of its records is not understood by this version".to_owned(),
            instead: "undo it with onbeat 9.0".to_owned(),
        };
        let document = PlanDocument::new("b", Vec::new(), vec![left]);
        let wide = Layout { columns: 120, ..NARROW };
        assert_eq!(
            render(&document, Stage::Undone, "", wide),
            "Nothing to undo.\n\nnot undone\n  entry 5: 1 of its records is not understood by this version; \
             instead, undo it with onbeat 9.0\n"
        );
    }

    #[test]
    fn external_text_is_escaped() {
        let mut document = document();
        document.changes[0].now = "\u{1b}[2J".to_owned();
        for stage in [Stage::Planned, Stage::Applied, Stage::InForce, Stage::Undone] {
            assert!(!render(&document, stage, "x", NARROW).contains('\u{1b}'));
        }
    }
}
