//! Results of curing a machine with planted faults: the kept changes, the undone ones, and the
//! report on both.

use serde_json::Value;

use super::super::document::{ListedChange, changes};
use super::super::scene::{Measured, UndoScene, compared, idle, none_left, state};
use super::super::state::{ChangedKey, MachineState};
use super::planted::script;
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    let scene = |name, plant: &str, time: &str, more: &str, judge| {
        let act = format!("{CURED}\ncured 30ms {time} --segment 5s {more}");
        UndoScene { faults: true, ..UndoScene::new(name, &script(plant, &act), judge) }
    };
    // Latency that the emulator's own noise reaches.
    let clean = format!("{CURED}\ncured 4ms 5m --segment 2s --yes");
    // The way of a new user: it is late, it is cured, the cure is to last.
    let first = format!(
        "{CURED}\nlasting=irq-affinity\nrun measured onbeat measure -a 2 -D 5s -b 30ms -q\n\
         cured 30ms 10m --segment 5s --yes"
    );
    let first = script("plant_storm", &first);
    vec![
        UndoScene { faults: true, ..UndoScene::new("cure-storm", &first, storm) },
        // The second cure is proven at a higher level, and a host at work stretches each run.
        scene("cure-two", "plant_thread\nplant_storm", "20m", "--yes", two),
        scene("cure-doubling", "plant_doubling", "10m", "", doubling),
        scene("cure-incurable", "plant_incurable", "10m", "", incurable),
        // Late cycles of a program count; its thread sleeps until its next period.
        scene("cure-program", "plant_storm", "15m", "--yes -- onbeat measure -a 2 -i 10ms -D 5m -q", program),
        UndoScene::new("cure-clean", &clean, unharmed),
    ]
}

const CURED: &str = include_str!("../../guest/cured.sh");

/// Time limit of `cure-clean`, and the additional time for the undo and the report, in ms.
const TIME_OF_CLEAN: i64 = 300_000;
const BESIDES: i64 = 30_000;

/// Checks that without a planted fault it ends in its time, with any result.
fn unharmed(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    let took = replies[0].number("cure.ms")?;
    require(took < TIME_OF_CLEAN + BESIDES, || format!("it took {took} ms: {}", told.joined_lines()))?;
    Ok(told.lines)
}

fn storm(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    told.require_kept(&["irq-affinity"])?;
    exit(&replies[0], "measured", 3)?;
    exit(&replies[0], "export", 0)?;
    Ok(told.lines)
}

fn two(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    told.require_kept(&["irq-affinity", "user_spin ("])?;
    Ok(told.lines)
}

fn doubling(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    told.require_kept(&[])?;
    let step = told.steps.iter().find(|step| step.change == "vmstat-interval");
    let step =
        step.ok_or_else(|| format!("what doubles the fault was not tried: {}", told.joined_lines()))?;
    require(step.verdict == "worse", || {
        format!("what doubles the fault is {}: {}", step.verdict, told.joined_lines())
    })?;
    told.require_late()?;
    Ok(told.lines)
}

fn incurable(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    told.require_kept(&[])?;
    require(told.remaining.contains("fault_ipi"), || {
        format!("what remains is not named: {}", told.joined_lines())
    })?;
    told.require_late()?;
    Ok(told.lines)
}

fn program(replies: &[Reply], machine: &Machine) -> Measured {
    let told = CureTold::of(&replies[0], machine)?;
    told.require_kept(&["irq-affinity"])?;
    let markdown = replies[0].file("markdown")?;
    require(markdown.starts_with("# Cycles of onbeat within 30 ms"), || format!("the story is {markdown}"))?;
    Ok(told.lines)
}

/// A step of a story.
struct StepTold {
    change: String,
    verdict: String,
    kept: bool,
}

/// Report and effect of a cure, if both agree.
struct CureTold {
    steps: Vec<StepTold>,
    /// Remaining part, as JSON.
    remaining: String,
    code: i64,
    lines: Vec<String>,
}

