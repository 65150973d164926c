-- The root of a seal is that of a Merkle tree as in RFC 6962; seals of form 1 have one hash over all hashes, and stay valid.
ALTER TABLE seals ADD COLUMN form smallint NOT NULL DEFAULT 1;

-- A leaf is sha256(00 | hash of the entry), a node sha256(01 | left | right); one that has no neighbour goes up as it is.
CREATE FUNCTION merkle_root(hashes bytea[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    nodes bytea[] := ARRAY(
        SELECT sha256('\x00'::bytea || one) FROM unnest(hashes) WITH ORDINALITY AS each (one, place) ORDER BY place
    );
BEGIN
    WHILE array_length(nodes, 1) > 1 LOOP
        nodes := ARRAY(
            SELECT CASE WHEN neighbour IS NULL THEN node ELSE sha256('\x01'::bytea || node || neighbour) END FROM (
                SELECT node, place, lead(node) OVER (ORDER BY place) AS neighbour
                FROM unnest(nodes) WITH ORDINALITY AS each (node, place)
            ) AS pairs WHERE place % 2 = 1 ORDER BY place
        );
    END LOOP;
    RETURN nodes[1];
END $$;

-- Cover what is committed and not sealed yet by one more seal, unless the last one is younger than a second.
CREATE OR REPLACE FUNCTION seal_entries(the_ws integer, at_once boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last record;
    taken bigint[];
    hashes bytea[];
    the_root bytea;
    moment timestamptz := clock_timestamp();
    own bytea;
BEGIN
    IF at_once THEN
        SELECT seals, seal, sealed INTO last FROM workspaces WHERE ws = the_ws FOR UPDATE;
    ELSE
        SELECT seals, seal, sealed INTO last FROM workspaces WHERE ws = the_ws FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND OR (NOT at_once AND last.sealed > moment - interval '1 second') THEN
        RETURN 0;
    END IF;
    WITH gone AS (DELETE FROM unsealed WHERE ws = the_ws RETURNING seq, hash)
        SELECT array_agg(seq ORDER BY seq), array_agg(hash ORDER BY seq) INTO taken, hashes FROM gone;
    IF taken IS NULL THEN
        RETURN 0;
    END IF;
    the_root := merkle_root(hashes);
    own := sha256(last.seal || the_root || convert_to((last.seals + 1) || ' ' || spell_moment(moment) || ' 2', 'UTF8'));
    INSERT INTO seals (ws, number, moment, seqs, root, hash, form)
        VALUES (the_ws, last.seals + 1, spell_moment(moment), taken, the_root, own, 2);
    UPDATE workspaces SET seals = last.seals + 1, seal = own, sealed = moment WHERE ws = the_ws;
    RETURN array_length(taken, 1);
END $$;
