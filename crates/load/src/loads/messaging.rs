//! `messaging`: groups of senders and receivers.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadKey, LoadSize, LoadTask, Needs};
use host::work::{Figure, Stream, fork_task, pipe, socket_pair, watch_tasks};

pub const LOAD: Load = Load {
    name: "messaging",
    title: "sends messages in groups of 20 processes to 20 others: by default 10 groups, 410 processes",
    doc: "In each group 20 processes send messages to 20 others, each to each, over sockets or pipes, \
          without pause: wake-ups, context switches, run queues with many tasks. The layout is that of \
          hackbench.",
    count: Count { what: "groups", default: Some(10) },
    size: Some(LoadSize { what: "bytes of a message", default: 128, least: 1, most: 1 << 20 }),
    keys: &[LoadKey { name: "through", what: "transport of the messages", values: &["sockets", "pipes"] }],
    unit: "messages",
    paced: false,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::Switches,
    needs: |wanted| Needs {
        memory: (24 << 20) + (TASKS as u64 + 1) * wanted.size,
        disk: 0,
        tasks: 2 * TASKS as u32 + 1,
    },
    run,
};

/// Number of senders of a group, and of receivers.
const TASKS: usize = 20;

/// Messages counted at once by a receiver, because all of a group share one counter.
const COUNTED: usize = 64;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let connect = if work.wanted.key("through") == Some("pipes") { pipe } else { socket_pair };
    let pairs = (0..TASKS).map(|_| connect()).collect::<io::Result<Vec<(Stream, Stream)>>>()?;
    let message = vec![0; work.size()];
    let counter = work.counter;
    for (receiver, _) in &pairs {
        fork_task(counter, || {
            let mut buffer = message.clone();
            loop {
                for _ in 0..COUNTED {
                    receiver.receive(&mut buffer)?;
                }
                counter.add(COUNTED as u64);
            }
        })?;
    }
    for _ in 0..TASKS {
        fork_task(counter, || {
            loop {
                pairs.iter().try_for_each(|(_, sender)| sender.send(&message))?;
            }
        })?;
    }
    work.begin()?;
    watch_tasks(2 * TASKS, counter)
}

#[cfg(test)]
mod tests {
    use super::LOAD;
    use crate::spec::parse;

    #[test]
    fn the_number_of_processes_of_the_default_is_said() {
        let wanted = parse(&["messaging"]).unwrap()[0].wanted(2);
        let processes = u64::from(wanted.count) * u64::from((LOAD.needs)(&wanted).tasks);
        assert!(LOAD.title.contains(&format!("{processes} processes")), "{processes}");
    }
}
