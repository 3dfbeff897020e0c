-- Version 7: how many parts changed form in a request, and runs by their time, as costs are summed.

ALTER TABLE exchanges ADD COLUMN compactions INTEGER NOT NULL DEFAULT 0;

-- Requests from before say it in their documents; what ran dry or was refused changed nothing. Only rows that change are
-- written: there may be millions of the others.
UPDATE exchanges
SET compactions = json_extract(document, '$.shape.compactions')
WHERE json_valid(document)
  AND json_extract(document, '$.shape.compactions') > 0
  AND coalesce(json_extract(document, '$.decision.dry_run'), 0) = 0
  AND json_extract(document, '$.outcome') NOT IN ('refused', 'invalid');

CREATE INDEX runs_by_time ON runs (user, recorded);
