//! One page against all others, from near to far (Jain et al. 2005, Figures 1 to 3).
//!
//! In: a page, by its id, URL or file, and the pages of some inputs. Out: every other page with what the method says of
//! the two, the nearest first. The input is read once to find the page, once for what the method counts in a corpus, if
//! anything, and once to compare; texts are not held.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::config::Config;
use crate::corpus_stats;
use crate::error::{Error, Result};
use crate::job::RunOptions;
use crate::job::compare::{PageFeatures, find_page, first_page};
use crate::observe::Silent;
use crate::page::RawPage;
use crate::plan::{Decision, Plan, Verdict};
use crate::read::Corpus;
use crate::report::numbers::counted;
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{csv, figure, page};
use crate::report::render;
use crate::sketch::bloom::SharedBits;
use crate::sketcher::Sketcher;
use crate::verify::score::score;

/// Which page is compared with which, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OnePageOptions {
    /// The page: its id or URL in the input, or a file.
    pub page: String,
    /// Files of pages.
    pub inputs: Vec<String>,
    /// How pages are read and compared.
    pub config: Config,
    /// Worker threads.
    pub threads: usize,
}

impl OnePageOptions {
    /// A page and some inputs, with the default threads.
    #[must_use]
    pub fn new(
        page: impl Into<String>,
        inputs: impl IntoIterator<Item: Into<String>>,
        config: Config,
    ) -> OnePageOptions {
        OnePageOptions {
            page: page.into(),
            inputs: inputs.into_iter().map(Into::into).collect(),
            config,
            threads: RunOptions::default_threads(),
        }
    }
}

/// A page and all others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnePage {
    /// The page, as it was asked for.
    pub page: String,
    /// The method, with the parameters that are not at their defaults.
    pub method: String,
    /// Its rule in words.
    pub rule: String,
    /// What scores count.
    pub unit: &'static str,
    /// The score from which pages are near-duplicates, where it is a share.
    pub threshold: Option<f64>,
    /// Near-duplicates among the others.
    pub near_duplicates: usize,
    /// Records of the input that could not be used.
    pub skipped: u64,
    /// All other pages: those with the same words, then the nearest first.
    pub others: Vec<OtherPage>,
}

/// Another page, compared with the one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherPage {
    /// Its id.
    pub id: String,
    /// Its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the two are near-duplicates.
    pub near_duplicate: bool,
    /// Whether they have the same words in the same order.
    pub identical: bool,
    /// What the method decides by.
    pub score: f64,
    /// Exact similarity, 0..1.
    pub similarity: f64,
    /// Share of the one page that is in this one.
    pub page_in_it: f64,
    /// Share of this page that is in the one.
    pub it_in_page: f64,
    /// Share of the bits of the one page's Bloom filter that are set in this one's, if the method has filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_bits_in_it: Option<f64>,
    /// The same the other way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub its_bits_in_page: Option<f64>,
}

