//! Unpredictable numbers for names and seeds.

use super::clock;

/// An unpredictable number from the kernel (getrandom(2)).
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Early in boot the pool may not be ready; a clock is then unlikely enough for a name or a
    // seed.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => clock::monotonic().0 as u64,
    }
}
