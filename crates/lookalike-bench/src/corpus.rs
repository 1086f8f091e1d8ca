//! A corpus of English-looking text with known near-duplicates, from a seed.
//!
//! Words follow Zipf's law: the most frequent are English function words, the rest are made of
//! syllables. A fifth of the documents are edited copies of earlier ones; how strong the edit is
//! varies from one changed word to a rewritten half.

use std::io::{self, Write};
use std::sync::Arc;

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct CorpusPlan {
    /// Documents in all.
    pub documents: usize,
    /// Words in a document, on average.
    pub words: usize,
    /// One document in so many is an edited copy.
    pub copy_every: usize,
    /// Everything follows from it.
    pub seed: u64,
}

impl Default for CorpusPlan {
    fn default() -> CorpusPlan {
        CorpusPlan { documents: 100_000, words: 450, copy_every: 5, seed: 1 }
    }
}

/// SplitMix64, from a seed.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % limit.max(1) as u64).unwrap_or(0)
    }

    fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const FUNCTION_WORDS: &str = "the of and to a in that it is was for on with as his he be at by this had not are but from or have \
    an they which one you were all her she there would their we him been has when who will no more if out so up said what its \
    about than into them can only other time new some could these two may first then do any like my now over such our man me \
    even most made after also well did many before must through years where much your way down should because long each just \
    state those people too mr how little good world make very year still see own work men day get here between both life being \
    under three never know same last another while us off might great go come since against right came take used himself few";

const SYLLABLES: [&str; 60] = [
    "ber", "con", "dal", "den", "der", "dis", "en", "er", "est", "fer", "form", "gen", "gra", "hol", "in", "ing",
    "ion", "ist", "ket", "lan", "ler", "lin", "lo", "man", "mar", "men", "mi", "mon", "na", "ner", "nor", "o", "op",
    "or", "pa", "per", "pla", "pol", "pre", "pro", "ra", "re", "ri", "ro", "ser", "si", "sta", "sten", "su", "ta",
    "ter", "ti", "tion", "tor", "tra", "u", "ver", "vi", "win", "zen",
];

const VOCABULARY: usize = 60_000;

/// The words, most frequent first, and the cumulated weights by which they are drawn.
struct Vocabulary {
    words: Vec<String>,
    cumulated: Vec<f64>,
}

impl Vocabulary {
    fn new(random: &mut Random) -> Vocabulary {
        let mut words: Vec<String> = FUNCTION_WORDS.split_whitespace().map(str::to_owned).collect();
        let mut seen: std::collections::HashSet<String> = words.iter().cloned().collect();
        while words.len() < VOCABULARY {
            let syllables = 2 + random.below(3);
            let word: String = (0..syllables).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect();
            if seen.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        let cumulated = (0..words.len())
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        Vocabulary { words, cumulated }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let at = random.share() * self.cumulated.last().copied().unwrap_or(1.0);
        u32::try_from(self.cumulated.partition_point(|&sum| sum < at)).unwrap_or(0)
    }

    /// A document of so many words on average.
    fn document(&self, random: &mut Random, words: usize) -> Vec<u32> {
        let length = words / 2 + random.below(words);
        (0..length).map(|_| self.draw(random)).collect()
    }

    /// Changes, drops and adds words in a few places, or cuts a piece off.
    fn edit(&self, random: &mut Random, mut words: Vec<u32>) -> Vec<u32> {
        let strength = random.share().powi(2) * 0.12;
        let places = 1 + random.below(1 + scaled(words.len(), strength));
        for _ in 0..places {
            let at = random.below(words.len());
            match random.below(3) {
                0 => words[at] = self.draw(random),
                1 => {
                    words.remove(at);
                }
                _ => words.insert(at, self.draw(random)),
            }
        }
        if random.below(4) == 0 {
            let cut = random.below(words.len() / 4 + 1);
            words.truncate(words.len() - cut);
        }
        words
    }

    /// Words as text: sentences and paragraphs.
    fn text(&self, words: &[u32], text: &mut String) {
        text.clear();
        let mut sentence_left = 0;
        for (at, &word) in words.iter().enumerate() {
            let word = &self.words[word as usize];
            if sentence_left == 0 {
                if at > 0 {
                    text.push_str(if at % 7 == 0 { ".\n\n" } else { ". " });
                }
                sentence_left = 6 + (at * 7 + word.len()) % 17;
                let mut letters = word.chars();
                text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
                text.push_str(letters.as_str());
            } else {
                text.push(' ');
                text.push_str(word);
            }
            sentence_left -= 1;
        }
        text.push('.');
    }
}

/// Documents as word numbers, with the numbers of those they were copied from.
pub struct Corpus {
    vocabulary: Arc<Vocabulary>,
    random: Random,
    plan: CorpusPlan,
    /// Originals that can still be copied: a ring, so that memory stays bounded.
    recent: Vec<Vec<u32>>,
    made: usize,
}

const RECENT: usize = 5000;

impl Corpus {
    /// A corpus that is yet to be written.
    #[must_use]
    pub fn new(plan: CorpusPlan) -> Corpus {
        let mut random = Random(plan.seed);
        let vocabulary = Arc::new(Vocabulary::new(&mut random));
        Corpus { vocabulary, random, plan, recent: Vec::new(), made: 0 }
    }

