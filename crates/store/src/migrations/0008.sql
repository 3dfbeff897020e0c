-- Version 8: that a key was created is remembered when the last key is gone with its user.

INSERT INTO meta (key, value) SELECT 'keys_created', 'yes' WHERE EXISTS (SELECT 1 FROM keys);
