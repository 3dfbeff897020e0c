-- Version 7: how many parts changed form in a request.

ALTER TABLE exchanges ADD COLUMN compactions INTEGER NOT NULL DEFAULT 0;

-- Requests from before say it in their documents; what ran dry or was refused changed nothing.
UPDATE exchanges
SET compactions = coalesce(json_extract(document, '$.shape.compactions'), 0)
WHERE json_valid(document)
  AND coalesce(json_extract(document, '$.decision.dry_run'), 0) = 0
  AND json_extract(document, '$.outcome') NOT IN ('refused', 'invalid');
