//! A page → its features and its sketch, without allocation once the buffers have grown.
//!
//! In: a [`RawPage`]. Out: its token count, the hash of its token sequence, the columns that
//! candidates are found by; on request its exact features and whole sketch. A sketcher has its own copy of the plan
//! and belongs to one thread at a time.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::feature::hash_set::HashSets;
use crate::feature::multiset::number_copies;
use crate::feature::shingle::shingles;
use crate::feature::spot::{Spots, built_in};
use crate::feature::words::words_and_phrases;
use crate::page::{Body, RawPage, SourceId, Token};
use crate::plan::{ColumnLayout, Features, Measure, Plan};
use crate::plan::{Weights, Within};
pub use crate::sketch::PageSketch;
use crate::sketch::projection::halves;
use crate::sketch::simhash::long_fingerprint;
use crate::spill::Fixed;
use crate::text::canonical::canonical;
use crate::text::frames::{Frames, Learns};
use crate::text::language::{self, Lang, Languages};
use crate::text::mask::without_volatile;
use crate::text::site::SiteRule;
use crate::text::{HeldPage, PageReader, Scope, StoredBlocks, StoredContent};

/// Titles longer than this are cut.
const TITLE_CHARS: usize = 200;
/// The key of a band that a page does not have.
pub(crate) const NO_KEY: u64 = 0;
/// The group of pages whose language cannot be detected.
pub(crate) const NO_LANGUAGE: u64 = u64::MAX;

/// Sketches pages for a plan.
pub struct Sketcher {
    plan: Plan,
    layout: ColumnLayout,
    /// Whether pages in blocks have the keys of stories before their frame is known.
    has_keys_before_frames: bool,
    /// Whether the last page was in blocks.
    is_in_blocks: bool,
    site_rule: SiteRule,
    within: Option<Within>,
    reader: PageReader,
    languages: Languages,
    /// The language of all pages, where that was said.
    language: Option<Lang>,
    spots: HashMap<Option<Lang>, Spots>,
    /// The last page's features, with repetitions.
    sequence: Vec<u64>,
    features: Vec<u64>,
    hash_sets: HashSets,
    weights: Vec<u32>,
    sketch: Vec<u32>,
    site: u64,
    group: u64,
    narrow: Vec<u32>,
    min_values: Vec<u32>,
    bytes: Vec<u8>,
    text: String,
    ends: Vec<usize>,
    title: String,
}

/// What every page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts<'s> {
    /// Number of tokens.
    pub tokens: u32,
    /// Hash of the token sequence.
    pub identity: u128,
    /// Hash of the whole text; never 0.
    pub text_hash: u64,
    /// The title in the markup.
    pub title: Option<&'s str>,
    /// Which part of it was compared; nothing where it is not HTML.
    pub scope: Option<Scope>,
}

/// A page that is to be read.
enum Unread<'p> {
    Raw(&'p RawPage<'p>),
    Held(&'p HeldPage),
}

/// What is known of a page beside its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageAbout<'p> {
    pub(crate) url: Option<&'p str>,
    pub(crate) title: Option<&'p str>,
    pub(crate) source: SourceId,
    pub(crate) record: u64,
}

/// A title on one line, cut where it is too long.
fn set_title(own: &mut String, title: Option<&str>) {
    own.clear();
    for word in title.unwrap_or_default().split_whitespace() {
        if own.chars().count() > TITLE_CHARS {
            break;
        }
        if !own.is_empty() {
            own.push(' ');
        }
        own.extend(word.chars().take(TITLE_CHARS));
    }
}

impl Sketcher {
    /// A sketcher for `plan`.
    #[must_use]
    pub(crate) fn of_plan(plan: &Plan) -> Sketcher {
        Sketcher {
            plan: plan.clone(),
            layout: plan.columns(),
            has_keys_before_frames: false,
            is_in_blocks: false,
            site_rule: plan.pairs.site,
            within: plan.pairs.within,
            reader: PageReader::new(plan.text).without(plan.corpus.as_ref().and_then(|corpus| corpus.frames.clone())),
            languages: Languages::default(),
            language: plan.language,
            spots: HashMap::new(),
            sequence: Vec::new(),
            features: Vec::new(),
            hash_sets: HashSets::default(),
            weights: Vec::new(),
            sketch: Vec::new(),
            site: 0,
            group: 0,
            narrow: Vec::new(),
            min_values: Vec::new(),
            bytes: Vec::new(),
            text: String::new(),
            ends: Vec::new(),
            title: String::new(),
        }
    }

