//! Raw bytes as the pages of a trace buffer, one after the other; then every wake-up in them
//! taken for a spike.
//!
//! The input is what `per_cpu/cpu*/trace_pipe_raw` gives, so that recorded pages are seeds as they
//! are.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use entry::fuzz_target;
use model::run::Host;
use model::units::{Cpu, Nanos};
use trace::catalog;
use trace::decode::Decoder;
use trace::event::{Named, Task, What};
use trace::naming::Naming;
use trace::timeline::{self, Cost};
use trace::window::Window;

/// Kernels with different layouts of their records.
static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(|| {
    let kernels = [
        (
            include_str!("../../tests/pages/debian-6.12-rt/header_page"),
            include_str!("../../tests/pages/debian-6.12-rt/formats"),
        ),
        (
            include_str!("../../tests/pages/debian-6.1-rt/header_page"),
            include_str!("../../tests/pages/debian-6.1-rt/formats"),
        ),
        (
            include_str!("../../tests/pages/debian-6.12-arm64/header_page"),
            include_str!("../../tests/pages/debian-6.12-arm64/formats"),
        ),
    ];
    let decoder =
        |(header, formats)| Decoder::new(header, false, &catalog::formats(formats)).expect("formats");
    kernels.map(decoder).into()
});

/// No list of functions: an address is its own name.
struct Plain;

impl Naming<u64, String> for Plain {
    fn function(&mut self, place: u64) -> String {
        format!("f{:x}", place & 0xfff)
    }

    fn object(&mut self, address: u64) -> u64 {
        address & 0xff
    }

    fn stack(&mut self, frames: Vec<u64>) -> (Vec<String>, Option<usize>) {
        let enables = (frames.len() > 2).then_some(2);
        (frames.into_iter().map(|frame| self.function(frame)).collect(), enables)
    }
}

fuzz_target!(|bytes: &[u8]| {
    for decoder in DECODERS.iter() {
        let (mut events, mut count): (Vec<Named>, u64) = (Vec::new(), 0);
        for page in bytes.chunks(decoder.layout().page_size()).take(8) {
            let mut here = 0;
            let notes = decoder.page(Cpu(0), page, &mut |event| {
                here += 1;
                assert!(event.time.0 >= 0);
                events.push(event.named(&mut Plain));
            });
            assert_eq!(here + notes.unknown + notes.malformed, notes.records);
            assert!(notes.start <= notes.end);
            count += here;
        }
        assert_eq!(count, events.len() as u64);
        spikes(&mut events);
    }
});

/// From each waking to the next switch to the same thread.
fn spikes(events: &mut [Named]) {
    events.sort_by_key(|event| event.time);
    let wakings = events.iter().filter_map(|event| match &event.what {
        What::Waking { task, .. } => Some((event.time, *task)),
        _ => None,
    });
    let wakings: Vec<(Nanos, Task)> = wakings.take(8).collect();
    for (expected, victim) in wakings {
        let came = events.iter().find(|event| {
            event.time > expected
                && matches!(&event.what, What::Switch { next, .. } if next.pid == victim.pid)
        });
        let Some(actual) = came.map(|event| event.time) else { continue };
        let window = Window {
            expected_ns: expected,
            actual_ns: actual,
            victim,
            events: events.iter().filter(|event| event.time <= actual).cloned().collect(),
            ..Window::default()
        };
        let spike = timeline::explain(&window, &Host::default(), Cost::default());
        let sum: i128 = spike.slices.iter().map(|slice| i128::from(slice.ns.0)).sum();
        assert_eq!(sum + i128::from(spike.unexplained_ns.0), i128::from(window.latency().0), "{spike:?}");
    }
}