/// Compares a page with all others.
///
/// # Errors
/// When there is no such page, the config is not valid, or the input cannot be read.
pub fn one_page(options: &OnePageOptions) -> Result<OnePage> {
    let config = &options.config;
    config.check()?;
    let corpus = Corpus::open(&options.inputs, &config.read)?;
    let name = options.page.as_str();
    let in_corpus = first_page(&corpus, |page| is_called(&corpus, page, name), name)?;
    let own_place = in_corpus.as_ref().map(|page| (page.source, page.record));
    let raw = match in_corpus {
        Some(page) => page,
        None if Path::new(name).is_file() => find_page(name, None, config)?,
        None => {
            let reason = "is neither the id or URL of a page in the input nor a file; a page without an id is called FILE:RECORD, as in the column id of pages.parquet";
            return Err(Error::bad_input(Path::new(name), reason));
        }
    };
    let stats = corpus_stats::count(config, &corpus, options.threads, &Silent)?;
    let plan = config.plan_with(Some(Arc::new(stats)));
    let own = PageFeatures::new(&mut Sketcher::of_plan(&plan), &raw);
    let mut others = Vec::new();
    let scanned = corpus.scan().threads(options.threads).without_revisits().for_each(
        || Sketcher::of_plan(&plan),
        |sketcher, page| {
            if own_place == Some((page.source, page.record)) {
                return Ok(None);
            }
            let other = PageFeatures::new(sketcher, &page);
            let url = page.url.as_deref().map(str::to_owned);
            Ok(Some(OtherPage { id: corpus.id_of(&page), url, ..compared(&plan, &own, &other) }))
        },
        |other| {
            others.push(other);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if others.is_empty() {
        if scanned.pages == 0 {
            return Err(corpus.no_pages(&options.inputs, &scanned.examples));
        }
        return Err(Error::bad_input(
            Path::new(name),
            "is the only page in the input; name more files to compare it with",
        ));
    }
    // Stable: pages that are equally near stay in the order of the input.
    others.sort_by(|a, b| nearer_first(&plan, a, b));
    Ok(OnePage {
        page: name.to_owned(),
        method: config.method.label(),
        rule: config.rule(),
        unit: if matches!(plan.decision, Decision::CommonBits { .. }) {
            "common bits"
        } else {
            config.method.unit().name()
        },
        threshold: match plan.decision {
            Decision::Similarity { threshold, .. } | Decision::CommonBits { threshold } => Some(threshold),
            _ => None,
        },
        near_duplicates: others.iter().filter(|other| other.near_duplicate).count(),
        skipped: scanned.skipped + corpus.problems.len() as u64,
        others,
    })
}

/// Whether a page is meant by a name: its id, its URL, or the file it is.
fn is_called(corpus: &Corpus, page: &RawPage<'_>, name: &str) -> bool {
    let source = corpus.source(page.source);
    page.url.as_deref() == Some(name)
        || (source.format.is_page_file() && source.display == name)
        || corpus.id_of(page) == name
}

fn compared(plan: &Plan, own: &PageFeatures, other: &PageFeatures) -> OtherPage {
    let found = score(plan, own.view(), other.view());
    let identical = own.tokens > 0 && own.identity == other.identity;
    let filters = || {
        let [own, other] = [own, other].map(|page| plan.sketch.parts(&page.sketch).filter);
        SharedBits::new(own, other)
    };
    let bits = plan.sketch.filter.map(|_| filters());
    OtherPage {
        id: String::new(),
        url: None,
        near_duplicate: identical || found.verdict == Verdict::Accepted,
        identical,
        // Chunks are found by filters, and decided about by themselves.
        score: if matches!(plan.decision, Decision::Similarity { .. }) { found.similarity } else { found.score },
        similarity: found.similarity,
        page_in_it: found.left_in_right,
        it_in_page: found.right_in_left,
        page_bits_in_it: bits.map(SharedBits::left_ratio),
        its_bits_in_page: bits.map(SharedBits::right_ratio),
    }
}

fn nearer_first(plan: &Plan, a: &OtherPage, b: &OtherPage) -> Ordering {
    let by_score = b.score.total_cmp(&a.score);
    let by_score = if plan.decision.larger_is_nearer() { by_score } else { by_score.reverse() };
    // The same words can be cut differently, where punctuation differs.
    b.identical.cmp(&a.identical).then(by_score).then(b.similarity.total_cmp(&a.similarity))
}

/// Pages that are drawn at most; the JSON file has all.
const MOST_DRAWN: usize = 1000;

/// Writes the pages by rank as a plot, and beside it everything as JSON and the points as CSV.
///
/// # Errors
/// When a file cannot be written.
pub fn write_one_page(found: &OnePage, path: &Path) -> Result<()> {
    render::check_page_name(path)?;
    let drawn = &found.others[..found.others.len().min(MOST_DRAWN)];
    let ranks = || (1u32..).map(f64::from).zip(drawn);
    let dots = |name: &str, of: fn(&OtherPage) -> f64| {
        Series::dots(name, ranks().map(|(rank, other)| (rank, of(other))).collect())
    };
    let mut series = Vec::new();
    if drawn.iter().all(|other| other.page_bits_in_it.is_some()) {
        series.push(dots("bits of the page's filter that are set in the other's", |other| {
            other.page_bits_in_it.unwrap_or_default()
        }));
        series.push(dots("bits of the other's filter that are set in the page's", |other| {
            other.its_bits_in_page.unwrap_or_default()
        }));
    } else {
        series.push(dots("similarity", |other| other.similarity));
    }
    series.push(dots("share of the page that is in the other", |other| other.page_in_it));
    series.push(dots("share of the other that is in the page", |other| other.it_in_page));
    series.extend(found.threshold.map(|threshold| {
        Series::line(format!("threshold {threshold}"), vec![(1.0, threshold), (drawn.len() as f64, threshold)])
    }));
    let all = counted(found.others.len() as u64, "page");
    let note = if drawn.len() < found.others.len() {
        format!("The nearest {} of {all}; the JSON file has all.", drawn.len())
    } else {
        format!("{all}, the nearest first.")
    };
    let figures = [figure(
        format!("Pages by nearness to {}", found.page),
        "Jain et al. 2005, Figures 1 to 3 (copies match in all bits of the filter, related pages in 53 and 69 %, the next version of a file in 98 %)",
        note,
        ("rank", Scale::from_zero(ranks().map(|(rank, _)| rank))),
        ("share", Scale::SHARE),
        &series,
    )];
    let lead = format!(
        "{} compared with {} by {}: {}. Near-duplicates: {}.",
        all,
        found.page,
        found.method,
        counted(found.near_duplicates as u64, "near-duplicate"),
        found.rule
    );
    render::write(path, page("One page against all others", &lead, &figures, &[])?)?;
    render::write(&path.with_extension("json"), render::json(found)?)?;
    render::write(&path.with_extension("csv"), csv(&figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::job::compare::by_config;

    fn words(from: usize, count: usize) -> String {
        (from..from + count).map(|n| format!("w{}x{n} ", n * 7919 % 1000)).collect()
    }

    /// A file of pages, each sharing less with the first one.
    fn pages(directory: &Path) -> (String, Vec<(String, String)>) {
        let mut pages: Vec<(String, String)> = (0..12).map(|n| (format!("p{n}"), words(n * 60, 600))).collect();
        pages.push(("copy".to_owned(), words(0, 600)));
        pages.push(("part".to_owned(), words(0, 200)));
        pages.push(("empty".to_owned(), String::new()));
        let lines: String =
            pages.iter().map(|(id, text)| serde_json::json!({"id": id, "text": text}).to_string() + "\n").collect();
        let path = directory.join("pages.jsonl");
        std::fs::write(&path, lines).unwrap();
        (path.to_string_lossy().into_owned(), pages)
    }

    fn method(text: &str) -> Config {
        Config::new(text.parse::<Method>().unwrap())
    }

    #[test]
    fn every_method_says_of_every_page_what_it_says_of_the_two() {
        let directory = tempfile::tempdir().unwrap();
        let (input, pages) = pages(directory.path());
        let texts = ["bloom decide_by=bits", "bloom chunk_size=64", "minhash", "simhash", "shingle", "projection"];
        for config in texts.map(method) {
            let name = config.method.label();
            let found = one_page(&OnePageOptions::new("p0", [&input], config.clone())).unwrap();
            assert_eq!(found.others.len(), pages.len() - 1, "{name}");
            assert!(found.others.iter().all(|other| other.id != "p0"));
            let first = RawPage::text(pages[0].1.as_str());
            for other in &found.others {
                let text = &pages.iter().find(|page| page.0 == other.id).unwrap().1;
                let (said, facts) = by_config(&first, &RawPage::text(text.as_str()), &config);
                assert_eq!(other.identical, facts[0].1 == facts[1].1, "{name} {}", other.id);
                assert_eq!(other.near_duplicate, said.near_duplicate || other.identical, "{name} {}", other.id);
                assert_eq!(
                    (other.similarity, other.page_in_it, other.it_in_page),
                    (said.similarity, said.left_in_right, said.right_in_left)
                );
                let bits = other.page_bits_in_it.zip(other.its_bits_in_page).map(|bits| bits.0.max(bits.1));
                assert_eq!(bits.filter(|_| !text.is_empty()), said.common_bits.filter(|_| !text.is_empty()), "{name}");
                let is_bits = found.unit == "common bits" && !text.is_empty();
                assert_eq!(other.score, if is_bits { bits.unwrap() } else { said.score }, "{name} {}", other.id);
            }
            let nearness: Vec<f64> =
                found.others.iter().map(|other| config.method.unit().nearness(other.score)).collect();
            assert!(nearness.is_sorted_by(|a, b| a >= b), "{name}: {nearness:?}");
            assert_eq!(found.others[0].id, "copy", "{name}");
        }
    }

    #[test]
    fn a_file_is_compared_with_all_pages_and_strangers_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (input, pages) = pages(directory.path());
        let file = directory.path().join("page.txt").to_string_lossy().into_owned();
        std::fs::write(&file, &pages[3].1).unwrap();
        let options = OnePageOptions::new(file.as_str(), [&input], method("bloom decide_by=bits"));
        let found = one_page(&options).unwrap();
        assert_eq!((found.others.len(), found.others[0].id.as_str()), (pages.len(), "p3"));
        // A file that is itself in the input is not compared with itself.
        let both = OnePageOptions { inputs: vec![input, file], ..options.clone() };
        assert_eq!(one_page(&both).unwrap().others.len(), pages.len());
        let nobody = OnePageOptions { page: "p99".to_owned(), ..options };
        assert!(one_page(&nobody).unwrap_err().to_string().contains("p99: is neither the id or URL"));

        let report = directory.path().join("one.html");
        write_one_page(&found, &report).unwrap();
        assert!(std::fs::read_to_string(&report).unwrap().contains("Pages by nearness to"));
        let table = std::fs::read_to_string(report.with_extension("csv")).unwrap();
        assert!(table.contains("Jain et al. 2005, Figures 1 to 3"));
        assert!(table.lines().any(|line| line.ends_with("bits of the page's filter that are set in the other's,1,1")));
        assert!(write_one_page(&found, &report.with_extension("csv")).is_err());
    }
}