    /// Other documents of the same words.
    #[must_use]
    pub fn of_same_words(&self, plan: CorpusPlan) -> Corpus {
        let vocabulary = Arc::clone(&self.vocabulary);
        Corpus { vocabulary, random: Random(plan.seed), plan, recent: Vec::new(), made: 0 }
    }

    fn next_document(&mut self) -> Vec<u32> {
        let copies = self.made % self.plan.copy_every == self.plan.copy_every - 1 && !self.recent.is_empty();
        self.made += 1;
        if copies {
            let original = self.recent[self.random.below(self.recent.len())].clone();
            return self.vocabulary.edit(&mut self.random, original);
        }
        let document = self.vocabulary.document(&mut self.random, self.plan.words);
        if self.recent.len() < RECENT {
            self.recent.push(document.clone());
        } else {
            let slot = self.random.below(RECENT);
            self.recent[slot].clone_from(&document);
        }
        document
    }

    /// The next document.
    pub fn next_text(&mut self) -> String {
        let (words, mut text) = (self.next_document(), String::new());
        self.text(&words, &mut text);
        text
    }

    /// The next document as text.
    fn text(&self, words: &[u32], text: &mut String) {
        self.vocabulary.text(words, text);
    }

    /// Writes the corpus as JSON lines with `id`, `url` and `text`.
    ///
    /// # Errors
    /// What the writer gives.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = String::new();
        for number in 0..self.plan.documents {
            let words = self.next_document();
            self.text(&words, &mut text);
            write!(out, "{{\"id\":\"d{number}\",\"url\":\"http://site{}.example/{number}\",\"text\":", number % 997)?;
            serde_json::to_writer(&mut *out, &text)?;
            out.write_all(b"}\n")?;
        }
        Ok(())
    }
}

fn scaled(count: usize, share: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a small count
    let part = (count as f64 * share) as usize;
    part
}

/// Bytes of a block of documents that are made on demand.
pub const BLOCK_BYTES: usize = 256 << 10;

/// A corpus of the same kind that is never stored: blocks of JSON lines, each made from its number whenever it is read. An
/// edited copy is one of a document of an earlier block, or of its own. Words are drawn by Walker's alias method, and written
/// from slots of one size, so that making a document takes less than looking at it.
pub struct EndlessCorpus {
    vocabulary: Vocabulary,
    plan: CorpusPlan,
    /// For each word, which share of its draws stays with it, of 2^32, and the word that the others go to.
    draws: Vec<(u32, u32)>,
    slots: Vec<([u8; SLOT], u8)>,
}

/// Bytes of the longest word, and a blank.
const SLOT: usize = 24;

/// Numbers that the documents of a block have at most.
const BLOCK_NUMBERS: u64 = 1 << 16;

impl EndlessCorpus {
    /// A corpus by its plan, whose number of documents does not matter.
    #[must_use]
    pub fn new(plan: CorpusPlan) -> EndlessCorpus {
        let vocabulary = Vocabulary::new(&mut Random(plan.seed));
        let slots = vocabulary.words.iter().map(|word| {
            let mut slot = [b' '; SLOT];
            let length = word.len().min(SLOT - 1);
            slot[..length].copy_from_slice(&word.as_bytes()[..length]);
            (slot, u8::try_from(length + 1).unwrap_or(0))
        });
        EndlessCorpus { slots: slots.collect(), draws: alias_table(&vocabulary.cumulated), vocabulary, plan }
    }

