//! The whole index against its definition.
#![allow(clippy::cast_possible_truncation)] // small numbers

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::error::Error;
use crate::index::live::BUILDING;
use crate::names::Named;
use crate::plan::design::{Cut, Design, MOST_RADIUS};
use crate::random::next_random;

mod huffman;

/// Random fingerprints, with neighbours at every distance, repeats, and a crowd.
fn rows(count: u64, state: &mut u64) -> Vec<(u64, Id)> {
    let mut fingerprints: Vec<u64> = (0..count / 2).map(|_| next_random(state)).collect();
    let centre = next_random(state);
    for at in 0..count / 2 {
        let near = match at % 4 {
            // Near a random one, at a known distance.
            0 | 1 => flipped(fingerprints[at as usize], (at % 12) as u32, state),
            // Near one and the same.
            2 => flipped(centre, (at % 5) as u32, state),
            // Again the same.
            _ => fingerprints[(at % 17) as usize],
        };
        fingerprints.push(near);
    }
    (0..).zip(fingerprints).map(|(id, fingerprint)| (fingerprint, Id::Number(id))).collect()
}

fn flipped(fingerprint: u64, bits: u32, state: &mut u64) -> u64 {
    let mut flipped = fingerprint;
    while (flipped ^ fingerprint).count_ones() < bits {
        flipped ^= 1 << (next_random(state) % 64);
    }
    flipped
}

fn built(directory: &Path, config: IndexConfig, rows: &[(u64, Id)]) -> Index {
    let index = Index::create(directory, config, 1 << 28, false).unwrap();
    let mut bulk = index.bulk_insert().unwrap();
    rows.iter().for_each(|(fingerprint, id)| bulk.push(*fingerprint, id).unwrap());
    bulk.finish().unwrap();
    index
}

/// The definition: every row, compared.
fn scan(rows: &[(u64, Id)], query: u64, radius: u32) -> Vec<(u32, u64, Id)> {
    let near = rows.iter().filter(|(fingerprint, _)| (fingerprint ^ query).count_ones() <= radius);
    let mut near: Vec<(u32, u64, Id)> =
        near.map(|(near, id)| ((near ^ query).count_ones(), *near, id.clone())).collect();
    near.sort();
    near
}

fn asked(reader: &mut IndexReader, query: u64, radius: u32) -> Vec<(u32, u64, Id)> {
    let answer = reader.query(query, radius, usize::MAX).unwrap();
    assert_eq!(answer.count, answer.matches.len() as u64);
    let mut found: Vec<(u32, u64, Id)> =
        answer.matches.into_iter().map(|found| (found.distance, found.fingerprint, found.id)).collect();
    found.sort();
    found
}

fn designs(radius: u32) -> Vec<Cut> {
    let mut cuts = vec![Cut::Blocks(vec![radius + 1]), Cut::Blocks(vec![radius + 2])];
    if (1..=3).contains(&radius) {
        cuts.push(Cut::Blocks(vec![radius + 1, radius + 1]));
        cuts.push(Cut::Blocks(vec![radius + 3]));
    }
    cuts.extend(
        (1..=radius)
            .map(Cut::Flips)
            .filter(|cut| Design::new(64, radius, cut.clone()).is_ok_and(|design| design.probes() < 5000)),
    );
    cuts
}

#[test]
fn every_design_and_codec_equals_a_scan_at_every_radius() {
    let mut state = 2007;
    // Between these two nothing changes but the time that it takes.
    for radius in (0..=10).chain([MOST_RADIUS]) {
        let rows = rows(if radius < 4 { 20_000 } else { 2000 }, &mut state);
        for (cut, codec) in
            designs(radius).into_iter().flat_map(|cut| TableCodec::ALL.map(|codec| (cut.clone(), codec)))
        {
            let directory = tempfile::tempdir().unwrap();
            let config = IndexConfig { cut: Some(cut.clone()), codec, ..IndexConfig::given(IdKind::Number, radius) };
            let index = built(directory.path(), config, &rows);
            assert_eq!(index.verify(), Vec::<String>::new(), "{cut} {codec:?}");
            let mut reader = index.reader();
            for at in 0..40 {
                let start = rows[next_random(&mut state) as usize % rows.len()].0;
                let query =
                    if at % 4 == 3 { next_random(&mut state) } else { flipped(start, at % (radius + 2), &mut state) };
                for asked_radius in [radius, radius / 2] {
                    let expected = scan(&rows, query, asked_radius);
                    assert_eq!(
                        asked(&mut reader, query, asked_radius),
                        expected,
                        "{cut} {codec:?} radius {asked_radius}"
                    );
                    assert_eq!(reader.any(query, asked_radius).unwrap(), !expected.is_empty());
                }
            }
        }
    }
}

