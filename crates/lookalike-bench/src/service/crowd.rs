//! A crowd of pages that are like each other, and what it does to others.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use lookalike::Online;

use super::filled::{Method, remove};
use super::pages::Pages;
use super::serve;

/// Pages in a crowd.
const CROWD: usize = 10_000;
/// Other pages that are stored before and after it.
const OTHERS: u64 = 1000;
/// Copies of one page that come after it.
const COPIES: usize = 200;

/// Stores crowds, and measures how long other pages take before and after them.
pub(super) fn measure(
    lookalike: &Path,
    method: Method,
    work: &Path,
    pages: &Pages,
    out: &mut impl Write,
) -> Result<()> {
    writeln!(
        out,
        "\n| crowd of {CROWD} | p50 of inserting another page before it | after it | {COPIES} copies of one page: `new` |\n|---|---|---|---|"
    )?;
    let crowds = [
        ("the same words in other orders", pages.permutations(CROWD + 1)),
        ("nine of ten words in common", pages.siblings(CROWD + 1)),
    ];
    for (name, texts) in crowds {
        let directory = work.join("crowd");
        remove(&directory)?;
        Online::create(&directory, method.config())?;
        let service = serve(lookalike, &directory)?;
        let body = |id: String, text: &str| serde_json::json!({ "id": id, "text": text }).to_string().into_bytes();
        let (crowd, last) = texts.split_at(CROWD);
        let crowd: Vec<Vec<u8>> = (0..).zip(crowd).map(|(at, text): (usize, _)| body(at.to_string(), text)).collect();
        let copies: Vec<Vec<u8>> = (0..COPIES).map(|at| body(format!("copy-{at}"), &last[0])).collect();
        let insert = "/v1/pages?store=if_new";
        // The first pages are there to fill caches.
        service.send_all(insert, &pages.text_bodies(10, OTHERS), 1, |_| ())?;
        let before = service.send_all(insert, &pages.text_bodies(11, OTHERS), 1, |_| ())?;
        service.send_all("/v1/pages?store=always", &crowd, 8, |_| ())?;
        let after = service.send_all(insert, &pages.text_bodies(12, OTHERS), 1, |_| ())?;
        let mut new = 0;
        service.send_all(insert, &copies, 1, |answer| new += usize::from(answer.contains("\"verdict\":\"new\"")))?;
        let (before, after) = (before.percentile(50), after.percentile(50));
        writeln!(out, "| {name} | {before:.2} ms | {after:.2} ms | {new} |")?;
        out.flush()?;
        drop(service);
        remove(&directory)?;
    }
    Ok(())
}
