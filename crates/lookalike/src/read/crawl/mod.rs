//! What the two formats of web archives have in common: cutting them into records (`cutter`, `split`), which records are
//! pages (`capture`), the HTTP responses in them (`http`), and which capture has the text of a revisit (`revisits`).

pub(super) mod capture;
pub(crate) mod cutter;
pub(super) mod http;
pub(super) mod revisits;
pub(super) mod split;

pub(super) use cutter::line_ends;
pub(crate) use cutter::{ArchiveKind, Cutter, Piece};
