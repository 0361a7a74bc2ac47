//! A page of every command that writes one: by the command if the repository has its input,
//! otherwise from a synthetic record.

use report::curing::fixture::{cured, untouched};
use report::curing::page::CureStory;
use report::suite::page::SuiteStory;
use report::watch::fixture::summary;
use rules::checks::fixture::ExampleProgram;
use serde_json::Value;

use super::{fault, folder};
use crate::built::program;
use crate::tools::{self, Result, Tool, root};
use model::cure::CureRun;
use model::suite::{SuiteLeftOut, SuitePhase, SuiteRun};
use model::units::Nanos;

/// Placeholder for the output file of a command.
const FILE: &str = "FILE.html";
/// Pages made from files of the repository: name, and the command that writes it.
const PAGES: [(&str, &[&str]); 5] = [
    ("measure", &["report", "tests/fixtures/runs/measured", "-o", FILE]),
    ("bounds", &["report", "tests/fixtures/runs/measured", "--limit", "100us", "-o", FILE]),
    ("compare", &["compare", "tests/fixtures/runs/measured", "tests/fixtures/runs/hunt", "-o", FILE]),
    ("audit", &["audit", "-q", "--bundle", "tests/corpus/debian-6.12-rt", "--cpus", "1", "--html", FILE]),
    (
        "audit-hunt",
        &[
            "audit",
            "-q",
            "--bundle",
            "tests/corpus/debian-6.12",
            "--hunt",
            "tests/fixtures/runs/hunt",
            "--html",
            FILE,
        ],
    ),
];

/// Each page with its name; that of a hunt is made already.
pub fn all(hunt: &str) -> Vec<(&'static str, Result<String>)> {
    let mut pages = vec![("hunt", Ok(hunt.to_owned()))];
    pages.extend(PAGES.map(|(name, line)| (name, written(name, line))));
    pages.extend([
        ("prove", prove()),
        ("check", check()),
        ("watch", watch(2)),
        ("watch-256", watch(256)),
        ("suite", suite()),
        ("cure", cure(&cured())),
        ("cure-in-vain", cure(&untouched())),
    ]);
    pages
}

/// A pair of runs, of which the second is the first under another name.
fn prove() -> Result<String> {
    const RUN: &str = "tests/fixtures/runs/measured";
    let (from, again) = (root().join(RUN), tools::target("browser/measured-again")?);
    let text = String::from_utf8_lossy(&tools::read(&from.join("run.json"))?).into_owned();
    let mut run: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    run["id"] = "again".into();
    run["started"] = "2026-11-22T06:38:37Z".into();
    tools::write(&again.join("run.json"), run.to_string())?;
    tools::write(&again.join("blocks.jsonl"), tools::read(&from.join("blocks.jsonl"))?)?;
    let again = again.display().to_string();
    written("prove", &["prove", "--limit", "1ms", "--page", FILE, "--across-boots", RUN, "--", &again])
}

/// A program with a mistake.
fn check() -> Result<String> {
    let rule = rules::checks::ALL.first().ok_or("there is no check")?;
    report::check::page::html(&ExampleProgram::of(rule.examples.fires).check())
        .map_err(|error| error.to_string())
}

fn watch(cpus: u32) -> Result<String> {
    let mut of = summary(cpus);
    of.worst[0].wakeup.culprit.name = "a device's interrupt: edu".into();
    of.worst[0].wakeup.culprit.rule = Some("device-interrupt".into());
    report::watch::page::html(&of).map_err(|error| error.to_string())
}

fn cure(record: &CureRun) -> Result<String> {
    let story = CureStory { record, before: Vec::new(), after: Vec::new(), maps: [None, None] };
    let json = serde_json::to_string(record).map_err(|error| error.to_string())?;
    Ok(report::curing::page::html(&story, &json))
}

/// Three models under three loads, one of which failed to load.
fn suite() -> Result<String> {
    let phases = ["none", "voluntary", "full"].into_iter().flat_map(|model| {
        ["no-stress", "cpu", "hdd"].into_iter().enumerate().map(move |(at, load)| {
            let valid = (model, load) != ("full", "hdd");
            let max = Nanos(((at + model.len()) as i64) * 31_000_000);
            SuitePhase {
                id: format!("{model}/{load}"),
                model: model.into(),
                load: load.into(),
                kernel: "6.12.0".into(),
                valid,
                why: if valid { String::new() } else { "hdd did not load".into() },
                bundle: format!("phases/{model}-{load}"),
                samples: 100_000,
                p50_ns: valid.then_some(Nanos(4_000)),
                p99_ns: valid.then_some(Nanos(40_000)),
                p9999_ns: valid.then_some(Nanos(max.0 / 2)),
                max_ns: valid.then_some(max),
                ..SuitePhase::default()
            }
        })
    });
    let suite = SuiteRun {
        name: "enea".into(),
        title: "preemption models under single loads and all of them".into(),
        complete: true,
        cpus: "0-3".into(),
        load_cpus: "0-3".into(),
        phases: phases.collect(),
        left_out: vec![SuiteLeftOut { id: "rt".into(), why: "it takes another kernel".into() }],
        ..SuiteRun::default()
    };
    let story = SuiteStory { suite: &suite, runs: Vec::new(), folder: "suite" };
    let json = serde_json::to_string(&suite).map_err(|error| error.to_string())?;
    Ok(report::suite::page::html(&story, &json))
}

/// Output of a command.
fn written(name: &str, line: &[&str]) -> Result<String> {
    let file = folder()?.join(format!("{name}.made.html"));
    let to = file.display().to_string();
    let line = line.iter().map(|word| if *word == FILE { to.as_str() } else { *word });
    // A comparison without a verdict, or a failed audit, has a non-zero exit code.
    Tool::new(program("onbeat")?).args(line).dir(&root()).quiet().capture()?;
    Ok(String::from_utf8_lossy(&tools::read(&file)?).into_owned())
}

/// A page of spikes on two CPUs.
pub fn hunt() -> Result<String> {
    let bundle = folder()?.join("bundle");
    let source = root().join("tests/fixtures/runs/hunt");
    for name in ["blocks.jsonl", "events/spikes.jsonl", "run.json"] {
        let to = bundle.join(name);
        let text = String::from_utf8_lossy(&tools::read(&source.join(name))?).into_owned();
        let text = if name == "run.json" { on_two_cpus(&text)? } else { text };
        std::fs::create_dir_all(to.parent().unwrap_or(&bundle)).map_err(|error| fault(&to, &error))?;
        std::fs::write(&to, text).map_err(|error| fault(&to, &error))?;
    }
    let file = folder()?.join("hunt.html");
    let paths = [bundle.display().to_string(), file.display().to_string()];
    Tool::new(program("onbeat")?).args(["report", &paths[0], "-o", &paths[1]]).dir(&root()).show()?;
    Ok(String::from_utf8_lossy(&tools::read(&file)?).into_owned())
}

fn on_two_cpus(run: &str) -> Result<String> {
    let mut run: Value = serde_json::from_str(run).map_err(|error| format!("run.json: {error}"))?;
    run["spikes"][1]["cpu"] = 0.into();
    Ok(run.to_string())
}
