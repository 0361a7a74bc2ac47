//! Closed vocabularies of `run.json`, with the meaning of each word.

use crate::keywords;

keywords! {
    /// Command that wrote a run.
    pub enum Command, default Measure {
        /// wake-ups of onbeat's own threads
        Measure = "measure",
        /// the same, or another's threads, with the kernel's events recorded
        Hunt = "hunt",
        /// another tool's run
        Import = "import",
        /// what a timer does not show: gaps, hand-overs, switches
        Probe = "probe",
    }
}

keywords! {
    /// Activity of a probe's threads.
    pub enum Probe {
        /// read the clock without a pause
        Spin = "spin",
        /// hand over from one to the other, by one of the kernel's ways
        Ipc = "ipc",
        /// switch from one to the other and back
        Switch = "switch",
    }
}

keywords! {
    /// Quantity of a measured thread's latencies.
    pub enum Quantity, default Wakeup {
        /// from a timer's expiry to the thread that it wakes
        Wakeup = "wakeup",
        /// from a timer's expiry to its interrupt handler
        Irq = "irq",
        /// from a timer's expiry to the return to user space
        User = "user",
        /// time in which a thread that polls did not run
        Gap = "gap",
        /// from a signal's sending to its receipt
        Signal = "signal",
        /// from a release to the acquiring thread
        Ipc = "ipc",
        /// from one thread to another on its CPU
        Switch = "switch",
        /// lateness of a SCHED_DEADLINE job
        Deadline = "deadline",
        /// round trip of a packet
        Packet = "packet",
    }
}

keywords! {
    /// Reason why a run ended; nothing is stated in a checkpoint.
    pub enum Ended {
        /// the time was over
        Duration = "duration",
        /// the wake-ups were counted
        Loops = "loops",
        /// a latency reached the limit
        Limit = "limit",
        /// a signal
        Signal = "signal",
        /// an error
        Error = "error",
        /// all threads that were followed have ended
        Victim = "victim",
    }
}

keywords! {
    /// Scheduling policy of a measuring thread.
    pub enum Policy {
        /// SCHED_FIFO
        Fifo = "fifo",
        /// SCHED_RR
        Rr = "rr",
        /// SCHED_OTHER, which takes no privilege
        Other = "other",
    }
}

keywords! {
    /// Sleep mechanism of a measuring thread.
    pub enum WakeMechanism, default Nanosleep {
        /// clock_nanosleep with an absolute time
        Nanosleep = "nanosleep",
        /// a timerfd, armed and read
        Timerfd = "timerfd",
        /// a POSIX timer and sigwaitinfo
        Signal = "signal",
        /// a futex wait with an absolute time-out
        Futex = "futex",
    }
}

keywords! {
    /// Context in which the kernel runs the expiry of a timer.
    pub enum Expiry {
        /// in the timer's interrupt
        HardIrq = "hard-irq",
        /// in the thread of the timer softirq
        SoftirqThread = "softirq-thread",
        /// not known
        Unknown = "unknown",
    }
}

keywords! {
    /// Relation of the CPUs' schedules to each other.
    pub enum SchedulePhase, default Staggered {
        /// starts spread over the interval
        Staggered = "staggered",
        /// all CPUs wake at once
        Aligned = "aligned",
        /// each interval drawn within 5 %
        Dither = "dither",
    }
}

keywords! {
    /// Treatment of idle states during a run.
    pub enum IdleStates {
        /// /dev/cpu_dma_latency held at 0: no idle state that takes time to leave
        Held = "held",
        /// left as the system has them
        AsIs = "as-is",
    }
}

keywords! {
    /// Preemption model of a kernel (kernel/Kconfig.preempt).
    pub enum Preempt, default Unknown {
        /// PREEMPT_RT
        Rt = "rt",
        /// kernel code can be preempted outside of locks
        Full = "full",
        /// as full for real-time tasks; others wait for the tick (6.13 on)
        Lazy = "lazy",
        /// only where the kernel offers it
        Voluntary = "voluntary",
        /// only on return to user mode
        None = "none",
        /// what was read is too little, or contradicts itself
        Unknown = "unknown",
    }
}

keywords! {
    /// Kind of event that affected a measurement.
    pub enum IntegrityKind {
        /// a thread runs on another CPU than planned
        Affinity = "affinity",
        /// the wall clock was set
        ClockStep = "clock-step",
        /// the clocksource is slow, unstable or has changed
        Clocksource = "clocksource",
        /// the measuring threads take much of their CPU
        CpuShare = "cpu-share",
        /// wake-ups before their time, which an import does not place
        Early = "early",
        /// entries of this list beyond its bound
        EntriesDropped = "entries-dropped",
        /// no CPU was free for onbeat's own thread, or it was delayed
        Housekeeping = "housekeeping",
        /// a load that was asked for did not load all the time
        Load = "load",
        /// events were lost
        Lost = "lost",
        /// memory could not be locked
        MemoryLock = "memory-lock",
        /// a CPU went offline
        Offline = "offline",
        /// the measuring loop had page faults
        PageFault = "page-fault",
        /// a privilege was missing
        Privilege = "privilege",
        /// another real-time thread of the same or a higher priority
        RtCompetitor = "rt-competitor",
        /// a system management interrupt
        Smi = "smi",
        /// onbeat's own thread got no CPU time
        Starved = "starved",
        /// the hypervisor took time
        Steal = "steal",
        /// a record could not be written
        Storage = "storage",
        /// wake-ups and missed slots do not add up to the scheduled
        Sums = "sums",
        /// the machine was suspended
        Suspend = "suspend",
        /// a measuring thread ended before the others
        Thread = "thread",
        /// the kernel throttled real-time tasks
        Throttled = "throttled",
        /// tracing by another program
        Tracing = "tracing",
        /// something could not be watched
        Unwatched = "unwatched",
        /// what happened to the threads that were followed
        Victim = "victim",
    }
}
