#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = lookalike::exercise::reader(Some(lookalike::read::Format::Parquet), data.to_vec());
});
