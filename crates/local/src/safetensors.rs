//! Weights in the safetensors format: a JSON header with the location of each tensor, followed by their bytes. Reads
//! f32 tensors and knows nothing of their meaning.

use serde_json::{Map, Value};

/// A file in memory.
pub(super) struct Tensors<'a> {
    header: Map<String, Value>,
    data: &'a [u8],
}

impl<'a> Tensors<'a> {
    /// Reads the header; the error says what is wrong with it.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, String> {
        let parts = file.split_first_chunk().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        });
        let (header, data) = parts.ok_or("its header exceeds the file")?;
        let header = serde_json::from_slice(header).map_err(|error| format!("its header: {error}"))?;
        Ok(Self { header, data })
    }

    /// The `length` numbers of a tensor, rows one after the other.
    pub(super) fn get(&self, name: &str, length: usize) -> Result<Vec<f32>, String> {
        let entry = self.header.get(name).ok_or_else(|| format!("it has no tensor `{name}`"))?;
        let offset = |index: usize| {
            let offset = entry.get("data_offsets").and_then(|offsets| offsets.get(index));
            offset.and_then(Value::as_u64).and_then(|offset| usize::try_from(offset).ok())
        };
        let bytes = offset(0).zip(offset(1)).and_then(|(start, end)| self.data.get(start..end));
        let numbers = bytes.map(<[u8]>::as_chunks).filter(|(numbers, rest)| {
            rest.is_empty() && numbers.len() == length && entry.get("dtype") == Some(&Value::from("F32"))
        });
        let (numbers, _) = numbers.ok_or_else(|| format!("its tensor `{name}` is not {length} f32"))?;
        Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, numbers: &[f32]) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        file
    }

    #[test]
    fn a_tensor_is_found_by_its_name() {
        let header = r#"{"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
                         "b": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}}"#;
        let file = file(header, &[1.0, 2.0, 3.0]);
        let tensors = Tensors::read(&file).unwrap();
        assert_eq!(tensors.get("a", 2).unwrap(), [2.0, 3.0]);
        for (name, length) in [("a", 3), ("b", 1), ("c", 1)] {
            assert!(tensors.get(name, length).is_err(), "{name}");
        }
    }

    #[test]
    fn a_broken_file_is_refused() {
        let beyond = r#"{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}"#;
        assert!(Tensors::read(&file(beyond, &[1.0])).unwrap().get("a", 2).is_err());
        for file in [&b"short"[..], &u64::MAX.to_le_bytes(), &file("[]", &[]), &file("{", &[])] {
            assert!(Tensors::read(file).is_err());
        }
    }
}