    /// The same, which gives pages in blocks the keys of stories before their frame is known.
    #[must_use]
    pub(crate) fn with_keys_before_frames(mut self) -> Sketcher {
        self.has_keys_before_frames = true;
        self
    }

    /// The plan.
    #[must_use]
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Reads a page: its facts, and its features for what follows.
    pub fn read(&mut self, page: &RawPage<'_>) -> PageFacts<'_> {
        let (url, title) = (page.url.as_deref(), page.title.as_deref());
        self.take_in(Unread::Raw(page), PageAbout { url, title, source: page.source, record: page.record })
    }

    /// A page in its blocks, and its title, if it has to wait until frames are known.
    pub(crate) fn hold(&mut self, page: &RawPage<'_>, learner: &dyn Learns) -> Option<(HeldPage, Option<&str>)> {
        let options = self.plan.text;
        let keeps_text = options.words || options.content || self.wants_language();
        let (held, title) = self.reader.hold(page, keeps_text, learner)?;
        set_title(&mut self.title, title.or(page.title.as_deref()));
        Some((held, Some(self.title.as_str()).filter(|title| !title.is_empty())))
    }

    /// Leaves out other frames from now on.
    pub(crate) fn set_frames(&mut self, frames: Option<Arc<Frames>>) {
        self.reader.set_frames(frames);
    }

    /// A page in its blocks, with its text, if its frame is to be left out.
    pub(crate) fn hold_with_text(&mut self, page: &RawPage<'_>) -> Option<HeldPage> {
        let (held, title) = self.reader.hold_with_text(page)?;
        set_title(&mut self.title, title.or(page.title.as_deref()));
        Some(held)
    }

    /// What is stored of a page whose frame nobody asks for.
    pub(crate) fn content_of(&self, page: &RawPage<'_>) -> StoredContent {
        let text = page.unicode();
        let has_markup = page.is_html(&text) && !self.plan.text.raw;
        if has_markup { StoredContent::Html(text.into_owned()) } else { StoredContent::Text(text.into_owned()) }
    }

    /// What stands for the site of the page just read, where that counts; else 0.
    pub(crate) fn site(&self) -> u64 {
        self.site
    }

    /// The title of the page that was read, or held, last.
    pub(crate) fn title(&self) -> Option<&str> {
        Some(self.title.as_str()).filter(|title| !title.is_empty())
    }

    /// A page in blocks that was stored.
    pub(crate) fn hold_stored(&mut self, stored: &StoredBlocks) -> HeldPage {
        self.reader.hold_stored(stored)
    }

    /// Reads a page that was stored, as [`Sketcher::read`] read it then.
    pub(crate) fn read_stored(&mut self, content: &StoredContent, url: Option<&str>) -> PageFacts<'_> {
        match content {
            StoredContent::Blocks(blocks) => {
                let held = self.hold_stored(blocks);
                let about = PageAbout { url, title: None, source: SourceId::from_index(0), record: 0 };
                self.read_held(&held, about)
            }
            StoredContent::Text(_) | StoredContent::Html(_) => {
                let (text, markup) = content.text();
                let mut page = RawPage::new(Body::Text(text.into()), markup);
                page.url = url.map(Into::into);
                let about = PageAbout { url, title: None, source: page.source, record: page.record };
                self.take_in(Unread::Raw(&page), about)
            }
        }
    }

