//! The way of a board to the server, on which it is seen what passes: kills come at each point of a
//! request, and the server may be elsewhere after it was started again.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a program may take until it does something.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Where nothing passes for so long, all was sent, or there is no server.
const QUIET: Duration = Duration::from_millis(300);

/// What has passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Parts of requests and of answers.
    pub parts: u64,
    /// Answers that say that something new was stored.
    pub stored: u64,
    /// Of a request something passed, and nothing of its answer.
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
    /// The way to the server whose address is the one in `server` whenever the board connects.
    pub fn to(server: &Arc<Mutex<String>>) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, passing) = (server.clone(), Arc::new(Passing::default()));
        let wire = Wire { address, passing: passing.clone() };
        thread::spawn(move || {
            while let Ok((board, _)) = listener.accept() {
                let now = server.lock().unwrap().clone();
                // Where it is away, the board finds its connection closed.
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

    /// A new program is at the board's end: what the one before asked for is over.
    pub fn begin(&self) -> Passed {
        let mut passed = self.passing.passed.lock().unwrap();
        passed.is_open = false;
        *passed
    }

    /// Waits until so many parts more than `from` have passed, or nothing passes any more.
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
    // The end of one is the end of both.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
