//! The index over the documents of one user: turns, research, captured pages, links, words, vectors.

mod choose;
mod file;
mod put;
mod read;
mod rows;
mod search;
mod vectors;

pub(super) use file::IndexFile;
pub(super) use larder_vault::path_kind::{PathKind, name_of};
pub(super) use put::{Subject, put, remove};
pub(super) use read::{
    Wanted, captures, documents_of_turn, highest_turn, links_into, links_of, links_to, memory_documents,
    old_turns, recent_turns, research, topics, turn, turn_user,
};
pub(super) use rows::{Indexed, Rows, is_indexed, links_in, rows_of};
pub(super) use search::search;
pub(super) use vectors::{insert_vectors, near, retain_vectors_of, sweep, texts_without_vector};

#[cfg(test)]
pub(super) mod dump;
