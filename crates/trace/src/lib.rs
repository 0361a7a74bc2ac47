//! From the kernel's trace buffers to events: formats, pages, names. Bytes in, values out; `hunt` brings the bytes.

pub mod catalog;
pub mod decode;
pub mod enables;
pub mod event;
pub mod fields;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod label;
pub mod naming;
pub mod page;
pub mod symbols;
pub mod timeline;
pub mod window;
pub mod words;
pub mod x86;
