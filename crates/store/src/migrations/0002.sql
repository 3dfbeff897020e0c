-- Version 2: interventions, the compaction cache, and users whose deletion is under way.
CREATE TABLE interventions (
    user        TEXT NOT NULL,
    id          INTEGER NOT NULL,
    type        TEXT NOT NULL,
    message     TEXT NOT NULL,
    recipe      TEXT,
    run_id      TEXT,
    created     INTEGER NOT NULL,
    resolved_at INTEGER,
    resolution  TEXT,
    PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE compactions (
    user         TEXT NOT NULL,
    content      BLOB NOT NULL CHECK (length(content) = 32),
    content_type TEXT NOT NULL,
    target       INTEGER NOT NULL,
    query        BLOB NOT NULL CHECK (length(query) = 32),
    condenser    TEXT NOT NULL,
    tokenizer    TEXT NOT NULL,
    condensed    TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (user, content, content_type, target, query, condenser, tokenizer)
) STRICT, WITHOUT ROWID;

CREATE INDEX compactions_by_age ON compactions (created);

CREATE TABLE deletions (
    folder TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
