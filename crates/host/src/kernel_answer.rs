//! Results of system calls that no file shows, as texts below [`ROOT`], so that a capture stores
//! them like files, and a copy of a machine may contain them as files.
//!
//! `clock_getres/monotonic` is the resolution of timers in nanoseconds; `ethtool/NAME/coalesce` and
//! `ethtool/NAME/eee` have the output of `ethtool -c NAME` and `ethtool --show-eee NAME`, with the
//! same keys.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use super::clock::timer_resolution;

/// Root of the paths; it exists in no file system.
pub const ROOT: &str = "/syscall";

const INTERFACES: &str = "/sys/class/net";
const GET_COALESCE: u32 = 0x0e;
const GET_EEE: u32 = 0x44;

/// Text of a path below [`ROOT`]; none for any other path.
pub fn text(path: &str) -> Option<io::Result<Vec<u8>>> {
    let parts: Vec<&str> = below(path)?.split('/').collect();
    let answer = match parts[..] {
        ["clock_getres", "monotonic"] => timer_resolution()
            .map(|resolution| format!("{}\n", resolution.0))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EPERM)),
        ["ethtool", name, "coalesce"] => ethtool(name, GET_COALESCE).map(|words| coalesce(&words)),
        ["ethtool", name, "eee"] => ethtool(name, GET_EEE).map(|words| eee(&words)),
        _ => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    };
    Some(answer.map(String::into_bytes))
}

/// Names below a path below [`ROOT`]; none for any other path.
pub fn names(path: &str) -> Option<io::Result<Vec<String>>> {
    match below(path)? {
        "ethtool" => Some(std::fs::read_dir(INTERFACES).map(|found| {
            let names = found.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        })),
        _ => Some(Err(io::Error::from_raw_os_error(libc::ENOENT))),
    }
}

/// True for a device whose link is not down: a query would wake a suspended one.
fn is_card_in_use(name: &str) -> bool {
    let folder = Path::new(INTERFACES).join(name);
    let state = std::fs::read_to_string(folder.join("operstate")).unwrap_or_default();
    folder.join("device").exists() && state.trim() != "down"
}

fn below(path: &str) -> Option<&str> {
    path.strip_prefix(ROOT)?.strip_prefix('/')
}

/// Words of the longest of the structures (include/uapi/linux/ethtool.h).
type Words = [u32; 23];

/// Queries a network interface; what its driver does not support is absent.
fn ethtool(name: &str, command: u32) -> io::Result<Words> {
    let mut words: Words = [0; 23];
    words[0] = command;
    // SAFETY: all zeros is a valid value of the structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0: it terminates the name.
    if name.is_empty() || name.len() >= request.ifr_name.len() || !is_card_in_use(name) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // Any socket will do (netdevice(7)).
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the kernel reads the request and the command, and writes no more than the structure
    // of the command, which is as long as the words or shorter; both outlive the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    match done {
        0 => Ok(words),
        _ => Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                io::Error::from_raw_os_error(libc::ENODEV)
            }
            error => error,
        }),
    }
}

/// Text of `struct ethtool_coalesce`: delays of packet interrupts.
fn coalesce(words: &Words) -> String {
    let [_, rx_usecs, rx_frames, _, _, tx_usecs, tx_frames, _, _, _, adaptive_rx, adaptive_tx, ..] = *words;
    format!(
        "Adaptive RX: {}  TX: {}\nrx-usecs: {rx_usecs}\nrx-frames: {rx_frames}\n\
         tx-usecs: {tx_usecs}\ntx-frames: {tx_frames}\n",
        on_off(adaptive_rx),
        on_off(adaptive_tx)
    )
}

/// Text of `struct ethtool_eee`: sleep states of a link between packets.
fn eee(words: &Words) -> String {
    let [_, supported, _, _, active, enabled, lpi, ..] = *words;
    let status = match (supported, enabled, active) {
        (0, ..) => "not supported",
        (_, 0, _) => "disabled",
        (_, _, 0) => "enabled - inactive",
        _ => "enabled - active",
    };
    let lpi = if lpi == 0 { "disabled" } else { "enabled" };
    format!("EEE status: {status}\nTx LPI: {lpi}\n")
}

fn on_off(word: u32) -> &'static str {
    if word == 0 { "off" } else { "on" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_the_texts_of_ethtool() {
        let mut words: Words = [0; 23];
        (words[1], words[2], words[5], words[6], words[10]) = (50, 32, 72, 8, 1);
        assert_eq!(
            coalesce(&words),
            "Adaptive RX: on  TX: off\nrx-usecs: 50\nrx-frames: 32\ntx-usecs: 72\ntx-frames: 8\n"
        );
        let eee_of = |supported, active, enabled| {
            let mut words: Words = [0; 23];
            (words[1], words[4], words[5]) = (supported, active, enabled);
            eee(&words).lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(eee_of(0, 0, 0), "EEE status: not supported");
        assert_eq!(eee_of(0x2c, 0, 0), "EEE status: disabled");
        assert_eq!(eee_of(0x2c, 0, 1), "EEE status: enabled - inactive");
        assert_eq!(eee_of(0x2c, 1, 1), "EEE status: enabled - active");
    }

    #[test]
    fn other_paths_and_interfaces_are_none() {
        assert!(text("/sys/class/net/lo/mtu").is_none() && text("/syscalls/x").is_none());
        let errno = |path: &str| text(path).and_then(Result::err).and_then(|error| error.raw_os_error());
        assert_eq!(errno("/syscall/none"), Some(libc::ENOENT));
        assert_eq!(errno("/syscall/ethtool/none-such-here/coalesce"), Some(libc::ENODEV));
        assert_eq!(errno(&format!("/syscall/ethtool/{}/eee", "x".repeat(16))), Some(libc::ENODEV));
        assert_eq!(errno("/syscall/ethtool//eee"), Some(libc::ENODEV));
        // The loopback interface does not coalesce.
        assert_eq!(errno("/syscall/ethtool/lo/coalesce"), Some(libc::ENODEV));
    }
}
