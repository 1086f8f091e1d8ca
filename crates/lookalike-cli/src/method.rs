//! The flags that choose a method and its parameters → [`Config`].

use lookalike::config::{Antecedents, Config, Fields, Guess, Matching, Method, Weights, Within};
use lookalike::error::Error;
use lookalike::read::CaptureFilter;
use lookalike::text::Scope;
use lookalike::text::site::SiteRule;

use crate::args::{DedupArguments, MethodArguments, ReadingArguments, SpotArguments};
use crate::dedup::cluster_mode;
use crate::names::{GuessName, MatchingName, MethodName, ScopeName, SiteName, WeightsName, WithinName};

/// The config that the arguments describe.
pub(crate) fn config(arguments: &DedupArguments) -> Result<Config, Error> {
    let mut config = of_method(&arguments.method)?;
    config.cluster = cluster_mode(arguments.groups.cluster);
    config.keep = arguments.groups.keep.clone();
    read_as(&mut config, &arguments.reading);
    Ok(config)
}

/// How pages are read.
pub(crate) fn read_as(config: &mut Config, reading: &ReadingArguments) {
    config.max_page_bytes = reading.max_page;
    config.captures = CaptureFilter { statuses: reading.status.clone(), types: reading.types.clone() };
    config.scope = scope(reading.content);
    config.scripts = reading.scripts;
    config.format = reading.format;
    config.fields = Fields {
        id: reading.id_field.clone(),
        text: reading.text_field.clone(),
        url: reading.url_field.clone(),
        date: reading.date_field.clone(),
    };
}

fn of_method(arguments: &MethodArguments) -> Result<Config, Error> {
    let method = method(arguments.method);
    check_flags(arguments, method)?;
    let mut config = Config::for_method(method);
    let fine = &arguments.fine;
    if let Some(bits) = fine.sketch_bits {
        config.set_sketch_bits(bits);
    }
    replace(&mut config.threshold, arguments.threshold);
    replace(&mut config.recall, fine.recall);
    replace(&mut config.agree, arguments.agree);
    replace(&mut config.ngram, arguments.ngram);
    replace(&mut config.weights, arguments.weights.map(weights));
    replace(&mut config.same_site_bits, fine.same_site_bits);
    replace(&mut config.radius, arguments.radius);
    if let Some(bits) = arguments.bits {
        config.set_bits(bits);
    }
    replace(&mut config.pieces, fine.pieces);
    replace(&mut config.chunks.size, fine.chunk_size);
    replace(&mut config.chunks.longest, fine.chunk_max.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)));
    replace(&mut config.chunks.window, fine.chunk_window);
    replace(&mut config.chunks.marker, fine.chunk_marker);
    replace(&mut config.filter_bits, fine.filter_bits);
    replace(&mut config.filter_hashes, fine.filter_hashes);
    spots(&arguments.spots, &mut config)?;
    config.site = site_rule(arguments.site);
    config.length_ratio = arguments.length_ratio;
    config.within = arguments.within.map(|within| match within {
        WithinName::Language => Within::Language,
        WithinName::Site => Within::Site,
    });
    config.mask_volatile = arguments.mask.is_some();
    config.min_tokens = arguments.min_tokens;
    config.keep_case = arguments.keep_case;
    config.exact_only = arguments.exact_only;
    config.bucket_limit = arguments.bucket_limit;
    if arguments.ngram == Some(0) && method == Method::Simhash {
        return Err(Error::Usage(
            "--ngram 0 must be between 1 and 8; without it, content words and phrases count".to_owned(),
        ));
    }
    Ok(config)
}

pub(crate) fn site_rule(name: SiteName) -> SiteRule {
    match name {
        SiteName::Paper => SiteRule::Paper,
        SiteName::Registrable => SiteRule::Registrable,
    }
}

fn replace<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

fn spots(arguments: &SpotArguments, config: &mut Config) -> Result<(), Error> {
    let spots = &mut config.spots;
    if arguments.antecedents.len() > 1 && arguments.antecedents.iter().any(|text| text == "auto") {
        return Err(Error::Usage(
            "--antecedents: auto stands alone; the corpus's words make the whole list".to_owned(),
        ));
    }
    if arguments.antecedents == ["auto"] {
        spots.antecedents = Antecedents::Auto;
    } else if !arguments.antecedents.is_empty() {
        let parsed = arguments.antecedents.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        spots.antecedents = Antecedents::List(parsed.map_err(|error| Error::Usage(format!("--antecedents: {error}")))?);
    }
    let has_seeds = !arguments.seeds.is_empty();
    spots.matching = match arguments.matching {
        None if has_seeds => Matching::Seeded,
        None | Some(MatchingName::Full) => Matching::Full,
        Some(MatchingName::Incremental) => Matching::Incremental,
        Some(MatchingName::Seeded) => Matching::Seeded,
    };
    let complaint = match spots.matching {
        Matching::Seeded if !has_seeds => "--matching seeded starts from examples: name files of pages with --seeds",
        Matching::Full | Matching::Incremental if has_seeds => "--seeds are for --matching seeded",
        Matching::Full if arguments.index_duplicates => {
            "--index-duplicates is for --matching incremental or seeded; full matching compares all pages anyway"
        }
        _ => "",
    };
    if !complaint.is_empty() {
        return Err(Error::Usage(complaint.to_owned()));
    }
    replace(
        &mut spots.guess,
        arguments.guess.map(|guess| match guess {
            GuessName::First => Guess::First,
            GuessName::Best => Guess::Best,
        }),
    );
    spots.index_duplicates = arguments.index_duplicates;
    spots.size_filter = !arguments.no_size_filter;
    spots.spill = arguments.spill;
    spots.raw = arguments.raw;
    Ok(())
}