impl CureTold {
    /// The story, after a check against the machine.
    fn of(reply: &Reply, machine: &Machine) -> Result<CureTold, String> {
        let story = document(reply, "story").map_err(|why| {
            let said = reply.file("cure.err").unwrap_or_default();
            format!("{why}: {}", said.lines().last().unwrap_or("nothing"))
        })?;
        text_is(&story, "/schema", "onbeat.cure/1")?;
        let steps: Vec<&Value> = story["steps"].as_array().ok_or("a story has no steps")?.iter().collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let mut told = CureTold {
            steps: steps
                .iter()
                .map(|step| StepTold {
                    change: text(&step["change"]),
                    verdict: text(&step["verdict"]),
                    kept: step["kept"] == true,
                })
                .collect(),
            remaining: story["remaining"].to_string(),
            code: reply.number("cure.exit")?,
            lines: vec![format!(
                "{} ({}) after {} s",
                text(&story["ended"]),
                text(&story["why"]),
                story["spent_ns"].as_i64().unwrap_or(0) / 1_000_000_000
            )],
        };
        told.lines.extend(steps.iter().map(|step| {
            let kept = if step["kept"] == true { "kept" } else { "undone" };
            format!(
                "{}: {}, {kept}: late {} without, {} with it, fewer in {} of {} pairs, e-value {:.1} of {}; {}",
                text(&step["change"]),
                text(&step["verdict"]),
                step["late"][0],
                step["late"][1],
                step["wins"],
                step["pairs"],
                step["e_value"].as_f64().unwrap_or(f64::NAN),
                step["level"],
                text(&step["why"])
            )
        }));
        told.check_end(&story)?;
        told.check_story(reply)?;
        told.lines.push(
            changed_as_listed(reply, machine).map_err(|why| format!("{why}; {}", told.joined_lines()))?,
        );
        Ok(told)
    }

    fn joined_lines(&self) -> String {
        self.lines.join("; ")
    }

    /// Checks the exit code against the record.
    fn check_end(&self, story: &Value) -> Result<(), String> {
        let is_held = story["ended"] == "held";
        let fits = match self.code {
            0 => is_held && story["held"] == true,
            3 | 7 => {
                !is_held && story["held"] == false && !story["why"].as_str().unwrap_or_default().is_empty()
            }
            _ => false,
        };
        require(fits, || format!("ended with exit code {}: {}", self.code, self.joined_lines()))
    }

    /// Checks that the report has each step with its result.
    fn check_story(&self, reply: &Reply) -> Result<(), String> {
        let (markdown, page) = (reply.file("markdown")?, reply.file("page")?);
        for step in &self.steps {
            let name = step.change.replace('_', "\\_");
            let told = markdown.lines().any(|line| {
                line.contains(&name) && line.contains(": kept") == step.kept && line.starts_with('#')
            });
            require(told, || format!("the story does not tell what became of {}: {markdown}", step.change))?;
            let first = step.change.split([' ', '(']).next().unwrap_or_default();
            require(page.contains(first), || format!("the page lacks {}", step.change))?;
        }
        Ok(())
    }

    /// Checks that exactly these changes are kept, each by the beginning of its name.
    fn require_kept(&self, wanted: &[&str]) -> Result<(), String> {
        let kept: Vec<&str> =
            self.steps.iter().filter(|step| step.kept).map(|step| step.change.as_str()).collect();
        let is_there = |word: &&str| kept.iter().any(|change| change.starts_with(word));
        require(kept.len() == wanted.len() && wanted.iter().all(is_there), || {
            format!("kept {kept:?} instead of {wanted:?}: {}", self.joined_lines())
        })
    }

    /// The fault is still there.
    fn require_late(&self) -> Result<(), String> {
        require(self.code == 3, || format!("exit code {} instead of 3: {}", self.code, self.joined_lines()))
    }
}

