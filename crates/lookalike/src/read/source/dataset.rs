//! Folders as Hugging Face's `datasets` lays them out: files that describe a dataset and are not pages of it.

use std::fs;
use std::io::Read;
use std::path::Path;

/// What such files are called.
const DESCRIPTIONS: [&str; 3] = ["dataset_info.json", "dataset_infos.json", "dataset_dict.json"];
/// Lines of the header of a card, any of which no other file has.
const CARD_KEYS: [&str; 4] = ["dataset_info:", "task_categories:", "size_categories:", "configs:"];
/// Bytes of a card that are looked at.
const CARD_BYTES: u64 = 64 << 10;

/// Whether a file in a directory describes a dataset: by its name, and `state.json` and `README.md` by what is beside
/// them or in them.
pub(super) fn is_description(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if DESCRIPTIONS.contains(&name) => true,
        Some("state.json") => path.with_file_name(DESCRIPTIONS[0]).is_file(),
        Some("README.md") => path.parent().is_some_and(holds_rows) || has_card_header(path),
        _ => false,
    }
}

/// Whether files of rows are in a folder, or in its folder `data`.
fn holds_rows(folder: &Path) -> bool {
    let is_rows =
        |path: &Path| path.extension().is_some_and(|ending| ["parquet", "arrow"].iter().any(|known| ending == *known));
    let has_rows =
        |folder: &Path| fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(|entry| is_rows(&entry.path())));
    has_rows(folder) || has_rows(&folder.join("data"))
}

fn has_card_header(path: &Path) -> bool {
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(CARD_BYTES).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    read.is_ok()
        && lines.next() == Some("---")
        && lines.take_while(|line| *line != "---").any(|line| CARD_KEYS.iter().any(|key| line.starts_with(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_told_from_pages() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str, content: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        };
        at("rows/data/train-00000-of-00001.parquet", "PAR1");
        at("disk/dataset_info.json", "{}");
        for description in [
            at("rows/README.md", "# Rows"),
            at("rows/dataset_infos.json", "{}"),
            at("disk/state.json", "{}"),
            at("cards/README.md", "---\nlicense: mit\ntask_categories:\n- x\n---\n# Card"),
        ] {
            assert!(is_description(&description), "{}", description.display());
        }
        for page in [
            at("pages/README.md", "# Once upon a time"),
            at("blog/README.md", "---\ntitle: A day\n---\nconfigs: none"),
            at("pages/state.json", "{}"),
            at("rows/data/x.json", "{}"),
        ] {
            assert!(!is_description(&page), "{}", page.display());
        }
    }
}
