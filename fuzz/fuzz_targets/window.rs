//! Windows of events, explained, ranked, drawn: whatever the events say, every spike's parts sum
//! to its latency.
//!
//! The input is lines of `events/spikes.jsonl`, or events of twelve bytes each.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::run::{Host, Run, Spike};
use model::units::{Cpu, Nanos};
use report::hunt::perfetto;
use report::hunt::text;
use rules::culprits::context::RunContext;
use rules::culprits::tally::SpikeTally;
use trace::event::{Context, Event, Named, Task, Vector, What};
use trace::timeline::{self, Corroboration, Cost};
use trace::window::Window;

const FUNCTIONS: [&str; 12] = [
    "",
    "hrtimer_wakeup",
    "tick_nohz_handler",
    "_raw_spin_unlock_irqrestore",
    "finish_task_switch",
    "asm_sysvec_apic_timer_interrupt",
    "default_idle",
    "nmi_cpu_backtrace_handler",
    "multi_cpu_stop",
    "vmstat_update",
    "rcu_core_si",
    "driver_poll [driver]",
];

const VECTORS: [Vector; 5] = [
    Vector::LocalTimer,
    Vector::Reschedule,
    Vector::CallFunctionSingle,
    Vector::ThermalApic,
    Vector::IrqWork,
];

fn name(byte: u8) -> String {
    FUNCTIONS[usize::from(byte) % FUNCTIONS.len()].to_owned()
}

fn task(byte: u8) -> Task {
    let prios = [120, 19, 9, -1, 100, 139, 0, 50];
    let pid = i32::from(byte % 6);
    let comm = ["swapper/1", "rt", "hog", "migration/1", "kworker/1:0", "ksoftirqd/1"][usize::from(byte % 6)];
    Task { comm: comm.into(), pid, prio: prios[usize::from(byte >> 4) % prios.len()] }
}

fn what(kind: u8, a: u8, b: u8, c: u8) -> What<String> {
    use What::*;
    let vector = VECTORS[usize::from(a) % VECTORS.len()];
    let number = u64::from(a % 4);
    match kind % 34 {
        0 | 1 => Switch { prev: task(a), state: [0, 1, 2, 256][usize::from(c % 4)], next: task(b) },
        2 => Waking { task: task(a), target: Cpu(u32::from(b % 3)) },
        3 => Wakeup { task: task(a), target: Cpu(u32::from(b % 3)) },
        4 => Migrate { pid: i32::from(a % 6), from: Cpu(u32::from(b % 3)), to: Cpu(u32::from(c % 3)) },
        5 => Inherit { pid: i32::from(a % 6), old: i32::from(b), new: i32::from(c) },
        6 => IrqEntry { irq: i32::from(a % 3), name: "eth0".into() },
        7 => IrqExit { irq: i32::from(a % 3) },
        8 => SoftirqRaise { vec: a % 12 },
        9 => SoftirqEntry { vec: a % 12 },
        10 => SoftirqExit { vec: a % 12 },
        11 => VectorEntry { vector },
        12 => VectorExit { vector },
        13 => IpiEntry { reason: name(a) },
        14 => IpiExit { reason: name(a) },
        15 => {
            let targets = [Cpu(u32::from(a % 3)), Cpu(u32::from(b % 3))].into_iter().collect();
            IpiSend { targets, callsite: name(b), callback: name(c) }
        }
        16 => CallQueue { target: Cpu(u32::from(a % 3)), callsite: name(b), function: name(c) },
        17 => CallEntry { function: name(a) },
        18 => CallExit { function: name(a) },
        19 => TimerStart { timer: number, function: name(b), expires: Nanos(1_000 * i64::from(c)) },
        20 => TimerEntry { timer: number, function: name(b), now: Nanos(1_000 * i64::from(c)) },
        21 => TimerExit { timer: number },
        22 => WheelEntry { function: name(a) },
        23 => match c % 3 {
            0 => WheelExit,
            1 => TimerStartExpired { timer: number },
            _ => TimerRearm { next: Nanos(1_000 * i64::from(c)), deferred: a % 2 == 0 },
        },
        24 => Nmi { handler: name(a), ns: Nanos(i64::from(b) << (c % 24)) },
        25 => WorkEntry { function: name(a) },
        26 => WorkExit { function: name(a) },
        27 => Idle { state: (a % 3 > 0).then_some(u32::from(a % 3)) },
        28 => Frequency { of: Cpu(u32::from(a % 3)), khz: u32::from(b) << 14 },
        29 => Fault { user: a % 2 == 0 },
        30 => match c % 2 {
            0 => ContentionBegin { lock: number, flags: u32::from(b) },
            _ => ContentionEnd { lock: number },
        },
        31 => match c % 2 {
            0 => Console,
            _ => Toggle { irqs: a % 2 == 0, off: b % 2 == 0, caller: name(b) },
        },
        32 => match c % 2 {
            0 => SyscallEntry { id: 202, args: [number, u64::from(b), 2, 0] },
            _ => SyscallExit { id: 202 },
        },
        _ => {
            let frames = [a, b, c, a ^ b, b ^ c].map(name).to_vec();
            Stack { frames, enables: (a % 3 > 0).then_some(usize::from(b)) }
        }
    }
}

