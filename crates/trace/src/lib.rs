//! From the kernel's trace buffers to events: formats, pages, names. Bytes in, values out; `hunt`
//! brings the bytes.

pub mod byte_order;
pub mod catalog;
pub mod decode;
pub mod event;
pub mod fields;
pub mod fixed_str;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod irq_enable_site;
pub mod kernel_functions;
pub mod naming;
pub mod page;
pub mod symbols;
pub mod timeline;
pub mod window;
pub mod x86;
