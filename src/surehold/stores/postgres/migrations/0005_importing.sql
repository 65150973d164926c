-- Whether a history is being moved here: until that is done, it is only a part of one.
ALTER TABLE workspaces ADD COLUMN importing boolean NOT NULL DEFAULT false;
