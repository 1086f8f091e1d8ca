//! Where the files of an index are: in its directory, or, since it was built anew while it was in use, in a directory there
//! that its manifest names.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::live::manifest::{Manifest, belongs_to_index, write_whole};
use crate::index::live::{COLLECTIONS, LOCK, SHIPPING};

/// What directories are called that an index was built anew in.
const REBUILT: &str = "rebuilt-";
/// Above the formats of manifests, so that programs which do not know of this refuse it.
const FORMAT: u32 = 5;

/// What stands in the place of a manifest.
#[derive(Serialize, Deserialize)]
struct Moved {
    format: u32,
    /// The name of a directory beside it.
    moved: String,
}

/// Whether a directory of this name is one that an index was built anew in.
pub(crate) fn is_rebuilt(name: &str) -> bool {
    name.strip_prefix(REBUILT).is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Where the files of the index in `directory` are.
pub(crate) fn place(directory: &Path) -> Result<PathBuf> {
    let path = Manifest::path(directory);
    // What cannot be read, or makes no sense, is told by whoever reads it as a manifest.
    let moved = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Moved>(&bytes).ok());
    match moved {
        None => Ok(directory.to_path_buf()),
        Some(Moved { moved, .. }) if is_rebuilt(&moved) => Ok(directory.join(moved)),
        Some(Moved { moved, .. }) => {
            Err(Error::corrupt(&path, format!("names '{moved}', where no index can be; restore it from a copy")))
        }
    }
}

/// The directory of an index whose files are in `place`.
pub(crate) fn root(place: &Path) -> &Path {
    let is_within = place.file_name().is_some_and(|name| is_rebuilt(&name.to_string_lossy()));
    place.parent().filter(|_| is_within).unwrap_or(place)
}

/// Where an index can be built anew: a name that nothing has had since the last one was built.
pub(crate) fn free_place(root: &Path) -> PathBuf {
    let names = std::fs::read_dir(root).into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_string_lossy().strip_prefix(REBUILT)?.parse().ok());
    root.join(format!("{REBUILT}{}", numbers.fold(0, u32::max).saturating_add(1)))
}

/// From now on the files of the index in `root` are in `place`.
pub(crate) fn move_to(root: &Path, place: &Path) -> Result<()> {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let moved = Moved { format: FORMAT, moved: name };
    write_whole(root, &serde_json::to_vec_pretty(&moved).expect("plain fields serialise"))
}

/// Removes what is not in `place` of the index in `root`: what was replaced, or was not finished.
pub(crate) fn clear_others(root: &Path, place: &Path) -> Result<()> {
    let is_moved = root != place;
    for entry in std::fs::read_dir(root).map_err(Error::io(root, "read"))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let stays = ["manifest.json", LOCK, COLLECTIONS, SHIPPING].contains(&name.as_str()) || path == place;
        let goes = is_rebuilt(&name) || is_moved && belongs_to_index(&name);
        if stays || !goes {
            continue;
        }
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(Error::io(&path, "remove"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_where_its_manifest_says_and_what_it_replaced_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(place(root).unwrap(), root, "there is nothing");
        for name in ["manifest.json", "segment-000001.seg", "acknowledged", "note.txt", "lock"] {
            std::fs::write(root.join(name), "{}").unwrap();
        }
        for name in ["store", "collections", "rebuilt-4", "rebuilt-x"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let names = || {
            let entries = std::fs::read_dir(root).unwrap().flatten();
            let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        clear_others(root, root).unwrap();
        assert_eq!(names().len(), 8, "one was not finished: {:?}", names());
        let new = free_place(root);
        std::fs::create_dir(&new).unwrap();
        move_to(root, &new).unwrap();
        assert_eq!((place(root).unwrap(), self::root(&new), self::root(root)), (new.clone(), root, root));
        clear_others(root, &new).unwrap();
        assert_eq!(names(), ["collections", "lock", "manifest.json", "note.txt", "rebuilt-1", "rebuilt-x"]);
        assert_eq!(free_place(root), root.join("rebuilt-2"));
        std::fs::write(root.join("manifest.json"), r#"{"format": 5, "moved": "../away"}"#).unwrap();
        assert!(place(root).unwrap_err().to_string().contains("no index can be"));
        // What an older program says about it.
        move_to(root, &new).unwrap();
        assert!(Manifest::read(root).unwrap_err().to_string().contains("format 5"));
    }
}
