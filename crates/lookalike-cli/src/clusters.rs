//! `lookalike clusters`

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use lookalike::result::{Cluster, ClusterPage, ClusterQuery, clusters};
use serde_json::json;

use crate::args::ClustersArguments;
use crate::ink::{Ink, harmless, title};
use crate::table::{counted, kind_name};
use crate::{Ending, json};

pub(crate) fn run(arguments: &ClustersArguments) -> Result<Ending> {
    let mut query = ClusterQuery::default();
    (query.sort, query.least_pages) = (arguments.sort, arguments.min.max(2));
    query.contains.clone_from(&arguments.grep);
    let found = clusters(&arguments.directory, &query)?;
    if arguments.json {
        json::print(&json!({"result": arguments.directory, "clusters": found}))?;
        return Ok(Ending::Done);
    }
    let (mut out, ink) = (BufWriter::new(io::stdout().lock()), Ink::new());
    for cluster in &found {
        print(&mut out, cluster, arguments, &ink)?;
    }
    out.flush()?;
    let pages: usize = found.iter().map(|cluster| cluster.pages).sum();
    let groups = counted(found.len() as u64, "group", "groups");
    writeln!(io::stderr(), "{groups} of {}", counted(pages as u64, "page", "pages"))?;
    Ok(Ending::Done)
}

fn print(out: &mut impl Write, cluster: &Cluster, arguments: &ClustersArguments, ink: &Ink) -> io::Result<()> {
    let size = counted(cluster.pages as u64, "page", "pages");
    writeln!(out, "{}  weakest {:.4}  {}", ink.bold(&size), cluster.weakest, describe(&cluster.kept))?;
    let shown = if arguments.members == 0 { cluster.dropped.len() } else { arguments.members };
    for page in cluster.dropped.iter().take(shown) {
        writeln!(out, "    {:.4}  {:<26}  {}", page.similarity, kind_name(&page.kind), describe(page))?;
    }
    if cluster.dropped.len() > shown {
        writeln!(out, "    {}", ink.dim(&format!("… and {} more", cluster.dropped.len() - shown)))?;
    }
    writeln!(out)
}

fn describe(page: &ClusterPage) -> String {
    let mut parts = vec![harmless(&page.id)];
    parts.extend(page.title.as_deref().map(title));
    parts.extend(page.url.as_deref().filter(|url| *url != page.id).map(harmless));
    parts.join("  ")
}
