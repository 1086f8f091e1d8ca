#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = lookalike::unstable::fuzzing::reader("jsonl", data.to_vec());
});
