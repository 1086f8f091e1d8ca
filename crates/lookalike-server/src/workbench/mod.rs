//! The workbench: a result in the browser, to look at clusters, to tag them, and to correct them.
//!
//! In: a result directory and the pages it is about. Out: pages for people, and what they do there: tags, notes and decisions,
//! in an SQLite file in the result directory. How near-duplicates are found is not decided here. Start with `routes`.

mod agreement;
mod catalogue;
mod change;
mod export;
mod failure;
mod filter;
mod graph;
mod groups;
mod guard;
mod original;
mod people;
mod reader;
mod texts;
mod views;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use lookalike::result::{Originals, files};
use lookalike::{Error, Result};
use rusqlite::params;
use tokio::net::TcpListener;

use crate::{Tokens, allow_many_files, signals};
use failure::Outcome;
use groups::Groups;
use people::{Done, People};
use reader::Readers;
use texts::Texts;

/// The port of the workbench, unless another one is asked for.
pub const VIEW_PORT: u16 = 8701;

/// How a result is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ViewSettings {
    /// The result.
    pub directory: PathBuf,
    /// The address.
    pub listen: SocketAddr,
    /// Who may look, and who may tag; without tokens everybody on this machine may.
    pub tokens: Tokens,
    /// Host names that are accepted without tokens, besides localhost and addresses.
    pub hosts: Vec<String>,
    /// What somebody is called who has not said it.
    pub coder: String,
}

impl ViewSettings {
    /// A result for this machine.
    #[must_use]
    pub fn new(directory: PathBuf) -> ViewSettings {
        ViewSettings {
            directory,
            listen: SocketAddr::from(([127, 0, 0, 1], VIEW_PORT)),
            tokens: Tokens::default(),
            hosts: Vec::new(),
            coder: "me".to_owned(),
        }
    }

    fn check(&self) -> Result<()> {
        if self.tokens.is_empty() && !self.listen.ip().is_loopback() {
            let expected = "others can reach this address: set `tokens`, or listen on 127.0.0.1";
            return Err(Error::invalid("listen", self.listen, expected));
        }
        if !self.directory.join(files::SUMMARY).exists() || !self.directory.join(files::CLUSTERS.parquet).exists() {
            let reason =
                "is not a complete result of lookalike dedup; make one first: lookalike dedup INPUT --output DIR";
            return Err(Error::bad_input(&self.directory, reason));
        }
        Ok(())
    }
}

/// What all requests share.
struct Workbench {
    _lock: std::fs::File,
    settings: ViewSettings,
    /// What the result was recognised by when it was opened.
    fingerprint: String,
    summary: serde_json::Value,
    originals: Originals,
    tables: PathBuf,
    texts: Arc<Texts>,
    groups: Groups,
    readers: Readers,
    people: Mutex<People>,
    /// Goes up with every change, so that other windows see it.
    version: AtomicU64,
}

impl Workbench {
    fn open(settings: ViewSettings, say: &mut dyn FnMut(&str)) -> Outcome<Workbench> {
        let directory = settings.directory.clone();
        let lock = catalogue::lock(&directory)?;
        let fingerprint = catalogue::fingerprint(&directory)?;
        let summary = std::fs::read(directory.join(files::SUMMARY))?;
        let summary: serde_json::Value = serde_json::from_slice(&summary)?;
        let input_pages = summary["pages"].as_u64().unwrap_or(u64::MAX);
        let originals = Originals::open(&directory)?;
        let people_path = directory.join(files::WORKBENCH);
        let people = People::open(&people_path)?;
        let tables = catalogue::prepare(&directory, input_pages, &originals, say)?;
        let texts = Arc::new(Texts::beside(&tables));
        let readers = Readers::new(&tables, &people_path, Arc::clone(&texts));
        let attach = people.connection();
        attach.execute("ATTACH ?1 AS tables", [tables.to_string_lossy()])?;
        let groups = readers.ask(|reader| Groups::load(reader.connection()))?;
        let bench = Workbench {
            groups,
            fingerprint,
            _lock: lock,
            settings,
            summary,
            originals,
            tables,
            texts,
            readers,
            people: Mutex::new(people),
            version: AtomicU64::new(1),
        };
        bench.count_all_tags()?;
        bench.write_decisions(&bench.people())?;
        Ok(bench)
    }

    /// Whether the result was made again since it was opened.
    fn is_outdated(&self) -> bool {
        catalogue::fingerprint(&self.settings.directory).map_or(true, |now| now != self.fingerprint)
    }

    fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tags of whole groups are counted from those of pages, which may be of an earlier run.
    fn count_all_tags(&self) -> Outcome<()> {
        self.people().connection().execute_batch(
            "DELETE FROM tables.grp_tag;
             INSERT INTO tables.grp_tag (tag, coder, grp, pages)
                 SELECT t.tag, t.coder, p.grp, count(*) FROM tagging t JOIN tables.page p ON p.id = t.page GROUP BY 1, 2, 3;",
        )?;
        Ok(())
    }

