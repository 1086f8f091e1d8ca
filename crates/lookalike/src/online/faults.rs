//! Faults on purpose, for tests of the whole program: only in builds with the feature `faults`.

/// Panics where `LOOKALIKE_FAULT` is `panic-writer` and the page has the id `panic-now`.
#[allow(clippy::panic)] // that is what it is for
pub(super) fn before_put(id: Option<&str>) {
    let is_wanted = std::env::var("LOOKALIKE_FAULT").is_ok_and(|fault| fault == "panic-writer");
    if is_wanted && id == Some("panic-now") {
        panic!("a fault that was asked for");
    }
}
