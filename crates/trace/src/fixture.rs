//! Writer of pages for tests, like the kernel's, in either byte order and word length, and of
//! formats to go with them.

use super::byte_order::ByteOrder;
use super::format::PageLayout;

/// Item of a page.
#[derive(Clone, Debug)]
pub enum RingItem {
    /// A record: nanoseconds since the previous one (27 bits), and its data, which is padded to 4
    /// bytes.
    Data(u32, Vec<u8>),
    /// A record with a separate length word, which machines that align to 8 bytes always use.
    Long(u32, Vec<u8>),
    /// A discarded record of this number of bytes.
    Gone(u32, usize),
    /// An extension of the time in nanoseconds (59 bits).
    Extend(u64),
    /// An absolute time (59 bits).
    Stamp(u64),
    /// The end of the written data.
    Empty,
}

/// Machine that writes the pages.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Number format.
    pub order: ByteOrder,
    /// Size of its sub-buffers in bytes.
    pub size: usize,
}

impl Writer {
    pub fn new(big: bool, long: usize, size: usize) -> Writer {
        Writer { order: ByteOrder { big, long }, size }
    }

    /// Text of its `header_page`.
    pub fn header(&self) -> String {
        let (long, begin) = (self.order.long, 8 + self.order.long);
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{begin};\tsize:{};\tsigned:1;\n",
            self.size - begin
        )
    }

    pub fn layout(&self) -> PageLayout {
        PageLayout::parse(&self.header()).unwrap()
    }

    pub fn u16(&self, n: u16) -> [u8; 2] {
        if self.order.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub fn u32(&self, n: u32) -> [u8; 4] {
        if self.order.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    /// Bytes of a `long`.
    pub fn long(&self, n: u64) -> Vec<u8> {
        match self.order.long {
            4 => self.u32(n as u32).to_vec(),
            _ => self.u64(n).to_vec(),
        }
    }

    pub fn u64(&self, n: u64) -> [u8; 8] {
        if self.order.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    /// First word of a record.
    fn head(&self, kind: u32, delta: u32) -> [u8; 4] {
        assert!(delta < 1 << 27 && kind < 32);
        self.u32(if self.order.big { kind << 27 | delta } else { delta << 5 | kind })
    }

    fn item(&self, item: &RingItem) -> Vec<u8> {
        let mut bytes = Vec::new();
        match item {
            RingItem::Data(delta, data) if data.len() <= 112 && !data.is_empty() => {
                bytes.extend(self.head(data.len().div_ceil(4) as u32, *delta));
                bytes.extend(data);
            }
            RingItem::Data(delta, data) | RingItem::Long(delta, data) => {
                bytes.extend(self.head(0, *delta));
                bytes.extend(self.u32(data.len() as u32 + 4));
                bytes.extend(data);
            }
            RingItem::Gone(delta, length) => {
                bytes.extend(self.head(29, *delta));
                bytes.extend(self.u32(length.next_multiple_of(4).max(4) as u32));
                bytes.resize(4 + length.next_multiple_of(4).max(4), 0xee);
            }
            RingItem::Extend(time) | RingItem::Stamp(time) => {
                let kind = if matches!(item, RingItem::Extend(_)) { 30 } else { 31 };
                bytes.extend(self.head(kind, (time & ((1 << 27) - 1)) as u32));
                bytes.extend(self.u32((time >> 27) as u32));
            }
            RingItem::Empty => bytes.extend(self.head(29, 0)),
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// Page with as many of the items as fit, and their number; `lost` as noted by the kernel.
    pub fn page(&self, start: u64, items: &[RingItem], lost: Option<Option<u64>>) -> (Vec<u8>, usize) {
        let mut data = Vec::new();
        let mut count = 0;
        for bytes in items.iter().map(|item| self.item(item)) {
            if 8 + self.order.long + data.len() + bytes.len() > self.size {
                break;
            }
            data.extend(bytes);
            count += 1;
        }
        let mut commit = data.len() as u64;
        let room = self.size - 8 - self.order.long - data.len() >= self.order.long;
        match lost {
            Some(Some(n)) if room => {
                data.extend(self.long(n));
                commit |= 3 << 30;
            }
            Some(_) => commit |= 1 << 31,
            None => {}
        }
        let mut page = self.u64(start).to_vec();
        page.extend(self.long(commit));
        page.extend(data);
        page.resize(self.size, 0);
        (page, count)
    }

    /// Record with the common head, followed by `rest`.
    pub fn record(&self, id: u16, flags: u8, preempt: u8, pid: i32, rest: &[&[u8]]) -> Vec<u8> {
        let mut bytes = self.u16(id).to_vec();
        bytes.extend([flags, preempt]);
        bytes.extend(self.u32(pid as u32));
        rest.iter().for_each(|part| bytes.extend(*part));
        bytes
    }
}

/// Text of a format; `fields` have declaration, size and sign, from offset 8 on without gaps.
pub fn format(name: &str, id: u16, fields: &[(&str, usize, bool)]) -> String {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let mut offset = 8;
    for (declaration, size, signed) in fields {
        let signed = u8::from(*signed);
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        offset += size;
    }
    text + "\nprint fmt: \"\"\n"
}