    /// Makes what follows from a change true: counts, the file of decisions, the version.
    fn follow_up(&self, people: &People, done: &Done) -> Outcome<()> {
        let connection = people.connection();
        let mut find = connection.prepare_cached("SELECT grp FROM tables.page WHERE id = ?1")?;
        let mut groups = std::collections::BTreeSet::new();
        let mut has_decided = false;
        for change in &done.changes {
            has_decided |= matches!(change, people::Change::Decision { .. });
            if matches!(change, people::Change::Tag { .. }) {
                for group in find.query_map([change.page()], |row| row.get::<_, i64>(0))? {
                    groups.insert(group?);
                }
            }
        }
        for group in groups {
            connection.execute("DELETE FROM tables.grp_tag WHERE grp = ?1", [group])?;
            connection.execute(
                "INSERT INTO tables.grp_tag (tag, coder, grp, pages)
                 SELECT t.tag, t.coder, p.grp, count(*) FROM tables.page p JOIN tagging t ON t.page = p.id
                 WHERE p.grp = ?1 GROUP BY 1, 2, 3",
                params![group],
            )?;
        }
        if has_decided {
            self.write_decisions(people)?;
        }
        self.has_changed();
        Ok(())
    }

    fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Decisions are also written as lines, which `recluster` follows.
    fn write_decisions(&self, people: &People) -> Outcome<()> {
        let path = self.settings.directory.join(files::DECISIONS);
        let mut lines = String::new();
        for decision in people.decisions()? {
            lines.push_str(&serde_json::to_string(&decision)?);
            lines.push('\n');
        }
        if std::fs::read_to_string(&path).unwrap_or_default() == lines {
            return Ok(());
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.settings.directory)?;
        std::io::Write::write_all(&mut file, lines.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}

type Shared = Arc<Workbench>;

/// All pages and calls.
fn routes(bench: &Shared) -> Router {
    let router = Router::new()
        .route("/", get(views::overview::show))
        .route("/clusters", get(views::clusters::show))
        .route("/clusters/{n}", get(views::cluster::show))
        .route("/page", get(views::cluster::find))
        .route("/pair/{left}/{right}", get(views::pair::show))
        .route("/original/{n}", get(original::show))
        .route("/tags", get(views::tags::show))
        .route("/audit", get(views::audit::overview))
        .route("/audit/{sample}/{position}", get(views::audit::pair))
        .route("/export/{file}", get(export::download))
        .route("/assets/{name}", get(views::asset))
        .route("/api/version", get(change::version))
        .route(guard::SIGN_IN, post(change::sign_in))
        .route("/api/coder", post(change::coder))
        .route("/api/tag", post(change::tag))
        .route("/api/note", post(change::note))
        .route("/api/decide", post(change::decide))
        .route("/api/undo", post(change::undo))
        .route("/api/tags", post(change::tags))
        .route("/api/sample", post(change::sample))
        .route("/api/judge", post(change::judge))
        .fallback(views::not_found);
    guard::wrap(router, bench).with_state(Arc::clone(bench))
}

/// Time for requests under way once the program is told to stop.
const STOP_TIME: Duration = Duration::from_secs(3);

/// Shows a result until SIGTERM or SIGINT arrives. `say` gets a line for people while it is prepared, `on_ready` the address.
///
/// # Errors
/// When the directory is not a result, cannot be written to, or the address cannot be used.
pub fn view(settings: ViewSettings, mut say: impl FnMut(&str), on_ready: impl FnOnce(SocketAddr)) -> Result<()> {
    settings.check()?;
    allow_many_files();
    let directory = settings.directory.clone();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::io(&directory, "view"))?;
    let listen = settings.listen;
    // The address is taken first: preparing a large result for nothing is a pity.
    let listener = runtime.block_on(TcpListener::bind(listen)).map_err(|cause| {
        Error::invalid(
            "listen",
            listen,
            format!("this address cannot be used: {cause}; another one, as 127.0.0.1:0, can"),
        )
    })?;
    let bench = Workbench::open(settings, &mut say).map_err(|failure| match failure {
        failure::Failure::Library(error) => error,
        other => Error::bad_input(&directory, other.to_string()),
    })?;
    let bench = Arc::new(bench);
    let preparing = Arc::clone(&bench);
    std::thread::spawn(move || {
        preparing.texts.prepare(&preparing.tables, &preparing.originals);
        preparing.has_changed();
    });
    let done = runtime.block_on(run(listener, bench, &directory, on_ready));
    runtime.shutdown_background();
    done
}

async fn run(listener: TcpListener, bench: Shared, directory: &Path, on_ready: impl FnOnce(SocketAddr)) -> Result<()> {
    let address = listener.local_addr().map_err(Error::io(directory, "view"))?;
    let mut signals = signals().map_err(Error::io(directory, "view"))?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    on_ready(address);
    let server = axum::serve(listener, routes(&bench)).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let mut server = std::pin::pin!(server.into_future());
    tokio::select! {
        ended = &mut server => return ended.map_err(Error::io(directory, "view")),
        () = signals.recv() => {}
    }
    let _ = stop.send(());
    // Everything that was acknowledged is on disk.
    let _ = tokio::time::timeout(STOP_TIME, server).await;
    Ok(())
}