/// Checks that the machine differs by the list of `tune status`, and after its undo not at all.
fn changed_as_listed(reply: &Reply, machine: &Machine) -> Result<String, String> {
    exit(reply, "undo", 0)?;
    require(reply.value("left")?.trim().is_empty(), || "something of onbeat's is left running".to_string())?;
    let [before, after, undone] = ["before", "after", "undone"].map(|label| state(reply, label, machine));
    let (before, after, idle) = (before?, after?, idle(reply)?);
    let listed = changes(reply, "status.out")?;
    let (differing, line) = compared(&before, &after, &idle);
    let (of_listed, others): (Vec<ChangedKey>, Vec<ChangedKey>) =
        differing.into_iter().partition(|key| is_listed(key, &listed, &after));
    none_left(&others, "besides what was kept")?;
    require(listed.is_empty() == of_listed.is_empty(), || {
        format!("{} changes are listed, and {} differ", listed.len(), of_listed.len())
    })?;
    let (left, _) = compared(&before, &undone?, &idle);
    none_left(&left, "after tune undo")?;
    Ok(format!("{line}; {} of {} changes that are listed", of_listed.len(), listed.len()))
}

/// True if a change caused it: a file next to the written one follows it, and so does the thread of
/// an interrupt.
fn is_listed(key: &ChangedKey, listed: &[ListedChange], after: &MachineState) -> bool {
    let folder =
        |path: &str| path.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
    let task = key.key.strip_prefix("task:").and_then(|rest| rest.rsplit_once('/'));
    listed.iter().any(|change| match task {
        Some((task, _)) => {
            let irq = change.path.strip_prefix("/proc/irq/").and_then(|rest| rest.split('/').next());
            let thread =
                irq.is_some_and(|irq| after.of_task(task, "name").starts_with(&format!("irq/{irq}-")));
            thread || change.key == format!("task:{task}")
        }
        None => folder(&change.path).is_some_and(|folder| key.key.starts_with(&folder)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(steps: &[(&str, bool)], code: i64) -> CureTold {
        let step = |(change, kept): &(&str, bool)| StepTold {
            change: (*change).to_string(),
            verdict: if *kept { "better" } else { "worse" }.to_string(),
            kept: *kept,
        };
        let steps = steps.iter().map(step).collect();
        CureTold { steps, remaining: String::new(), code, lines: Vec::new() }
    }

    #[test]
    fn exactly_what_cures_is_to_be_kept() {
        let one = told(&[("vmstat-interval", false), ("irq-affinity", true)], 0);
        assert!(one.require_kept(&["irq-affinity"]).is_ok() && one.require_kept(&[]).is_err());
        assert!(one.require_kept(&["irq-affinity", "user_spin ("]).is_err());
        assert!(told(&[("swap", true)], 0).require_kept(&["irq-affinity"]).is_err());
    }

    #[test]
    fn the_exit_code_has_to_fit_the_record() {
        let end = |ended: &str, held: bool, why: &str, code| {
            told(&[], code)
                .check_end(&serde_json::json!({ "ended": ended, "held": held, "why": why }))
                .is_ok()
        };
        assert!(end("held", true, "", 0) && end("no-gain", false, "x", 3) && end("time", false, "x", 7));
        assert!(!end("held", true, "", 3) && !end("held", false, "", 0) && !end("time", false, "x", 0));
        assert!(!end("time", false, "", 3) && !end("time", false, "x", 1));
    }

    #[test]
    fn only_what_a_kept_change_writes_may_differ() {
        let status = r#"{ "schema": "onbeat.plan/1", "changes": [ { "key": "irq:24:smp_affinity_list",
            "path": "/proc/irq/24/smp_affinity_list", "rule": "irq-affinity", "wanted": "0-1", "risk": "low",
            "lasts": "runtime", "state": "applied", "why": "" } ] }"#;
        let mut reply = Reply::default();
        reply.files.insert("status.out".into(), Some(status.into()));
        let listed = changes(&reply, "status.out").unwrap();
        let after =
            MachineState::parse("task:7/70/name\t=irq/24-nvme\ntask:8/80/name\t=irq/2-nvme\n").unwrap();
        let is = |key: &str| {
            let key = ChangedKey { key: key.to_string(), before: None, after: None };
            is_listed(&key, &listed, &after)
        };
        assert!(is("/proc/irq/24/effective_affinity") && is("task:7/70/mask"));
        assert!(
            !is("/proc/irq/2/smp_affinity") && !is("task:8/80/mask") && !is("/proc/sys/vm/stat_interval")
        );
    }
}
