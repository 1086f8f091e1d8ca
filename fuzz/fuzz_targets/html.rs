#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // A panic in the reader view is caught: only what is not caught counts.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |data: &[u8]| {
    let _ = lookalike::unstable::fuzzing::page(data, None);
    }
);
