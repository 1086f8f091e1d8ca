//! What is written besides the tables: flags that dedup and recluster share.

use clap::Args;
use lookalike::config::parse_bytes;
use lookalike::result::{KeptCompression, KeptFormat, OutputOptions};

use crate::values::named;

#[derive(Debug, Args)]
#[command(next_help_heading = "What is written")]
pub(crate) struct OutputArguments {
    /// Write the dropped records to DIR/removed too, unchanged; removed.parquet says what each was dropped for
    #[arg(long)]
    pub(crate) removed: bool,

    /// Write all records to DIR/annotated with the fields lookalike_cluster, _cluster_size, _kept, _kept_id, _similarity
    /// and _kind added (JSON, Parquet, Arrow, CSV, TSV)
    #[arg(long)]
    pub(crate) annotate: bool,

    /// Do not write DIR/kept
    #[arg(long)]
    pub(crate) no_kept: bool,

    /// Format of the files in DIR/kept
    #[arg(long, value_name = "FORMAT", value_parser = named::<KeptFormat>(), default_value_t = KeptFormat::Same)]
    pub(crate) kept_format: KeptFormat,

    /// Compression of the files in DIR/kept: same, none, gzip or zstd, the last two also with a level, as in zstd:19
    #[arg(long, value_name = "HOW", default_value_t = KeptCompression::Same)]
    pub(crate) kept_compression: KeptCompression,

    /// Divide the files in DIR/kept, removed and annotated into numbered parts of at most SIZE, such as 256MB, before
    /// compression
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) split_size: Option<u64>,

    /// Copy kept page files into DIR/kept instead of only listing them
    #[arg(long)]
    pub(crate) copy_kept: bool,

    /// In web archives, write dropped pages to DIR/kept as revisit records that name the page they duplicate, instead of
    /// leaving them out
    #[arg(long)]
    pub(crate) revisit: bool,

    /// Write the tables as JSON lines too
    #[arg(long)]
    pub(crate) jsonl: bool,
}

impl OutputArguments {
    pub(crate) fn options(&self) -> OutputOptions {
        let mut options = OutputOptions::default();
        options.jsonl = self.jsonl;
        options.copy_kept = self.copy_kept;
        options.revisit = self.revisit;
        options.no_kept = self.no_kept;
        options.removed = self.removed;
        options.annotate = self.annotate;
        options.kept_format = self.kept_format;
        options.kept_compression = self.kept_compression;
        options.split_size = self.split_size;
        options
    }
}
