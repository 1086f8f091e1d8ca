#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for format in [lookalike::read::Format::Trec, lookalike::read::Format::Reuters, lookalike::read::Format::MediaWiki]
    {
        let _ = lookalike::exercise::reader(Some(format), data.to_vec());
    }
});
