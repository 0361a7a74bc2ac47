//! A hunt's spikes explained again, from the windows in its bundle: later, elsewhere, without root.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bundle::events::each_window;
use crate::bundle::room::Room;
use crate::bundle::run::{Run, Spike};
use crate::error::Outcome;
use crate::rules::culprits::stolen;
use crate::rules::culprits::tally::Tally;
use crate::rules::culprits::{About, Stolen};
use crate::timeline::{self, Cost};
use crate::trace::window::Window;

/// Explains all windows anew, and hands them on; spikes without a window stay as they are. How many windows could not
/// be read.
pub fn explain(
    bundle: &Path,
    run: &mut Run,
    stolen_of: &[Stolen],
    mut each: impl FnMut(Window),
) -> Outcome<u64> {
    let cost = Cost::of(run);
    let (mut tally, mut room, mut dropped) = (Tally::default(), Room::default(), 0);
    let mut keep = |mut spike: Spike| {
        tally.add(&mut spike, &run.host);
        dropped += room.put(spike, 0);
    };
    let spikes = std::mem::take(&mut run.spikes);
    let mut before: BTreeMap<_, _> =
        spikes.into_iter().map(|spike| ((spike.cpu, spike.actual_ns), spike)).collect();
    let unread = each_window(bundle, |window| {
        let spike = timeline::explain(&window, &run.host, cost);
        before.remove(&(spike.cpu, spike.actual_ns));
        keep(spike);
        each(window);
    })?;
    before.into_values().for_each(&mut keep);
    run.spikes = room.into_list();
    run.spikes_dropped = run.spikes_dropped.max(dropped);
    timeline::doubt(&run.host, tally.doubts(), &mut run.spikes);
    run.spikes.iter_mut().for_each(|spike| stolen::tell(&run.host, stolen_of, spike));
    tally.ranked(&About { stolen: stolen_of, ..About::run(run) }).put_into(run);
    Ok(unread)
}
