//! What a service recognises, as a table.

use std::io::{self, Write};

use anyhow::Result;
use lookalike_bench::labelled::{FramedDocs, install_guide, llvm_docs, same_core};
use lookalike_bench::recognised::{by_label, default_collection, in_frames, reuters, texts, texts_of};

/// Prints what is recognised of every labelled set that is here.
pub(crate) fn print() -> Result<()> {
    let mut out = io::stdout().lock();
    let mut sets = Vec::new();
    sets.extend(reuters()?.map(|pages| ("reuters21578", pages)));
    for set in [install_guide()?, llvm_docs()?].into_iter().flatten() {
        sets.push((set.name, texts_of(&set.directory, |_| true)?));
    }
    for (name, pages) in sets {
        let found = texts(default_collection(), &pages)?;
        let share = |(all, part): (u64, u64)| format!("{part} of {all}");
        writeln!(
            out,
            "{name}: similarity from 0.8 on {}, from 0.7 on {}, copies {}; called near {}, of these below 0.5 {}",
            share(found.similar),
            share(found.less_similar),
            share(found.copies),
            found.near.0,
            found.near.1
        )?;
    }
    if let Some(set) = same_core()? {
        let [known, recognised, near, wrong] = by_label(default_collection(), &set)?;
        writeln!(out, "{}: {recognised} of {known} recognised; {wrong} of {near} called near are wrong", set.name)?;
    }
    if let Some(docs) = FramedDocs::open()? {
        for with_urls in [true, false] {
            let [near, wrong, similar, recognised] = in_frames(default_collection(), &docs, with_urls)?;
            let urls = if with_urls { "with" } else { "without" };
            writeln!(
                out,
                "framed-docs-dev {urls} URLs: {wrong} of {near} called near are wrong; {recognised} of {similar} recognised"
            )?;
        }
    }
    Ok(())
}
