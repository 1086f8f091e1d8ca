//! What the two formats of web archives have in common: cutting them into records (`cutter`), which records are
//! pages (`capture`), and the HTTP responses in them (`http`).

pub(super) mod capture;
pub(crate) mod cutter;
pub(super) mod http;

pub(crate) use cutter::{Cut, Cutter, Kind, Piece};
pub(super) use cutter::{is_by_member, line_ends, records, stretch};
