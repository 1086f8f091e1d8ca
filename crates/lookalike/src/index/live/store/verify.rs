//! Whether a store has all that it must have.

use crate::error::Result;
use crate::index::live::store::Store;
use crate::index::live::{Index, STORE};
use crate::index::rows::FoundEntry;

/// Complaints of one kind that are listed.
const MOST_LISTED: usize = 5;

impl Index {
    /// All that is wrong with the store: what is missing from it, and pages of which a part is missing or makes no sense.
    pub(crate) fn verify_store(&self) -> Vec<String> {
        if !self.directory.join(STORE).exists() && self.settled_totals().is_none() {
            return Vec::new();
        }
        let wrong = || {
            let store = self.open_store(false, 0)?;
            let last = store.replay(self.covered(), false, &mut |_, _| Ok(()))?;
            self.check_totals(&store, last, store.totals()?)?;
            store.verify()
        };
        wrong().unwrap_or_else(|error| vec![error.to_string()])
    }
}

impl Store {
    fn verify(&self) -> Result<Vec<String>> {
        let (mut wrong, mut pages, mut whole, mut records) = (Vec::new(), 0u64, 0u64, 0u64);
        let mut complain = |text: String| {
            if wrong.len() < MOST_LISTED {
                wrong.push(self.corrupt(text).to_string());
            }
        };
        self.for_each_entry("", None, &mut |id, found| {
            pages += 1;
            match found {
                FoundEntry::Whole(..) => whole += 1,
                FoundEntry::Entry(entry) => match self.record(entry.number)? {
                    Some(record) if record.id == id => {
                        if let Err(reason) = record.text(&mut crate::text::ContentCodec::default()) {
                            complain(format!("the page '{id}': {reason}"));
                        }
                    }
                    Some(_) => complain(format!("the page '{id}' has the record of another one")),
                    None => complain(format!("the page '{id}' has no record")),
                },
            }
            Ok(true)
        })?;
        self.for_each_record(0, &mut |_, _| {
            records += 1;
            Ok(true)
        })?;
        if records != pages - whole {
            complain(format!("{} pages have records, and there are {records} of these", pages - whole));
        }
        // Bulk builds do not count the pages that they store.
        if let Some(totals) = self.totals()?.filter(|totals| whole == 0 && totals.pages != pages) {
            complain(format!("{} pages were stored, and {pages} are there", totals.pages));
        }
        Ok(wrong)
    }
}
