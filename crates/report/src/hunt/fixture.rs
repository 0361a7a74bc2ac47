//! Synthetic hunt for tests: a spike of every kind, with the events that explain it.

use super::windows::Windows;
use crate::fixture;
use model::keyword::Word;
use model::run::{Culprit, Recorder, Run, Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use trace::event::{Context, Named, Task, Vector, What};
use trace::window::Window;

const T0: i64 = 5_000_000_000;

/// Spike with the events around it.
pub struct MadeSpike {
    pub spike: Spike,
    pub window: Window,
}

fn task(comm: &str, pid: i32, prio: i32) -> Task {
    Task { comm: comm.into(), pid, prio }
}

fn victim() -> Task {
    task("onbeat", 4_100, 19)
}

fn idle() -> Task {
    task("swapper/1", 0, 120)
}

/// Events of a window, at nanoseconds since the expected time.
struct Script {
    expected: i64,
    events: Vec<Named>,
}

impl Script {
    fn add(&mut self, at: i64, cpu: u32, pid: i32, what: What<String>) -> &mut Script {
        let time = Nanos(self.expected + at);
        self.events.push(Named { time, cpu: Cpu(cpu), pid, context: Context(0), preempt: 0, what });
        self
    }

    fn switch(&mut self, at: i64, cpu: u32, prev: Task, next: Task) -> &mut Script {
        self.add(at, cpu, prev.pid, What::Switch { prev, state: 0, next })
    }

    fn vector(&mut self, from: i64, to: i64, cpu: u32, pid: i32, vector: Vector) -> &mut Script {
        self.add(from, cpu, pid, What::VectorEntry { vector }).add(to, cpu, pid, What::VectorExit { vector })
    }

    fn softirq(&mut self, from: i64, to: i64, cpu: u32, vec: u8) -> &mut Script {
        self.add(from, cpu, 0, What::SoftirqEntry { vec }).add(to, cpu, 0, What::SoftirqExit { vec })
    }

    /// Interrupt of the timer, in which the victim is woken.
    fn timer(&mut self, at: i64, pid: i32) -> &mut Script {
        let timer = 7;
        let (function, now) = ("hrtimer_wakeup".to_owned(), Nanos(self.expected + at));
        self.add(at, 1, pid, What::VectorEntry { vector: Vector::LocalTimer })
            .add(at + 420, 1, pid, What::TimerEntry { timer, function, now })
            .add(at + 600, 1, pid, What::Waking { task: victim(), target: Cpu(1) })
            .add(at + 1_100, 1, pid, What::TimerExit { timer })
            .add(at + 1_700, 1, pid, What::VectorExit { vector: Vector::LocalTimer })
    }

    /// Activity of the other CPUs.
    fn others(&mut self, until: i64) -> &mut Script {
        let (shell, worker) = (task("make", 900, 120), task("kworker/0:1", 41, 120));
        self.switch(-9_000, 0, idle(), shell);
        let step = until.max(8_000) / 4;
        self.vector(step, step + 1_900, 0, 900, Vector::LocalTimer).softirq(step + 2_000, step + 7_000, 0, 9);
        self.switch(step * 2, 0, shell, worker).switch(step * 3, 0, worker, idle());
        self.switch(step, 2, idle(), task("tar", 733, 120));
        self.add(step * 2, 2, 733, What::IrqEntry { irq: 29, name: "nvme0q3".into() });
        self.add(step * 2 + 3_000, 2, 733, What::IrqExit { irq: 29 })
    }
}

fn slice(kind: &str, start: i64, ns: i64, who: Who, evidence: &str) -> Slice {
    Slice {
        kind: kind.into(),
        start_ns: Nanos(start),
        ns: Nanos(ns),
        who,
        evidence: evidence.into(),
        ..Slice::default()
    }
}

fn who(task: Task) -> Who {
    Who { comm: task.comm.text().into(), pid: task.pid, prio: task.prio, ..Who::default() }
}

fn irq(name: &str) -> Who {
    Who { irq: name.into(), ..Who::default() }
}

/// Sets the interrupt context of every event, as the kernel does.
fn flag(events: &mut [Named]) {
    let mut open = [[0u8; 2]; 8];
    for event in events {
        let [hard, soft] = &mut open[event.cpu.0 as usize];
        *hard += u8::from(matches!(event.what, What::VectorEntry { .. } | What::IrqEntry { .. }));
        *soft += u8::from(matches!(event.what, What::SoftirqEntry { .. }));
        event.context = Context(u8::from(*hard > 0) * 0x09 + u8::from(*soft > 0) * 0x10);
        *hard -= u8::from(matches!(event.what, What::VectorExit { .. } | What::IrqExit { .. }));
        *soft -= u8::from(matches!(event.what, What::SoftirqExit { .. }));
    }
}

/// Late cycle whose thread waits for a lock that a lower-priority thread on another CPU holds.
pub fn locked_cycle() -> MadeSpike {
    let (control, logger) = (task("control", 70, 19), task("logger", 812, 120));
    let function = "futex_do_wait".to_owned();
    let slices = vec![
        slice("own", 3_000, 97_000, who(control), "it ran itself, from switch to switch"),
        slice("blocked", 100_000, 500_000, Who { function, ..who(logger) }, "futex, woken by logger:812"),
        slice("own", 605_000, 95_000, who(control), "it ran itself, from switch to switch"),
    ];
    let mut spike_case = case(31, 700_000, slices, |story| {
        story.switch(3_000, 1, idle(), control).switch(100_000, 1, control, idle());
        story.switch(40_000, 0, idle(), logger).switch(640_000, 0, logger, idle());
        story.add(600_000, 0, 812, What::Waking { task: control, target: Cpu(1) });
        story.switch(605_000, 1, idle(), control);
    });
    spike_case.spike.deadline_ns = Some(Nanos(500_000));
    (spike_case.spike.victim, spike_case.spike.switched_ns) = (who(control), None);
    (spike_case.window.victim, spike_case.window.own) = (control, false);
    spike_case.window.deadline_ns = spike_case.spike.deadline_ns;
    spike_case
}

/// Spike of these slices, at starts since the expected time, and its window.
fn case(number: i64, latency: i64, slices: Vec<Slice>, script: impl Fn(&mut Script)) -> MadeSpike {
    // The slots are a millisecond apart.
    let expected = T0 + number * 1_000_000;
    let mut story = Script { expected, events: Vec::new() };
    script(&mut story);
    story.others(latency);
    story.events.sort_by_key(|event| event.time);
    flag(&mut story.events);
    let explained: i64 = slices.iter().map(|slice| slice.ns.0).sum();
    let mut classes: Vec<(i64, Word<SliceKind>)> = Vec::new();
    let unexplained = slice("unexplained", 0, latency - explained, Who::default(), "");
    for slice in slices.iter().chain([&unexplained]) {
        match classes.iter_mut().find(|class| class.1 == slice.kind) {
            Some(class) => class.0 += slice.ns.0,
            None => classes.push((slice.ns.0, slice.kind.clone())),
        }
    }
    classes.retain(|class| class.0 * 10 >= latency);
    classes.sort_by_key(|class| -class.0);
    let moved =
        slices.into_iter().map(|slice| Slice { start_ns: Nanos(expected + slice.start_ns.0), ..slice });
    let switched =
        story.events.iter().find(|event| matches!(event.what, What::Switch { next, .. } if next == victim()));
    let spike = Spike {
        cpu: Cpu(1),
        cycle: Some(number as u64),
        expected_ns: Nanos(expected),
        actual_ns: Nanos(expected + latency),
        latency_ns: Nanos(latency),
        slices: moved.collect(),
        unexplained_ns: Nanos(latency - explained),
        classes: classes.into_iter().map(|class| class.1).collect(),
        victim: who(victim()),
        switched_ns: switched.map(|event| event.time),
        ..Spike::default()
    };
    let window = Window {
        cpu: Cpu(1),
        cycle: spike.cycle,
        expected_ns: spike.expected_ns,
        actual_ns: spike.actual_ns,
        victim: victim(),
        own: true,
        events: story.events,
        ..Window::default()
    };
    MadeSpike { spike, window }
}

/// Timer path without delay, then a thread that runs before the victim.
pub fn fifo() -> MadeSpike {
    let busy = task("busy-loop", 812, 9);
    let slices = vec![
        slice("timer-irq", 700, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice("thread", 2_400, 331_200, who(busy), "ran until it slept; its priority is above the victim's"),
        slice("switch", 333_600, 1_900, Who::default(), "from the end of that thread's time to the victim's"),
        slice("return-to-user", 335_500, 1_200, Who::default(), "to the thread's own clock read"),
    ];
    case(2_311, 336_700, slices, |story| {
        story.switch(-40_000, 1, idle(), busy).timer(700, 812);
        story.switch(335_500, 1, busy, victim());
    })
}

/// Interrupts off in a thread of lower priority, with the stack of the place that enabled them.
pub fn irqs_off() -> MadeSpike {
    let low = task("inject/1", 77, 120);
    let place = Who { function: "hold_irqs_off".into(), module: "inject".into(), ..who(low) };
    let mut off =
        slice("irqs-off", 0, 409_300, place, "the timer interrupted the instruction after they came back on");
    off.stack = ["hold_irqs_off [inject]", "inject_thread [inject]", "kthread", "ret_from_fork"]
        .map(Into::into)
        .to_vec();
    let slices = vec![
        off,
        slice("timer-irq", 409_300, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice("switch", 411_000, 2_100, Who::default(), "from waking to the switch"),
        slice("return-to-user", 413_100, 1_100, Who::default(), "to the thread's own clock read"),
    ];
    case(7_421, 414_200, slices, |story| {
        story.switch(-120_000, 1, idle(), low).timer(409_300, 77).switch(413_100, 1, low, victim());
    })
}

/// Network softirq between the interrupt and the switch.
pub fn softirq() -> MadeSpike {
    let slices = vec![
        slice("timer-irq", 600, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice("softirq", 2_400, 148_000, irq("NET_RX"), "entry and exit of the softirq"),
        slice("switch", 150_400, 1_500, Who::default(), "from waking to the switch"),
        slice("return-to-user", 151_900, 900, Who::default(), "to the thread's own clock read"),
    ];
    case(12_050, 152_800, slices, |story| {
        story.timer(600, 0).softirq(2_400, 150_400, 1, 3).switch(151_900, 1, idle(), victim());
    })
}

/// Slow call from another CPU.
pub fn ipi() -> MadeSpike {
    let call = Who {
        function: "slow_call".into(),
        module: "inject".into(),
        from_cpu: Some(Cpu(0)),
        ..irq("call_function_single")
    };
    let slices = vec![
        slice(
            "ipi",
            0,
            218_600,
            call,
            "entry and exit of the interrupt, sent by CPU 0 in smp_call_function_single",
        ),
        slice("timer-irq", 218_900, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice("switch", 220_600, 1_700, Who::default(), "from waking to the switch"),
        slice("return-to-user", 222_300, 1_000, Who::default(), "to the thread's own clock read"),
    ];
    case(23_900, 223_300, slices, |story| {
        story.vector(-30_000, 218_600, 1, 0, Vector::CallFunctionSingle);
        story.timer(218_900, 0).switch(222_300, 1, idle(), victim());
    })
}

/// Interrupts off, followed by a thread.
pub fn two_causes() -> MadeSpike {
    let (low, busy) = (task("inject/1", 77, 120), task("busy-loop", 812, 9));
    let place = Who { function: "hold_irqs_off".into(), module: "inject".into(), ..who(low) };
    let slices = vec![
        slice("irqs-off", 0, 121_000, place, "the timer interrupted the instruction after they came back on"),
        slice("timer-irq", 121_000, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice(
            "thread",
            122_700,
            139_000,
            who(busy),
            "ran until it slept; its priority is above the victim's",
        ),
        slice("switch", 261_700, 1_800, Who::default(), "from the end of that thread's time to the victim's"),
        slice("return-to-user", 263_500, 1_100, Who::default(), "to the thread's own clock read"),
    ];
    case(30_117, 264_600, slices, |story| {
        story.switch(-50_000, 1, idle(), low).timer(121_000, 77).switch(123_500, 1, low, busy);
        story.switch(263_500, 1, busy, victim());
    })
}

/// Time without an event in the kernel: the hypervisor counted it as steal.
pub fn unexplained() -> MadeSpike {
    let stop = slice("stopped", 0, 1_208_000, Who::default(), "the hypervisor counted as much steal");
    let slices = vec![
        Slice { estimated: true, rule: Some("stopped-from-outside".into()), ..stop },
        slice("timer-irq", 1_208_000, 1_700, irq("local_timer"), "entry and exit of the interrupt"),
        slice("switch", 1_209_700, 1_900, Who::default(), "from waking to the switch"),
        slice("return-to-user", 1_211_600, 1_200, Who::default(), "to the thread's own clock read"),
    ];
    let mut case = case(41_800, 1_212_800, slices, |story| {
        story.timer(1_208_000, 0).switch(1_211_600, 1, idle(), victim());
    });
    case.spike.stopped_ns = case.spike.slices[0].ns;
    case.spike.notes = vec!["steal time of CPU 1 grew by 10 ms in this second".into()];
    case
}

/// Timer that expires in a thread on PREEMPT_RT, after another thread of the same priority.
pub fn timer_softirq() -> MadeSpike {
    let (ktimers, hog) = (task("ktimers/1", 27, 98), task("irq/35-eth0", 512, 49));
    let slices = vec![
        slice("timer-irq", 800, 1_400, irq("local_timer"), "entry and exit of the interrupt"),
        slice(
            "thread",
            2_200,
            171_500,
            who(hog),
            "its priority is above that of ktimers/1, in which the timer expires",
        ),
        slice(
            "timer-softirq",
            173_700,
            6_900,
            Who { irq: "HRTIMER".into(), ..who(ktimers) },
            "entry of the softirq to the waking",
        ),
        slice("switch", 180_600, 2_900, Who::default(), "from waking to the switch"),
        slice("return-to-user", 183_500, 1_300, Who::default(), "to the thread's own clock read"),
    ];
    case(52_612, 184_800, slices, |story| {
        story.switch(-15_000, 1, idle(), hog).vector(800, 2_200, 1, 512, Vector::LocalTimer);
        story.switch(173_700, 1, hog, ktimers).add(174_100, 1, 27, What::SoftirqEntry { vec: 8 });
        let now = Nanos(story.expected + 176_000);
        story.add(176_000, 1, 27, What::TimerEntry { timer: 7, function: "hrtimer_wakeup".into(), now });
        story.add(176_300, 1, 27, What::Waking { task: victim(), target: Cpu(1) });
        story.add(177_000, 1, 27, What::TimerExit { timer: 7 }).add(
            180_300,
            1,
            27,
            What::SoftirqExit { vec: 8 },
        );
        story.switch(183_500, 1, ktimers, victim());
    })
}

/// Many short slices in turns: a storm of interrupts on a thread of higher priority.
pub fn storm() -> MadeSpike {
    let hog = task("irq/35-eth0", 512, 49);
    let mut slices =
        vec![slice("timer-irq", 700, 1_700, irq("local_timer"), "entry and exit of the interrupt")];
    for turn in 0..9i64 {
        let at = 2_400 + turn * 12_000;
        slices.push(slice("irq", at, 3_000, irq("eth0-rx-0 (35)"), "entry and exit of the handler"));
        slices.push(slice("thread", at + 3_000, 9_000, who(hog), "its priority is above the victim's"));
    }
    slices.push(slice("idle-exit", 110_400, 300, Who::default(), "from state 1"));
    slices.push(slice("switch", 110_700, 1_500, Who::default(), "from waking to the switch"));
    case(55_003, 113_100, slices, |story| {
        story.timer(700, 0).switch(2_400, 1, idle(), hog);
        for turn in 0..9i64 {
            let at = 2_400 + turn * 12_000;
            story.add(at + 1, 1, 512, What::IrqEntry { irq: 35, name: "eth0-rx-0".into() });
            story.add(at + 3_000, 1, 512, What::IrqExit { irq: 35 });
        }
        story.switch(112_200, 1, hog, victim());
    })
}

/// One spike of every kind.
pub fn cases() -> Vec<MadeSpike> {
    vec![fifo(), irqs_off(), softirq(), ipi(), two_causes(), unexplained(), timer_softirq(), storm()]
}

fn culprit(kind: &str, name: &str, spikes: u64, total: i64) -> Culprit {
    let total_ns = Nanos(total);
    Culprit {
        kind: kind.into(),
        name: name.into(),
        spikes,
        total_ns,
        share: total as f64 / 2_902_300.0,
        ..Culprit::default()
    }
}

/// Run of two CPUs of a PREEMPT_RT machine with eight spikes.
pub fn run() -> Run {
    let mut run = fixture::quiet().run;
    run.command = "hunt".into();
    run.spikes = cases().into_iter().map(|case| case.spike).collect();
    run.culprits = culprits();
    run.recorder = Some(recorder());
    let worst = &run.spikes[5];
    run.cpus[1].worst[0].mono_ns = Some(worst.actual_ns);
    run.cpus[1].worst[0].latency_ns = Some(worst.latency_ns);
    run.cpus[1].max_ns = Some(worst.latency_ns);
    run
}

fn culprits() -> Vec<Culprit> {
    let mut off = culprit("irqs-off", "hold_irqs_off [inject]", 2, 530_300);
    off.functions = vec!["hold_irqs_off [inject]".into()];
    off.evidence =
        vec!["in 2 of 2 spikes the timer interrupted the instruction after interrupts came back on".into()];
    off.remedy = "Keep the driver off this CPU, or have its maintainers shorten the section.".into();
    let mut busy = culprit("thread", "busy-loop", 2, 470_200);
    busy.knobs = vec!["irq-threads-above".into(), "isolation".into()];
    busy.evidence = vec!["ran for up to 331 us at a priority above the victim's".into()];
    busy.remedy =
        "Give the task a higher priority than this thread, or move the thread to another CPU.".into();
    busy.provoke = "chrt -f 90 sh -c 'while :; do :; done'".into();
    let thread = culprit("thread", "irq/35-eth0", 2, 252_500);
    let mut ipi = culprit("ipi", "slow_call [inject]", 1, 218_600);
    ipi.knobs = vec!["isolation".into()];
    let mut net = culprit("softirq", "NET_RX", 1, 148_000);
    net.evidence = vec!["one softirq".into()];
    let mut stopped = culprit("stopped", "stopped from outside", 1, 1_208_000);
    stopped.rule = Some("stopped-from-outside".into());
    stopped.estimated_ns = stopped.total_ns;
    vec![stopped, off, busy, thread, ipi, net]
}

fn recorder() -> Recorder {
    let names = [
        "sched:sched_switch",
        "sched:sched_waking",
        "irq:irq_handler_entry",
        "irq_vectors:local_timer_entry",
    ];
    Recorder {
        over_ns: Some(Nanos(100_000)),
        over_why: "four times the 99.9 % quantile of the first 2 s, at least 100 us".into(),
        events: names.iter().cycle().take(31).map(|&name| name.into()).collect(),
        missing: vec!["csd:csd_function_entry".into()],
        stacks: vec!["timer:hrtimer_expire_entry".into(), "sched:sched_switch".into()],
        buffer_kib: 4_096,
        depth_ms: Some(341.0),
        bytes_per_s: Some(1_230_000),
        slowest_response_ms: Some(11.4),
        events_overwritten: 1_204_511,
        median_ns: [Some(Nanos(4_100)), Some(Nanos(5_000)), Some(Nanos(7_000))],
        events_cost_ns: Some(Nanos(900)),
        stacks_cost_ns: Some(Nanos(2_900)),
        discarded: 412,
        agreeing: 8,
        switch_to_user_ns: Some(Nanos(1_150)),
        tick_ns: Some(Nanos(1_690)),
        ticks: 5_871,
        ..Recorder::default()
    }
}

/// Windows of [`run`].
pub fn windows() -> Windows {
    let mut windows = Windows::default();
    cases().into_iter().for_each(|case| windows.add(case.window));
    windows
}
