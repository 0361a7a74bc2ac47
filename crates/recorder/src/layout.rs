//! Layout of the maps that the programs share with this process.
//!
//! Kernel memory is bounded: 1.8 MiB of slots, 174 kB per CPU, 26 kB per chosen thread; with S, 34
//! kB more per CPU and 17 kB per chosen thread.

/// Number of slots, one per recorded thread; the index is the thread id modulo this number.
pub const SLOTS: usize = 1 << 14;
pub const SLOT_MASK: i32 = SLOTS as i32 - 1;
/// Maximum number of threads with separate histograms.
pub const THREADS_LIMIT: usize = 64;

/// State of a thread.
pub mod slot {
    pub const TID: i16 = 0;
    /// [`USER`], [`KERNEL`] or [`UNKNOWN`].
    pub const KIND: i16 = 4;
    /// The timer of its sleep, the timer's expiry, and the number of suspends when it was set; then
    /// the same for a timerfd or POSIX timer.
    pub const TIMERS: [i16; 2] = [8, 24];
    pub const EXPIRIES: [i16; 2] = [16, 32];
    pub const SUSPENDS: [i16; 2] = [84, 88];
    /// Time of its waking; 0 while it runs.
    pub const WAKE: i16 = 40;
    /// T of that waking, or -1.
    pub const LATE: i16 = 48;
    /// Its wake-ups that were recorded.
    pub const RECORDED: i16 = 56;
    /// 1 from its falling asleep until it is switched to.
    pub const SLEPT: i16 = 60;
    /// Number of its separate histograms, plus 1.
    pub const THREAD: i16 = 64;
    /// The saved stack of T, plus 1.
    pub const STACK: i16 = 68;
    /// Process (upper half) and thread that its timer interrupted.
    pub const INTERRUPTED: i16 = 72;
    pub const INTERRUPTED_PRIO: i16 = 80;
    /// The record of which it is a maximum, plus 1, until it sleeps again; with the time of the
    /// maximum and its epoch.
    pub const PENDING: i16 = 92;
    pub const PENDING_TIME: i16 = 96;
    pub const PENDING_EPOCH: i16 = 104;
    pub const SIZE: usize = 112;

    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 1;
    pub const UNKNOWN: i32 = 2;
}

/// State of a CPU.
pub mod cpu {
    /// The last timer of each kind that fired here, the time of its clock then, and that clock's
    /// distance from CLOCK_MONOTONIC.
    pub const TIMERS: [i16; 2] = [0, 24];
    pub const FIRED: [i16; 2] = [8, 32];
    pub const SHIFTS: [i16; 2] = [16, 40];
    /// Not 0 while a program writes to a record.
    pub const BUSY: i16 = 48;
    pub const NEXT_STACK: i16 = 52;
    /// The largest T that was seen here in an epoch, and that epoch.
    pub const LATEST: i16 = 56;
    pub const LATEST_EPOCH: i16 = 64;
    /// Last wake-up recorded here, until its thread has finished the switch: the time of the switch
    /// (0 if absent), T or -1, and W.
    pub const SWITCHED: i16 = 72;
    pub const SWITCHED_LATE: i16 = 80;
    pub const SWITCHED_WAIT: i16 = 88;
    /// Number of times its thread had left a CPU until then, and the thread's id.
    pub const SWITCHED_LEFT: i16 = 96;
    pub const SWITCHED_TID: i16 = 104;
    /// The holder times two, plus the kind of the victim.
    pub const SWITCHED_CLASS: i16 = 108;
    /// Number of the thread's separate histograms, plus 1.
    pub const SWITCHED_THREAD: i16 = 112;
    /// The record that it was counted in, and the epoch.
    pub const SWITCHED_RECORD: i16 = 116;
    pub const SWITCHED_EPOCH: i16 = 120;
    /// Time from which S counts: the programs' own work at the switch is before it.
    pub const SWITCHED_FROM: i16 = 192;
    /// Number of the last piece, and the pieces.
    pub const PIECE: i16 = 200;
    pub const PIECES: i16 = 208;
    /// The last contended lock that was released here.
    pub const RELEASE: i16 = PIECES + (super::PIECES * super::piece::SIZE) as i16;
    /// The largest maximum of an epoch that had stacks and followed a release on another CPU: its
    /// time (0 if absent), value and epoch; the time of the release before by another thread; the
    /// release.
    pub const FREED: i16 = RELEASE + super::release::SIZE as i16;
    pub const FREED_VALUE: i16 = FREED + 8;
    pub const FREED_EPOCH: i16 = FREED + 16;
    pub const FREED_OTHER: i16 = FREED + 24;
    pub const FREED_RELEASE: i16 = FREED + 32;
    /// The counts, which only grow.
    pub const COUNTS: i16 = 128;
    pub const SIZE: usize = FREED_RELEASE as usize + super::release::SIZE;
}

