//! The examples of checks as programs: a well-written one of two threads, changed line by line.
//!
//! `thread TID key=value ...` changes a thread or adds one like thread 101 (`comm= policy= prio=
//! nice= cpus= seen= faults= majors= run= voluntary= writes= written= reads= read= fetched=
//! slack=`, `run` as a share of the window, `run` and `slack` also `unknown`); `wait TID CALL ARGS
//! times=`, `timer TID FUNCTION mode= times=`, `waker TID BY times=`, `call TID CALL ARGS times=`,
//! `remap TID times=`, `release TID BY times=` (out of the wait named last) and `fault TID page=
//! at= times=` say what it did; `mapping FROM-TO name= rights= flags= size= resident=`, `stack TID
//! resident=`, `descriptor N kind= name= moved= for= clock= set= every=`, `close N`, `growth
//! least= most= changes= back=`, `pages NODE=COUNT`, `process KEY=`, `group throttled= quota=
//! budget=`, `machine preempt= cores= runtime= release= groups= server= nodes=`, `other TID NAME
//! POLICY PRIO kernel=` are about the rest. Numbers of addresses and of arguments are hexadecimal.
//! `WHAT refused` (`smaps`, `status`, `limits`, `growth`, `group`, `pages`, `cores`, `trace`) and
//! `waits|io|counters|affinity TID refused` take something away.

use std::collections::BTreeMap;

use super::findings::{CheckCost, ProgramCheck, ProgramFinding, check, findings_of};
use super::fixture_words::{
    WINDOW, call_of, change, cpus, hex, limit, number, pairs, policy_of, refuse_of, waker_of,
};
use super::releases::Releases;
use super::rule::CheckRule;
use super::view::{CALLS, FAULT, ProgramView, REMAPPING, Recorded, WAKING};
use facts::Fact;
use facts::limits::{Capabilities, Limit, Limits};
use facts::policy_rights::{BudgetGroup, BudgetSettings, PolicyRights};
use facts::process::counters::{CallCounters, ThreadCounters};
use facts::process::descriptors::{Descriptor, DescriptorTimer, OpenKind};
use facts::process::mappings::MemoryMapping;
use facts::process::nodes::NodePages;
use facts::process::pages::StackPages;
use facts::process::status::ProcessStatus;
use facts::process::surroundings::{OtherThread, Surroundings, WakingThread};
use facts::process::waits::{Wait, Waits};
use facts::process::{Growth, ProcessFacts, ProgramThread};
use facts::sched::FairServer;
use facts::tasks::RtPolicy;
use model::vocabulary::Preempt;
use trace::activity::{Activity, ArmedTimer, FaultPlace, MadeCall};

/// A fake program and its surroundings.
#[derive(Clone)]
pub struct ExampleProgram {
    pub process: ProcessFacts,
    pub machine: Surroundings,
    pub recorded: Recorded,
    pub releases: Releases,
}

const STACK: u64 = 0x7f00_0000_0000;
const BASE: &str = "\
mapping 550000000000-550000001000 name=robot rights=r-x flags=rd,ex,lo
mapping 550000010000-550000020000 name=[heap] rights=rw- flags=rd,wr,lo size=64 resident=64
thread 101
wait 101 clock_nanosleep 1,1 times=90
timer 101 hrtimer_wakeup mode=0 times=5000
waker 101 0 times=5000
descriptor 0 kind=terminal name=3
";

impl ExampleProgram {
    /// The well-written program, with these changes.
    pub fn of(edits: &str) -> ExampleProgram {
        let mut program = ExampleProgram::empty();
        for line in BASE.lines().chain(edits.lines()).map(str::trim).filter(|line| !line.is_empty()) {
            program.edit(line);
        }
        program
    }

