//! What a run may use, and what it must have.

use std::sync::atomic::Ordering;

use crate::config::Keep;
use crate::error::{Error, Result};
use crate::job::dedup::Run;
use crate::page::PageId;
use crate::page_table::{BYTES_PER_PAGE, PageTable};
use crate::report::summary::UnreadRanks;
use crate::size::format_bytes;
use crate::spill::LongList;

/// Memory that is not for pages: code, buffers of readers and writers, the report.
pub(crate) const BASE_BYTES: u64 = 96 << 20;

/// Memory in which frames are learnt, once there is a page of HTML: the blocks of one group of pages at a time.
pub(crate) const LEARNING_BYTES: u64 = 64 << 20;

/// Memory that an index of features takes for each of them where pages are matched one by one: a hash table of lists.
pub(crate) const INDEX_BYTES_PER_FEATURE: u64 = 120;

/// Memory in which pages can be found by their features, however many there are; with less, files would be too many.
pub(crate) const LEAST_INDEX_BYTES: u64 = 48 << 20;

/// Memory in which they are found where there is plenty, and that their features take: more would save next to no time.
const MOST_INDEX_BYTES: u64 = 192 << 20;

/// Memory for arrays that can be in files where nobody said how much there is: more would save next to no time.
pub(crate) const MOST_ROOM_BYTES: u64 = 200 << 20;

/// How that memory is divided while pages are read: between the columns that candidates are found by, and what pages are called
/// and where they are.
pub(crate) const SKETCHES_SHARE: f64 = 0.25;
pub(crate) const TABLE_SHARE: f64 = 0.15;
/// For each list of pairs: of candidates, of those that were verified, of what follows from them.
const LIST_SHARE: f64 = 0.025;
/// For the features of pages that are compared, together with what there is of each page: the columns are not needed any more,
/// and there are up to four lists.
pub(crate) const FEATURES_SHARE: f64 = 0.9;

impl Run<'_> {
    /// A share of the memory for arrays that can be in files, once there are so many pages.
    pub(super) fn spill_limit(&self, pages: u64, share: f64) -> usize {
        let needed = self.base_bytes() + pages * BYTES_PER_PAGE;
        let free = self.options.memory_limit().saturating_sub(needed);
        let room = if self.options.memory_bytes.is_some() { free } else { free.min(MOST_ROOM_BYTES) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a size is a size
        let limit = (room as f64 * share) as usize;
        limit
    }

    /// An empty list of pairs, where there are so many pages.
    pub(crate) fn list<T: Copy>(&self, pages: u64) -> LongList<T> {
        LongList::new(self.work.path(), self.spill_limit(pages, LIST_SHARE))
    }

    /// Memory that is needed whatever the number of pages.
    fn base_bytes(&self) -> u64 {
        let finds_by_features = self.plan.keeps_features() && !self.config.pairs.exact_only;
        let learning = if self.learns.load(Ordering::Relaxed) { LEARNING_BYTES } else { 0 };
        BASE_BYTES + learning + if finds_by_features { LEAST_INDEX_BYTES } else { 0 }
    }

    /// Memory for the features of all pages, where candidates are found by them, once there are so many pages.
    pub(super) fn feature_bytes(&self, pages: u64) -> usize {
        if self.plan.matches_in_order() {
            // Pages that are matched one by one are compared in no order that suits a file.
            let free = self.options.memory_limit().saturating_sub(self.base_bytes() + pages * BYTES_PER_PAGE);
            return usize::try_from(free / 3).unwrap_or(usize::MAX);
        }
        self.spill_limit(pages, 1.0 / 3.0).min(usize::try_from(MOST_INDEX_BYTES).unwrap_or(usize::MAX))
    }

    /// Memory for finding pages by features, beside these features and what there is of each page.
    pub(super) fn index_bytes(&self, pages: u64, features: usize) -> usize {
        let used = self.base_bytes() - LEAST_INDEX_BYTES + pages * BYTES_PER_PAGE + features as u64;
        let free = self.options.memory_limit().saturating_sub(used);
        // A growing array of features or strings took more than it has now.
        usize::try_from((free / 2).clamp(LEAST_INDEX_BYTES, MOST_INDEX_BYTES)).unwrap_or(usize::MAX)
    }

    /// From the first page of HTML on, frames are learnt: stops the run if there is not enough memory for that.
    pub(super) fn start_learning(&self) -> Result<()> {
        if self.learns.swap(true, Ordering::Relaxed) || self.base_bytes() <= self.options.memory_limit() {
            return Ok(());
        }
        let needed = format_bytes(self.base_bytes());
        let expected = format!(
            "is too little: with pages of HTML, a run needs at least {needed} and {BYTES_PER_PAGE} bytes per page"
        );
        Err(Error::invalid("memory", format_bytes(self.options.memory_limit()), expected))
    }

    /// Stops the run when there are more pages than the memory can hold.
    pub(super) fn check_floor(&self, pages: u64) -> Result<()> {
        let needed = self.base_bytes() + pages * BYTES_PER_PAGE;
        let given = self.options.memory_limit();
        if needed > given {
            return Err(Error::MemoryFloor { given, needed, pages, bytes_per_page: BYTES_PER_PAGE });
        }
        if pages > PageId::MOST_PAGES {
            return Err(Error::conflict(
                "inputs",
                format!("more than {} pages in one run: split the input", PageId::MOST_PAGES),
            ));
        }
        Ok(())
    }

    /// A policy that no page has a value for would silently be another one.
    pub(crate) fn check_policy(&self, pages: &PageTable, unread: Option<&UnreadRanks>) -> Result<()> {
        if pages.rank_keys.is_empty() || pages.rank_keys.iter().any(|key| key.is_finite()) {
            return Ok(());
        }
        let there = unread.map_or_else(String::new, |unread| format!("; the first one has '{}' there", unread.first));
        Err(match &self.config.groups.keep {
            Keep::Max(field) => {
                let expected = format!("no page has a number in the field '{field}'{there}");
                Error::invalid("keep", format!("max:{field}"), expected)
            }
            Keep::Newest if unread.is_some() => {
                let expected =
                    format!("no page has a date that can be read{there}; use `date_field` for another field");
                Error::invalid("keep", "newest", expected)
            }
            Keep::Newest => Error::invalid(
                "keep",
                "newest",
                "no page has a date: neither a field of a usual name (see `date_field`) nor a record of an archive",
            ),
            _ => Error::invalid("keep", "shortest-url", "no page has a URL; use `url_field`"),
        })
    }
}
