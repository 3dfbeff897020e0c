-- Version 9: keys that open what belongs to all users.

ALTER TABLE keys ADD COLUMN operator INTEGER NOT NULL DEFAULT 0;
