//! All clusters as a compact index inside the page, for its table.
//!
//! In: findings. Out: lines of text with tabs between the fields, which the page's script takes apart as they are looked at:
//!
//! ```text
//! names of files
//! where they are, from the page
//! directories, from the page
//! size  near  weakest  id  link  title  {id  link  title  similarity  page_similarity  kind  diff}…
//! ```
//!
//! The first page of a line is the kept one; its members follow, least similar first. A member's id and URL are written as the
//! number of letters that they have in common with those of the kept page, a colon, and the rest; a title that is the same is `=`.
//! Links: `=` the id is the URL; `u` a URL; `@3` the file of that name in directory 3; `#3:12` record 12 of file 3; in front of
//! that, where it is known, when the page was captured, in seconds since 1970. Numbers of similarity are in units of 1/10,000.
//! `\3c` is the character 3c: control characters, `<` and the backslash are written so.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::page::{Kind, PageId, PageOrigin, PageVec, SourceId};
use crate::report::Findings;
use crate::report::links::{relative_path, web_address};
use crate::report::sinks::page::evidence::Evidence;
use crate::spill::Scratch;

/// Bytes of the index of a report; past them, fewer members of each cluster are listed, then fewer clusters.
pub(super) const MOST_BYTES: usize = 24 << 20;
/// Members that are listed of each cluster: as many of these as there is room for.
const MEMBERS: [usize; 7] = [100, 50, 20, 8, 4, 2, 1];
/// Letters of a title.
const TITLE_LETTERS: usize = 120;
/// Longer addresses are nobody's.
const URL_BYTES: usize = 2000;

/// Clusters with their members, least similar first.
pub(super) struct Clusters {
    /// The kept page and the number of pages, largest first.
    pub(super) rows: Vec<(PageId, u64)>,
    members: Vec<PageId>,
    starts: Vec<usize>,
}

impl Clusters {
    pub(super) fn new(findings: &Findings<'_>) -> Clusters {
        const NONE: u32 = u32::MAX;
        let rows = findings.cluster_sizes();
        let mut place = PageVec::filled(findings.fates.len(), NONE);
        for (at, row) in (0u32..).zip(&rows) {
            place[row.0] = at;
        }
        let dropped = || {
            let pages = findings.fates.by_page().filter(|(page, fate)| !fate.keeps(*page));
            pages.map(|(page, fate)| (page, place[fate.kept])).filter(|row| row.1 != NONE)
        };
        let mut starts = vec![0; rows.len() + 1];
        dropped().for_each(|(_, at)| starts[at as usize + 1] += 1);
        for at in 0..rows.len() {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut members = vec![PageId::new(0); starts[rows.len()]];
        for (page, at) in dropped() {
            members[next[at as usize]] = page;
            next[at as usize] += 1;
        }
        let mut clusters = Clusters { rows, members, starts };
        let similarity = |page: PageId| findings.fates.of(page).similarity;
        for at in 0..clusters.rows.len() {
            let group = &mut clusters.members[clusters.starts[at]..clusters.starts[at + 1]];
            group.sort_by(|&a, &b| similarity(a).total_cmp(&similarity(b)).then(a.cmp(&b)));
        }
        clusters
    }

    /// The dropped pages of a cluster.
    pub(super) fn members(&self, at: usize) -> &[PageId] {
        &self.members[self.starts[at]..self.starts[at + 1]]
    }
}

/// How much of the clusters is in the index.
pub(super) struct ClusterIndex<'a> {
    findings: &'a Findings<'a>,
    clusters: &'a Clusters,
    evidence: &'a Evidence,
    places: Places<'a>,
    /// When pages were captured, in seconds since 1970.
    captured: HashMap<PageId, u64>,
    /// Clusters that are listed.
    pub(super) listed: usize,
    /// Members that are listed of each, at most.
    pub(super) members: usize,
}

