//! Ranks that are forked processes.
