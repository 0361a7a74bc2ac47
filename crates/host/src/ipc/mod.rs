//! Kernel mechanisms by which one thread wakes another, for the probes of two and more threads.
//!
//! None of them outlasts the process, even if it is killed: queues have no name, and semaphores
//! live in a private namespace or have a keeper (`semaphore`).

mod descriptors;
mod futex;
mod queue;
mod semaphore;
mod shared_futex;
mod signal;

pub use descriptors::{Descriptors, eventfd, pipe, socket_pair};
pub use futex::{FutexWord, PiFutex, PlainFutex};
pub use queue::MessageQueue;
pub use semaphore::{Semaphore, leave_ipc_namespace};
pub use shared_futex::SharedPiFutex;
pub use signal::ThreadSignal;
