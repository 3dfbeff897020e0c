-- Version 4: keys with their budgets and sign-ins, exchanges of the gateway, transcripts, calibrations.
-- Money is in picodollars. A day is counted from 1970-01-01 in UTC.
CREATE TABLE keys (
    id             TEXT NOT NULL PRIMARY KEY,
    user           TEXT NOT NULL,
    label          TEXT NOT NULL,
    hash           TEXT NOT NULL,
    tokens_per_day INTEGER,
    picos_per_day  INTEGER,
    created        INTEGER NOT NULL,
    revoked        INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE key_days (
    key    TEXT NOT NULL,
    day    INTEGER NOT NULL,
    user   TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    picos  INTEGER NOT NULL,
    PRIMARY KEY (key, day)
) STRICT, WITHOUT ROWID;

-- Numbers are never given twice: a reservation that expired must not settle another one.
CREATE TABLE reservations (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    user    TEXT NOT NULL,
    key     TEXT NOT NULL,
    day     INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    picos   INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;

CREATE INDEX reservations_of_key ON reservations (key);

CREATE TABLE sign_ins (
    token   BLOB NOT NULL PRIMARY KEY CHECK (length(token) = 32),
    user    TEXT NOT NULL,
    key     TEXT NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE exchanges (
    seq           INTEGER PRIMARY KEY,
    user          TEXT NOT NULL,
    id            TEXT NOT NULL,
    session       TEXT,
    time          INTEGER NOT NULL,
    model         TEXT NOT NULL,
    recipe        TEXT,
    status        INTEGER NOT NULL,
    tokens_in     INTEGER NOT NULL,
    tokens_out    INTEGER NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after  INTEGER NOT NULL,
    cost_picos    INTEGER,
    without_picos INTEGER,
    document      TEXT NOT NULL,
    UNIQUE (user, id)
) STRICT;

CREATE INDEX exchanges_of_user ON exchanges (user, time);
CREATE INDEX exchanges_of_session ON exchanges (user, session, time);
CREATE INDEX exchanges_by_time ON exchanges (time);

-- `chain` stands for the history up to a message, in the line that first holds the message. `view` stands for how a
-- message went upstream; none where it went as it came. `parent` and `fork` say where a branch began, in its first line.
CREATE TABLE transcript_lines (
    user     TEXT NOT NULL,
    session  TEXT NOT NULL,
    line     INTEGER NOT NULL,
    branch   INTEGER NOT NULL,
    message  INTEGER NOT NULL,
    chain    BLOB CHECK (length(chain) = 32),
    view     BLOB CHECK (length(view) = 32),
    parent   INTEGER,
    fork     INTEGER,
    document TEXT NOT NULL,
    PRIMARY KEY (user, session, line)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX transcript_histories ON transcript_lines (user, session, chain) WHERE chain IS NOT NULL;
CREATE INDEX transcript_messages ON transcript_lines (user, session, branch, message);
CREATE INDEX transcript_views ON transcript_lines (user, session, line, branch, message, view, parent, fork)
    WHERE view IS NOT NULL;

CREATE TABLE calibrations (
    user       TEXT NOT NULL,
    model      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    factor_ppm INTEGER NOT NULL,
    samples    INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    PRIMARY KEY (user, model, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_sums (
    user      TEXT NOT NULL,
    model     TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    reported  INTEGER NOT NULL,
    samples   INTEGER NOT NULL,
    PRIMARY KEY (user, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_calibrations (
    user    TEXT NOT NULL,
    session TEXT NOT NULL,
    model   TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (user, session, model)
) STRICT, WITHOUT ROWID;