impl<'a> ClusterIndex<'a> {
    /// Finds out how much there is room for in `most_bytes`.
    pub(super) fn new(
        findings: &'a Findings<'a>,
        clusters: &'a Clusters,
        evidence: &'a Evidence,
        output: &'a Path,
        most_bytes: usize,
    ) -> Result<ClusterIndex<'a>> {
        let places = Places::new(output);
        let captured = findings.pages.captured.iter().filter_map(|(page, captured)| Some((*page, captured.seconds?)));
        let captured = captured.collect();
        let mut index = ClusterIndex { findings, clusters, evidence, places, captured, listed: 0, members: MEMBERS[0] };
        let mut bytes = [0; MEMBERS.len()];
        let mut writer = LineWriter::default();
        for at in 0..clusters.rows.len() {
            let ends = index.line(at, MEMBERS[0], &mut writer)?;
            let with = |most: usize| ends.get(most).or(ends.last()).copied().unwrap_or_default() + 1;
            if bytes[MEMBERS.len() - 1] + with(1) + index.places.bytes > most_bytes {
                break;
            }
            bytes.iter_mut().zip(MEMBERS).for_each(|(sum, most)| *sum += with(most));
            index.listed = at + 1;
        }
        let fitting = bytes.iter().position(|&sum| sum + index.places.bytes <= most_bytes);
        index.members = MEMBERS[fitting.unwrap_or(MEMBERS.len() - 1)];
        Ok(index)
    }

    /// Writes the lines to `out`, which is the file `path`.
    pub(super) fn write(&mut self, out: &mut impl Write, path: &Path) -> Result<()> {
        self.places.write(out).map_err(Error::io(path, "write"))?;
        let mut writer = LineWriter::default();
        for at in 0..self.listed {
            self.line(at, self.members, &mut writer)?;
            writer.line.push('\n');
            out.write_all(writer.line.as_bytes()).map_err(Error::io(path, "write"))?;
        }
        Ok(())
    }

    /// Makes the line of a cluster; returns its bytes without members, with one, with two, ….
    fn line(&mut self, at: usize, most: usize, writer: &mut LineWriter) -> Result<Vec<usize>> {
        let (kept, size) = self.clusters.rows[at];
        let members = self.clusters.members(at);
        let fates = self.findings.fates;
        let near = members.iter().filter(|&&page| fates.of(page).kind != Kind::Exact).count();
        let weakest = members.first().map_or(1.0, |&page| fates.of(page).similarity);
        writer.line.clear();
        let _ = write!(writer.line, "{size}\t{near}\t{}", units(weakest));
        writer.kept = None;
        let own = self.strings(kept)?;
        writer.page(&own);
        writer.kept = Some(own);
        let mut ends = vec![writer.line.len()];
        for &page in members.iter().take(most) {
            let fate = fates.of(page);
            writer.page(&self.strings(page)?);
            let whole = fate.page_similarity.map(units).map_or_else(String::new, |whole| whole.to_string());
            let kind = match fate.kind {
                Kind::Exact => "e",
                Kind::SameCore => "s",
                Kind::Contained => "c",
                _ => "n",
            };
            let diff = self.evidence.diff_of(page).map_or_else(String::new, |number| number.to_string());
            let _ = write!(writer.line, "\t{}\t{whole}\t{kind}\t{diff}", units(fate.similarity));
            ends.push(writer.line.len());
        }
        Ok(ends)
    }

    fn strings(&mut self, page: PageId) -> Result<Strings> {
        let mut scratch = Scratch::default();
        let strings = self.findings.pages.strings(page, &mut scratch)?;
        let title = strings.title.map(str::to_owned).or_else(|| self.evidence.snippet(page)).unwrap_or_default();
        let squeezed = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut title: String = squeezed.chars().take(TITLE_LETTERS).collect();
        if title.len() < squeezed.len() {
            title.push('…');
        }
        let url = strings.url.filter(|url| web_address(url).is_some() && url.len() <= URL_BYTES);
        let link = match url {
            Some(url) if url == strings.id => Link::Id,
            Some(url) => Link::Url(url.to_owned()),
            None => self.places.link(page, strings.id, self.findings),
        };
        Ok(Strings { id: strings.id.to_owned(), link, title, captured: self.captured.get(&page).copied() })
    }
}

/// A similarity in the units of the index.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and 10,000
fn units(similarity: f64) -> u32 {
    (similarity.clamp(0.0, 1.0) * 10_000.0).round() as u32
}

struct Strings {
    id: String,
    link: Link,
    title: String,
    captured: Option<u64>,
}

enum Link {
    None,
    /// The id is the address.
    Id,
    Url(String),
    /// A file of the page's own, by the number of its directory.
    File(usize),
    /// A file by its number, and a record in it.
    Record(usize, u64),
}

#[derive(Default)]
struct LineWriter {
    line: String,
    /// The kept page, once its members are written.
    kept: Option<Strings>,
}

