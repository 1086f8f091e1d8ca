//! Blocks of other lengths than the paper's.

use proptest::prelude::*;

use super::*;
use crate::index::segment::is_default_huffman_block;

fn config(huffman_block: u32, cut: &str) -> IndexConfig {
    let cut = Some(cut.parse().unwrap());
    IndexConfig { codec: TableCodec::Huffman, huffman_block, cut, ..IndexConfig::given(IdKind::Number, 3) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn blocks_of_every_length_equal_a_scan(
        power in 8u32..=16,
        count in 2u64..6000,
        seed in any::<u64>(),
        cut in prop::sample::select(vec!["4", "5", "flip2"]),
    ) {
        let mut state = seed;
        let rows = rows(count, &mut state);
        let directory = tempfile::tempdir().unwrap();
        let index = built(directory.path(), config(1 << power, cut), &rows);
        prop_assert_eq!(index.verify(), Vec::<String>::new());
        // As it is opened again: the length is in the files.
        drop(index);
        let index = Index::open(directory.path(), OpenOptions::default()).unwrap();
        let mut stored = Vec::new();
        index.reader().for_each_row(&mut |fingerprint, id| {
            stored.push((fingerprint, id.clone()));
            Ok(())
        }).unwrap();
        let mut all = rows.clone();
        all.sort();
        stored.sort();
        prop_assert_eq!(&stored, &all);
        let mut reader = index.reader();
        for at in 0..10u32 {
            let near = rows.get(next_random(&mut state) as usize % rows.len().max(1)).map_or(7, |row| row.0);
            let query = if at == 9 { next_random(&mut state) } else { flipped(near, at % 5, &mut state) };
            prop_assert_eq!(asked(&mut reader, query, 3), scan(&rows, query, 3));
        }
    }
}

#[test]
fn the_length_of_blocks_stays_with_the_index_when_rows_are_added_and_merged() {
    let mut state = 4096;
    let rows = rows(20_000, &mut state);
    let directory = tempfile::tempdir().unwrap();
    built(directory.path(), config(4096, "4"), &rows[..10_000]);
    let index = Index::open(directory.path(), OpenOptions { write: true, ..OpenOptions::default() }).unwrap();
    let mut bulk = index.bulk_insert().unwrap();
    rows[10_000..].iter().for_each(|(fingerprint, id)| bulk.push(*fingerprint, id).unwrap());
    bulk.finish().unwrap();
    index.compact().unwrap();
    let state = index.state();
    assert_eq!(state.segments.iter().map(|segment| segment.meta.huffman_block).collect::<Vec<u32>>(), [4096]);
    let query = rows[17].0;
    assert_eq!(asked(&mut index.reader(), query, 3), scan(&rows, query, 3));
    assert_eq!(index.verify(), Vec::<String>::new());
}

#[test]
fn the_paper_s_length_is_not_written_so_that_old_files_have_it() {
    let directory = tempfile::tempdir().unwrap();
    for (name, block) in [("paper", 1024), ("other", 512)] {
        let path = directory.path().join(name);
        built(&path, config(block, "4"), &[(1, Id::Number(1))]);
        let bytes = std::fs::read(path.join("segment-000001.seg")).unwrap();
        let manifest = std::fs::read_to_string(path.join("manifest.json")).unwrap();
        let is_named = bytes.windows(13).any(|part| part == b"huffman_block");
        assert_eq!((is_named, manifest.contains("huffman_block")), (block == 512, block == 512));
    }
}

#[test]
fn other_lengths_and_other_codecs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |config: IndexConfig| {
        assert!(!is_default_huffman_block(&config.huffman_block));
        Index::create(&directory.path().join("x"), config, 0, false).err().unwrap().to_string()
    };
    for block in [0, 128, 1000, 131_072] {
        assert!(refused(config(block, "4")).contains("power of two from 256 to 65536"), "{block}");
    }
    let raw = IndexConfig { codec: TableCodec::Raw, ..config(512, "4") };
    assert!(refused(raw).contains("only the codec huffman"));
}

#[test]
fn many_blocks_of_many_queries_side_by_side_equal_a_scan() {
    let mut state = 64;
    // A crowd with one prefix, close enough that none of its blocks is left out, and others anywhere.
    let crowd = next_random(&mut state);
    let fingerprints = (0..60_000u64).map(|at| if at % 2 == 0 { crowd ^ at } else { next_random(&mut state) });
    let rows: Vec<(u64, Id)> = fingerprints.zip(0..).map(|(fingerprint, id)| (fingerprint, Id::Number(id))).collect();
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), config(256, "4"), &rows);
    let queries: Vec<u64> =
        (0..64u32).map(|at| flipped(rows[at as usize * 900].0, at % 4, &mut state)).chain([crowd, !crowd]).collect();
    let mut expected = Vec::new();
    for &query in &queries {
        let near = scan(&rows, query, 3);
        assert_eq!(asked(&mut index.reader(), query, 3), near);
        assert_eq!(index.reader().any(query, 3).unwrap(), !near.is_empty());
        expected.extend(near.into_iter().map(|(_, fingerprint, _)| (query, fingerprint)));
    }
    expected.sort_unstable();
    expected.dedup();
    let over = |tables: TablesOver| index.reader().with_tables_over(tables).batch(&queries, 3).unwrap();
    assert_eq!(over(TablesOver::Rows), expected);
    assert_eq!(over(TablesOver::Queries), expected);
}
