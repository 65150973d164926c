-- Add sightings to those of the same version, and forget the oldest beyond the bounds. Each is an array: session, path,
-- sha256, lines, whether it is whole, lines with anchors, the entry before it, and the moment it was shown. A path that was
-- shown before keeps the entry of its first version. The best known of too many versions is not forgotten.
CREATE OR REPLACE FUNCTION note_sightings(the_ws integer, wanted jsonb, versions_per_path integer, paths_per_session integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    the_session bytea;
    the_path bytea;
    known bigint;
    first bigint;
    grown bytea[] := '{}'; -- sessions that were shown a path for the first time
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(wanted) LOOP
        the_session := decode(one->>0, 'hex');
        the_path := decode(one->>1, 'hex');
        SELECT count(*), min(seq) INTO known, first FROM sightings
            WHERE ws = the_ws AND session = the_session AND path = the_path;
        INSERT INTO sightings (ws, session, path, sha256, number, spans, whole, anchored, seq, shown)
            VALUES (the_ws, the_session, the_path, one->>2, nextval('sighting_numbers'), one->>3, (one->>4)::boolean,
                one->>5, COALESCE(first, (one->>6)::bigint), one->>7)
            ON CONFLICT (ws, session, path, sha256) DO UPDATE SET
                number = excluded.number, shown = excluded.shown, whole = sightings.whole OR excluded.whole,
                spans = join_spans(sightings.spans, excluded.spans),
                anchored = join_spans(sightings.anchored, excluded.anchored);
        IF known = 0 THEN
            IF the_session <> ALL(grown) THEN
                grown := grown || the_session;
            END IF;
        ELSIF known >= versions_per_path THEN
            DELETE FROM sightings WHERE ws = the_ws AND session = the_session AND path = the_path AND number IN (
                SELECT number FROM (
                    SELECT number, row_number() OVER (ORDER BY number DESC) AS age, row_number() OVER (
                        ORDER BY whole DESC, (
                            SELECT COALESCE(sum((each->>1)::bigint - (each->>0)::bigint + 1), 0)
                            FROM jsonb_array_elements(spans::jsonb) AS each
                        ) DESC, number DESC
                    ) AS place
                    FROM sightings WHERE ws = the_ws AND session = the_session AND path = the_path
                ) AS ordered WHERE age > versions_per_path AND place > 1
            );
        END IF;
    END LOOP;
    FOREACH the_session IN ARRAY grown LOOP -- once for each: a search may show thousands of files
        DELETE FROM sightings WHERE ws = the_ws AND session = the_session AND path IN (
            SELECT path FROM sightings WHERE ws = the_ws AND session = the_session
            GROUP BY path ORDER BY max(number) DESC OFFSET paths_per_session
        );
    END LOOP;
END $$;
