//! Hostile names in all writers: no output format lets a name control its viewer.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

use crate::audit::{junit, page as audit_page, text as audit};
use crate::boundary::for_terminal;
use crate::bounds::last_words::BoundsStyle;
use crate::bounds::text as bounds;
use crate::compare::page::Versus;
use crate::compare::text as compare;
use crate::fixture::{self, ATTACK, hostile, poison};
use crate::hunt::fixture as hunts;
use crate::hunt::perfetto;
use crate::hunt::windows::Windows;
use crate::last_lines::RunPlace;
use crate::map::tests::{four, map_of, thread};
use crate::palette::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::run::table;
use crate::{Input, ReportFormat, hunt, render};
use bundle::foreign;
use facts::differences::Difference;
use model::run::Run;
use model::text::{harmless, steers};
use model::vocabulary::Quantity;
use rules::audit::audit as judged;
use stats::compare::{CompareQuestion, Metric, compare as compared};
use stats::pair::verdict::Design;
use trace::window::Window;

/// A thread's name has at most 15 bytes.
const COMM: &str = "\u{1b}c\u{9b}J\u{202e}\u{85}";

fn assert_harmless(what: &str, text: &str) {
    let found = text.chars().position(|c| c != '\n' && steers(c));
    if let Some(at) = found {
        let near: String = text.chars().skip(at.saturating_sub(60)).take(120).collect();
        panic!("{what}: {near:?}");
    }
}

/// Checks that JSON passes the last step with the same values.
fn assert_json(what: &str, json: &str) {
    let safe = harmless(json);
    assert_harmless(what, &safe);
    let values = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(values(&safe), values(json), "{what}");
    assert!(json.contains("\\u001b"), "{what} has no attack in it: {json:.200}");
}

/// Hunt whose every string is the attack.
fn hunt() -> Run {
    let mut value = serde_json::to_value(hunts::run()).unwrap();
    poison(&mut value, ATTACK);
    let run: Run = serde_json::from_value(value).unwrap();
    Run { command: "hunt".into(), ..run }
}

fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            into.extend(value.is_string().then(|| key.clone()));
            keys(value, into);
        }),
        _ => {}
    }
}

fn poison_key(value: &mut Value, wanted: &str, attack: &str) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| poison_key(value, wanted, attack)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if key == wanted => *text = attack.into(),
            _ => poison_key(value, wanted, attack),
        }),
        _ => {}
    }
}

/// Windows of [`hunts::run`] with every string replaced by the attack, except the words of the
/// format.
fn windows() -> Vec<Window> {
    let one = |window: Window| {
        let mut value = serde_json::to_value(&window).unwrap();
        let mut names = BTreeSet::new();
        keys(&value, &mut names);
        let mut poisoned = 0;
        for name in names {
            let mut tried = value.clone();
            poison_key(&mut tried, &name, COMM);
            if serde_json::from_value::<Window>(tried.clone()).is_ok() {
                (value, poisoned) = (tried, poisoned + 1);
            }
        }
        assert!(poisoned > 0);
        serde_json::from_value(value).unwrap()
    };
    hunts::cases().into_iter().map(|case| one(case.window)).collect()
}

#[test]
fn a_run_through_every_form() {
    let sample = hostile();
    let refused = foreign::cyclictest_hist::write(&sample.run).unwrap_err();
    assert_harmless("refusal of a quantity", &refused.message);
    let mut wakeups = sample.run.clone();
    wakeups.cpus.iter_mut().for_each(|cpu| cpu.measures = Quantity::default().into());
    for (what, text) in [
        ("table", table::render(&sample.run, 80, false)),
        ("brief table", table::brief(&sample.run, 80, false)),
        ("csv", render(&[sample.input()], ReportFormat::Csv).unwrap()),
        ("svg", render(&[sample.input()], ReportFormat::Svg).unwrap()),
        ("html", render(&[sample.input()], ReportFormat::Html).unwrap()),
        ("html of two", render(&[sample.input(), sample.input()], ReportFormat::Html).unwrap()),
        // Its columns are separated by tabs.
        ("histogram", foreign::cyclictest_hist::write(&wakeups).unwrap().replace('\t', " ")),
    ] {
        assert_harmless(what, &text);
    }
    assert_json("json", &render(&[sample.input()], ReportFormat::Json).unwrap());
    let context = foreign::CyclictestContext {
        command_line: ATTACK.into(),
        node_name: ATTACK.into(),
        ..Default::default()
    };
    let json = foreign::cyclictest_json::write(&wakeups, &context).unwrap();
    assert_json("cyclictest's json", &json);
}

#[test]
fn a_hunt_through_every_form() {
    let (run, traced) = (hunt(), windows());
    for width in [60, 80, 160] {
        assert_harmless("hunt", &hunt::text::render(&run, width, false));
        assert_harmless("brief hunt", &hunt::text::brief(&run, width, false));
    }
    let mut windows = Windows::default();
    traced.iter().for_each(|window| windows.add(window.clone()));
    let sample = hostile();
    let input = Input { run: &run, windows: Some(&windows), ..sample.input() };
    assert_harmless("page of a hunt", &render(&[input], ReportFormat::Html).unwrap());
    // Also the names in the windows, with valid spikes.
    let honest = hunts::run();
    let input = Input { run: &honest, windows: Some(&windows), ..sample.input() };
    assert_harmless("page with hostile windows", &render(&[input], ReportFormat::Html).unwrap());
    let traced = perfetto::Traced { title: ATTACK, run: &run, windows: &traced };
    let trace = perfetto::render(&[traced]);
    assert_harmless("perfetto", &trace);
    serde_json::from_str::<Value>(&trace).unwrap();
}

