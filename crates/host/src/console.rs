//! Terminal of a view that fills the screen and takes keys. However the process ends, short of
//! SIGKILL, the terminal gets its screen and its settings back.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, Once};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{InputModes, tcgetwinsize};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::clock::monotonic;
use crate::rt::{ScreenSignal, SignalFile};
use model::units::Nanos;

/// The alternate screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// Settings to restore while a console is open.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEvent {
    /// There is input, or its end.
    Input,
    Resized,
    /// A signal that ends the process.
    Stop,
    /// The other descriptor can be read.
    Ready,
    /// The time-out expired.
    Time,
}

/// Open console.
pub struct ScreenConsole {
    signals: SignalFile,
}

impl ScreenConsole {
    /// True if there is a terminal on standard input and output.
    pub fn is_there() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Opens the terminal.
    ///
    /// # Errors
    /// There is none, or it accepts no settings.
    pub fn open() -> io::Result<ScreenConsole> {
        let signals = SignalFile::open()?;
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.input_modes.remove(InputModes::ICRNL | InputModes::IXON);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // In a release a panic ends the process without unwinding.
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                next(panic);
            }));
        });
        *saved() = Some(before);
        let console = ScreenConsole { signals };
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        console.write(ENTER.as_bytes())?;
        Ok(console)
    }

    /// Columns and rows; 80 and 24 if the terminal does not know, as on a serial line.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(io::stdout()).ok().map(|size| (size.ws_col, size.ws_row));
        size.filter(|size| size.0 > 0 && size.1 > 0).unwrap_or((80, 24))
    }

    /// Writes to the screen.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    }

    /// Reads the keys that were pressed; 0 at the end of the input.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(io::stdin(), into)?)
    }

    /// Waits for input, a signal, the other descriptor, or an instant of CLOCK_MONOTONIC.
    pub fn wait(&self, until: Option<Nanos>, other: Option<BorrowedFd<'_>>) -> ConsoleEvent {
        loop {
            let input = io::stdin();
            let mut files = vec![
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN),
            ];
            files.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
            let left = until.map(|until| Nanos((until.0 - monotonic().0).max(0)));
            let left = left
                .map(|left| Timespec { tv_sec: left.0 / Nanos::SECOND.0, tv_nsec: left.0 % Nanos::SECOND.0 });
            let _ = poll(&mut files, left.as_ref());
            let is_ready = |nth: usize| files.get(nth).is_some_and(|file| !file.revents().is_empty());
            match self.signals.take() {
                Some(ScreenSignal::Stop) => return ConsoleEvent::Stop,
                Some(ScreenSignal::Resize) => return ConsoleEvent::Resized,
                None if is_ready(1) => return ConsoleEvent::Input,
                None if is_ready(2) => return ConsoleEvent::Ready,
                None if until.is_some_and(|until| monotonic() >= until) => return ConsoleEvent::Time,
                None => {}
            }
        }
    }
}

impl Drop for ScreenConsole {
    fn drop(&mut self) {
        restore();
    }
}

fn saved() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Restores the screen and the settings, once.
fn restore() {
    let Some(before) = saved().take() else { return };
    // A panic while the stream is locked must not wait for the lock.
    let _ = rustix::io::write(rustix::stdio::stdout(), LEAVE.as_bytes());
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
}
