//! What is sent and stored: pages and texts of generated words, like no other.

use lookalike_bench::corpus::{Corpus, CorpusPlan, Random};

/// Bytes of a page.
const PAGE_BYTES: usize = 8192;
/// Words in a short text, on average.
const TEXT_WORDS: usize = 45;
/// Words in a paragraph of a page.
const PARAGRAPH_WORDS: usize = 120;
/// Texts that are stored and those that are sent have other seeds.
const SENT: u64 = 1 << 48;

/// Pages and texts of the same words.
pub(super) struct Pages {
    corpus: Corpus,
}

impl Pages {
    pub(super) fn new() -> Pages {
        Pages { corpus: Corpus::new(CorpusPlan { seed: 11, ..CorpusPlan::default() }) }
    }

    /// Page number `number`.
    pub(super) fn html(&self, number: u64) -> String {
        let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut corpus =
            self.corpus.of_same_words(CorpusPlan { seed, copy_every: usize::MAX, ..CorpusPlan::default() });
        let mut html = format!("<html><head><title>Page {number}</title></head><body>");
        while html.len() < PAGE_BYTES {
            let text = corpus.next_text();
            let words: Vec<&str> = text.split_whitespace().take(PARAGRAPH_WORDS).collect();
            html.push_str("<p>");
            html.push_str(&words.join(" "));
            html.push_str("</p>\n");
        }
        html.push_str("</body></html>");
        html
    }

    /// Bodies of requests about pages, made before anything is measured: who asks a service is on another machine, as a
    /// rule.
    pub(super) fn html_bodies(&self, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        let body =
            |number| serde_json::json!({ "url": format!("http://a.example/{number}"), "html": self.html(number) });
        numbers.map(|number| body(number).to_string().into_bytes()).collect()
    }

    /// Short texts, one in five of them an edited copy of an earlier one.
    pub(super) fn texts(&self, seed: u64) -> impl FnMut() -> String {
        let mut corpus = self.corpus.of_same_words(CorpusPlan { words: TEXT_WORDS, seed, ..CorpusPlan::default() });
        move || corpus.next_text()
    }

    /// Bodies of requests about short texts that were not stored when the collection was filled.
    pub(super) fn text_bodies(&self, series: u64, count: u64) -> Vec<Vec<u8>> {
        let mut next = self.texts(SENT + 2 + series);
        let mut body =
            |number| serde_json::json!({ "url": format!("http://b.example/{series}/{number}"), "text": next() });
        (0..count).map(|number| body(number).to_string().into_bytes()).collect()
    }

    /// The words of a text in many orders.
    pub(super) fn permutations(&self, count: usize) -> Vec<String> {
        let text = self.texts(SENT)();
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut random = Random(5);
        let mut shuffled = || {
            (1..words.len()).rev().for_each(|at| words.swap(at, random.below(at + 1)));
            words.join(" ")
        };
        (0..count).map(|_| shuffled()).collect()
    }

    /// Texts that share nine of ten words, in the same order.
    pub(super) fn siblings(&self, count: usize) -> Vec<String> {
        let mut next = self.texts(SENT + 1);
        let common: Vec<String> = (0..9).map(|_| next()).collect();
        let common = common.join(" ");
        (0..count).map(|_| format!("{common} {}", next())).collect()
    }
}
