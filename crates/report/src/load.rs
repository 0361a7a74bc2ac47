//! Loads: their work, and the check that they loaded the CPUs.

use crate::aligned::write_rows;
use crate::palette::{Palette, RED};
use crate::prose::Shortfall;
use crate::words::{clean, seconds, several, wrapped};
use model::load::LoadRun;
use model::run::Run;
use model::units::{CpuSet, named_cpus};

/// Table with a row per load, and below it the loads that failed their check.
pub fn render(loads: &[LoadRun], columns: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut rows = vec![["load", "CPUs", "rate", "processor time", "loaded"].map(str::to_owned)];
    rows.extend(loads.iter().map(cells));
    let mut page = String::new();
    write_rows(&mut page, &rows, palette);
    for load in loads.iter().filter(|load| !load.held) {
        let sentence = format!("! {} did not load all the time: {}", clean(&load.spec), clean(&load.why));
        wrapped(&mut page, &palette.paint(RED, &sentence), columns);
    }
    page
}

fn cells(load: &LoadRun) -> [String; 5] {
    let time = load.cpu_s.zip(load.span_ns).filter(|(_, span)| span.0 > 0);
    [
        clean(&load.spec),
        clean(&load.cpus),
        rate(load),
        time.map_or_else(|| "not known".into(), |(cpu, span)| format!("{:.2} CPUs", cpu / span.as_secs())),
        if load.held { "yes" } else { "no" }.into(),
    ]
}

/// Work of a load per second: `1.2 G bytes/s`; empty for a program that counts none.
fn rate(load: &LoadRun) -> String {
    if load.unit.is_empty() {
        return String::new();
    }
    let steps = [(1e9, "G "), (1e6, "M "), (1e3, "k ")];
    let step = steps.into_iter().find(|(step, _)| load.rate_per_s >= *step).unwrap_or((1.0, ""));
    format!("{:.1} {}{}/s", load.rate_per_s / step.0, step.1, clean(&load.unit))
}

/// Loads of a run as one of its conditions; `None` without loads.
pub fn condition(run: &Run) -> Option<String> {
    let loads = &run.loads;
    let cpus = loads.first().map(|load| clean(&load.cpus))?;
    let named = |load: &LoadRun| match rate(load) {
        rate if rate.is_empty() => clean(&load.spec),
        rate => format!("{} ({rate})", clean(&load.spec)),
    };
    let held =
        if loads.iter().all(|load| load.held) { "loading all the time" } else { "not loading all the time" };
    let named: Vec<String> = loads.iter().map(named).collect();
    let which = if cpus.contains([',', '-']) { "CPUs" } else { "CPU" };
    Some(format!("{} on {which} {cpus}, {held}", named.join(", ")))
}

/// Loads of several runs as one condition; with their rates only for a single run.
pub fn condition_of_all(runs: &[&Run]) -> Option<String> {
    let [first, others @ ..] = runs else { return None };
    let all: Vec<LoadRun> = runs.iter().flat_map(|run| run.loads.iter().cloned()).collect();
    let mut named = first.loads.clone();
    if !others.is_empty() {
        let held = all.iter().all(|load| load.held);
        named.iter_mut().for_each(|load| (load.unit, load.held) = (String::new(), held));
    }
    condition(&Run { loads: named, ..Run::default() }).map(|loads| format!("load: {loads}"))
}

/// Sentence on a load that did not load all the time.
pub fn sentence(load: &LoadRun) -> String {
    format!("the load {} did not load all the time: {}", clean(&load.spec), clean(&load.why))
}