#[test]
fn answers_through_every_form() {
    let mut sample = hostile();
    sample.ask(None);
    let remarks = [ATTACK.to_owned()];
    let found = sample.bounds.as_ref().unwrap();
    let place = RunPlace { path: "run", newest: false, fresh: false, program: "onbeat" };
    let style = BoundsStyle { width: 80, color: false, verbose: true };
    assert_harmless("bounds", &bounds::text(found, ATTACK, None, place, &remarks, style));
    assert_harmless("brief bounds", &bounds::brief(found, ATTACK, None, place, style));
    let question =
        CompareQuestion { metric: Metric::Rate, limit: None, design: Design::Unpaired, margin: None };
    let mut answer = compared(&[&sample.series], &[&sample.series], &question);
    answer.a[0].title = ATTACK.into();
    answer.b[0].title = ATTACK.into();
    let differing = [Difference { what: ATTACK.into(), a: ATTACK.into(), b: ATTACK.into() }];
    assert_harmless("compare", &compare::text(&answer, Some(&differing), &remarks, 80, true));
    let last = super::compare::last_words::render(&answer, Some(&differing), 80, false);
    assert_harmless("answer of a comparison", &last);
    let (a, b) = (vec![&sample.series], vec![&sample.series]);
    let versus =
        Versus { compared: &answer, texts: None, differing: Some(&differing), remarks: &remarks, a, b };
    assert_harmless(
        "page of a comparison",
        &super::compare::page::html(&versus, &serde_json::to_string(&answer).unwrap()),
    );
}

#[test]
fn a_machine_through_every_form() {
    let evil = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{85}\u{61c}\u{2028}";
    let mut machine = four();
    machine.edit(&format!("/proc/sys/kernel/osrelease: {evil}"));
    machine.edit(&format!("/sys/kernel/irq/102/actions: {evil}"));
    machine.edit(&format!("/sys/devices/system/clocksource/clocksource0/current_clocksource: {evil}"));
    machine.edit(&format!("/sys/devices/virtual/workqueue/cpumask: {evil}"));
    machine.edit(&format!("cmdline + isolcpus={evil}"));
    machine.edit(&thread(9, evil, 0, 70, "2"));
    let (survey, intent) = machine.survey();
    let (mut found, map) = (judged(&survey, &intent), map_of(&machine));
    for finding in &mut found.findings {
        (finding.value, finding.wanted) = (ATTACK.into(), ATTACK.into());
        (finding.reason, finding.fix) = (ATTACK.into(), ATTACK.into());
    }
    found.host.release = ATTACK.into();
    assert_harmless("audit", &audit::render(&found, None, 80, false, true));
    assert_harmless("map", &super::map::text::render(&map, 80, false));
    assert_harmless("junit", &junit::render(&found));
    assert_harmless(
        "page of an audit",
        &audit_page::html(&found, &map, &audit_page::AuditAids::default()).unwrap(),
    );
    assert_json("audit's json", &model::error::json_pretty(&found).unwrap());
}

/// Output of every writer of a run.
fn forms(run: &Run) -> Vec<(&'static str, String)> {
    let sample = hostile();
    let input = Input { run, ..sample.input() };
    let with_plot = |format| render(&[input], format).unwrap_or_default();
    vec![
        ("text", for_terminal(table::render(run, 80, true), true)),
        ("hunt", for_terminal(hunt::text::render(run, 80, true), true)),
        ("answer", for_terminal(hunt::last_words::render(run, None, 80, false), false)),
        ("html", with_plot(ReportFormat::Html)),
        ("html of two", render(&[input, input], ReportFormat::Html).unwrap_or_default()),
        ("svg", with_plot(ReportFormat::Svg)),
        ("csv", with_plot(ReportFormat::Csv)),
        ("json", harmless(&with_plot(ReportFormat::Json)).into_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if option_env!("ONBEAT_NIGHT").is_some() { 3 } else { 1 }))]
    #[test]
    fn no_field_steers_a_viewer(attack in "[\\x00-\\x1f\\x7f-\\x9f\u{200b}\u{200e}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{feff}]{1,4}") {
        for honest in [hunts::run(), fixture::noisy().run] {
            let value = serde_json::to_value(&honest).unwrap();
            let mut names = BTreeSet::new();
            keys(&value, &mut names);
            prop_assert!(names.contains("command") && names.len() > 20, "{:?}", names);
            for name in names {
                let mut poisoned = value.clone();
                poison_key(&mut poisoned, &name, &format!("a{attack}b"));
                let Ok(run) = serde_json::from_value::<Run>(poisoned) else { continue };
                for (what, text) in forms(&run) {
                    let own = |text: &str| text.replace(['\n', '\t'], "");
                    let bare = RESETS.iter().fold(own(&text), |text, style| text.replace(style.as_str(), ""));
                    assert_harmless(&format!("{name} in {what}"), &bare);
                }
            }
        }
    }
}

/// Escape sequences of the project's colours.
static RESETS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let styles = [RED, GREEN, YELLOW, DIM, BOLD];
    styles
        .iter()
        .flat_map(|style| [style.to_string(), format!("{style:#}")])
        .filter(|text| !text.is_empty())
        .collect()
});
