//! Real pages in many charsets come out as they were meant.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

use std::collections::BTreeMap;
use std::fs;

use lookalike::unstable::decode;
use lookalike_bench::labelled::unpacked;

#[test]
fn the_manual_of_a_web_server_in_six_languages() {
    let Some(root) = unpacked("apache2-manual.tar.zst", "apache2-manual").unwrap() else { return };
    let mut charsets: BTreeMap<&str, u64> = BTreeMap::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let decoded = decode(&bytes, None);
            assert!(!decoded.text.contains('\u{fffd}'), "{}", path.display());
            *charsets.entry(decoded.charset).or_default() += 1;
            // Korean pages have Hangul in them, and Japanese ones kana.
            let name = path.to_string_lossy().into_owned();
            let has = |range: std::ops::RangeInclusive<char>| decoded.text.chars().any(|c| range.contains(&c));
            assert!(!name.contains("/ko/") || has('가'..='힣'), "{name}");
            assert!(!name.contains("/ja/") || has('ぁ'..='ん'), "{name}");
        }
    }
    println!("{charsets:?}");
    assert_eq!((charsets["EUC-KR"], charsets["windows-1252"]), (108, 47));
}