pub(crate) fn method(name: MethodName) -> Method {
    match name {
        MethodName::Minhash => Method::Minhash,
        MethodName::Shingle => Method::Shingle,
        MethodName::Projection => Method::Projection,
        MethodName::Combined => Method::Combined,
        MethodName::Routed => Method::Routed,
        MethodName::Simhash => Method::Simhash,
        MethodName::Bloom => Method::Bloom,
        MethodName::Spotsigs => Method::Spotsigs,
    }
}

pub(crate) fn weights(name: WeightsName) -> Weights {
    match name {
        WeightsName::None => Weights::None,
        WeightsName::Tf => Weights::Tf,
        WeightsName::Idf => Weights::Idf,
        WeightsName::TfIdf => Weights::TfIdf,
    }
}

/// A flag of another method: the error names the right one.
fn check_flags(arguments: &MethodArguments, method: Method) -> Result<(), Error> {
    use Method::{Bloom, Combined, Minhash, Projection, Routed, Shingle, Simhash, Spotsigs};
    let (fine, spots) = (&arguments.fine, &arguments.spots);
    let flags: [(&str, bool, &str, &[Method]); 25] = [
        ("--threshold", arguments.threshold.is_some(), "is a similarity in 0..1", &[Minhash, Bloom, Spotsigs]),
        ("--agree", arguments.agree.is_some(), "counts equal supershingles", &[Shingle, Combined, Routed]),
        ("--bits", arguments.bits.is_some(), "counts equal bits of a projection", &[Projection, Combined, Routed]),
        ("--radius", arguments.radius.is_some(), "counts differing bits of a fingerprint", &[Simhash]),
        ("--recall", fine.recall.is_some(), "chooses bands", &[Minhash]),
        (
            "--ngram",
            arguments.ngram.is_some(),
            "counts the words of a feature",
            &[Minhash, Shingle, Projection, Combined, Routed, Simhash],
        ),
        ("--sketch-bits", fine.sketch_bits.is_some(), "sizes a projection", &[Projection, Combined, Routed]),
        ("--pieces", fine.pieces.is_some(), "cuts a projection", &[Projection, Routed]),
        ("--same-site-bits", fine.same_site_bits.is_some(), "is about pairs on one site", &[Routed]),
        ("--chunk-size", fine.chunk_size.is_some(), "is about chunks", &[Bloom]),
        ("--chunk-max", fine.chunk_max.is_some(), "is about chunks", &[Bloom]),
        ("--chunk-window", fine.chunk_window.is_some(), "is about chunks", &[Bloom]),
        ("--chunk-marker", fine.chunk_marker.is_some(), "is about chunks", &[Bloom]),
        ("--filter-bits", fine.filter_bits.is_some(), "sizes a Bloom filter", &[Bloom]),
        ("--filter-hashes", fine.filter_hashes.is_some(), "is about Bloom filters", &[Bloom]),
        ("--antecedents", !spots.antecedents.is_empty(), "is about spot signatures", &[Spotsigs]),
        ("--matching", spots.matching.is_some(), "is about spot signatures", &[Spotsigs]),
        ("--guess", spots.guess.is_some(), "is about spot signatures", &[Spotsigs]),
        ("--seeds", !spots.seeds.is_empty(), "is about spot signatures", &[Spotsigs]),
        ("--index-duplicates", spots.index_duplicates, "is about spot signatures", &[Spotsigs]),
        ("--no-size-filter", spots.no_size_filter, "is about spot signatures", &[Spotsigs]),
        ("--spill", spots.spill, "is about spot signatures", &[Spotsigs]),
        ("--raw", spots.raw, "is about spot signatures", &[Spotsigs]),
        (
            "--weights",
            arguments.weights.is_some(),
            "is about features",
            &[Minhash, Shingle, Projection, Combined, Routed, Simhash, Bloom, Spotsigs],
        ),
        (
            "--exact-only",
            arguments.exact_only && (spots.matching.is_some() || !spots.seeds.is_empty()),
            "leaves nothing to match",
            &[],
        ),
    ];
    let Some((flag, _, what, methods)) =
        flags.iter().find(|(_, given, _, methods)| *given && !methods.contains(&method))
    else {
        return Ok(());
    };
    let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    let belongs = match names.split_last() {
        None => String::new(),
        Some((only, [])) => format!(" and belongs to {only}"),
        Some((last, others)) => format!(" and belongs to {} and {last}", others.join(", ")),
    };
    Err(Error::Usage(format!("{flag} {what}{belongs}; {} decides by {}", method.name(), decides_by(method))))
}

/// The flag of a method's own unit.
fn decides_by(method: Method) -> &'static str {
    match method {
        Method::Minhash => "--threshold T, the Jaccard similarity of word n-grams in 0..1",
        Method::Shingle => "--agree N, the number of equal supershingles (1..6)",
        Method::Projection => "--bits N, the number of equal bits (372 of 384)",
        Method::Combined => {
            "--agree N, the number of equal supershingles (1..6), and --bits N, the number of equal bits (355 of 384)"
        }
        Method::Routed => "--bits N between sites, and --agree N with --same-site-bits N within a site",
        Method::Simhash => "--radius N, the number of differing bits (3 of 64)",
        Method::Bloom => "--threshold T, the share of one page's chunks that are in the other, in 0..1",
        Method::Spotsigs => "--threshold T, the Jaccard similarity of spot signatures in 0..1",
    }
}

pub(crate) fn scope(name: ScopeName) -> Scope {
    match name {
        ScopeName::Page => Scope::Page,
        ScopeName::Core => Scope::Core,
        ScopeName::Main => Scope::Main,
    }
}
