//! Open bundles, and ask them.
