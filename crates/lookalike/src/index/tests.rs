//! The whole index against its definition.
#![allow(clippy::cast_possible_truncation)] // small numbers

use super::*;
use crate::candidate::design::Cut;
use crate::random::next_random;

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
    let mut bulk = index.bulk().unwrap();
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

fn asked(reader: &mut Reader, query: u64, radius: u32) -> Vec<(u32, u64, Id)> {
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
    cuts.extend((1..=radius).map(Cut::Flips).filter(|cut| {
        crate::candidate::design::Design::new(64, radius, cut.clone()).is_ok_and(|design| design.probes() < 5000)
    }));
    cuts
}

#[test]
fn every_design_and_codec_equals_a_scan_at_every_radius() {
    let mut state = 2007;
    for radius in 0..=MOST_RADIUS {
        let rows = rows(if radius < 4 { 20_000 } else { 2000 }, &mut state);
        for (cut, codec) in designs(radius).into_iter().flat_map(|cut| Codec::ALL.map(|codec| (cut.clone(), codec))) {
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
fn a_radius_beyond_the_tables_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let index = built(directory.path(), IndexConfig::given(IdKind::Number, 3), &[(7, Id::Number(1))]);
    let error = index.reader().query(7, 4, 10).unwrap_err().to_string();
    assert!(error.contains("--radius 4"), "{error}");
    assert!(Index::create(&directory.path().join("x"), IndexConfig::given(IdKind::Number, 11), 0, false).is_err());
}

#[test]
fn crowds_are_counted_and_only_the_first_are_told() {
    let mut state = 5;
    let centre = 0x0123_4567_89ab_cdef;
    let mut all: Vec<(u64, Id)> = (0..30_000).map(|id| (centre, Id::Number(id))).collect();
    // Many different fingerprints that share a quarter with the centre: a bucket of their own.
    all.extend((30_000..60_000).map(|id| (centre ^ next_random(&mut state) >> 16, Id::Number(id))));
    all.extend((60_000..70_000).map(|id| (flipped(centre, (id % 6) as u32, &mut state), Id::Number(id))));
    for codec in Codec::ALL {
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
        assert_eq!(reader.batch(&right.iter().map(|row| row.0).collect::<Vec<u64>>(), radius).unwrap(), expected);
        assert_eq!(reader.join(&other.reader(), radius).unwrap(), expected);
        let pairs = stored.iter().flat_map(|&a| stored.iter().map(move |&b| (a, b)));
        let expected: Vec<(u64, u64)> = pairs.filter(|(a, b)| a < b && (a ^ b).count_ones() <= radius).collect();
        assert_eq!(reader.self_join(radius).unwrap(), expected, "radius {radius}");
    }
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
                        if next_random(&mut state) % 3 == 0 {
                            index.insert(&[(fingerprint, id.clone())]).unwrap();
                            model.0.push((fingerprint, id));
                        }
                        if model.0.is_empty() {
                            break;
                        }
                    }
                }
                7 => drop(index.merge_like_sizes().unwrap()),
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
    for codec in Codec::ALL {
        let config = IndexConfig { codec, cut: Some(Cut::Blocks(vec![4])), ..IndexConfig::given(IdKind::Text, 3) };
        let mut files = Vec::new();
        for (name, memory) in [("small", 200_000), ("large", 1 << 30)] {
            let path = directory.path().join(format!("{name}-{}", codec.name()));
            let index = Index::create(&path, config.clone(), memory, false).unwrap();
            let mut bulk = index.bulk().unwrap();
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
    for (codec, golden) in [(Codec::Raw, 0u64), (Codec::Huffman, 0), (Codec::EliasFano, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let config = IndexConfig { codec, cut: Some(Cut::Blocks(vec![4])), ..IndexConfig::given(IdKind::Number, 3) };
        built(directory.path(), config, &rows);
        let bytes = std::fs::read(directory.path().join("segment-000001.seg")).unwrap();
        assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), golden, "{codec:?}");
    }
}