/// Release of a contended lock: its time, thread, name and stack.
pub mod release {
    pub const TIME: i16 = 0;
    pub const TID: i16 = 8;
    /// Size of the stack; not positive if absent.
    pub const BYTES: i16 = 12;
    pub const COMM: i16 = 16;
    pub const STACK: i16 = 32;
    pub const STACK_ROOM: usize = 160;
    pub const SIZE: usize = STACK as usize + STACK_ROOM;
}

/// Bits of [`config::RELEASED`] that are the CPU; the others are a time.
pub const RELEASED_CPU: i32 = 1023;

/// A piece of a CPU's time: its start, and the real-time thread that had the CPU; 0 if none or
/// unknown.
pub mod piece {
    pub const SINCE: i16 = 0;
    pub const TID: i16 = 8;
    pub const SIZE: usize = 16;
}

/// Number of pieces kept per CPU, including that of the next thread: enough for a wait of 15 ms
/// with a 1 kHz loop. Of a longer wait only the end is added up.
pub const PIECES: usize = 32;

/// Per-CPU counters of events other than wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// Wake-ups recorded.
    Recorded,
    /// Switches to threads whose slot is occupied by another thread.
    Collisions,
    /// Timers that had expired when their thread was woken, and were not seen to fire.
    Unmatched,
    /// Wakings of threads that had not yet slept.
    Early,
    /// Sleeps that ended without a waking, or a switch back, that was seen.
    Unwoken,
    /// Wake-ups of threads that had been preempted before they slept: recorded, though no voluntary
    /// switch corresponds to them.
    Preempted,
    /// Latencies that a suspend lay in.
    Suspended,
    /// Threads that ended.
    Ended,
}

pub const COUNTS: usize = 8;

impl CountedEvent {
    pub fn offset(self) -> i16 {
        cpu::COUNTS + 8 * self as i16
    }
}

/// The word that both sides share.
pub mod config {
    /// The number of the epoch; its lowest bit is which half is written.
    pub const EPOCH: i16 = 0;
    /// Number of suspends begun and ended.
    pub const SUSPENDS: i16 = 4;
    /// Time of the last start or end of a suspend.
    pub const RESUMED: i16 = 8;
    /// 1 if no other clock is near CLOCK_MONOTONIC.
    pub const CLOCKS_APART: i16 = 16;
    /// 1 if programs claim slots for all real-time threads.
    pub const CLAIM: i16 = 20;
    /// Results of learning, for each kind: the timer's function and the thread that set it.
    pub const LEARNED: i16 = 32;
    pub const LEARNED_TIDS: i16 = 64;
    /// The time of the last pulse, and its latest times of the interval.
    pub const PULSED: i16 = 128;
    pub const LATE_PULSES: i16 = 136;
    /// CPU and time of the last release of a contended lock, and of the last one before it by
    /// another thread.
    pub const RELEASED: i16 = LATE_PULSES + (super::LATE_PULSES * super::late_pulse::SIZE) as i16;
    pub const RELEASED_BEFORE: i16 = RELEASED + 8;
    pub const SIZE: usize = RELEASED_BEFORE as usize + 8;
}