#[test]
fn every_row_counts_in_its_part_of_the_space() {
    let mut state = 128;
    let centre = 0x8000_0000_0000_0001;
    let mut all: Vec<(u64, Id)> = (0..500).map(|id| (centre, Id::Number(id))).collect();
    all.extend((500..1500).map(|id| (next_random(&mut state), Id::Number(id))));
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &all);
    let counted = |rows: &[(u64, Id)]| {
        let mut parts = vec![0u64; 128];
        rows.iter().for_each(|(fingerprint, _)| parts[(fingerprint >> 57) as usize] += 1);
        parts
    };
    let stats = index.stats().unwrap();
    assert_eq!(stats.parts, counted(&all));
    assert!(stats.parts[64] >= 500);
    // Equal ones have no leading bit: 1001 different fingerprints have 1000 neighbours.
    assert_eq!(stats.leading_bits.iter().sum::<u64>(), 1000);
    let table = &crate::report::index_plots::index_plots(&stats)[2].1;
    let row = format!("Figure 2b\",1/128 of the space,fingerprints,,64,{}", stats.parts[64]);
    assert!(table.contains(&row), "{table}");

    // What is in no file yet counts, what is deleted does not.
    index.insert(&[(centre, Id::Number(1500))]).unwrap();
    index.delete(centre, &Id::Number(7)).unwrap();
    index.delete(centre, &Id::Number(8)).unwrap();
    let left: Vec<(u64, Id)> = all.into_iter().filter(|(_, id)| ![Id::Number(7), Id::Number(8)].contains(id)).collect();
    let left: Vec<(u64, Id)> = left.into_iter().chain([(centre, Id::Number(1500))]).collect();
    assert_eq!(index.stats().unwrap().parts, counted(&left));
    index.flush().unwrap();
    assert_eq!(index.stats().unwrap().parts, counted(&left));
}

#[test]
fn a_radius_beyond_the_tables_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(7, Id::Number(1))]);
    let error = index.reader().query(7, 4, 10).unwrap_err().to_string();
    assert!(error.contains("`radius` 4"), "{error}");
    let beyond = IndexConfig::given(IdKind::Number, MOST_RADIUS + 1);
    assert!(Index::create(&directory.path().join("x"), beyond, 0, false).is_err());
}

#[test]
fn crowds_are_counted_and_only_the_first_are_returned() {
    let mut state = 5;
    let centre = 0x0123_4567_89ab_cdef;
    let mut all: Vec<(u64, Id)> = (0..30_000).map(|id| (centre, Id::Number(id))).collect();
    // Many different fingerprints that share a quarter with the centre: a bucket of their own.
    all.extend((30_000..60_000).map(|id| (centre ^ next_random(&mut state) >> 16, Id::Number(id))));
    all.extend((60_000..70_000).map(|id| (flipped(centre, (id % 6) as u32, &mut state), Id::Number(id))));
    for codec in TableCodec::ALL {
        let directory = tempfile::tempdir().unwrap();
        let config = IndexConfig { cut: Some(Cut::Blocks(vec![4])), codec, ..IndexConfig::given(IdKind::Number, 3) };
        let index = built(directory.path(), config, &all);
        let mut reader = index.reader();
        for query in [centre, flipped(centre, 1, &mut state), all[40_000].0, all[65_000].0] {
            let expected = scan(&all, query, 3);
            assert_eq!(asked(&mut reader, query, 3), expected, "{codec:?}");
            let answer = reader.query(query, 3, 5).unwrap();
            assert_eq!((answer.count, answer.matches.len()), (expected.len() as u64, 5.min(expected.len())));
            assert_eq!(answer.matches[0].distance, expected[0].0);
        }
    }
}