    /// A block, full to the last few hundred bytes, which are blank; returns how many documents it has.
    pub fn block(&self, block: u64, out: &mut Vec<u8>) -> u64 {
        let mut in_block = 0;
        out.clear();
        loop {
            let (number, length) = (block * BLOCK_NUMBERS + in_block, out.len());
            self.write_line(number, out);
            if out.len() > BLOCK_BYTES {
                out.truncate(length);
                break;
            }
            in_block += 1;
        }
        out.resize(BLOCK_BYTES - 1, b' ');
        out.push(b'\n');
        in_block
    }

    fn write_line(&self, number: u64, out: &mut Vec<u8>) {
        let head =
            format!("{{\"id\":\"d{number}\",\"url\":\"http://site{}.example/{number}\",\"text\":\"", number % 997);
        out.extend_from_slice(head.as_bytes());
        let words = self.words(number);
        let start = out.len();
        out.resize(start + (words.len() + 1) * SLOT, 0);
        let (mut at, mut sentence_left) = (start, 0u64);
        for &word in &words {
            let (slot, length) = &self.slots[word as usize];
            let length = usize::from(*length);
            out[at..at + SLOT].copy_from_slice(slot);
            if sentence_left == 0 {
                out[at] = out[at].to_ascii_uppercase();
                sentence_left = 6 + (u64::from(word) + at as u64) % 17;
            }
            at += length;
            sentence_left -= 1;
            if sentence_left == 0 {
                out[at - 1..=at].copy_from_slice(b". ");
                at += 1;
            }
        }
        out.truncate(at);
        out.extend_from_slice(b"\"}\n");
    }

    /// The words of a document.
    fn words(&self, number: u64) -> Vec<u32> {
        let mut random = Random(Random(self.plan.seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).number());
        let every = self.plan.copy_every as u64;
        if number % every != every - 1 {
            let length = self.plan.words / 2 + random.below(self.plan.words);
            return (0..length).map(|_| self.draw(random.number())).collect();
        }
        // Every block has so many documents, whatever their lengths.
        let sure = (BLOCK_BYTES / (self.plan.words * 10 + 200)) as u64 / every * every;
        let original = random.number() % (number / BLOCK_NUMBERS + 1) * BLOCK_NUMBERS + random.number() % sure.max(1);
        let original = if original % every == every - 1 { original - 1 } else { original };
        let words = self.words(original);
        self.vocabulary.edit(&mut random, words)
    }

    fn draw(&self, number: u64) -> u32 {
        let at = (u128::from(number) * self.draws.len() as u128) >> 64;
        let at = u32::try_from(at).unwrap_or(0);
        let (stays, other) = self.draws[at as usize];
        #[allow(clippy::cast_possible_truncation)] // the lower half
        let share = number as u32;
        if share < stays { at } else { other }
    }
}

/// Walker's table of weights that are given as their sums.
fn alias_table(cumulated: &[f64]) -> Vec<(u32, u32)> {
    let whole = cumulated.last().copied().unwrap_or(1.0);
    let mut last = 0.0;
    let weights =
        cumulated.iter().map(|sum| (sum - std::mem::replace(&mut last, *sum)) / whole * cumulated.len() as f64);
    let mut rest: Vec<(f64, u32)> = weights.zip(0..).collect();
    let mut table = vec![(u32::MAX, 0); rest.len()];
    // Words are in the order of their weights: the last are the lightest.
    let (mut light, mut heavy): (Vec<_>, Vec<_>) = rest.drain(..).partition(|row| row.0 < 1.0);
    while let (Some((weight, word)), Some((more, other))) = (light.pop(), heavy.pop()) {
        table[word as usize] = (u32::try_from(scaled(u32::MAX as usize, weight)).unwrap_or(u32::MAX), other);
        let left = more + weight - 1.0;
        if left < 1.0 { light.push((left, other)) } else { heavy.push((left, other)) }
    }
    light.into_iter().chain(heavy).for_each(|(_, word)| table[word as usize].1 = word);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_whenever_they_are_made_and_have_whole_lines() {
        let corpus = EndlessCorpus::new(CorpusPlan::default());
        let (mut block, mut again) = (Vec::new(), Vec::new());
        for number in [0, 7, 100_000] {
            let documents = corpus.block(number, &mut block);
            corpus.block(number, &mut again);
            assert_eq!((block.len(), &block), (BLOCK_BYTES, &again));
            let lines = std::str::from_utf8(&block).unwrap().lines().filter(|line| !line.trim().is_empty());
            let ids: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(ids.len() as u64, documents);
            assert!(documents > 50, "copies are made of the first ones");
        }
    }
}
