//! Histograms of a record: any bytes are refused, or are a histogram that is written and read
//! again.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::rows::{HIST_LIMIT, ROWS, RowCounts};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(counts) = RowCounts::of_bytes(bytes) {
        assert!(counts.bytes().len() <= HIST_LIMIT);
        assert!(counts.iter().all(|(row, count)| row < ROWS && count > 0));
        assert_eq!(RowCounts::of_text(&counts.text()), Ok(counts));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = RowCounts::of_text(text);
    }
});