    /// Reads a page that was held, as [`Sketcher::read`] would.
    pub(crate) fn read_held(&mut self, page: &HeldPage, about: PageAbout<'_>) -> PageFacts<'_> {
        self.take_in(Unread::Held(page), about)
    }

    fn wants_language(&self) -> bool {
        self.language.is_none() && (self.plan.needs_language() || self.within == Some(Within::Language))
    }

    fn take_in(&mut self, page: Unread<'_>, about: PageAbout<'_>) -> PageFacts<'_> {
        let is_language_wanted = self.wants_language();
        self.is_in_blocks = matches!(page, Unread::Held(_));
        let read = match page {
            Unread::Raw(page) => self.reader.read(page),
            Unread::Held(page) => self.reader.read_held(page),
        };
        set_title(&mut self.title, read.title.or(about.title));
        // The words of markup are not a language.
        let spoken = if self.plan.text.raw { &[] } else { read.tokens };
        // Where words are reduced to stems, what a few other words would change must not change all of them.
        let is_sure = self.plan.reduces_words() && !self.plan.guesses_language;
        let stems_of = match self.language {
            None if is_language_wanted && is_sure => language::detect_surely(&read.text, spoken),
            said => said,
        };
        let language = match stems_of {
            None if is_language_wanted && (!is_sure || self.within == Some(Within::Language)) => {
                language::detect(&read.text, spoken)
            }
            found => found,
        };
        let stems_of = if is_sure { stems_of } else { language };
        let mut site = 0;
        // Where pages in blocks are compared, other pages are of no site.
        let is_siteless = read.site.is_none() && self.plan.text.scope == Scope::Story;
        if self.layout.site && !is_siteless || self.within == Some(Within::Site) {
            let name = about.url.and_then(|url| self.site_rule.site(url));
            site = name.map_or(0, |name| xxh3_64(name.as_bytes()).max(1));
        }
        self.site = match read.site {
            // By its URL, if it has one.
            Some(by_markup) if site == 0 => by_markup,
            None if is_siteless => 0,
            _ => site,
        };
        self.group = match self.within {
            None => 0,
            Some(Within::Site) => site,
            Some(Within::Language) => language.map_or(NO_LANGUAGE, |language| language as u64 + 1),
        };
        let count = u32::try_from(read.tokens.len()).unwrap_or(u32::MAX);
        // A few words that are left of a page do not say that it is the same page as another.
        let short_text = read.text_hash.filter(|_| count > 0 && !self.plan.is_long_enough(count));
        let identity = if short_text.is_none() && self.within.is_none() {
            xxh3_128(&u64::bytes(read.tokens))
        } else {
            self.bytes.clear();
            u64::encode(read.tokens, &mut self.bytes);
            u64::encode(short_text.as_slice(), &mut self.bytes);
            if self.within.is_some() {
                // Copies in different groups are not the same page: they are not even compared.
                u64::encode(&[self.group], &mut self.bytes);
                if self.group == 0 {
                    // Without a site a page is compared with none, not even with its copy.
                    u64::encode(&[about.source.index() as u64, about.record], &mut self.bytes);
                }
            }
            xxh3_128(&self.bytes)
        };

        match &self.plan.features {
            Features::Shingles { k } => shingles(read.tokens, *k, &mut self.sequence),
            Features::Words => words_and_phrases(read.words, self.languages.of(stems_of), &mut self.sequence),
            Features::Chunks(chunker) => {
                self.text.clear();
                if self.plan.text.mask_volatile {
                    canonical(&without_volatile(read.content), &mut self.text);
                } else {
                    canonical(read.content, &mut self.text);
                }
                chunker.chunks(self.text.as_bytes(), &mut self.ends, &mut self.sequence);
            }
            Features::Spots(spots) => {
                let spots = match spots {
                    Some(spots) => spots,
                    None => self
                        .spots
                        .entry(language)
                        .or_insert_with(|| Spots::new(&built_in(language), self.plan.text.keep_case)),
                };
                spots.signatures(read.tokens, read.block_ends, &mut self.sequence);
            }
        }
        let scope = read.scope;
        #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
        let text_hash = read.text_hash.unwrap_or(identity as u64).max(1);
        let title = Some(self.title.as_str()).filter(|title| !title.is_empty());
        PageFacts { tokens: count, identity, text_hash, title, scope }
    }

    /// The columns of the page just read, for finding candidates.
    pub(crate) fn columns(&mut self, columns: &mut Vec<u64>) {
        columns.clear();
        if self.layout.bands + self.layout.bits > 0 {
            self.make_sketch(self.layout.bits > 0);
        }
        let parts = self.plan.sketch.parts(&self.sketch);
        if let Some(bands) = self.plan.sketch.bands().filter(|_| self.layout.bands > 0) {
            columns.extend(bands.keys(parts.min_values, &mut self.bytes));
        }
        if let Some(bands) = self.plan.sketch.story_bands.filter(|_| self.layout.story_bands > 0) {
            if self.site == 0 && !(self.has_keys_before_frames && self.is_in_blocks) {
                columns.extend(std::iter::repeat_n(NO_KEY, bands.bands));
            } else {
                columns.extend(bands.keys(parts.min_values, &mut self.bytes).map(|key| key.max(NO_KEY + 1)));
            }
        }
        if self.layout.bits > 0 {
            columns.extend(parts.bits.chunks_exact(2).map(|word| u64::from(word[0]) | u64::from(word[1]) << 32));
        }
        if self.layout.site {
            columns.push(self.site);
        }
        if self.layout.group {
            columns.push(self.group);
        }
    }

