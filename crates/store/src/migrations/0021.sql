-- Version 21: some revisions also hold everything learned in them, so that opening one takes no more than the changes since.
-- A factor is the highest of recent reports, no longer their mean, and belongs to the estimate that it corrects: the sums
-- begin anew, and factors of earlier versions, which do not say what they correct, are forgotten.

ALTER TABLE revisions ADD COLUMN learned TEXT;

WITH RECURSIVE upto (number, learned) AS (
    VALUES (0, '{}')
    UNION ALL
    SELECT r.number, json_patch(u.learned, r.changes) FROM upto AS u JOIN revisions AS r ON r.number = u.number + 1
    -- A damaged one is reported when it is read.
    WHERE json_valid(r.changes)
)
UPDATE revisions SET learned = upto.learned FROM upto WHERE upto.number = revisions.number;

INSERT INTO revisions (number, created, cause, changes, learned)
SELECT number + 1, created, 'corrections of estimated tokens that do not say which estimate they correct',
       json_group_object(key, NULL), json_patch(learned, json_group_object(key, NULL))
FROM (SELECT * FROM revisions ORDER BY number DESC LIMIT 1), json_each(learned)
WHERE key LIKE 'models.%.estimate_factor' HAVING count(*) > 0;

UPDATE revisions SET learned = NULL WHERE number % 64 <> 0;

DROP TABLE usage_sums;
CREATE TABLE usage_sums (
    model     TEXT NOT NULL,
    estimate  TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    reported  INTEGER NOT NULL,
    samples   INTEGER NOT NULL,
    highest   INTEGER NOT NULL,
    learned   INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    wait      INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (model, estimate)
) STRICT, WITHOUT ROWID;
