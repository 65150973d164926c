-- Sightings in one round trip: with the change that they follow from, or with the bytes that they are of.

-- Join spans of lines, as JSON; those that touch become one.
CREATE FUNCTION join_spans(one text, other text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF one = other OR other = '[]' THEN
        RETURN one;
    ELSIF one = '[]' THEN
        RETURN other;
    END IF;
    RETURN (
        SELECT jsonb_agg(jsonb_build_array(lower(span), upper(span) - 1) ORDER BY span)::text FROM (
            SELECT unnest(range_agg(int4range((each->>0)::integer, (each->>1)::integer, '[]'))) AS span
            FROM (SELECT jsonb_array_elements(one::jsonb) UNION ALL SELECT jsonb_array_elements(other::jsonb)) AS given (each)
        ) AS spans
    );
END $$;

-- Add sightings to those of the same version, and forget the oldest beyond the bounds. Each is an array: session, path,
-- sha256, lines, whether it is whole, lines with anchors, the entry before it, and the moment it was shown. A path that was
-- shown before keeps the entry of its first version. The best known of too many versions is not forgotten.
CREATE FUNCTION note_sightings(the_ws integer, wanted jsonb, versions_per_path integer, paths_per_session integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    the_session bytea;
    the_path bytea;
    known bigint;
    first bigint;
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
            DELETE FROM sightings WHERE ws = the_ws AND session = the_session AND path IN (
                SELECT path FROM sightings WHERE ws = the_ws AND session = the_session
                GROUP BY path ORDER BY max(number) DESC OFFSET paths_per_session
            );
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
END $$;

-- Note sightings, and store the bytes that they are of; or name one of those that have to be sent, and change nothing.
CREATE FUNCTION note_shown(
    the_ws integer, wanted jsonb, versions_per_path integer, paths_per_session integer, kept bytea[], names bytea[],
    sizes bigint[], bases bytea[], depths integer[], packed_sizes bigint[], packings bytea[], objects text[], at timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    missing text;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    IF kept <> '{}' THEN
        missing := missing_blob(the_ws, kept);
        IF missing IS NOT NULL THEN
            RETURN missing;
        END IF;
    END IF;
    IF names <> '{}' THEN
        PERFORM put_blobs(the_ws, names, sizes, bases, depths, packed_sizes, packings, objects, the_moment(at));
    END IF;
    PERFORM note_sightings(the_ws, wanted, versions_per_path, paths_per_session);
    RETURN NULL;
END $$;

-- Turn an intent into entries, and note what its caller knows of the files by that: where a sighting names no entry and no
-- moment, those of the first entry count. NULL when the intent is no longer open; then nothing is noted.
CREATE FUNCTION finish_intent(
    the_ws integer, name bytea, the_key bytea, wanted jsonb, at timestamptz, shown jsonb, versions_per_path integer,
    paths_per_session integer
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    made jsonb := finish_intent(the_ws, name, the_key, wanted, at);
    number bigint := COALESCE((made->0->>0)::bigint - 1, 0);
    moment text := COALESCE(made->0->>3, spell_moment(the_moment(at)));
BEGIN
    IF made IS NOT NULL THEN
        PERFORM note_sightings(the_ws, (
            SELECT jsonb_agg(CASE WHEN one->>6 IS NULL THEN one || jsonb_build_array(number, moment) ELSE one END ORDER BY place)
            FROM jsonb_array_elements(shown) WITH ORDINALITY AS each (one, place)
        ), versions_per_path, paths_per_session);
    END IF;
    RETURN made;
END $$;

-- Who changed a path, in the order of their first change: name, first and last entry of each.
CREATE FUNCTION writers_of(the_ws integer, the_path bytea) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT COALESCE(jsonb_agg(jsonb_build_array(writer, first, last) ORDER BY first), '[]') FROM (
            SELECT writer, min(seq) AS first, max(seq) AS last FROM entries
            WHERE ws = the_ws AND ok AND (path = the_path OR to_path = the_path AND to_path <> '') GROUP BY writer
        ) AS spans
    );
END $$;

-- Who changed a path is told where the session was shown anchors of it: an edit by anchors names them.
CREATE OR REPLACE FUNCTION look_at(the_ws integer, wanted bytea[], the_session bytea, the_key bytea, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz := COALESCE(at, clock_timestamp());
BEGIN
    RETURN jsonb_build_object(
        'heads', (
            SELECT jsonb_object_agg(encode(path, 'hex'), jsonb_build_array(version, writer, seq, timestamp))
            FROM paths WHERE ws = the_ws AND path = ANY(wanted) AND seq IS NOT NULL
        ),
        'holding', (
            SELECT jsonb_agg(describe_intent(the_ws, intent, moment)) FROM (
                SELECT DISTINCT ON (intent) intent FROM paths
                WHERE ws = the_ws AND path = ANY(wanted) AND intent IS NOT NULL
            ) AS holders
        ),
        'earlier', earlier_attempt(the_ws, the_key, moment),
        'sightings', CASE WHEN the_session = '' THEN NULL ELSE (
            SELECT jsonb_agg(
                jsonb_build_array(encode(path, 'hex'), sha256, spans, whole, anchored, seq) ORDER BY number DESC
            ) FROM sightings WHERE ws = the_ws AND session = the_session AND path = ANY(wanted)
        ) END,
        'writers', CASE WHEN the_session = '' THEN NULL ELSE (
            SELECT jsonb_object_agg(encode(path, 'hex'), writers_of(the_ws, path)) FROM (
                SELECT DISTINCT path FROM sightings
                WHERE ws = the_ws AND session = the_session AND path = ANY(wanted) AND anchored <> '[]'
            ) AS with_anchors
        ) END
    );
END $$;
