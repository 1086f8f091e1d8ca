//! What a service recognises, as a table.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use lookalike_bench::labelled::{FramedDocs, install_guide, llvm_docs, same_core};
use lookalike_bench::recognised::{
    FramedRecognised, Mistake, by_label, default_collection, in_frames, reuters, texts, texts_of,
};

/// Prints what is recognised of every labelled set that is here.
pub(crate) fn print(mistakes: bool) -> Result<()> {
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
        print_mistakes(&mut out, &found.mistakes, mistakes)?;
    }
    if let Some(set) = same_core()? {
        let [known, recognised, near, wrong] = by_label(default_collection(), &set)?;
        writeln!(out, "{}: {recognised} of {known} recognised; {wrong} of {near} called near are wrong", set.name)?;
    }
    if let Some(docs) = FramedDocs::open()? {
        print_framed(&mut out, &docs, mistakes)?;
    }
    Ok(())
}

/// Prints what is recognised of documentation made by `scripts/make-framed-docs`.
pub(crate) fn print_made(directory: &Path, mistakes: bool) -> Result<()> {
    print_framed(&mut io::stdout().lock(), &FramedDocs::at(directory)?, mistakes)
}

fn print_framed(out: &mut impl Write, docs: &FramedDocs, mistakes: bool) -> Result<()> {
    for with_urls in [true, false] {
        let mut sites = in_frames(default_collection(), docs, with_urls)?;
        let total = FramedRecognised::total(&sites);
        sites.insert("~ all".to_owned(), FramedRecognised { mistakes: Vec::new(), ..total });
        writeln!(out, "{} URLs:", if with_urls { "with" } else { "without" })?;
        for (site, found) in sites {
            writeln!(
                out,
                "{site}: {} pages; {} of {} called near are wrong; similarity from 0.8 on {} of {}, from 0.7 on {} of {} \
                 recognised",
                found.pages,
                found.near.1,
                found.near.0,
                found.similar.1,
                found.similar.0,
                found.less_similar.1,
                found.less_similar.0
            )?;
            print_mistakes(out, &found.mistakes, mistakes)?;
        }
    }
    Ok(())
}

fn print_mistakes(out: &mut impl Write, mistakes: &[Mistake], is_wanted: bool) -> Result<()> {
    for mistake in mistakes.iter().filter(|_| is_wanted) {
        let what = if mistake.is_near { "wrong" } else { "missed" };
        let compared = mistake.compared.map_or_else(
            || "not compared".to_owned(),
            |(similarity, threshold)| format!("{similarity:.3} of {threshold:.3}"),
        );
        writeln!(out, "  {what}\t{:.3}\t{compared}\t{}\t{}", mistake.similarity, mistake.id, mistake.other)?;
    }
    Ok(())
}
