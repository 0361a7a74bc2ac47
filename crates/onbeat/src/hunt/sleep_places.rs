//! Places where followed threads sleep, from their kernel stacks; a thread sleeps at a few places
//! repeatedly.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use trace::cycles::place::{SleepKind, SleepPlace, sleep_kind};
use trace::event::Address;
use trace::names::Names;
use trace::naming::Naming;

/// Maximum number of places, above that of the threads of a program.
const MAX_PLACES: usize = 4_096;

/// Kinds of the known places, by stack.
#[derive(Default)]
pub struct SleepPlaces(HashMap<Vec<Address>, SleepKind>);

impl SleepPlaces {
    pub fn place(&mut self, frames: &[Address], names: &mut Names) -> SleepPlace {
        if frames.is_empty() {
            return SleepPlace::default();
        }
        let mut hasher = DefaultHasher::new();
        frames.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(&kind) = self.0.get(frames) {
            return SleepPlace { kind, key };
        }
        let functions: Vec<String> = frames.iter().map(|&frame| names.function(frame)).collect();
        // Without names any two stacks differ, and nothing more is known.
        let named = functions.iter().any(|name| !name.is_empty());
        let kind = if named { sleep_kind(functions.iter().map(String::as_str)) } else { SleepKind::Unknown };
        if self.0.len() >= MAX_PLACES {
            self.0.clear();
        }
        self.0.insert(frames.to_vec(), kind);
        SleepPlace { kind, key }
    }
}
