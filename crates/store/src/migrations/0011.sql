-- Version 11: when originals and conversations were last used, what documents refer to, and what has expired.

-- Uses were not recorded before: everything counts as used when the store is upgraded.
ALTER TABLE pointers ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE pointers SET used = unixepoch() * 1000;
CREATE INDEX pointers_by_use ON pointers (used);

-- What is left of an erased original.
CREATE TABLE tombstones (
    user    TEXT NOT NULL,
    name    TEXT NOT NULL,
    content BLOB NOT NULL CHECK (length(content) = 32),
    expired INTEGER NOT NULL,
    PRIMARY KEY (user, name)
) STRICT, WITHOUT ROWID;

-- The originals that documents, and drafts of turns, refer to; they do not expire.
CREATE TABLE document_pointers (
    user TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (user, name, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX pointers_of_document ON document_pointers (user, path);

-- When each conversation was last used.
CREATE TABLE sessions (
    user    TEXT NOT NULL,
    session TEXT NOT NULL,
    used    INTEGER NOT NULL,
    PRIMARY KEY (user, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_use ON sessions (used);

INSERT INTO sessions (user, session, used)
SELECT user, session, unixepoch() * 1000
FROM (SELECT user, session FROM transcript_lines UNION SELECT user, session FROM round_trips
      UNION SELECT user, session FROM session_calibrations UNION SELECT user, session FROM session_revisions);

-- Contents whose last name has gone. Their bytes follow, unless they have got a new name by then.
CREATE TABLE erasures (
    user TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (user, hash)
) STRICT, WITHOUT ROWID;

-- To find what names a content. A damaged line names none.
CREATE INDEX transcript_raws
ON transcript_lines (user, iif(json_valid(document), document ->> '$.raw.hash', NULL));
CREATE INDEX transcript_forms
ON transcript_lines (user, iif(json_valid(document), document ->> '$.sent.hash', NULL))
WHERE iif(json_valid(document), document ->> '$.sent.hash', NULL) IS NOT NULL;
CREATE INDEX runs_by_receipt ON runs (user, receipt);
CREATE INDEX runs_by_output ON runs (user, output) WHERE output IS NOT NULL;
CREATE INDEX runs_recorded ON runs (recorded);
