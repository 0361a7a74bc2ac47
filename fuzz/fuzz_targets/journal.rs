//! A journal of changes, cut or damaged anywhere: it is read, and undone on a made-up machine.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use host::settings::fake::{DEBIAN_6_1_RT, DEBIAN_6_12_RT, FakeKernel, MemoryStore};
use host::settings::{entry_records, held_back, restore};

fuzz_target!(|bytes: &[u8]| {
    let Some(mut entry) = entry_records(bytes) else { return };
    assert!(held_back(&entry, &entry).is_some() == entry.is_live());
    entry.opened.id = "1".to_owned();
    for machine in [&DEBIAN_6_1_RT, &DEBIAN_6_12_RT] {
        for force in [false, true] {
            let mut kernel = FakeKernel::boot(machine);
            let mut store = MemoryStore::default();
            store.put("1.jsonl", bytes);
            let (restored, noted) = restore(&mut kernel, &mut store, &entry, force);
            assert!(noted.is_ok() && restored.len() <= entry.steps.len());
        }
    }
});
