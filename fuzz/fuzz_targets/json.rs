#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = lookalike::unstable::fuzzing::reader("json", data.to_vec());
});
