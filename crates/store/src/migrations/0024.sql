-- Version 24: the originals that transcripts name. When one of them expired is known as long as they are there.

CREATE TABLE transcript_pointers (
    user    TEXT NOT NULL,
    name    TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (user, name, session)
) STRICT, WITHOUT ROWID;

-- Without those of which earlier versions forgot that they had expired: up to a moment, whatever is unknown by now.
INSERT OR IGNORE INTO transcript_pointers (user, name, session)
SELECT l.user, substr(p.value, 5, 13), l.session
FROM transcript_lines AS l, json_each(iif(json_valid(l.document), l.document, '{}'), '$.pointers') AS p
WHERE unixepoch(l.document ->> '$.time') * 1000
          > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'tombstones_until'), 0)
   OR EXISTS (SELECT 1 FROM pointers WHERE user = l.user AND name = substr(p.value, 5, 13))
   OR EXISTS (SELECT 1 FROM tombstones WHERE user = l.user AND name = substr(p.value, 5, 13));

DELETE FROM meta WHERE key = 'tombstones_until';
