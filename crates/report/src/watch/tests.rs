//! A made-up record as text and as a page.
