//! The kernel's ways in which one thread hands over to another, for `probe ipc` and `probe switch`.
//!
//! Nothing of it outlasts the process, however that ends: queues have no name, and semaphores live
//! in a namespace of their own or with a keeper (`semaphore`).

mod descriptors;
mod futex;
mod queue;
mod semaphore;
mod signal;

pub use descriptors::{Descriptors, eventfd, pipe, socket_pair};
pub use futex::{FutexWord, PiFutex};
pub use queue::MessageQueue;
pub use semaphore::{Semaphore, leave_ipc_namespace};
pub use signal::ThreadSignal;