/// A late pulse: its lateness (0 if absent), its time, and 1 if it interrupted a function of
/// the kernel, which may have had interrupts off.
pub mod late_pulse {
    pub const LATE: i16 = 0;
    pub const CAME: i16 = 8;
    pub const IN_KERNEL: i16 = 16;
    pub const SIZE: usize = 32;
}

/// Number of late pulses kept in an interval, the latest ones: enough to find the one that belongs
/// to the worst wake-up of a CPU or class if all CPUs stood still.
pub const LATE_PULSES: usize = 8;

/// Number of rows of a histogram in a program: those of `model::rows` up to 2^36 ns, and one for
/// longer latencies.
pub const ROWS: usize = 1025;
pub const BEYOND: usize = ROWS;
pub const LARGEST: u64 = (1 << 36) - 1;

/// A histogram: the sum, the complement of the smallest value, the rows.
pub mod histogram {
    pub const SUM: i16 = 0;
    pub const LEAST: i16 = 8;
    pub const ROWS: i16 = 16;
    pub const SIZE: usize = (16 + 4 * (super::ROWS + 1)).next_multiple_of(8);
}

/// One of the largest wake-ups.
pub mod maximum {
    pub const VALUE: i16 = 0;
    pub const LATE: i16 = 8;
    pub const WAIT: i16 = 16;
    pub const TIME: i16 = 24;
    pub const VICTIM: i16 = 32;
    pub const VICTIM_PRIO: i16 = 36;
    pub const PREVIOUS: i16 = 40;
    pub const PREVIOUS_PRIO: i16 = 48;
    pub const INTERRUPTED_PRIO: i16 = 52;
    pub const INTERRUPTED: i16 = 56;
    pub const VICTIM_COMM: i16 = 64;
    pub const PREVIOUS_COMM: i16 = 80;
    pub const INTERRUPTED_COMM: i16 = 96;
    /// Size of each stack in bytes; not positive if absent.
    pub const EXPIRY_BYTES: i16 = 112;
    pub const SWITCH_BYTES: i16 = 116;
    pub const SLEEP_BYTES: i16 = 120;
    /// Set when the victim sleeps again.
    pub const VICTIM_PROCESS: i16 = 124;
    /// S, plus 1, once it was measured.
    pub const SWITCH_TIME: i16 = 128;
    /// Part of W in which the previous thread had the CPU, plus 1; 0 if that was not seen or the
    /// thread is not real-time.
    pub const HELD: i16 = 136;
    /// Size without its stacks.
    pub const SHORT: usize = 144;
    /// Stacks: in the timer's interrupt; at the switch; of the victim when it sleeps again.
    pub const EXPIRY: i16 = SHORT as i16;
    pub const STACK_ROOM: usize = 192;
    pub const SWITCH: i16 = EXPIRY + STACK_ROOM as i16;
    pub const SLEEP: i16 = SWITCH + STACK_ROOM as i16;
    pub const SLEEP_ROOM: usize = 128;
    pub const SIZE: usize = SHORT + 2 * STACK_ROOM + SLEEP_ROOM;
}

/// The series of a record, in the order of their histograms.
pub const SERIES: usize = 3;
pub const TIMER: usize = 0;
pub const WAKEUP: usize = 1;
pub const BOTH: usize = 2;

/// A record: the histograms and maxima of one CPU, epoch, holder and kind of victims; or, with
/// short maxima, of one chosen thread and epoch.
pub mod record {
    use super::{SERIES, histogram, maximum};

    pub const MAXIMA: usize = SERIES * histogram::SIZE;
    pub const SIZE: usize = MAXIMA + SERIES * maximum::SIZE;
    pub const THREAD_SIZE: usize = MAXIMA + SERIES * maximum::SHORT;
    /// Holders times kinds of victims.
    pub const CLASSES: usize = 6;

