//! What counting alone supports: no law of the latencies is assumed, only that blocks are exchangeable.