/// A window of events of twelve bytes; the first twelve say where it begins and ends.
fn made(bytes: &[u8]) -> Window {
    let (head, rest) = bytes.split_at(bytes.len().min(12));
    let at = |n: usize| head.get(n).copied().unwrap_or(0);
    let expected = 1_000_000 + i64::from(u16::from_le_bytes([at(0), at(1)]));
    let latency = i64::from(u32::from_le_bytes([at(2), at(3), at(4), at(5) % 4]));
    let mut time = 0;
    let event = |piece: &[u8]| -> Named {
        time += i64::from(u16::from_le_bytes([piece[0], piece[1]])) << (piece[2] % 12);
        Event {
            time: Nanos(time),
            cpu: Cpu(u32::from(piece[3] % 3)),
            pid: i32::from(piece[4] % 6),
            context: Context(piece[5]),
            preempt: piece[6] % 3,
            what: what(piece[7], piece[8], piece[9], piece[10]),
        }
    };
    Window {
        previous: Default::default(),
        cpu: Cpu(u32::from(at(6) % 3)),
        cycle: (at(7) % 2 == 0).then_some(7),
        expected_ns: Nanos(expected),
        actual_ns: Nanos(expected + latency),
        victim: task(at(8)),
        own: at(9) % 2 == 0,
        deadline_ns: (at(9) & 2 != 0).then_some(Nanos(50_000)),
        events_lost: u64::from(at(10) % 2),
        left_out: u64::from(at(11) % 2),
        begins_late: at(11) & 2 != 0,
        calls: [(202, "futex".to_owned())].into_iter().filter(|_| at(11) & 4 != 0).collect(),
        locks: [(1, "robot+0x40a0".to_owned())].into_iter().filter(|_| at(11) & 8 != 0).collect(),
        events: rest.chunks_exact(12).map(event).collect(),
    }
}

/// In order, apart, none negative, and with what is unexplained the latency exactly.
fn adds_up(spike: &Spike) {
    let sum: i128 = spike.slices.iter().map(|slice| i128::from(slice.ns.0)).sum();
    assert_eq!(sum + i128::from(spike.unexplained_ns.0), i128::from(spike.latency_ns.0), "{spike:?}");
    assert!(spike.unexplained_ns.0 >= 0 && spike.slices.iter().all(|slice| slice.ns.0 >= 0), "{spike:?}");
    let apart = spike.slices.windows(2).all(|pair| pair[0].start_ns + pair[0].ns <= pair[1].start_ns);
    assert!(apart, "{spike:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let windows: Vec<Window> = match bytes.first() {
        Some(b'{') => {
            let lines = bytes.split(|&byte| byte == b'\n').take(20);
            lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(Window::is_sound).collect()
        }
        _ => vec![made(bytes)],
    };
    let virtual_machine =
        Host { virtualization: "kvm".to_owned(), idle_states: vec!["C1".into()], ..Host::default() };
    for host in [Host::default(), virtual_machine] {
        let (mut tally, mut doubts) = (SpikeTally::default(), Corroboration::default());
        let explained = |window: &Window| match window.deadline_ns {
            Some(_) => timeline::explain_response(window, &host, Cost::default()),
            None => timeline::explain(window, &host, Cost::default()),
        };
        let mut spikes: Vec<Spike> = windows.iter().map(explained).collect();
        for spike in &mut spikes {
            adds_up(spike);
            tally.add(spike, &host);
            doubts.note(&host, spike);
        }
        let ranked = tally.final_ranking(&RunContext::of_machine(&host));
        let named: i128 = ranked.culprits.iter().map(|culprit| i128::from(culprit.total_ns.0)).sum();
        let parts = named + i128::from(ranked.unexplained.0) + i128::from(ranked.minor.0);
        // Beyond 292 years all sums stay at their end.
        if ranked.latency.0 < i64::MAX / 2 {
            assert_eq!(parts, i128::from(ranked.latency.0));
        }
        for spike in &mut spikes {
            doubts.settle(&host, spike);
            adds_up(spike);
        }
        let mut run =
            Run { command: model::vocabulary::Command::Hunt.into(), host, spikes, ..Run::default() };
        ranked.put_into(&mut run);
        text::render(&run, 100, false);
        perfetto::render(&[perfetto::Traced { title: "fuzzed", run: &run, windows: &windows }]);
    }
});
