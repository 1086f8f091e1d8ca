//! What a service cannot do without: the library alone, and bare handlers around it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lookalike::index::{OpenOptions, pages};
use lookalike::method::Simhash;
use lookalike::online::OnlineOptions;
use lookalike::unstable::cpu_seconds;
use lookalike::{Body, Config, Index, Markup, Online, RawPage, Sketcher};

use super::filled::{Method, RADIUS};
use super::server::Load;

/// A collection without a service.
pub(super) enum Library {
    Bands(Box<Online>),
    Fingerprints(Box<Index>),
}

impl Library {
    pub(super) fn open(directory: &Path, method: Method) -> Result<Library> {
        Ok(match method {
            Method::Minhash => Library::Bands(Box::new(Online::open(directory, OnlineOptions::default())?)),
            Method::Simhash => Library::Fingerprints(Box::new(Index::open(directory, OpenOptions::default())?)),
        })
    }

    /// Rows that are near a page.
    fn check(&self, html: &str) -> u64 {
        let page = RawPage::new(Body::Text(html.into()), Markup::Html);
        match self {
            // It has workers of its own.
            Library::Bands(online) => online.check(&page).map_or(0, |outcome| outcome.of.len() as u64),
            Library::Fingerprints(index) => with_sketcher(|sketcher| {
                let fingerprint = pages::fingerprint(&page, sketcher).unwrap_or(0);
                index.reader().query(fingerprint, RADIUS, 64).map_or(0, |answer| answer.count)
            }),
        }
    }

    /// Checks pages on some threads at once.
    pub(super) fn load(&self, texts: &[String], threads: usize) -> Result<Load> {
        let check_all = || texts.iter().map(|text| self.check(text)).sum::<u64>();
        let now = || cpu_seconds().context("CPU time");
        let start = now()?;
        let found: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(check_all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(u64::MAX)).max().unwrap_or(0)
        });
        ensure!(found < 100, "the pages are like those in the index");
        Ok(Load { requests: (threads * texts.len()) as u64, cpu_seconds: now()? - start, ..Load::default() })
    }
}

/// Works with the sketcher of a thread.
fn with_sketcher<T>(work: impl FnOnce(&mut Sketcher) -> T) -> T {
    thread_local! {
        static SKETCHER: std::cell::RefCell<Sketcher> =
            std::cell::RefCell::new(Sketcher::new(&Config::new(Simhash::default())));
    }
    SKETCHER.with_borrow_mut(work)
}

/// A server that does nothing but what nobody can do without: it parses bodies; with a collection, it asks that.
#[tokio::main]
pub(crate) async fn parser(directory: Option<PathBuf>, method: Method) -> Result<()> {
    use axum::routing::{get, post};

    let library = directory.map(|directory| Library::open(&directory, method)).transpose()?;
    let library: &'static Option<Library> = Box::leak(Box::new(library));
    let handle = async move |body: axum::body::Bytes| match serde_json::from_slice::<BarePage<'_>>(&body) {
        Ok(page) => (axum::http::StatusCode::OK, format!("{}", answer(&page, library.as_ref()))),
        Err(error) => (axum::http::StatusCode::BAD_REQUEST, error.to_string()),
    };
    let router = axum::Router::new().route("/", post(handle)).route("/readyz", get(async || "ready"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    axum::serve(listener, router).await?;
    Ok(())
}

#[derive(serde::Deserialize)]
struct BarePage<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    html: Cow<'a, str>,
}

fn answer(page: &BarePage<'_>, library: Option<&Library>) -> u64 {
    library.map_or((page.url.len() + page.html.len()) as u64, |library| library.check(&page.html))
}
