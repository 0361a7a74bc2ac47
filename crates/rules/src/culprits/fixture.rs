//! The examples of culprit rules as spikes: the language is explained on `Examples`.

use super::context::{RunContext, StealInterval};
use super::rule::SpikeExamples;
use model::keyword::Keyword;
use model::run::{Behind, Host, Integrity, Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};

/// Spikes of a synthetic run.
#[derive(Default)]
pub struct Scene {
    pub spikes: Vec<Spike>,
    pub host: Host,
    pub integrity: Vec<Integrity>,
    pub cpus: Vec<Cpu>,
    pub steal: Vec<StealInterval>,
}

impl Scene {
    pub fn of(text: &str) -> Scene {
        let mut scene = Scene { cpus: vec![Cpu(0), Cpu(1)], ..Scene::default() };
        let mut spike = Spike { cpu: Cpu(1), expected_ns: Nanos(1_000_000_000), ..Spike::default() };
        (spike.victim.comm, spike.victim.prio) = ("onbeat".into(), 19);
        let mut copies = vec![(Cpu(1), 0)];
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (word, pairs) = words(line);
            match word {
                "victim" => who(&mut spike.victim, &pairs),
                "host" => host(&mut scene.host, &pairs),
                "integrity" => scene.integrity.push(integrity(&pairs)),
                "stolen" => scene.steal.push(stolen(&pairs)),
                "unexplained" => spike.unexplained_ns = Nanos(number(&pairs, "ns").unwrap()),
                "again" => copies = again(&pairs),
                kind => spike.slices.push(slice(kind, &pairs)),
            }
        }
        let latency = spike.unexplained_ns.0 + spike.slices.iter().map(|slice| slice.ns.0).sum::<i64>();
        spike.latency_ns = Nanos(latency);
        for (cpu, after) in copies {
            let expected = Nanos(spike.expected_ns.0 + after);
            let actual = Nanos(expected.0 + latency);
            scene.spikes.push(Spike { cpu, expected_ns: expected, actual_ns: actual, ..spike.clone() });
        }
        scene
    }

    /// The run, as rules see it.
    pub fn run(&self) -> RunContext<'_> {
        RunContext {
            integrity: &self.integrity,
            cpus: &self.cpus,
            steal: &self.steal,
            ..RunContext::of_machine(&self.host)
        }
    }

    /// IDs of the rules that match slices of it.
    pub fn rules(mut self) -> Vec<String> {
        let mut spikes = std::mem::take(&mut self.spikes);
        let found = super::tally::rank_all(&mut spikes, &self.run());
        found.culprits.into_iter().filter_map(|culprit| culprit.rule).collect()
    }
}

impl SpikeExamples {
    /// Both, for checks that apply to each.
    pub fn both(&self) -> [&'static str; 2] {
        [self.fires, self.silent]
    }
}

type Pairs<'a> = Vec<(&'a str, &'a str)>;

fn words(line: &str) -> (&str, Pairs<'_>) {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap();
    (first, words.map(|pair| pair.split_once('=').unwrap_or_else(|| panic!("{pair} in {line}"))).collect())
}

fn value<'a>(pairs: &Pairs<'a>, key: &str) -> Option<&'a str> {
    pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1)
}

fn number(pairs: &Pairs, key: &str) -> Option<i64> {
    value(pairs, key).map(|text| text.parse().unwrap())
}

fn host(host: &mut Host, pairs: &Pairs) {
    for &(key, value) in pairs {
        match key {
            "virtual" => host.virtualization = value.into(),
            "preempt" => host.preempt = value.into(),
            "machine" => host.machine = value.into(),
            other => panic!("host has no {other}"),
        }
    }
}

fn integrity(pairs: &Pairs) -> Integrity {
    Integrity {
        kind: value(pairs, "kind").unwrap().into(),
        cpu: number(pairs, "cpu").map(|cpu| Cpu(cpu as u32)),
        detail: value(pairs, "detail").unwrap_or_default().into(),
        invalidates: false,
    }
}

/// Steal in the second of the spike.
fn stolen(pairs: &Pairs) -> StealInterval {
    let cpu = Cpu(number(pairs, "cpu").unwrap() as u32);
    let (from, to) = (Nanos(500_000_000), Nanos(1_500_000_000));
    StealInterval { cpu, from, to, ns: Nanos(number(pairs, "ns").unwrap()) }
}

fn again(pairs: &Pairs) -> Vec<(Cpu, i64)> {
    let (times, every) = (number(pairs, "times").unwrap(), number(pairs, "every").unwrap());
    let cpus: Vec<u32> = value(pairs, "cpus").unwrap().split(',').map(|cpu| cpu.parse().unwrap()).collect();
    (0..times).flat_map(|n| cpus.iter().map(move |&cpu| (Cpu(cpu), n * every))).collect()
}

fn slice(kind: &str, pairs: &Pairs) -> Slice {
    assert!(SliceKind::named(kind).is_some(), "{kind} is no kind of slice");
    let mut slice = Slice { kind: kind.into(), ns: Nanos(number(pairs, "ns").unwrap()), ..Slice::default() };
    let stack = value(pairs, "stack").unwrap_or_default();
    slice.stack = stack.split('<').filter(|frame| !frame.is_empty()).map(str::to_owned).collect();
    slice.evidence = value(pairs, "evidence").unwrap_or_default().replace('_', " ");
    let own = ["ns", "stack", "evidence"];
    let rest: Pairs = pairs.iter().copied().filter(|pair| !own.contains(&pair.0)).collect();
    who(&mut slice.who, &rest);
    slice
}

fn who(who: &mut Who, pairs: &Pairs) {
    for &(key, value) in pairs {
        match key {
            "comm" => who.comm = value.into(),
            "pid" => who.pid = value.parse().unwrap(),
            "prio" => who.prio = value.parse().unwrap(),
            "function" => who.function = value.into(),
            "module" => who.module = value.into(),
            "irq" => who.irq = value.into(),
            "from" => who.from_cpu = Some(Cpu(value.parse().unwrap())),
            "asked" => who.asked_by = Some(Behind { comm: value.into(), pid: 1 }),
            "inherits" => who.inherited_from = Some(Behind { comm: value.into(), pid: 1 }),
            other => panic!("nobody has a {other}"),
        }
    }
}
