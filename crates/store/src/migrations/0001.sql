-- Version 1: pointers and runs. A released migration is never edited; the next change is the next file.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pointers (
    user                   TEXT NOT NULL,
    name                   TEXT NOT NULL,
    content                BLOB NOT NULL CHECK (length(content) = 32),
    bytes                  INTEGER NOT NULL,
    kind                   TEXT NOT NULL,
    display_text           TEXT NOT NULL,
    rehydrate_instructions TEXT NOT NULL,
    created                INTEGER NOT NULL,
    PRIMARY KEY (user, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    seq      INTEGER PRIMARY KEY,
    user     TEXT NOT NULL,
    run_id   TEXT NOT NULL,
    recipe   TEXT NOT NULL,
    recorded INTEGER NOT NULL,
    record   TEXT NOT NULL,
    receipt  BLOB NOT NULL CHECK (length(receipt) = 32),
    output   BLOB CHECK (length(output) = 32),
    UNIQUE (user, run_id)
) STRICT;

CREATE INDEX runs_of_user ON runs (user, seq);

CREATE TABLE run_pointers (
    user    TEXT NOT NULL,
    run_id  TEXT NOT NULL,
    pointer TEXT NOT NULL,
    PRIMARY KEY (user, run_id, pointer)
) STRICT, WITHOUT ROWID;
