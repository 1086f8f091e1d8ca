#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // The Arrow library panics over damaged files, which the reader catches: only what is not caught counts.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |data: &[u8]| {
    let _ = lookalike::unstable::fuzzing::reader("arrow", data.to_vec());
    }
);
