//! The main job in parts, for machines that share nothing but rows: what is done to pages, pairs or groups that happen to
//! be in one place.
//!
//! In: batches of rows, in an order that each part names. Out: batches of rows. Whoever has the rows (Apache Spark, by the Python package)
//! sorts, groups and joins them between the parts; every decision is made here, by the code that decides on one machine.
//! `input.rs` lists what is to be read, in units; `reading.rs` reads a unit; `frames.rs` learns frames from what units left,
//! and sees pages without them; `search.rs` makes keys, and pairs of what shares one; `scoring.rs` compares; `grouping.rs`
//! says who is kept. `near.rs` is a job of its own: fingerprints that are near to some others.

pub(crate) mod frames;
mod grouping;
pub(crate) mod input;
mod near;
pub(crate) mod reading;
pub(crate) mod rows;
mod scoring;
mod search;

use std::sync::Arc;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::plan::{CorpusStats, Plan};
use crate::text::frames::{FrameRow, Frames};
pub use frames::learn;
pub use grouping::connected;
pub use input::{JobInput, SourceOfJob, UnitOfJob};

/// What all parts of a job know.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spec {
    config: Config,
    /// What was learnt about frames, once it was.
    #[serde(default)]
    frames: Option<Vec<FrameRow>>,
    /// Rows of the job.
    #[serde(default)]
    rows: u64,
    /// Whether whole pages are looked at, and not what of them is compared.
    #[serde(default)]
    whole: bool,
    /// Whether every pair that is compared is handed on.
    #[serde(default)]
    all: bool,
    /// How many pages have each feature, by counters, once it was counted.
    #[serde(default)]
    counts: Option<Vec<(usize, u32)>>,
}

impl Spec {
    fn parse(json: &str) -> Result<Spec> {
        serde_json::from_str(json).map_err(|error| Error::internal(format!("a part cannot be understood: {error}")))
    }

    fn plan(&self) -> Result<Plan> {
        let stats = match &self.frames {
            None => None,
            Some(rows) => {
                let frames = Frames::from_rows(rows.iter().cloned())
                    .map_err(|reason| Error::internal(format!("what was learnt {reason}")))?;
                Some(Arc::new(CorpusStats { frames: Some(Arc::new(frames)), ..CorpusStats::default() }))
            }
        };
        Ok(self.config.plan_with(stats))
    }
}

/// Where a part puts its rows.
pub type Emit<'e> = dyn FnMut(RecordBatch) -> Result<()> + 'e;

/// A part of the job.
pub trait Part: Send {
    /// Takes rows in.
    ///
    /// # Errors
    /// Whatever stops the job.
    fn push(&mut self, rows: &RecordBatch, emit: &mut Emit<'_>) -> Result<()>;

    /// There are no more rows.
    ///
    /// # Errors
    /// Whatever stops the job.
    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()>;
}

/// A part by its name.
///
/// # Errors
/// When there is none of that name, or the job cannot be understood.
pub fn part(name: &str, spec: &str) -> Result<Box<dyn Part>> {
    if name == "near" {
        return Ok(Box::new(near::Near::new(spec)?));
    }
    let spec = Spec::parse(spec)?;
    Ok(match name {
        "read" => Box::new(reading::Read::new(&spec)?),
        "sample" => Box::new(frames::MergeSamples::new()),
        "complete" => Box::new(frames::Complete::new(&spec)?),
        "keys" => Box::new(search::Keys::new(&spec)?),
        "pairs" => Box::new(search::Pairs::new(&spec)?),
        "features" => Box::new(reading::Features::new(&spec)?),
        "held_features" => Box::new(frames::HeldFeatures::new(&spec)?),
        "leads" => Box::new(scoring::Leads::new()),
        "spots" => Box::new(search::Spots::new(&spec)?),
        "meetings" => Box::new(search::Meetings::new(&spec)?),
        "compare" => Box::new(scoring::Compare::new(&spec)?),
        "stars" | "settle" | "chains" => Box::new(grouping::Grouping::new(&spec, name)?),
        _ => return Err(Error::internal(format!("there is no part {name}"))),
    })
}

/// The columns of what a part puts out, as a list of names and types in SQL.
///
/// # Errors
/// When there is no part of that name.
pub fn columns(name: &str) -> Result<String> {
    let columns: &rows::Columns = match name {
        "read" => &reading::SIGNATURES,
        "sample" => &frames::SAMPLES,
        "complete" => &frames::PAGES,
        "keys" => &search::KEYS,
        "pairs" => &search::PAIRS,
        "features" | "held_features" => &reading::FEATURES,
        "leads" => &scoring::LEADS,
        "spots" => &search::SPOTS,
        "meetings" => &search::MEETINGS,
        "compare" => &scoring::SCORES,
        "near" => &near::MATCHES,
        "stars" => &grouping::STARS,
        "settle" | "chains" => &grouping::WANTED,
        _ => return Err(Error::internal(format!("there is no part {name}"))),
    };
    Ok(rows::ddl(columns))
}
