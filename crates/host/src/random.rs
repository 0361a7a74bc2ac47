//! Unpredictable numbers for names and seeds.

use super::clock;

/// Random secret of 256 bits from the kernel; early in boot it waits for the entropy pool.
pub fn secret() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0u8; 32];
    // Up to 256 bytes are returned at once (getrandom(2)).
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())? {
        32 => Ok(bytes),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Unpredictable number from the kernel (getrandom(2)).
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Early in boot the pool may not be ready; then a clock is unpredictable enough for a name or a
    // seed.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => clock::monotonic().0 as u64,
    }
}
