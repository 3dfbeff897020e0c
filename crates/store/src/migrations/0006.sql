-- Version 6: turns under way, the journal of committed turns, and what was learned of documents and sites.

-- The highest number that a turn of a user has had.
CREATE TABLE turn_numbers (
    user TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Turns that are not yet known to be safe among the documents: drafts, and committed ones (the journal).
CREATE TABLE turn_drafts (
    user      TEXT NOT NULL,
    number    INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    phase     INTEGER,
    query     TEXT NOT NULL,
    rest      TEXT NOT NULL,
    PRIMARY KEY (user, number)
) STRICT, WITHOUT ROWID;

-- Their files; frame holds the bytes, or one zstd frame of them.
CREATE TABLE turn_files (
    user   TEXT NOT NULL,
    number INTEGER NOT NULL,
    path   TEXT NOT NULL,
    hash   BLOB NOT NULL,
    bytes  INTEGER NOT NULL,
    zstd   INTEGER NOT NULL,
    frame  BLOB NOT NULL,
    UNIQUE (user, number, path)
) STRICT;

-- Documents that may be newer than their rows in the document index.
CREATE TABLE document_writes (
    user TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (user, path)
) STRICT, WITHOUT ROWID;

-- Turns on their way to the archive.
CREATE TABLE turn_moves (
    user    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (user, number)
) STRICT, WITHOUT ROWID;

-- Users whose documents are going; not among what is deleted with them, but when that is done.
CREATE TABLE document_forgets (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- How often documents were of use, and for whom they count since.
CREATE TABLE document_uses (
    user  TEXT NOT NULL,
    path  TEXT NOT NULL,
    uses  INTEGER NOT NULL,
    ok    INTEGER NOT NULL,
    scope TEXT NOT NULL,
    PRIMARY KEY (user, path)
) STRICT, WITHOUT ROWID;

-- How far sites could be relied on.
CREATE TABLE document_sources (
    user   TEXT NOT NULL,
    domain TEXT NOT NULL,
    ok     INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    used   INTEGER NOT NULL,
    PRIMARY KEY (user, domain)
) STRICT, WITHOUT ROWID;
