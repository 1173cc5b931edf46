//! Lines on standard error. Each is one system call, so that those of several
//! ranks stay whole.

/// Prints a line of pario's.
pub(crate) fn line(text: &str) {
    engine::internal::print_line(&format!("pario: {text}"));
}

/// Warns of what each rank finds out for itself, and most likely all alike: the
/// first rank of the job speaks, as far as the launcher says which it is.
pub(crate) fn warn_locally(message: &str) {
    if engine::internal::is_first_of_job() {
        engine::internal::warn(message);
    }
}