    /// The features and the whole sketch of the page just read.
    pub fn sketch(&mut self) -> PageSketch<'_> {
        self.make_sketch(true);
        if !self.sketches_features() {
            self.make_features();
        }
        PageSketch { features: &self.features, weights: &self.weights, sketch: &self.sketch }
    }

    /// The same, once the columns of the page have been made.
    pub(crate) fn sketch_with_columns(&mut self) -> PageSketch<'_> {
        let has_all = self.layout.bits > 0 || self.layout.bands > 0 && self.plan.sketch.projection.is_none();
        if !has_all {
            return self.sketch();
        }
        if !self.sketches_features() {
            self.make_features();
        }
        PageSketch { features: &self.features, weights: &self.weights, sketch: &self.sketch }
    }

    /// The group that the page just read is searched within.
    pub(crate) fn group(&self) -> u64 {
        self.group
    }

    /// The features of the page just read, each as often as it occurs.
    #[must_use]
    pub fn sequence(&self) -> &[u64] {
        &self.sequence
    }

    /// The tokens of the page just read.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        self.reader.tokens()
    }

    /// Sorted features and their weights.
    fn make_features(&mut self) {
        self.features.clear();
        self.weights.clear();
        self.features.extend_from_slice(&self.sequence);
        let idf = |feature: u64| {
            let rarity = self.plan.corpus.as_ref().map(|corpus| &corpus.rarity);
            rarity.map_or(1, |rarity| rarity.weight(feature))
        };
        match (self.plan.measure, self.plan.weights) {
            (Measure::Jaccard | Measure::Coverage, Weights::Tf | Weights::TfIdf) => number_copies(&mut self.features),
            (_, Weights::None) => self.hash_sets.make(&mut self.features),
            (_, Weights::Idf) => {
                self.hash_sets.make(&mut self.features);
                self.weights.extend(self.features.iter().map(|&feature| idf(feature)));
            }
            (Measure::Cosine, weights) => {
                self.features.sort_unstable();
                for run in self.features.chunk_by(|a, b| a == b) {
                    let count = u32::try_from(run.len()).unwrap_or(u32::MAX);
                    let factor = if weights == Weights::TfIdf { idf(run[0]) } else { 1 };
                    self.weights.push(count.saturating_mul(factor));
                }
                self.features.dedup();
            }
        }
    }

    /// Whether the sketch is made from the sorted features and not from their sequence.
    fn sketches_features(&self) -> bool {
        let plan = &self.plan.sketch;
        plan.filter.is_some()
            || (plan.min_values.is_some() && self.plan.weights != Weights::None)
            || (plan.simhash.is_some() && self.plan.weights != Weights::Tf)
    }

    /// The sketch; on request without the bits, which then are zeros: the combined algorithm wants them
    /// only of candidates.
    fn make_sketch(&mut self, with_bits: bool) {
        self.sketch.clear();
        let needs_features = self.sketches_features();
        if needs_features {
            self.make_features();
        }
        let plan = &self.plan.sketch;
        if let Some((hasher, _)) = &plan.min_values {
            let features = if needs_features { &self.features } else { &self.sequence };
            hasher.min_values(features, &mut self.narrow, &mut self.min_values);
            self.sketch.extend_from_slice(&self.min_values);
        }
        if let Some(projection) = plan.projection.as_ref().filter(|_| !with_bits) {
            self.sketch.resize(self.sketch.len() + projection.words(), 0);
        } else if let Some(projection) = &plan.projection {
            let summed = if self.plan.projects_shingles() { &self.sequence } else { self.reader.tokens() };
            projection.project(summed, &mut self.sketch);
        }
        if let Some(bits) = plan.simhash {
            let (features, weights) = match self.plan.weights {
                Weights::Tf => (&self.sequence, None),
                Weights::None => (&self.features, None),
                Weights::Idf | Weights::TfIdf => (&self.features, Some(self.weights.as_slice())),
            };
            long_fingerprint(features, weights, bits, &mut self.sketch);
        }
        if let Some(filter) = plan.filter {
            filter.filter(&self.features, &mut self.sketch);
        }
        if plan.site {
            self.sketch.extend(halves(self.site));
        }
        if plan.length {
            self.sketch.push(u32::try_from(self.reader.tokens().len()).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Method};
    use crate::page::{Body, Markup};
    use std::borrow::Cow;

    const PAGE: &str = "<html><title>Roses</title><p>A rose is a rose is a rose, said the gardener to the \
        visitors who had come to the garden on Sunday to look at the roses.</p><ul><li>Home<li>News</ul>\
        <p>The visitors were told that the roses, which were planted in the spring, would be red \
        and that the violets would be blue. <img src=rose.png></p>";

    fn page(html: &str) -> RawPage<'_> {
        let url = Cow::Borrowed("http://www.garden.example.org/roses.html");
        RawPage { url: Some(url), ..RawPage::new(Body::Text(Cow::Borrowed(html)), Markup::Html) }
    }

    /// Everything a method makes of a page, as one number.
    fn digest(config: &Config) -> u64 {
        let plan = config.plan();
        let mut sketcher = Sketcher::of_plan(&plan);
        sketcher.read(&page(PAGE));
        let (mut bytes, mut columns) = (Vec::new(), Vec::new());
        sketcher.columns(&mut columns);
        u64::encode(&columns, &mut bytes);
        let sketch = sketcher.sketch();
        assert!(!sketch.features.is_empty());
        u64::encode(sketch.features, &mut bytes);
        u32::encode(sketch.weights, &mut bytes);
        u32::encode(sketch.sketch, &mut bytes);
        xxh3_64(&bytes)
    }

    /// One config with the defaults and one with odd parameters for each method.
    fn configs() -> Vec<Config> {
        let odd_parameters: [(&str, &[(&str, &str)]); 8] = [
            ("minhash", &[("ngram", "3"), ("threshold", "0.83"), ("weights", "tf"), ("seed", "12345")]),
            ("shingle", &[("ngram", "5"), ("bands", "7"), ("rows", "3"), ("seed", "12345")]),
            ("projection", &[("ngram", "2"), ("sketch_bits", "100"), ("seed", "12345")]),
            ("combined", &[("sketch_bits", "77"), ("seed", "12345")]),
            ("routed", &[("seed", "12345")]),
            ("simhash", &[("ngram", "3"), ("sketch_bits", "150")]),
            (
                "bloom",
                &[
                    ("chunk_window", "7"),
                    ("chunk_marker", "3"),
                    ("chunk_size", "16"),
                    ("chunk_max", "90"),
                    ("filter_bits", "333"),
                    ("filter_hashes", "3"),
                    ("seed", "12345"),
                ],
            ),
            ("spotsigs", &[("antecedents", "the:1,a:3:2"), ("spill", "true"), ("seed", "12345")]),
        ];
        assert_eq!(
            odd_parameters.map(|row| row.0).to_vec(),
            Method::all().iter().map(Method::name).collect::<Vec<_>>()
        );
        odd_parameters
            .iter()
            .flat_map(|(name, parameters)| {
                let mut config = Config::new(Method::named(name).unwrap());
                config.content.scope = Scope::Core;
                let mut odd = config.clone();
                odd.method.set_all(parameters.iter().copied()).unwrap();
                if *name == "routed" {
                    odd.pairs.site = SiteRule::Registrable;
                    odd.pairs.within = Some(Within::Language);
                }
                [config, odd]
            })
            .collect()
    }

    #[test]
    fn golden_sketches_of_every_method() {
        let found: Vec<u64> = configs().iter().map(digest).collect();
        let expected: Vec<u64> = GOLDEN.to_vec();
        assert_eq!(found, expected, "{found:#018x?}");
    }

    /// Default and odd parameters of each method, in the order of [`Method::all`].
    const GOLDEN: [u64; 16] = [
        0x3c44_a7bf_8621_3c82,
        0xf663_09c8_a957_95df,
        0x46fc_4b78_57d0_449e,
        0x90d5_802e_69ee_6def,
        0xaea6_47d8_8dd5_ac30,
        0xb5c3_3a9d_19a5_453b,
        0x9359_c053_a461_8a57,
        0x5a56_cacf_1754_b4c5,
        0x6a76_6254_2840_e46d,
        0x8620_1ecd_e72e_7cd1,
        0xdaf0_593e_f2b9_bbd0,
        0x3380_e11a_023e_a973,
        0x74e8_b11a_7d6c_d00f,
        0x2b9b_a4df_26bd_0e54,
        0x7fbc_6431_f65c_6031,
        0xd721_40b0_4196_0996,
    ];

    #[test]
    fn what_was_sketched_in_the_first_reading_is_what_is_sketched_in_the_second() {
        for config in configs() {
            let plan = config.plan();
            let mut sketcher = Sketcher::of_plan(&plan);
            let (mut first, mut again) = (Vec::new(), Vec::new());
            sketcher.read(&page(PAGE));
            sketcher.columns(&mut first);
            sketcher.read(&page("<p>another page altogether, of no interest"));
            sketcher.sketch();
            sketcher.read(&page(PAGE));
            assert_eq!(sketcher.sketch().sketch.len(), plan.sketch.words(), "{:?}", config.method);
            sketcher.columns(&mut again);
            assert_eq!(first, again);
            assert_eq!(first.len(), plan.columns().columns());
        }
    }
}
