-- Version 21: some revisions also hold everything learned in them, so that opening one takes no more than the changes since.

ALTER TABLE revisions ADD COLUMN learned TEXT;

WITH RECURSIVE upto (number, learned) AS (
    VALUES (0, '{}')
    UNION ALL
    SELECT r.number, json_patch(u.learned, r.changes) FROM upto AS u JOIN revisions AS r ON r.number = u.number + 1
)
UPDATE revisions SET learned = upto.learned FROM upto WHERE upto.number = revisions.number AND revisions.number % 64 = 0;