/// That the loads kept onbeat's own thread off its CPU, and what to do about it; `None` where it
/// looked at them in time, or has other CPUs.
pub fn kept_off(run: &Run) -> Option<Shortfall> {
    let shared = |load: &&LoadRun| {
        let cpus = CpuSet::parse(&load.cpus).unwrap_or_default();
        run.plan.housekeeping.iter().any(|cpu| cpus.contains(*cpu))
    };
    let load = run.loads.iter().filter(shared).max_by_key(|load| load.unseen_ns)?;
    let late = seconds(load.unseen_ns?.as_secs());
    let processes = load.proof.iter().find(|proof| proof.what == "processes running");
    let processes = match processes.map(|proof| proof.floor as u64) {
        Some(many) => format!("{} of the load {}", several(many, "process", "processes"), clean(&load.spec)),
        None => format!("the load {}", clean(&load.spec)),
    };
    let less = match load.count {
        0 | 1 => String::new(),
        many => format!(", or reduce it (--load {}:{})", clean(&load.name), (many / 4).max(1)),
    };
    let own: CpuSet = run.plan.housekeeping.iter().copied().collect();
    Some(Shortfall {
        what: format!("onbeat's own thread was up to {late} late, with {processes} on {}", named_cpus(own)),
        remedy: format!(
            "give it another CPU with --housekeeping CPU, keep the load off that CPU with --load-cpus{less}"
        ),
    })
}

/// Row per kind of load for the list that `onbeat load` prints: its SPEC with the defaults, and its
/// title.
pub fn list(kinds: &[(String, &str)], columns: usize) -> String {
    let width = kinds.iter().map(|(spec, _)| spec.chars().count()).max().unwrap_or(0);
    let mut page = String::new();
    for (spec, title) in kinds {
        crate::words::filled(&mut page, &format!("  {spec:<width$}  "), title, width + 4, columns);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::LoadProof;
    use model::units::{Cpu, Nanos};

    fn load(spec: &str, held: bool) -> LoadRun {
        LoadRun {
            name: spec.into(),
            spec: spec.into(),
            cpus: "0-1".into(),
            unit: "bytes".into(),
            rate_per_s: 2.5e9,
            cpu_s: Some(19.8),
            span_ns: Some(Nanos(10_000_000_000)),
            held,
            why: if held { String::new() } else { "it was\u{1b}[31m stopped".into() },
            ..LoadRun::default()
        }
    }

    #[test]
    fn a_load_that_did_not_load_is_named_with_its_reason() {
        let page = render(&[load("mem:2x1G", true), load("hdd", false)], 100, false);
        assert!(page.contains("mem:2x1G   0-1  2.5 G bytes/s       1.98 CPUs     yes"), "{page}");
        assert!(
            page.contains("! hdd did not load all the time: it was") && !page.contains('\u{1b}'),
            "{page}"
        );
    }

    #[test]
    fn a_load_that_keeps_onbeat_off_its_cpu_is_named_with_the_remedy() {
        let running = LoadProof { what: "processes running".into(), value: Some(410.0), floor: 410.0 };
        let unseen = Some(Nanos(26_000_000_000));
        let load = LoadRun {
            count: 10,
            name: "messaging".into(),
            unseen_ns: unseen,
            proof: vec![running],
            ..load("messaging", true)
        };
        let mut run = Run { loads: vec![load], ..Run::default() };
        assert_eq!(kept_off(&run), None, "it is elsewhere");
        run.plan.housekeeping = vec![Cpu(1)];
        assert_eq!(
            kept_off(&run).expect("late").to_string(),
            "onbeat's own thread was up to 26.0 s late, with 410 processes of the load messaging on CPU 1: \
             give it another CPU with --housekeeping CPU, keep the load off that CPU with --load-cpus, or \
             reduce it (--load messaging:2)"
        );
        run.loads[0].unseen_ns = None;
        assert_eq!(kept_off(&run), None, "it came in time");
    }

    #[test]
    fn a_run_names_its_loads_among_its_conditions() {
        let run = |loads| Run { loads, ..Run::default() };
        assert_eq!(condition(&run(vec![])), None);
        let text = condition(&run(vec![load("mem", true), load("hdd", false)])).unwrap();
        assert_eq!(text, "mem (2.5 G bytes/s), hdd (2.5 G bytes/s) on CPUs 0-1, not loading all the time");
    }
}
