//! Tables in which most bytes are the same, written as a list of the others, so that the binary carries a fraction of
//! them. Knows nothing of what the bytes mean.

/// What [`read`] makes `table` of: for each byte that is not `common`, how many come before it that are, and the byte.
#[allow(dead_code, reason = "the build script writes the lists")]
pub(super) fn write(table: &[u8], common: u8) -> Vec<u8> {
    let (mut list, mut gap) = (Vec::new(), 0);
    for &byte in table {
        // A gap that does not fit into a byte is written in parts, each of which ends with one of the common bytes.
        if byte == common && gap < u8::MAX {
            gap += 1;
        } else {
            list.extend([gap, byte]);
            gap = 0;
        }
    }
    list
}

/// The table of `length` bytes that `list` was written of.
#[allow(dead_code, reason = "the build script reads no list")]
pub(super) fn read(list: &[u8], length: usize, common: u8) -> Vec<u8> {
    let (mut table, mut at) = (vec![common; length], 0);
    for &[gap, byte] in list.as_chunks().0 {
        at += usize::from(gap);
        if let Some(place) = table.get_mut(at) {
            *place = byte;
        }
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_gives_its_table_again(
            table in prop::collection::vec(prop_oneof![40 => Just(2_u8), 1 => any::<u8>()], 0..2_000),
        ) {
            prop_assert_eq!(read(&write(&table, 2), table.len(), 2), table);
        }
    }

    #[test]
    fn few_exceptions_make_a_short_list() {
        let mut table = vec![0; 10_000];
        table[9_000] = 7;
        assert_eq!(write(&table, 0).len(), 2 * (9_000 / 256 + 1 + 999 / 256));
    }
}
