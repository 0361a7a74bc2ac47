//! Closed vocabularies of `run.json`, with the meaning of each word.

use crate::keywords;

keywords! {
    /// Command that wrote a run.
    pub enum Command, default Measure {
        /// wake-ups of onbeat's own threads
        Measure = "measure",
        /// the same, or threads of another program, with kernel tracing
        Hunt = "hunt",
        /// result of another tool
        Import = "import",
        /// latencies that no timer shows: gaps, signalling, context switches
        Probe = "probe",
    }
}

keywords! {
    /// Activity of a probe's threads.
    pub enum Probe {
        /// read the clock without a pause
        Spin = "spin",
        /// wake one thread from the other, with a mechanism of the kernel
        Ipc = "ipc",
        /// switch from one to the other and back
        Switch = "switch",
        /// wait for a lock of a thread with a lower priority while a third one computes
        Pi = "pi",
        /// wake real-time threads, more than there are CPUs, which the scheduler places
        Migrate = "migrate",
        /// run the jobs of SCHED_DEADLINE threads
        Deadline = "deadline",
        /// send packets from one network namespace or machine to another and back
        Net = "net",
        /// find the gaps that firmware and hardware make while interrupts are off
        Hw = "hw",
        /// wait for a hardware event, whose interrupt wakes the thread
        Irq = "irq",
    }
}

keywords! {
    /// Source of the gaps of `probe hw`.
    pub enum GapSource {
        /// the kernel's hwlat tracer, which reads the clock with interrupts off
        Hwlat = "hwlat",
        /// the kernel's osnoise tracer, with interrupts off (Linux 6.2)
        Osnoise = "osnoise",
        /// a thread that reads the clock: interrupts and other threads make gaps, too
        Spin = "spin",
    }
}

keywords! {
    /// Source of the hardware events of `probe irq`.
    pub enum IrqSource {
        /// a timer of the CPU
        Timer = "timer",
        /// reads of a device
        Read = "read",
        /// an interrupt whose events come from outside
        Outside = "outside",
        /// a line of a GPIO chip that is wired to another one
        Gpio = "gpio",
        /// a line of a simulated GPIO chip
        GpioSim = "gpio-sim",
    }
}

keywords! {
    /// Threads whose wake-ups a hunt measures.
    pub enum HuntSource, default Loop {
        /// threads of onbeat's, as in `measure`
        Loop = "loop",
        /// threads of the kernel's timerlat tracer: the latency of the interrupt, too
        Timerlat = "timerlat",
    }
}

keywords! {
    /// Part of the response to a hardware event.
    pub enum ResponsePart {
        /// from the event to the entry of its interrupt's handler
        Entry = "entry",
        /// in the handler, up to the wake-up if the handler wakes the thread
        Handler = "handler",
        /// from the end of the handler to the wake-up: the handler's own thread, or a softirq
        Deferred = "deferred",
        /// from the wake-up to the switch to the thread
        Wakeup = "wakeup",
        /// from the switch to the thread's first instruction
        Switch = "switch",
    }
}

keywords! {
    /// Verdict of a cross-check on one CPU.
    pub enum Agreement, default Unknown {
        /// both sides have the same latencies, within the error
        Agree = "agree",
        /// onbeat's thread is later
        LoopLater = "loop-later",
        /// the thread of timerlat is later
        TimerlatLater = "timerlat-later",
        /// too few samples
        Unknown = "unknown",
    }
}

keywords! {
    /// Source of the gaps of `probe spin`.
    pub enum SpinSource, default Spin {
        /// a thread of onbeat's that reads the clock
        Spin = "spin",
        /// the kernel's osnoise tracer, which counts gaps by their sources
        Osnoise = "osnoise",
    }
}

keywords! {
    /// Cause of a gap outside of the kernel.
    pub enum GapOrigin {
        /// system management interrupts, which the processor counted around the gap
        Smi = "smi",
        /// the hypervisor below this machine
        Hypervisor = "hypervisor",
        /// not known
        Unknown = "unknown",
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
        /// from a hardware event to the thread that its interrupt wakes
        Response = "response",
        /// from a request for a lock in a priority inversion to its acquisition
        Inversion = "inversion",
        /// time for which a thread was ready to run while one with a lower priority ran
        Migration = "migration",
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
        /// the user, by a key
        User = "user",
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
        /// SCHED_DEADLINE, with a runtime, a deadline and a period
        Deadline = "deadline",
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
        /// left as the system sets them
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
        /// the files that were read do not tell, or contradict each other
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
        /// onbeat's own thread had no free CPU, or was delayed
        Housekeeping = "housekeeping",
        /// a requested load did not load all the time
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
        /// onbeat's own thread had no CPU time
        Starved = "starved",
        /// the hypervisor took time
        Steal = "steal",
        /// a record could not be written
        Storage = "storage",
        /// the kernel's scheduler did not run the thread that it has to run
        Scheduler = "scheduler",
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
        /// something could not be monitored
        Unwatched = "unwatched",
        /// an event of the followed threads
        Victim = "victim",
    }
}
