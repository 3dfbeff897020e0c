-- Version 20: how far estimates of a model's tokens are off is learned for all users, and a factor is part of a revision.

CREATE TABLE sums (
    model     TEXT NOT NULL PRIMARY KEY,
    estimated INTEGER NOT NULL,
    reported  INTEGER NOT NULL,
    samples   INTEGER NOT NULL,
    learned   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Of the users' factors the highest one, which errs on the safe side. Sums that no report ever exceeds stay small numbers.
INSERT INTO sums
SELECT model, CAST(min(total(estimated), 1e15) AS INTEGER), CAST(min(total(reported), 1e15) AS INTEGER), sum(samples),
       coalesce((SELECT max(factor_ppm) FROM calibrations AS c WHERE c.model = u.model AND c.version =
                     (SELECT max(version) FROM calibrations AS n WHERE n.user = c.user AND n.model = c.model)), 1000000)
FROM usage_sums AS u GROUP BY model;

INSERT INTO revisions (number, created, cause, changes)
SELECT 1 + coalesce((SELECT max(number) FROM revisions), 0), (SELECT max(created) FROM calibrations),
       'corrections of estimated tokens that an earlier version had learned',
       json_group_object('models.' || model || '.estimate_factor', printf('%.3f', learned / 1e6))
FROM sums WHERE learned <> 1000000 HAVING count(*) > 0;

-- Conversations that began with a factor go on with one.
INSERT INTO session_revisions (user, session, revision)
SELECT DISTINCT user, session, (SELECT max(number) FROM revisions) FROM session_calibrations
WHERE version > 0 AND EXISTS (SELECT 1 FROM sums WHERE learned <> 1000000)
ON CONFLICT (user, session) DO UPDATE SET revision = excluded.revision;

DROP TABLE session_calibrations;
DROP TABLE calibrations;
DROP TABLE usage_sums;
ALTER TABLE sums RENAME TO usage_sums;
