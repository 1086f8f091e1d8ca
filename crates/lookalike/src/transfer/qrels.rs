//! Relevance judgments in TREC format: topic, iteration, page, grade.

use std::fmt::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::read::plain::plain_text;
use crate::report::render;

/// One judgment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgment {
    /// The topic.
    pub topic: String,
    /// The second column, which is carried along.
    pub iteration: String,
    /// The judged page.
    pub page: String,
    /// The grade; negative ones are for junk.
    pub grade: i64,
    /// Its line, from 1.
    pub line: u64,
}

/// Reads a file of judgments.
///
/// # Errors
/// When a line does not have four columns, has a grade that is not a whole number, or judges a page again and
/// differently.
pub fn read(path: &Path) -> Result<Vec<Judgment>> {
    let text = plain_text(path)?;
    let mut judgments: Vec<Judgment> = Vec::new();
    let mut known: std::collections::HashMap<(String, String), usize> = std::collections::HashMap::new();
    for (number, line) in (1u64..).zip(text.lines()).filter(|row| !row.1.trim().is_empty()) {
        let wrong = |reason: String| Error::bad_line(path, number, reason);
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [topic, iteration, page, grade] = cells[..] else {
            let hint =
                if cells.len() == 5 { " (five columns are those of prels, which have probabilities)" } else { "" };
            return Err(wrong(format!(
                "has {} columns; judgments have four: topic, iteration, page, grade{hint}",
                cells.len()
            )));
        };
        let grade: i64 = grade.parse().map_err(|_| {
            wrong(format!("the grade '{grade}' is not a whole number (0 and 1, or -2 to 4, for example)"))
        })?;
        let judgment = Judgment {
            topic: topic.to_owned(),
            iteration: iteration.to_owned(),
            page: page.to_owned(),
            grade,
            line: number,
        };
        match known.get(&(judgment.topic.clone(), judgment.page.clone())) {
            Some(&before) if judgments[before].grade != grade => {
                return Err(wrong(format!(
                    "'{page}' has the grade {grade} for topic {topic} here and {} in line {}",
                    judgments[before].grade, judgments[before].line
                )));
            }
            Some(_) => continue,
            None => {}
        }
        known.insert((judgment.topic.clone(), judgment.page.clone()), judgments.len());
        judgments.push(judgment);
    }
    if judgments.is_empty() {
        return Err(Error::bad_input(path, "holds no judgments"));
    }
    Ok(judgments)
}

/// Writes judgments.
///
/// # Errors
/// When the file cannot be written.
pub fn write<'a>(path: &Path, rows: impl Iterator<Item = (&'a str, &'a str, &'a str, i64)>) -> Result<()> {
    let mut text = String::new();
    for (topic, iteration, page, grade) in rows {
        writeln!(text, "{topic} {iteration} {page} {grade}").expect("writing to a string cannot fail");
    }
    render::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Judgment>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("qrels.txt");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn junk_grades_are_grades() {
        let read = of("1 0 a -2\n1\tQ0\tb\t3\n\n2 0 a 0\n1 0 a -2\n").unwrap();
        assert_eq!(read.iter().map(|row| row.grade).collect::<Vec<_>>(), [-2, 3, 0]);
        assert_eq!(read[1].line, 2);
    }

    #[test]
    fn complaints_name_the_line() {
        for (text, complaint) in [
            ("1 0 a 1\n1 0 b\n", "line 2: has 3 columns"),
            ("1 a 1 1 0.5\n", "line 1: has 5 columns; judgments have four: topic, iteration, page, grade (five"),
            ("1 0 a high\n", "line 1: the grade 'high' is not a whole number"),
            ("1 0 a 1\n1 0 a 2\n", "line 2: 'a' has the grade 2 for topic 1 here and 1 in line 1"),
            ("", "holds no judgments"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
