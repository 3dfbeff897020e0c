-- Version 13: background jobs.

-- state: 0 waiting, 1 running, 2 failed for good.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    user         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    key          TEXT NOT NULL,
    session      TEXT,
    payload      TEXT NOT NULL,
    state        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    reason       TEXT,
    intervention INTEGER
) STRICT;

CREATE UNIQUE INDEX waiting_jobs ON jobs (user, key) WHERE state = 0;
CREATE INDEX due_jobs ON jobs (due) WHERE state = 0;
CREATE INDEX jobs_of_sessions ON jobs (user, session) WHERE session IS NOT NULL;