impl LineWriter {
    fn page(&mut self, page: &Strings) {
        let kept = self.kept.as_ref();
        let line = &mut self.line;
        line.push('\t');
        shared(&page.id, kept.map(|kept| kept.id.as_str()), line);
        line.push('\t');
        if let Some(seconds) = page.captured {
            let _ = write!(line, "{seconds}");
        }
        match &page.link {
            Link::None => {}
            Link::Id => line.push('='),
            Link::Url(url) => {
                line.push('u');
                let known = kept.map(|kept| if let Link::Url(url) = &kept.link { url.as_str() } else { "" });
                shared(url, known, line);
            }
            Link::File(directory) => {
                let _ = write!(line, "@{directory}");
            }
            Link::Record(file, record) => {
                let _ = write!(line, "#{file}:{record}");
            }
        }
        line.push('\t');
        if !page.title.is_empty() && kept.is_some_and(|kept| kept.title == page.title) {
            line.push('=');
        } else if let Some(rest) = page.title.strip_prefix('=') {
            line.push_str("\\3d");
            escape(rest, line);
        } else {
            escape(&page.title, line);
        }
    }
}

/// A text; that of a member without the letters that it has in common with what is known of the kept page.
fn shared(text: &str, known: Option<&str>, line: &mut String) {
    let mut rest = text;
    if let Some(known) = known {
        // Only as far as bytes are letters in any language.
        let same = known.bytes().zip(text.bytes()).take_while(|(a, b)| a == b && a.is_ascii()).count();
        rest = &text[same..];
        let _ = write!(line, "{same}:");
    }
    escape(rest, line);
}

/// What a browser would take for markup, or change: `<`, control characters, and the mark of this itself.
fn escape(text: &str, line: &mut String) {
    for c in text.chars() {
        if c < ' ' || matches!(c, '<' | '\\' | '\u{7f}') {
            let _ = write!(line, "\\{:02x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
}

/// The files and directories of pages without addresses, numbered as they are met.
struct Places<'a> {
    /// Where the page is that links to them.
    output: &'a Path,
    /// Name, and where it is from there.
    files: Vec<(String, String)>,
    directories: Vec<String>,
    file_numbers: HashMap<SourceId, usize>,
    directory_numbers: HashMap<String, usize>,
    /// What their names take.
    bytes: usize,
}

impl<'a> Places<'a> {
    fn new(output: &'a Path) -> Places<'a> {
        Places {
            output,
            files: Vec::new(),
            directories: Vec::new(),
            file_numbers: HashMap::new(),
            directory_numbers: HashMap::new(),
            bytes: 3,
        }
    }

    fn link(&mut self, page: PageId, id: &str, findings: &Findings<'_>) -> Link {
        if findings.pages.origin(page) == PageOrigin::IndexRow {
            return Link::None;
        }
        let place = findings.pages.place(page);
        let source = findings.reading.source(place.source);
        let way = || source.location.path().and_then(|path| relative_path(self.output, path)).unwrap_or_default();
        if let Some(&file) = self.file_numbers.get(&place.source) {
            return Link::Record(file, place.record);
        }
        let way = way();
        if let Some(directory) = way.strip_suffix(id).filter(|_| source.format.is_page_file()) {
            if let Some(&number) = self.directory_numbers.get(directory) {
                return Link::File(number);
            }
            self.directories.push(directory.to_owned());
            self.directory_numbers.insert(directory.to_owned(), self.directories.len() - 1);
            self.bytes += directory.len() + 1;
            return Link::File(self.directories.len() - 1);
        }
        self.bytes += source.display.len() + way.len() + 2;
        self.files.push((source.display.clone(), way));
        self.file_numbers.insert(place.source, self.files.len() - 1);
        Link::Record(self.files.len() - 1, place.record)
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let joined = |texts: &mut dyn Iterator<Item = &String>| {
            let mut line = String::new();
            for (at, text) in texts.enumerate() {
                if at > 0 {
                    line.push('\t');
                }
                escape(text, &mut line);
            }
            line + "\n"
        };
        out.write_all(joined(&mut self.files.iter().map(|file| &file.0)).as_bytes())?;
        out.write_all(joined(&mut self.files.iter().map(|file| &file.1)).as_bytes())?;
        out.write_all(joined(&mut self.directories.iter()).as_bytes())
    }
}
