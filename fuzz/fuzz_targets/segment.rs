#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let _ = lookalike::unstable::fuzzing::segment(rest, first & 1 == 1);
});
