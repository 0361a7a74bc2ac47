//! From the kernel's trace buffers to events: formats, pages, names. Bytes in, values out; `hunt` brings the bytes.

pub mod enables;
pub mod event;
pub mod label;
pub mod naming;
pub mod symbols;
pub mod window;
pub mod x86;