#[test]
fn batches_and_joins_equal_single_queries() {
    let mut state = 99;
    let (left, right) = (rows(4000, &mut state), rows(3000, &mut state));
    let right: Vec<(u64, Id)> = right.into_iter().chain(left[..500].iter().cloned()).collect();
    let directory = tempfile::tempdir().unwrap();
    let index = built(&directory.path().join("left"), IndexConfig::given(IdKind::Number, 3), &left);
    let other = built(&directory.path().join("right"), IndexConfig::given(IdKind::Number, 3), &right);
    // A few rows that are in no file yet.
    let more: Vec<(u64, Id)> = rows(40, &mut state).into_iter().chain([left[3].clone()]).collect();
    index.insert(&more).unwrap();
    let stored: Vec<(u64, Id)> = left.iter().chain(&more).cloned().collect();
    let fingerprints = |rows: &[(u64, Id)]| {
        let mut all: Vec<u64> = rows.iter().map(|row| row.0).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (stored, queries) = (fingerprints(&stored), fingerprints(&right));
    for radius in [0, 3, 6] {
        let mut expected = Vec::new();
        for &query in &queries {
            expected
                .extend(stored.iter().filter(|near| (*near ^ query).count_ones() <= radius).map(|&near| (query, near)));
        }
        assert!(!expected.is_empty());
        let reader = index.reader();
        let asked: Vec<u64> = right.iter().map(|row| row.0).collect();
        assert_eq!(reader.batch(&asked, radius).unwrap(), expected);
        assert_eq!(reader.join(&other.reader(), radius).unwrap(), expected);
        let over = |tables: TablesOver| index.reader().with_tables_over(tables).batch(&asked, radius);
        assert_eq!(over(TablesOver::Queries).unwrap(), expected);
        match over(TablesOver::Rows) {
            Ok(found) => assert!(radius <= 3 && found == expected),
            Err(error) => assert!(radius > 3 && error.to_string().contains("at most 3"), "{error}"),
        }
        let pairs = stored.iter().flat_map(|&a| stored.iter().map(move |&b| (a, b)));
        let expected: Vec<(u64, u64)> = pairs.filter(|(a, b)| a < b && (a ^ b).count_ones() <= radius).collect();
        assert_eq!(reader.self_join(radius).unwrap(), expected, "radius {radius}");
    }
}

#[test]
fn pairs_of_rows_are_all_visited_once_and_no_more_than_wanted() {
    let mut state = 21;
    let all = rows(1500, &mut state);
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &all[..900]);
    let mut bulk = index.bulk_insert().unwrap();
    all[900..1400].iter().for_each(|(fingerprint, id)| bulk.push(*fingerprint, id).unwrap());
    bulk.finish().unwrap();
    index.insert(&all[1400..]).unwrap();
    let near = |a: u64, b: u64| (a ^ b).count_ones() <= 3;
    let reader = index.reader();
    let mut expected = Vec::new();
    for (at, (left, a)) in all.iter().enumerate() {
        expected
            .extend(all[at + 1..].iter().filter(|(right, _)| near(*left, *right)).map(|(_, b)| (a.clone(), b.clone())));
    }
    expected.sort();
    let mut found = Vec::new();
    let counts = reader
        .self_matches(3, 0, &mut |id, near| {
            found.push((id.min(&near.id).clone(), id.max(&near.id).clone()));
            Ok(())
        })
        .unwrap();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!((counts.pairs, counts.limited), (expected.len() as u64, 0));

    let queries = &all[..300];
    let count = |limit: usize| {
        let mut visited = Vec::new();
        let counts = reader.batch_matches(queries, 3, limit, &mut |id, near| {
            visited.push((id.clone(), near.distance, near.fingerprint, near.id.clone()));
            Ok(())
        });
        (visited, counts.unwrap())
    };
    let (found, _) = count(0);
    let mut expected = Vec::new();
    for (fingerprint, id) in queries {
        expected.extend(
            scan(&all, *fingerprint, 3).into_iter().map(|(distance, near, of)| (id.clone(), distance, near, of)),
        );
    }
    assert_eq!(found, expected);
    let (found, counts) = count(2);
    assert!(counts.limited > 0 && found.len() as u64 == counts.pairs && found.len() <= 600);
}

