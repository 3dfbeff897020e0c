-- Version 12: contents in segment files, of which the index has the places.

-- flags: 1 the record has what its pointer says, 2 the content is a file of its own.
CREATE TABLE segment_contents (
    user    TEXT NOT NULL,
    hash    BLOB NOT NULL CHECK (length(hash) = 32),
    segment INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    length  INTEGER NOT NULL,
    flags   INTEGER NOT NULL,
    base    BLOB CHECK (length(base) = 32),
    PRIMARY KEY (user, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX segment_bases ON segment_contents (user, base) WHERE base IS NOT NULL;

-- Records that nothing names any more, whose bytes follow.
CREATE TABLE segment_erasures (
    user    TEXT NOT NULL,
    segment INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    length  INTEGER NOT NULL,
    PRIMARY KEY (user, segment, at)
) STRICT, WITHOUT ROWID;

-- How many bytes of a segment were erased.
CREATE TABLE segments (
    user   TEXT NOT NULL,
    number INTEGER NOT NULL,
    dead   INTEGER NOT NULL,
    PRIMARY KEY (user, number)
) STRICT, WITHOUT ROWID;
