//! Compressed parts of a file, unpacked to their stated size and no more.

use std::io::Read;

use ruzstd::decoding::FrameDecoder;

use crate::foreign_trace::TraceError;

/// Compression of a file's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Zstd,
    Zlib,
}

/// Unpacks the parts of one file.
pub struct Unpacker {
    packing: Packing,
    /// Reused, because its tables are large.
    zstd: FrameDecoder,
}

impl Unpacker {
    /// Unpacker for the compression of this name in the file.
    pub fn of(name: &str) -> Result<Unpacker, TraceError> {
        let packing = match name {
            "none" => Packing::None,
            "zstd" => Packing::Zstd,
            "zlib" => Packing::Zlib,
            other => {
                return Err(TraceError::new(format!(
                    "invalid trace.dat: expected parts without compression or by zstd or zlib, not by '{}'; \
                     convert it with `trace-cmd convert --compression zstd`",
                    model::text::excerpt(other)
                )));
            }
        };
        Ok(Unpacker { packing, zstd: FrameDecoder::new() })
    }

    /// Unpacks a part into a reused buffer; its length is the one that the file states.
    pub fn unpack(&mut self, packed: &[u8], length: usize, into: &mut Vec<u8>) -> Result<(), TraceError> {
        let failed = || TraceError::corrupt("a compressed part that cannot be unpacked");
        match self.packing {
            Packing::None => return Err(failed()),
            Packing::Zstd => {
                // Filled only when it grows, as in a block that is not compressed.
                into.resize(length, 0);
                let read = self.zstd.decode_all(packed, into).map_err(|_| failed())?;
                into.truncate(read);
            }
            Packing::Zlib => {
                into.clear();
                let decoder = flate2::read::ZlibDecoder::new(packed);
                decoder.take(length as u64).read_to_end(into).map_err(|_| failed())?;
            }
        }
        if into.len() == length { Ok(()) } else { Err(failed()) }
    }
}