/// Rows under inserts and deletes, as the definition has them.
#[derive(Default)]
struct Model(Vec<(u64, Id)>);

#[test]
fn inserts_deletes_flushes_and_merges_in_any_order_equal_the_definition() {
    let mut state = 4;
    for round in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let kind = if round % 2 == 0 { IdKind::Number } else { IdKind::Text };
        let mut index = Index::create(directory.path(), IndexConfig::given(kind, 2), 1 << 26, false).unwrap();
        let mut model = Model::default();
        let id = |number: u64| {
            if kind == IdKind::Number { Id::Number(number) } else { Id::from(format!("page/{number}").as_str()) }
        };
        for step in 0..120u64 {
            match next_random(&mut state) % 10 {
                0..=4 => {
                    let count = 1 + next_random(&mut state) % 300;
                    let new: Vec<(u64, Id)> = (0..count)
                        .map(|at| (next_random(&mut state) & 0x00ff_0000_0000_f0f0, id(step * 1000 + at)))
                        .collect();
                    index.insert(&new).unwrap();
                    model.0.extend(new);
                }
                5 | 6 if !model.0.is_empty() => {
                    for _ in 0..20.min(model.0.len()) {
                        let (fingerprint, id) = model.0[next_random(&mut state) as usize % model.0.len()].clone();
                        index.delete(fingerprint, &id).unwrap();
                        model.0.retain(|row| *row != (fingerprint, id.clone()));
                        if next_random(&mut state).is_multiple_of(3) {
                            index.insert(&[(fingerprint, id.clone())]).unwrap();
                            model.0.push((fingerprint, id));
                        }
                        if model.0.is_empty() {
                            break;
                        }
                    }
                }
                7 => drop(index.merge_like_sizes().unwrap()),
                8 if step % 2 == 0 => {
                    let mut bulk = index.bulk_insert().unwrap();
                    // A merge beside it, and rows that were deleted before.
                    index.merge_like_sizes().unwrap();
                    let gone = next_random(&mut state) & 0x00ff_0000_0000_f0f0;
                    index.insert(&[(gone, id(step))]).unwrap();
                    index.delete(gone, &id(step)).unwrap();
                    model.0.retain(|row| *row != (gone, id(step)));
                    for row in [(gone, id(step)), (gone, id(step * 1000 + 999))] {
                        bulk.push(row.0, &row.1).unwrap();
                        model.0.push(row);
                    }
                    bulk.finish().unwrap();
                }
                8 => index.flush().unwrap(),
                _ => {
                    index.flush().unwrap();
                    drop(index);
                    index =
                        Index::open(directory.path(), OpenOptions { write: true, ..OpenOptions::default() }).unwrap();
                }
            }
            let mut reader = index.reader();
            for _ in 0..3 {
                let query = next_random(&mut state) & 0x00ff_0000_0000_f0f0;
                let expected = scan(&model.0, query, 2);
                assert_eq!(asked(&mut reader, query, 2), expected, "round {round}, step {step}");
                assert_eq!(reader.any(query, 2).unwrap(), !expected.is_empty());
            }
        }
        index.compact().unwrap();
        let stats = index.stats().unwrap();
        assert_eq!((stats.rows, stats.segments.len(), stats.segments[0].deleted), (model.0.len() as u64, 1, 0));
        assert_eq!(index.verify(), Vec::<String>::new());
        drop(index);
        let files = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, 3, "a lock, a manifest, a segment");
    }
}

#[test]
fn readers_see_what_was_there_when_they_began_and_wait_for_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let index =
        Arc::new(Index::create(directory.path(), IndexConfig::given(IdKind::Number, 3), 1 << 26, false).unwrap());
    index.insert(&[(42, Id::Number(0))]).unwrap();
    let mut before = index.reader();
    let merging = index.merge_in_background().unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut most = 0;
                    // Rows come in order, so that what is seen never becomes less.
                    while most < 20_000 {
                        let seen = index.reader().query(42, 0, 0).unwrap().count;
                        assert!(seen >= most);
                        most = seen;
                    }
                })
            })
            .collect();
        for id in 1..20_000 {
            index.insert(&[(42, Id::Number(id))]).unwrap();
            merging.wake();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    merging.finish().unwrap();
    assert_eq!(before.query(42, 3, 10).unwrap().count, 1);
    index.compact().unwrap();
    assert_eq!(before.query(42, 3, 10).unwrap().count, 1);
    assert_eq!(index.reader().query(42, 3, 10).unwrap().count, 20_000);
}

