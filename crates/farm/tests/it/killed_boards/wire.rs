//! A proxy between a board and the server that observes the traffic: kills are made at each point
//! of a request, and the server may have another address after a restart.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Time limit for a program to act.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Idle time after which everything was sent, or there is no server.
const QUIET: Duration = Duration::from_millis(300);

/// Traffic so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Parts of requests and of answers.
    pub parts: u64,
    /// Responses that report new data as stored.
    pub stored: u64,
    /// True if a part of a request has passed, and nothing of its response.
    pub is_open: bool,
}

#[derive(Default)]
struct Passing {
    passed: Mutex<Passed>,
    changed: Condvar,
}

/// An address at which a board finds the server, wherever that is.
pub struct Wire {
    pub address: String,
    passing: Arc<Passing>,
}

impl Wire {
    /// A proxy to the server whose address is in `server` at each connection of the board.
    pub fn to(server: &Arc<Mutex<String>>) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, passing) = (server.clone(), Arc::new(Passing::default()));
        let wire = Wire { address, passing: passing.clone() };
        thread::spawn(move || {
            while let Ok((board, _)) = listener.accept() {
                let now = server.lock().unwrap().clone();
                // Without a server, the board finds its connection closed.
                if let Ok(server) = TcpStream::connect(now) {
                    join(&board, &server, &passing);
                }
            }
        });
        wire
    }

    pub fn passed(&self) -> Passed {
        *self.passing.passed.lock().unwrap()
    }

    /// Begins with a new program at the board's end: the previous one's request is over.
    pub fn begin(&self) -> Passed {
        let mut passed = self.passing.passed.lock().unwrap();
        passed.is_open = false;
        *passed
    }

    /// Waits until `more` parts beyond `from` have passed, or the traffic stops.
    pub fn wait(&self, from: u64, more: u64) {
        let mut passed = self.passing.passed.lock().unwrap();
        while passed.parts < from + more {
            let before = passed.parts;
            let patience = if before == from { PATIENCE } else { QUIET };
            let (now, waited) = self.passing.changed.wait_timeout(passed, patience).unwrap();
            passed = now;
            if waited.timed_out() && passed.parts == before {
                return;
            }
        }
    }
}

impl Passing {
    fn note(&self, part: &[u8], is_request: bool) {
        let mut passed = self.passed.lock().unwrap();
        passed.parts += 1;
        passed.stored += u64::from(!is_request && part.starts_with(b"HTTP/1.1 201"));
        passed.is_open = is_request;
        self.changed.notify_all();
    }
}

fn join(board: &TcpStream, server: &TcpStream, passing: &Arc<Passing>) {
    for (from, to, is_request) in [(board, server, true), (server, board, false)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
        // A part that waits for the next one would pass late.
        let _ = to.set_nodelay(true);
        let passing = passing.clone();
        thread::spawn(move || pass_on(from, to, is_request, &passing));
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_request: bool, passing: &Passing) {
    let mut part = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from.read(&mut part) {
        passing.note(&part[..n], is_request);
        if to.write_all(&part[..n]).is_err() {
            break;
        }
    }
    // The end of one direction ends both.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