    pub fn of_cpu(cpu: usize, epoch: u32, holder: usize, victims: usize) -> usize {
        ((cpu * 2 + (epoch & 1) as usize) * 3 + holder) * 2 + victims
    }

    pub fn of_thread(thread: usize, epoch: u32) -> usize {
        thread * 2 + (epoch & 1) as usize
    }
}

/// Histograms of S and T + W + S with their maxima, if S is recorded: per CPU, epoch and kind of
/// victims, or per chosen thread and epoch.
///
/// S does not depend on the previous holder of the CPU. T + W + S does, and is kept per CPU for
/// holders of lower priority only, which are the system's fault: one histogram per holder would
/// take 240 kB per CPU, and the limit is 0.2 MiB.
pub mod switched {
    use super::histogram;

    pub const SERIES: usize = 2;
    /// The largest: its value, T or -1, W, S, and when it was switched to.
    pub const VALUE: i16 = 0;
    pub const LATE: i16 = 8;
    pub const WAIT: i16 = 16;
    pub const SWITCH: i16 = 24;
    pub const TIME: i16 = 32;
    pub const VICTIM: i16 = 40;
    pub const VICTIM_PRIO: i16 = 44;
    pub const VICTIM_PROCESS: i16 = 48;
    pub const HOLDER: i16 = 52;
    pub const VICTIM_COMM: i16 = 56;
    pub const LARGEST: usize = 72;

    pub const MAXIMA: usize = SERIES * histogram::SIZE;
    pub const SIZE: usize = MAXIMA + SERIES * LARGEST;

    pub fn of_cpu(cpu: usize, epoch: u32, victims: usize) -> usize {
        (cpu * 2 + (epoch & 1) as usize) * 2 + victims
    }

    pub fn of_thread(thread: usize, epoch: u32) -> usize {
        super::record::of_thread(thread, epoch)
    }

    /// Entries per CPU.
    pub const PER_CPU: usize = 4;
}

/// A stack of T, kept until its thread is switched to.
pub mod saved {
    pub const TID: i16 = 0;
    pub const BYTES: i16 = 4;
    pub const WAKE: i16 = 8;
    pub const COMM: i16 = 16;
    pub const STACK: i16 = 32;
    pub const SIZE: usize = 32 + super::maximum::STACK_ROOM;
    pub const PER_CPU: usize = 4;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_memory_is_bounded() {
        let per_cpu = 2 * record::CLASSES * record::SIZE + cpu::SIZE + saved::PER_CPU * saved::SIZE;
        let with_switch = per_cpu + switched::PER_CPU * switched::SIZE;
        const { assert!(SLOTS * slot::SIZE + config::SIZE < 2 << 20) };
        assert!(per_cpu < 174_000 && with_switch < (2 << 20) / 10, "{per_cpu} {with_switch}");
        const { assert!(2 * (record::THREAD_SIZE + switched::SIZE) < 50_000) };
        // Offsets in an instruction have 16 bits.
        const { assert!(record::SIZE < i16::MAX as usize) };
        const { assert!(switched::SIZE < record::SIZE) };
        // Nothing lies on something else.
        const { assert!(cpu::SWITCHED_EPOCH + 4 <= cpu::COUNTS) };
        const { assert!(cpu::COUNTS as usize + 8 * COUNTS <= cpu::SWITCHED_FROM as usize) };
        const { assert!(cpu::PIECE + 4 <= cpu::PIECES && PIECES.is_power_of_two()) };
        const {
            assert!(
                config::LEARNED_TIDS + 16 <= config::PULSED
                    && (LATE_PULSES * late_pulse::SIZE).is_power_of_two()
            )
        };
        const { assert!(switched::LARGEST % 8 == 0) };
        assert_eq!(model::rows::row_edges(ROWS).0.0 as u64, LARGEST + 1);
    }
}
