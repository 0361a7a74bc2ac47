//! Edits for examples that would be hard to write and read: threads, with the many numbers of their
//! `stat`.

/// A thread: its ID, name, flags, priority, policy (1 FIFO, 2 RR) and allowed CPUs.
///
/// Flags are 2097152 for a kernel thread, 69206016 for one that cannot be moved, 0 for a program's.
macro_rules! thread {
    ($number:literal, $comm:literal, $flags:literal, $priority:literal, $policy:literal, $cpus:literal) => {
        concat!(
            "/proc/",
            $number,
            "/stat: ",
            $number,
            " (",
            $comm,
            ") S 0 0 0 0 0 ",
            $flags,
            " 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ",
            $priority,
            " ",
            $policy,
            "\n/proc/",
            $number,
            "/status:\n| Cpus_allowed_list: ",
            $cpus
        )
    };
}

pub(crate) use thread;
