//! Reads block records in one thread while another processes them: months of them keep both busy
//! for seconds.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use model::run::Block;

/// Number of records that are passed at once.
const BATCH: usize = 256;
/// Number of batches in use.
const BATCHES: usize = 4;

/// Calls `take` with each record that `read` puts into a block, until it finds no more or fails.
pub fn each_block<E: Send>(
    read: impl FnMut(&mut Block) -> Result<bool, E> + Send,
    mut take: impl FnMut(&Block),
) -> Result<(), E> {
    let read = Mutex::new(read);
    thread::scope(|scope| {
        let (full, to_take) = sync_channel(BATCHES);
        let (empty, to_fill) = channel();
        let work = {
            let read = &read;
            move || fill(&mut *read.lock().unwrap_or_else(PoisonError::into_inner), &to_fill, &full)
        };
        let Ok(reader) = thread::Builder::new().spawn_scoped(scope, work) else {
            // If no thread can be started, this one does its work.
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            let mut block = Block::default();
            while read(&mut block)? {
                take(&block);
            }
            return Ok(());
        };
        // If the reader has ended, there is nothing to send to.
        (0..BATCHES).for_each(|_| drop(empty.send(vec![Block::default(); BATCH])));
        for (batch, filled) in to_take {
            batch.iter().take(filled).for_each(&mut take);
            drop(empty.send(batch));
        }
        reader.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Fills batches as long as there are records and they are taken.
fn fill<E>(
    read: &mut impl FnMut(&mut Block) -> Result<bool, E>,
    to_fill: &Receiver<Vec<Block>>,
    full: &SyncSender<(Vec<Block>, usize)>,
) -> Result<(), E> {
    while let Ok(mut batch) = to_fill.recv() {
        let (mut filled, mut outcome) = (0, Ok(true));
        for block in &mut batch {
            outcome = read(block);
            if !matches!(outcome, Ok(true)) {
                break;
            }
            filled += 1;
        }
        let goes_on = filled == batch.len();
        if full.send((batch, filled)).is_err() || !goes_on {
            return outcome.map(drop);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all records that are handed out, and the outcome, for `count` records.
    fn numbers(count: u64, end: Result<bool, &'static str>) -> (Vec<u64>, Result<(), &'static str>) {
        let (mut next, mut found) = (0, Vec::new());
        let read = |block: &mut Block| {
            block.n = next;
            next += 1;
            if next > count { end } else { Ok(true) }
        };
        let outcome = each_block(read, |block| found.push(block.n));
        (found, outcome)
    }

    #[test]
    fn every_record_is_handed_out_in_order() {
        let batch = BATCH as u64;
        for count in [0, 1, batch - 1, batch, batch + 1, 5 * batch * BATCHES as u64 + 7] {
            assert_eq!(numbers(count, Ok(false)), ((0..count).collect(), Ok(())), "{count}");
        }
    }

    #[test]
    fn what_was_read_before_an_error_is_handed_out() {
        assert_eq!(numbers(300, Err("torn")), ((0..300).collect(), Err("torn")));
    }
}
