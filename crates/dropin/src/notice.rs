//! Lines on standard error. Each is one system call, so that lines of several ranks do not mix.

/// Prints a line that starts with `pario:`.
pub(crate) fn line(text: &str) {
    engine::internal::print_line(&format!("pario: {text}"));
}

/// Warns about something that each rank finds out for itself, and most likely all of them do:
/// only the first rank of the job prints it, if the launcher tells which one it is.
pub(crate) fn warn_locally(message: &str) {
    if engine::internal::is_first_of_job() {
        engine::internal::warn(message);
    }
}
