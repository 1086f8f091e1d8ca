//! What the two formats of web archives have in common: cutting them into records (`cutter`), which records are
//! pages (`capture`), the HTTP responses in them (`http`), and which capture has the text of a revisit (`revisits`).

pub(super) mod capture;
pub(crate) mod cutter;
pub(super) mod http;
pub(super) mod revisits;

pub(crate) use cutter::{Cut, Cutter, Kind, Piece};
pub(super) use cutter::{is_by_member, line_ends, records, stretch};
