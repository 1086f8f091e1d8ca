//! The search: who is worth comparing, by what the first reading left.

use crate::candidate::band_join::{BandJoin, Candidates};
use crate::candidate::hamming_join::join_design;
use crate::candidate::inverted::{self, Collisions, Members, Sharing};
use crate::candidate::matching::{MatchingPlan, match_in_order, seeded_order_key};
use crate::candidate::pair_filter::PairFilter;
use crate::candidate::shared_lists::Room;
use crate::cluster::identity::{IdentitySets, in_rank_order};
use crate::cluster::rank::Ranks;
use crate::error::{Error, Result};
use crate::job::dedup::first_reading::Sketched;
use crate::job::dedup::{BASE_BYTES, INDEX_BYTES_PER_FEATURE, Run};
use crate::names::Named;
use crate::observe::check_cancelled;
use crate::page::{PageId, PageOrigin, PageVec};
use crate::page_table::{BYTES_PER_PAGE, PageTable};
use crate::plan::{BitSearch, MatchingOrder, Search, Within};
use crate::read::Corpus;
use crate::size::format_bytes;
use crate::sketch::page_sets::PageSets;
use crate::sketcher::{NO_KEY, NO_LANGUAGE};
use crate::spill::{AllItems, LongList, Scratch};
use crate::verify::{self, Verified};

/// Pairs that are compared one by one before it is asked whether the run is to stop.
const PAIRS_BETWEEN_CHECKS: u64 = 512;

/// Who is the same page, who comes first, and who is worth comparing.
pub(super) struct Searched {
    ranks: Ranks,
    /// Pages with the same token sequence.
    pub(super) sets: IdentitySets,
    /// The sets in the order of their best-ranked pages.
    pub(super) order: Vec<PageId>,
    pub(super) candidates: Candidates,
    /// Every page of them, ascending.
    pub(super) candidate_pages: Vec<PageId>,
    /// Of the inverted index, if there was one.
    pub(super) collisions: Option<Collisions>,
    /// Tables of bits, if there were any, and the distance to which they miss nothing.
    pub(super) tables: Option<(usize, u32)>,
}

impl Searched {
    /// The rank of a page's identity set.
    pub(super) fn rank(&self, page: PageId) -> u32 {
        self.ranks.of(self.sets.best[page])
    }
}

/// Candidates, and how they were found.
#[derive(Default)]
struct Joined {
    candidates: Candidates,
    collisions: Option<Collisions>,
    tables: Option<(usize, u32)>,
}

