//! A server that can be killed, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

pub fn farm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat-farm"));
    command.args(arguments);
    command
}

/// Codes with which boards enrol.
pub fn codes(store: &str, count: usize) -> Vec<String> {
    let printed = farm(&["enrol", "--count", &count.to_string(), "--store", store]).output().unwrap();
    let lines = String::from_utf8(printed.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// A server on a free port; it ends on drop.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(store: &str) -> Server {
        Server::with(store, &[])
    }

    /// Starts a server with further arguments.
    pub fn with(store: &str, more: &[&str]) -> Server {
        Server::at("127.0.0.1:0", store, more)
    }

    /// Starts a server on a given address.
    pub fn at(address: &str, store: &str, more: &[&str]) -> Server {
        let mut child = farm(&["serve", "--store", store, "--listen", address])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.split("//").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.trim_end_matches(['/', '\n']).to_owned();
        // Later output must not fill the pipe.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Server { child, address }
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a request; returns its response if that is complete; `more` are lines of its head.
pub fn ask(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    more: &str,
    body: impl AsRef<[u8]>,
) -> Option<(u16, Value)> {
    let (status, answer) = ask_bytes(address, method, path, token, more, body)?;
    Some((status, serde_json::from_slice(&answer).ok()?))
}

/// The same, with the raw body.
pub fn ask_bytes(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    more: &str,
    body: impl AsRef<[u8]>,
) -> Option<(u16, Vec<u8>)> {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\n{more}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let in_chunks = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = answer.split_off(end + 4);
    Some((status, if in_chunks { joined_chunks(&body)? } else { body }))
}

/// Joins chunks (RFC 9112, section 7.1); `None` if the last is missing.
fn joined_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if length == 0 {
            return Some(all);
        }
        all.extend(rest.get(end + 2..end + 2 + length)?);
        rest = rest.get(end + 4 + length..)?;
    }
}
