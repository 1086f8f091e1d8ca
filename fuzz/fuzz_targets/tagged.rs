#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for format in ["trec", "reuters", "mediawiki"] {
        let _ = lookalike::unstable::fuzzing::reader(format, data.to_vec());
    }
});