#[test]
fn files_that_were_replaced_go_away_with_their_last_reader() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(1, Id::Number(1))]);
    let mut reader = index.reader();
    index.insert(&[(2, Id::Number(2))]).unwrap();
    index.compact().unwrap();
    let old = directory.path().join("segment-000001.seg");
    assert!(old.exists());
    assert_eq!(reader.query(1, 3, 10).unwrap().count, 1);
    drop(reader);
    assert!(!old.exists());
}

#[test]
fn building_beyond_the_memory_limit_gives_the_same_bytes() {
    let mut state = 8;
    let rows: Vec<(u64, Id)> =
        rows(60_000, &mut state).into_iter().map(|(near, id)| (near, Id::from(id.to_string().as_str()))).collect();
    let directory = tempfile::tempdir().unwrap();
    for codec in TableCodec::ALL {
        let config = IndexConfig { codec, cut: Some(Cut::Blocks(vec![4])), ..IndexConfig::given(IdKind::Text, 3) };
        let mut files = Vec::new();
        for (name, memory) in [("small", 200_000), ("large", 1 << 30)] {
            let path = directory.path().join(format!("{name}-{}", codec.name()));
            let index = Index::create(&path, config.clone(), memory, false).unwrap();
            let mut bulk = index.bulk_insert().unwrap();
            rows.iter().for_each(|(fingerprint, id)| bulk.push(*fingerprint, id).unwrap());
            bulk.finish().unwrap();
            files.push(std::fs::read(path.join("segment-000001.seg")).unwrap());
            assert!(!path.join(BUILDING).exists());
        }
        assert!(files[0] == files[1], "{codec:?}");
    }
}

#[test]
fn a_second_writer_is_kept_out_and_readers_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(1, Id::Number(1))]);
    let write = OpenOptions { write: true, ..OpenOptions::default() };
    assert!(matches!(Index::open(directory.path(), write), Err(Error::IndexLocked { .. })));
    let reading = Index::open(directory.path(), OpenOptions::default()).unwrap();
    assert_eq!(reading.reader().query(1, 3, 1).unwrap().count, 1);
    assert!(reading.insert(&[(2, Id::Number(2))]).is_err());
    drop(index);
    Index::open(directory.path(), write).unwrap();
}

#[test]
fn the_bytes_of_a_segment_are_those_of_every_machine() {
    let mut state = 1;
    let rows = rows(2000, &mut state);
    for (codec, golden) in [
        (TableCodec::Raw, 5_257_759_220_090_511_955u64),
        (TableCodec::Huffman, 12_838_152_336_404_525_993),
        (TableCodec::EliasFano, 18_401_452_833_574_485_559),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let config = IndexConfig { codec, cut: Some(Cut::Blocks(vec![4])), ..IndexConfig::given(IdKind::Number, 3) };
        built(directory.path(), config, &rows);
        let bytes = std::fs::read(directory.path().join("segment-000001.seg")).unwrap();
        assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), golden, "{codec:?}");
    }
}

fn one_segment(codec: TableCodec) -> Vec<u8> {
    let mut state = 3;
    let directory = tempfile::tempdir().unwrap();
    let config = IndexConfig { codec, ..IndexConfig::given(IdKind::Text, 3) };
    let rows: Vec<(u64, Id)> =
        rows(3000, &mut state).into_iter().map(|(near, id)| (near, Id::from(id.to_string().as_str()))).collect();
    built(directory.path(), config, &rows);
    std::fs::read(directory.path().join("segment-000001.seg")).unwrap()
}

