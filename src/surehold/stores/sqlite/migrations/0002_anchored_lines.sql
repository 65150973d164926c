-- Which lines were shown with the anchors of that very version, instead of one word about all of them.
ALTER TABLE sightings ADD COLUMN anchored TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sightings DROP COLUMN with_hashes;