    pub fn view(&self) -> ProgramView<'_> {
        ProgramView {
            process: &self.process,
            machine: &self.machine,
            recorded: &self.recorded,
            calls_asked: false,
            releases: &self.releases,
        }
    }

    /// Findings of a check on it.
    pub fn findings(&self, rule: &'static CheckRule) -> Vec<ProgramFinding> {
        findings_of(rule, &self.view())
    }

    /// Findings of all checks on it.
    pub fn check(&self) -> ProgramCheck {
        check(&self.view(), CheckCost { wakeup: Some(300), call: Some(0) }, Vec::new())
    }

    fn empty() -> ExampleProgram {
        let status = ProcessStatus {
            process: 100,
            numbers: vec![100],
            threads: 2,
            has_memory: true,
            capabilities: Capabilities(1 << 14 | 1 << 23),
            seccomp: Some(0),
            ..ProcessStatus::default()
        };
        let stack = MemoryMapping {
            start: STACK,
            end: STACK + (8 << 20),
            access: [true, true, false],
            size_kib: 8192,
            resident_kib: 8192,
            flags: vec!["rd".into(), "wr".into(), "lo".into()],
            ..MemoryMapping::default()
        };
        let capabilities = status.capabilities;
        let process = ProcessFacts {
            pid: 100,
            comm: "robot".into(),
            window: WINDOW,
            status: Fact::Known(status),
            own_numbers: Fact::Known(true),
            limits: Fact::Known(Limits::default()),
            rights: PolicyRights {
                limit: Fact::Known(Limit::default()),
                capabilities: Fact::Known(capabilities),
                filter: Fact::Known(0),
                initial_users: Fact::Known(true),
                group: Fact::Absent,
            },
            mappings: Fact::Known(vec![stack]),
            nodes: Fact::Absent,
            descriptors: Fact::Known(Vec::new()),
            growth: Fact::Known(Growth { least_kib: 200, most_kib: 200, looks: 250, ..Growth::default() }),
            throttled: Fact::Absent,
            quota: Fact::Absent,
            threads: Vec::new(),
            threads_left_out: 0,
            threads_changed: 0,
            real_time_ended: 0,
        };
        let machine = Surroundings {
            preempt: Preempt::Full,
            online: Fact::Known(cpus("0-3")),
            cores: Fact::Known(Vec::new()),
            rt_runtime_us: Fact::Known(950_000),
            rt_period_us: Fact::Known(1_000_000),
            fair_servers: Fact::Absent,
            release: Fact::Known("6.1.0".into()),
            group_scheduling: Fact::Known(false),
            budgets: BudgetSettings { rt_runtime_us: Fact::Known(950_000), has_budgets: Fact::Known(false) },
            others: Fact::Known(Vec::new()),
            nodes: Fact::Absent,
            wakers: BTreeMap::new(),
        };
        let mut activity = Activity::default();
        activity.events = ["timer:hrtimer_start", WAKING, FAULT].map(str::to_owned).into();
        ExampleProgram { process, machine, recorded: Ok(activity), releases: Releases::default() }
    }

    fn edit(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [what, "refused"] => self.refuse(what),
            [what, tid, "refused"] => refuse_of(self.thread(tid), what),
            ["thread", tid, ref keys @ ..] => change(self.thread(tid), &pairs(keys)),
            ["wait", tid, call, args, times] => {
                let mut own = [None; 6];
                own.iter_mut().zip(args.split(',')).for_each(|(own, word)| *own = Some(hex(word)));
                let call = call_of(call).0;
                let thread = self.thread(tid);
                // Another wait in place of the base's.
                let Fact::Known(waits) = &mut thread.waits else { panic!("{line}") };
                waits.seen = vec![(Wait { call, args: own }, number(times, "times="))];
            }
            ["stack", tid, resident] => {
                let present_kib = number(resident, "resident=");
                self.thread(tid).stack = Fact::Known(StackPages { looked_at_kib: 128, present_kib });
            }
            ["mapping", range, ref keys @ ..] => self.map(range, &pairs(keys)),
            ["descriptor", n, ref keys @ ..] => self.open(n, &pairs(keys)),
            ["close", n] => {
                let Fact::Known(open) = &mut self.process.descriptors else { panic!("refused") };
                open.retain(|open| open.number.to_string() != n);
            }
            ["release", tid, by, times] => self.release(tid, by, number(times, "times=")),
            ["other", tid, name, policy, prio, kernel] => self.other(tid, [name, policy, prio, kernel]),
            ["growth" | "process" | "group" | "machine" | "pages", ref keys @ ..] => {
                pairs(keys).into_iter().for_each(|(key, value)| self.set(words[0], key, value));
            }
            [what, tid, ref rest @ ..] => self.act(what, tid, rest),
            _ => panic!("{line}"),
        }
    }

    /// Thread by ID; a new one is like a well-written one.
    fn thread(&mut self, tid: &str) -> &mut ProgramThread {
        let tid: u32 = tid.parse().unwrap_or_else(|_| panic!("{tid} is no thread"));
        let threads = &mut self.process.threads;
        let at = threads.iter().position(|thread| thread.tid == tid).unwrap_or_else(|| {
            let counted = ThreadCounters {
                run_ns: Some(WINDOW.0 as u64 / 50),
                voluntary: 3,
                ..ThreadCounters::default()
            };
            threads.push(ProgramThread {
                tid,
                comm: "control".into(),
                policy: Some(RtPolicy::Fifo),
                priority: 80,
                nice: 0,
                allowed: Fact::Known(cpus("1")),
                seen_on: cpus("1").iter().collect(),
                counted: Fact::Known(counted),
                calls: Fact::Known(CallCounters::default()),
                slack_ns: Fact::Known(0),
                stack: Fact::Known(StackPages { looked_at_kib: 128, present_kib: 128 }),
                window: WINDOW,
                waits: Fact::Known(Waits {
                    running: 10,
                    stack: Some(STACK + (8 << 20) - 0x1000),
                    ..Waits::default()
                }),
            });
            if let Ok(activity) = &mut self.recorded {
                activity.follow([tid]);
            }
            threads.len() - 1
        });
        &mut threads[at]
    }

    fn refuse(&mut self, what: &str) {
        const REFUSED: i32 = 13;
        let process = &mut self.process;
        match what {
            "smaps" => process.mappings = Fact::Refused(REFUSED),
            "status" => {
                process.status = Fact::Refused(REFUSED);
                process.rights.capabilities = Fact::Refused(REFUSED);
            }
            "limits" => {
                process.limits = Fact::Refused(REFUSED);
                process.rights.limit = Fact::Refused(REFUSED);
            }
            "growth" => process.growth = Fact::Refused(REFUSED),
            "group" => process.quota = Fact::Refused(REFUSED),
            "pages" => process.nodes = Fact::Refused(REFUSED),
            "cores" => self.machine.cores = Fact::Refused(REFUSED),
            "trace" => self.recorded = Err("tracing is not permitted".into()),
            other => panic!("{other} cannot be refused"),
        }
    }

    fn map(&mut self, range: &str, keys: &[(&str, &str)]) {
        let (start, end) = range.split_once('-').expect("FROM-TO");
        let mut mapping = MemoryMapping {
            start: hex(start),
            end: hex(end),
            size_kib: 4,
            resident_kib: 4,
            ..MemoryMapping::default()
        };
        for &(key, value) in keys {
            match key {
                "name" => mapping.name = value.into(),
                "rights" => mapping.access = [0, 1, 2].map(|at| value.as_bytes()[at] != b'-'),
                "flags" => mapping.flags = value.split(',').map(str::to_owned).collect(),
                "size" => mapping.size_kib = value.parse().expect("a number"),
                "resident" => mapping.resident_kib = value.parse().expect("a number"),
                other => panic!("a mapping has no {other}"),
            }
        }
        let Fact::Known(mappings) = &mut self.process.mappings else { panic!("refused") };
        mappings.push(mapping);
    }

    fn open(&mut self, n: &str, keys: &[(&str, &str)]) {
        let of = |key: &str| keys.iter().find(|pair| pair.0 == key).map_or("", |pair| pair.1);
        let kind = match of("kind") {
            "terminal" => OpenKind::Terminal,
            "file" => OpenKind::File,
            "pipe" => OpenKind::Pipe,
            "eventfd" => OpenKind::Eventfd,
            "null" => OpenKind::Null,
            "socket" => OpenKind::Socket,
            "timerfd" => OpenKind::Other,
            other => panic!("no kind {other}"),
        };
        let Fact::Known(open) = &mut self.process.descriptors else { panic!("refused") };
        let (number, name, moved) =
            (n.parse().expect("a number"), of("name").to_owned(), of("moved") == "yes");
        let timer = (of("kind") == "timerfd").then(|| DescriptorTimer {
            on_wall_clock: of("clock") == "wall",
            relative: of("set") == "span",
            periodic: of("every") == "yes",
        });
        let writable = of("for") != "reading";
        open.push(Descriptor { number, kind, name, writable, position: 0, moved, timer });
    }

    fn other(&mut self, tid: &str, [name, policy, prio, kernel]: [&str; 4]) {
        let tid: u32 = tid.parse().expect("a number");
        let priority: u32 = prio.parse().expect("a number");
        let kernel = kernel == "kernel=yes";
        let policy = policy_of(policy);
        let rank = policy.map_or(120, |_| 99 - i64::from(priority));
        self.machine.wakers.insert(tid, WakingThread { comm: name.into(), rank, kernel });
        let (Fact::Known(others), Some(policy)) = (&mut self.machine.others, policy) else { return };
        others.push(OtherThread { tid, comm: name.into(), kernel, policy, priority, allowed: None });
    }

    fn set(&mut self, what: &str, key: &str, value: &str) {
        let number = || value.parse::<u64>().expect("a number");
        let process = &mut self.process;
        match (what, key, &mut process.status, &mut process.limits, &mut process.growth) {
            ("growth", "least", _, _, Fact::Known(growth)) => growth.least_kib = number(),
            ("growth", "most", _, _, Fact::Known(growth)) => growth.most_kib = number(),
            ("growth", "changes", _, _, Fact::Known(growth)) => growth.changes = number(),
            ("growth", "back", _, _, Fact::Known(growth)) => growth.given_back = number(),
            ("process", "numbers", ..) => process.own_numbers = Fact::Known(value == "own"),
            ("process", "tracer", Fact::Known(status), ..) => status.tracer = number() as u32,
            ("process", "seccomp", Fact::Known(status), ..) => {
                status.seccomp = Some(number() as u32);
                process.rights.filter = Fact::Known(number() as u32);
            }
            ("process", "users", ..) => process.rights.initial_users = Fact::Known(value == "own"),
            ("process", "swapped", Fact::Known(status), ..) => status.swapped_kib = number(),
            ("process", "capabilities", Fact::Known(status), ..) => {
                status.capabilities = Capabilities(hex(value));
                process.rights.capabilities = Fact::Known(status.capabilities);
            }
            ("process", "memlock", _, Fact::Known(limits), _) => limits.locked_memory = limit(number()),
            ("process", "rtprio", _, Fact::Known(limits), _) => {
                limits.rt_priority = limit(number());
                process.rights.limit = Fact::Known(limits.rt_priority);
            }
            // The limits were refused, or the status was.
            ("process", ..) => {}
            ("group", "budget", ..) => {
                let dir = "/sys/fs/cgroup/cpu/robot".to_owned();
                process.rights.group =
                    Fact::Known(BudgetGroup { dir, runtime_us: Some(value.parse().expect("us")) });
            }
            ("group", "throttled", ..) => process.throttled = Fact::Known(number()),
            ("group", "quota", ..) => {
                let (quota, period) = value.split_once('/').expect("QUOTA/PERIOD");
                process.quota = Fact::Known(Some((quota.parse().expect("us"), period.parse().expect("us"))));
            }
            ("machine", "preempt", ..) => {
                self.machine.preempt = if value == "rt" { Preempt::Rt } else { Preempt::Full }
            }
            ("machine", "cores", ..) => {
                self.machine.cores = Fact::Known(value.split(';').map(cpus).collect())
            }
            ("machine", "runtime", ..) => {
                self.machine.rt_runtime_us = Fact::Known(value.parse().expect("us"));
                self.machine.budgets.rt_runtime_us = self.machine.rt_runtime_us.clone();
            }
            ("machine", "release", ..) => self.machine.release = Fact::Known(value.into()),
            ("machine", "groups", ..) => self.machine.group_scheduling = Fact::Known(value == "yes"),
            // Milliseconds of each second, on each CPU.
            ("machine", "server", ..) => {
                let one =
                    |cpu| FairServer { cpu, runtime_ns: number() * 1_000_000, period_ns: 1_000_000_000 };
                self.machine.fair_servers = Fact::Known(cpus("0-3").iter().map(one).collect());
            }
            ("machine", "nodes", ..) => {
                self.machine.nodes = Fact::Known((0..).zip(value.split(';').map(cpus)).collect());
            }
            ("pages", node, ..) => {
                let one = NodePages { start: 0, pages: [(node.parse().expect("a node"), number())].into() };
                let mut all = process.nodes.known().cloned().unwrap_or_default();
                all.push(one);
                process.nodes = Fact::Known(all);
            }
            _ => panic!("{what} has no {key}"),
        }
    }

    fn release(&mut self, tid: &str, by: &str, times: u64) {
        let waits = self.thread(tid).waits.known().expect("waits");
        let wait = waits.seen[0].0.clone();
        let waker = waker_of(by);
        let tid: u32 = tid.parse().expect("a thread");
        self.releases.tell(tid, wait, waker, times);
        let Ok(activity) = &mut self.recorded else { return };
        activity.threads.entry(tid as i32).or_default().wakers.insert(waker, times);
    }

    fn act(&mut self, what: &str, tid: &str, rest: &[&str]) {
        let Ok(activity) = &mut self.recorded else { return };
        let own = activity.threads.entry(tid.parse().expect("a thread")).or_default();
        match (what, rest) {
            ("timer", [function, mode, times]) => {
                // Another timer in place of the base's.
                own.timers.clear();
                let mode = Some(number(mode, "mode=") as u32);
                own.timers.insert(ArmedTimer { function: (*function).into(), mode }, number(times, "times="));
            }
            ("waker", [by, times]) => {
                own.wakers.insert(waker_of(by), number(times, "times="));
            }
            ("call", [call, args, times]) => {
                let mut two = [0; 2];
                two.iter_mut().zip(args.split(',')).for_each(|(own, word)| *own = hex(word));
                own.calls
                    .insert(MadeCall { number: call_of(call).1, args: Some(two) }, number(times, "times="));
                activity.events.insert(CALLS.to_owned());
            }
            ("remap", [times]) => {
                own.remappings = number(times, "times=");
                activity.events.insert(REMAPPING.to_owned());
            }
            ("fault", [page, at, times]) => {
                let of = |text: &str, key: &str| hex(text.strip_prefix(key).expect(key));
                let place = FaultPlace { page: of(page, "page="), instruction: of(at, "at=") };
                own.faults.insert(place, number(times, "times="));
            }
            _ => panic!("{what} {rest:?}"),
        }
    }
}
