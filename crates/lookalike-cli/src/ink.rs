//! Text of pages on a terminal: colours where there is one, marks elsewhere, and nothing that could control it.

use std::io::{self, IsTerminal, Write};

use lookalike::compare::{Piece, SideBySide};

/// Colours on a terminal, marks elsewhere.
pub(crate) struct Ink {
    is_coloured: bool,
}

impl Ink {
    /// For standard output.
    pub(crate) fn new() -> Ink {
        Ink { is_coloured: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// The sign of the first page, and of the second.
    pub(crate) fn signs(&self) -> (String, String) {
        (self.paint("31", "-"), self.paint("32", "+"))
    }

    /// A piece of a comparison.
    fn piece(&self, piece: &Piece) -> String {
        match piece {
            Piece::Shared(text) => harmless(text),
            Piece::Omitted(words) => self.dim(&format!("[… {words} identical words …]")),
            Piece::Left(text) if self.is_coloured => self.paint("31", &harmless(text)),
            Piece::Left(text) => format!("[-{}-]", harmless(text)),
            Piece::Right(text) if self.is_coloured => self.paint("32", &harmless(text)),
            Piece::Right(text) => format!("{{+{}+}}", harmless(text)),
            Piece::NotCompared => self.dim("[the rest was not compared]"),
        }
    }

    /// Writes where two texts differ; at most so many characters, if that is not 0. Says how many differences are left.
    pub(crate) fn print_pieces(&self, out: &mut impl Write, pieces: &[Piece], most_chars: usize) -> io::Result<usize> {
        let mut chars = 0;
        for (at, piece) in pieces.iter().enumerate() {
            if most_chars > 0 && chars > most_chars {
                writeln!(out)?;
                let is_difference = |piece: &&Piece| matches!(piece, Piece::Left(_) | Piece::Right(_));
                return Ok(pieces[at..].iter().filter(is_difference).count());
            }
            let text = self.piece(piece);
            chars += text.chars().count() + 1;
            write!(out, "{text} ")?;
        }
        writeln!(out)?;
        Ok(0)
    }
}

/// Two texts in full, piece by piece.
pub(crate) fn all_pieces(sides: SideBySide) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (left, right): (Vec<_>, Vec<_>) = sides.rows.into_iter().map(|row| (row.left, row.right)).unzip();
    let (mut left, mut right) = (left.into_iter().flatten().peekable(), right.into_iter().flatten().peekable());
    loop {
        if let Some(span) = left.next_if(|span| !span.is_shared) {
            pieces.push(Piece::Left(span.text));
        } else if let Some(span) = right.next_if(|span| !span.is_shared) {
            pieces.push(Piece::Right(span.text));
        } else if let (Some(span), _) = (left.next(), right.next()) {
            pieces.push(Piece::Shared(span.text));
        } else {
            break;
        }
    }
    if sides.is_cut {
        pieces.push(Piece::NotCompared);
    }
    pieces
}

/// Without control characters: what pages say must not control the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A title as it is shown: on one line, in quotation marks.
pub(crate) fn title(text: &str) -> String {
    format!("“{}”", harmless(&text.split_whitespace().collect::<Vec<_>>().join(" ")))
}
