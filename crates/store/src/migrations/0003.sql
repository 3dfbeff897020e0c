-- Version 3: small contents as rows, so that thousands of them are written with one sync.
CREATE TABLE contents (
    id    INTEGER PRIMARY KEY,
    user  TEXT NOT NULL,
    hash  BLOB NOT NULL CHECK (length(hash) = 32),
    frame BLOB NOT NULL,
    UNIQUE (user, hash)
) STRICT;