impl Run<'_> {
    /// Ranks pages, finds equal ones, and pairs that are worth comparing.
    /// Where the comparison is known, nothing is left to be found.
    pub(super) fn search(&self, corpus: &Corpus, sketched: &Sketched, is_compared: bool) -> Result<Searched> {
        let pages = &sketched.pages;
        self.check_groups(sketched)?;
        let ranks = self.ranks(corpus, pages)?;
        let identity = |page: PageId| pages.identity(page).unwrap_or_default();
        let has_text = |page: PageId| !pages.is_revisit(page);
        let sets = IdentitySets::new(&identity, &pages.tokens, &has_text, &|page| ranks.of(page));
        let rank = |page: PageId| ranks.of(sets.best[page]);
        let order = in_rank_order(&sets, &rank);
        let joined = if self.plan.matches_in_order() || self.config.pairs.exact_only || is_compared {
            Joined::default()
        } else {
            self.candidates(sketched, &sets, &rank)?
        };
        let Joined { candidates, collisions, tables } = joined;
        let candidate_pages = candidates.pages();
        Ok(Searched { ranks, sets, order, candidates, candidate_pages, collisions, tables })
    }

    /// The order of preference: preferred sources first, then that of the keep policy, or the one that pages are matched
    /// in. What is not of the input is kept before anything that is; revisits come last.
    pub(crate) fn ranks(&self, corpus: &Corpus, pages: &PageTable) -> Result<Ranks> {
        let inputs = corpus.sources.iter().take_while(|source| source.origin == PageOrigin::Input).count();
        let preferences = self.config.groups.preferences(&corpus.sources[..inputs])?;
        let preference = |page: PageId| preferences.get(pages.place(page).source.index()).copied().unwrap_or(0);
        let class = |page: PageId| pages.rank_class(page, preference(page));
        if !self.plan.matches_in_order() {
            if pages.is_all_input() && pages.revisits().next().is_none() && self.config.groups.prefer.is_empty() {
                return Ok(Ranks::new(&pages.rank_keys));
            }
            return Ok(Ranks::in_classes(&pages.rank_keys, &pages.all().map(class).collect()));
        }
        let mut keys = PageVec::new();
        for page in pages.all() {
            let key = match self.plan.order {
                MatchingOrder::Shuffled => seeded_order_key(&pages.id(page)?, self.plan.seed),
                MatchingOrder::Given => page.index() as u64,
            };
            keys.push((class(page), key));
        }
        Ok(Ranks::by_key(&keys))
    }

    /// Whether a page stands for its identity set and is long enough to be compared.
    fn takes_part(&self, sketched: &Sketched, sets: &IdentitySets, page: PageId) -> bool {
        sets.is_first(page)
            && self.plan.is_long_enough(sketched.pages.tokens[page])
            && sketched.featureless.binary_search(&page).is_err()
    }

    /// Candidate pairs.
    fn candidates(
        &self,
        sketched: &Sketched,
        sets: &IdentitySets,
        rank: &(dyn Fn(PageId) -> u32 + Sync),
    ) -> Result<Joined> {
        match (&self.plan.search, &sketched.sets) {
            (Search::Features { threshold, size_filter, prefix_filter }, Some(page_sets)) => {
                let pages = &sketched.pages;
                let groups = self.groups(sketched)?;
                let filter = self.wanted_filter(pages, groups.as_deref());
                let members = self.members(sketched, sets, page_sets);
                let sharing = Sharing {
                    measure: self.plan.measure,
                    threshold: *threshold,
                    size_filter: *size_filter,
                    prefix_filter: *prefix_filter,
                    bucket_limit: self.config.pairs.bucket_limit,
                };
                let is_wanted = |left: PageId, right: PageId| filter.is_wanted(left, right);
                let group = |page: PageId| groups.as_ref().map_or(0, |groups| groups[page.index()]);
                let who = Members { pages: &members, rank, group: &group, is_wanted: &is_wanted };
                let bytes = self.index_bytes(pages.len() as u64, page_sets.memory_bytes());
                let room = Room { directory: self.work.path(), bytes };
                let list = self.list(pages.len() as u64);
                let (candidates, collisions) = inverted::join(page_sets, who, sharing, room, list, self.observer)?;
                Ok(Joined { candidates, collisions: size_filter.then_some(collisions), tables: None })
            }
            _ => self.join_columns(sketched, sets),
        }
    }

    /// Pages that share a band or a part of their bits.
    fn join_columns(&self, sketched: &Sketched, sets: &IdentitySets) -> Result<Joined> {
        let pages = &sketched.pages;
        let layout = self.plan.columns();
        let takes_part = |page: PageId| self.takes_part(sketched, sets, page);
        let needs_columns = PairFilter::needs_columns(self.plan.decision);
        let is_needed = |number: usize| needs_columns || number >= layout.first_bits();
        let needed = { sketched.columns.iter().enumerate() }
            .map(|(number, column)| if is_needed(number) { column.all() } else { Ok(AllItems::Memory(&[])) })
            .collect::<Result<Vec<_>>>()?;
        let loaded: Vec<&[u64]> = needed.iter().map(|column| &**column).collect();
        let groups = layout.group_column().map(|column| loaded[column]);
        let filter = PairFilter {
            bands: if needs_columns { loaded[..layout.bands].to_vec() } else { Vec::new() },
            bits: loaded[layout.first_bits()..layout.first_bits() + layout.bits].to_vec(),
            sites: layout.site_column().map(|column| loaded[column]),
            ..self.wanted_filter(pages, groups)
        };
        let passes = |left: PageId, right: PageId| filter.passes(left, right);
        let is_idle = PairFilter::is_idle(self.plan);
        let refuses: Option<&(dyn Fn(PageId, PageId) -> bool + Sync)> = if is_idle { None } else { Some(&passes) };
        let list = self.list(pages.len() as u64);
        let mut join = BandJoin::new(&takes_part, refuses, self.config.pairs.bucket_limit, list);
        // Pages of different groups are not even to meet in a bucket.
        let grouped =
            |page: PageId, key: u64| (groups.map_or(key, |groups| key ^ groups[page.index()].rotate_left(17)), page);
        for (band, column) in sketched.columns[..layout.first_bits()].iter().enumerate() {
            check_cancelled(self.observer)?;
            let keys = column.all()?;
            let keys = PageId::counting().zip(&*keys);
            let has_key = |key: u64| band < layout.bands || key != NO_KEY;
            join.add(band, keys.filter(|row| has_key(*row.1)).map(|(page, &key)| grouped(page, key)))?;
        }
        let chosen;
        let tables = match &self.plan.search {
            Search::Bits(BitSearch::Pieces(design)) | Search::BandsAndBits(BitSearch::Pieces(design)) => Some(design),
            Search::Bits(BitSearch::Radius(radius)) | Search::BandsAndBits(BitSearch::Radius(radius)) => {
                let rows = pages.len() as u64;
                chosen = join_design(rows, rows, *radius);
                Some(&chosen)
            }
            Search::Bands | Search::Features { .. } => None,
        };
        if let Some(design) = tables {
            let bits = &filter.bits;
            for (number, table) in design.tables().iter().enumerate() {
                check_cancelled(self.observer)?;
                let key = |page: PageId| grouped(page, table.key(|word| bits[word][page.index()]));
                join.add(layout.first_bits() + number, pages.all().map(key))?;
            }
        }
        Ok(Joined {
            candidates: join.finish()?,
            collisions: None,
            tables: tables.map(|design| (design.tables().len(), design.radius())),
        })
    }

    /// What the user does not want to be compared.
    pub(super) fn wanted_filter<'a>(&self, pages: &'a PageTable, groups: Option<&'a [u64]>) -> PairFilter<'a> {
        PairFilter {
            tokens: &pages.tokens,
            length_ratio: self.config.pairs.length_ratio,
            groups,
            sites: None,
            bands: Vec::new(),
            bits: Vec::new(),
            compared_bits: self.plan.sketch.compared_bits(),
            decision: self.plan.decision,
            is_input: self.plan.drops_containers.then(|| {
                let is_input: Box<dyn Fn(PageId) -> bool + Sync + 'a> = Box::new(|page| pages.is_input(page));
                is_input
            }),
        }
    }

    /// Groups that no page is in would silently make every page unique.
    fn check_groups(&self, sketched: &Sketched) -> Result<()> {
        let pages = &sketched.pages;
        let expected = match self.plan.pairs.within {
            None => return Ok(()),
            Some(Within::Site) => {
                let mut scratch = Scratch::default();
                for page in pages.all() {
                    if pages.strings(page, &mut scratch)?.url.is_some() {
                        return Ok(());
                    }
                }
                "no page has a URL, so none has a site; use `url_field`"
            }
            Some(Within::Language) => {
                let groups = self.groups(sketched)?;
                if groups.is_none_or(|groups| groups.iter().any(|group| ![NO_KEY, NO_LANGUAGE].contains(group))) {
                    return Ok(());
                }
                "no page is in a language that is recognised"
            }
        };
        let within = self.plan.pairs.within.map_or("", Within::name);
        Err(Error::invalid("within", within, expected))
    }

    /// The group of every page, where pages are searched within groups.
    pub(super) fn groups(&self, sketched: &Sketched) -> Result<Option<Vec<u64>>> {
        let column = self.plan.columns().group_column();
        let Some(column) = column.and_then(|column| sketched.columns.get(column)) else { return Ok(None) };
        Ok(Some(column.all()?.to_vec()))
    }

    fn members(&self, sketched: &Sketched, sets: &IdentitySets, page_sets: &PageSets) -> Vec<PageId> {
        sketched.pages.all().filter(|&page| self.takes_part(sketched, sets, page) && page_sets.contains(page)).collect()
    }

    /// The index of pages that are matched one by one is held in memory.
    fn check_index(&self, pages: &PageTable, sets: &PageSets) -> Result<()> {
        let features = sets.feature_count();
        let needed = BASE_BYTES + pages.len() as u64 * BYTES_PER_PAGE + features * INDEX_BYTES_PER_FEATURE;
        if needed <= self.options.memory_limit() {
            return Ok(());
        }
        let expected = format!(
            "is too little: {} with this `matching` finds pages through an index of all their features, {features} here, which takes about {}; give it that much, or use `matching` full, which needs less",
            self.config.method.name(),
            format_bytes(needed)
        );
        Err(Error::invalid("memory", format_bytes(self.options.memory_limit()), expected))
    }

    /// Pages matched one after the other in their order, examples first.
    pub(super) fn match_pages(
        &self,
        sketched: &Sketched,
        searched: &Searched,
    ) -> Result<(Verified, Option<Collisions>)> {
        let order = searched.order.as_slice();
        let (Some(sets), Search::Features { threshold, size_filter, prefix_filter }) =
            (&sketched.sets, &self.plan.search)
        else {
            return Err(Error::internal("pages are matched in order by features that were not kept"));
        };
        let pages = &sketched.pages;
        self.check_index(pages, sets)?;
        let groups = self.groups(sketched)?;
        let filter = self.wanted_filter(pages, groups.as_deref());
        let is_member = |page: PageId| self.plan.is_long_enough(pages.tokens[page]) && sets.contains(page);
        let members: Vec<PageId> = order.iter().copied().filter(|&page| is_member(page)).collect();
        let plan = MatchingPlan {
            threshold: *threshold,
            guess: self.plan.guess,
            index_duplicates: self.plan.index_duplicates,
            size_filter: *size_filter,
            prefix_filter: *prefix_filter,
            seeds: members.iter().filter(|&&page| !pages.is_input(searched.sets.best[page])).count(),
        };
        let mut compared = 0;
        let (pairs, collisions) = match_in_order(sets, &members, plan, |left, right| {
            if !filter.is_wanted(left, right) {
                return Ok(None);
            }
            compared += 1;
            if compared % PAIRS_BETWEEN_CHECKS == 0 {
                check_cancelled(self.observer)?;
            }
            Ok(Some(verify::compare(sets, left, right, self.plan)))
        })?;
        let verified = Verified { pairs: pairs.into(), near_misses: LongList::default(), compared, capped: Vec::new() };
        Ok((verified, size_filter.then_some(collisions)))
    }
}