#[test]
fn any_changed_byte_is_detected_and_nothing_that_is_cut_or_foreign_is_opened() {
    let mut state = 12;
    for codec in TableCodec::ALL {
        let whole = one_segment(codec);
        assert!(Segment::in_memory(whole.clone()).unwrap().verify().is_empty());
        for _ in 0..300 {
            let mut bytes = whole.clone();
            let at = next_random(&mut state) as usize % bytes.len();
            bytes[at] ^= 1 << (next_random(&mut state) % 8);
            // The four bytes behind the version are not used.
            let is_found = Segment::in_memory(bytes).is_ok_and(|segment| segment.verify().is_empty());
            assert!(!is_found, "byte {at} of {}", whole.len());
        }
        for _ in 0..50 {
            let length = next_random(&mut state) as usize % whole.len();
            assert!(Segment::in_memory(whole[..length].to_vec()).is_err());
        }
    }
    let reason = |bytes: Vec<u8>| Segment::in_memory(bytes).err().unwrap().to_string();
    let whole = one_segment(TableCodec::EliasFano);
    let mut newer = whole.clone();
    newer[8] = 2;
    assert!(reason(newer).contains("format 2"));
    assert!(reason(b"PAR1 something else entirely".to_vec()).contains("not a segment"));
    assert!(reason(whole[..whole.len() - 1].to_vec()).contains("cut off"));
}

#[test]
fn a_damaged_segment_is_named_and_the_others_are_served_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(1, Id::Number(1))]);
    let mut bulk = index.bulk_insert().unwrap();
    bulk.push(2, &Id::Number(2)).unwrap();
    bulk.finish().unwrap();
    drop(index);
    let path = directory.path().join("segment-000002.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // The damage is in a block, so that it is met where that is read.
    let index = Index::open(directory.path(), OpenOptions::default()).unwrap();
    let error = index.reader().query(2, 3, 10).unwrap_err().to_string();
    assert!(error.contains("segment-000002.seg") && error.contains("checksum"), "{error}");
    let index = Index::open(directory.path(), OpenOptions { skip_damaged: true, ..OpenOptions::default() }).unwrap();
    assert_eq!(index.damaged().len(), 1);
    assert_eq!(index.reader().query(2, 3, 10).unwrap().count, 1);
}

#[test]
fn segments_of_another_origin_are_not_mixed_in() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    built(&one, IndexConfig::given(IdKind::Number, 3), &[(1, Id::Number(1))]);
    let pages = FingerprintOrigin::Pages(Box::default());
    built(&other, IndexConfig { fingerprints: pages, ..IndexConfig::given(IdKind::Text, 3) }, &[(1, Id::from("a"))]);
    std::fs::copy(other.join("segment-000001.seg"), one.join("segment-000001.seg")).unwrap();
    let error = Index::open(&one, OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("another way"), "{error}");
}

#[test]
fn an_index_is_replaced_only_by_one_that_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let config = IndexConfig::given(IdKind::Number, 3);
    built(directory.path(), config.clone(), &[(1, Id::Number(1))]);
    let rows = || Index::open(directory.path(), OpenOptions::default()).unwrap().reader().len().0;
    {
        let index = Index::create(directory.path(), config.clone(), 1 << 26, true).unwrap();
        let mut bulk = index.bulk_insert().unwrap();
        bulk.push(2, &Id::Number(2)).unwrap();
        assert!(bulk.push(3, &Id::from("not a number")).is_err());
    }
    assert_eq!(rows(), 1, "what failed left the old one");
    // A killed run: a segment that no manifest lists, and a manifest that was not renamed.
    std::fs::write(directory.path().join("segment-000007.seg"), "half").unwrap();
    std::fs::write(directory.path().join("manifest.json.new"), "half").unwrap();
    let index = Index::create(directory.path(), config, 1 << 26, true).unwrap();
    let mut bulk = index.bulk_insert().unwrap();
    bulk.push(2, &Id::Number(2)).unwrap();
    bulk.push(3, &Id::Number(index.next_id())).unwrap();
    bulk.finish().unwrap();
    assert_eq!((rows(), index.next_id()), (2, 4));
    drop(index);
    let mut names: Vec<String> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["lock", "manifest.json", "segment-000008.seg"]);
}

#[test]
fn ids_of_the_wrong_kind_are_refused_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(1, Id::Number(1))]);
    assert!(index.insert(&[(1, Id::from("a"))]).is_err());
    assert!(index.delete(1, &Id::from("a")).is_err());
    index.delete(1, &Id::Number(1)).unwrap();
    index.flush().unwrap();
    assert_eq!(index.reader().query(1, 3, 10).unwrap().count, 0);
}
