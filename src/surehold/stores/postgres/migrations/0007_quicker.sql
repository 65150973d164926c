-- The functions that every edit calls, quicker where there is one path: what they take, return and promise is as before.

CREATE OR REPLACE FUNCTION lock_paths(the_ws integer, wanted bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    locked bigint;
BEGIN
    IF cardinality(wanted) = 1 THEN
        PERFORM 1 FROM paths WHERE ws = the_ws AND path = wanted[1] FOR UPDATE;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    SELECT count(*) INTO locked FROM (
        SELECT 1 FROM paths WHERE ws = the_ws AND path = ANY(wanted) ORDER BY path FOR UPDATE
    ) AS found;
    IF locked < (SELECT count(DISTINCT one) FROM unnest(wanted) AS one) THEN
        INSERT INTO paths (ws, path) SELECT DISTINCT the_ws, one FROM unnest(wanted) AS one ORDER BY one
            ON CONFLICT DO NOTHING;
        PERFORM 1 FROM paths WHERE ws = the_ws AND path = ANY(wanted) ORDER BY path FOR UPDATE;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION missing_blob(the_ws integer, kept bytea[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    locked integer;
BEGIN
    IF kept = '{}' THEN
        RETURN NULL;
    END IF;
    PERFORM 1 FROM blobs WHERE ws = the_ws AND sha256 = ANY(kept) ORDER BY sha256 FOR KEY SHARE;
    GET DIAGNOSTICS locked = ROW_COUNT;
    IF locked = cardinality(kept) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT encode(one, 'hex') FROM unnest(kept) AS one
        WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE ws = the_ws AND sha256 = one) LIMIT 1
    );
END $$;

CREATE OR REPLACE FUNCTION put_blobs(
    the_ws integer, names bytea[], sizes bigint[], bases bytea[], depths integer[], packed_sizes bigint[], packings bytea[],
    objects text[], moment timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF names = '{}' THEN
        RETURN;
    END IF;
    INSERT INTO blobs (ws, sha256, size, base, depth, packed, stored, data, object)
        SELECT the_ws, one.name, one.size, one.base,
            CASE WHEN known.depth IS NULL OR (known.depth >= 8 AND one.depth = 1 AND one.base = ANY(names))
                THEN one.depth ELSE known.depth + 1 END,
            one.packed_size, moment, one.packing, one.object
        FROM unnest(names, sizes, bases, depths, packed_sizes, packings, objects)
            AS one (name, size, base, depth, packed_size, packing, object)
        LEFT JOIN blobs AS known ON known.ws = the_ws AND known.sha256 = one.base
        ORDER BY one.name
    ON CONFLICT (ws, sha256) DO UPDATE
        SET base = NULL, depth = 0, packed = EXCLUDED.packed, data = EXCLUDED.data
        WHERE blobs.depth >= 8 AND blobs.base IS NOT NULL AND EXCLUDED.base IS NULL AND EXCLUDED.data IS NOT NULL;
END $$;

CREATE OR REPLACE FUNCTION describe_intent(the_ws integer, name bytea, moment timestamptz) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT jsonb_build_array(body, expires <= moment) FROM intents WHERE ws = the_ws AND id = name);
END $$;

CREATE OR REPLACE FUNCTION append_entries(the_ws integer, wanted jsonb, at timestamptz) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    now_text text := spell_moment(the_moment(at));
    moment text;
    one jsonb;
    head jsonb;
    item jsonb;
    the_path bytea;
    the_to_path bytea;
    number bigint;
    last bytea;
    other bytea;
    text_of_entry text;
    own bytea;
    the_change bytea;
    made jsonb[] := '{}';
BEGIN
    PERFORM lock_paths(the_ws, ARRAY(
        SELECT decode(each->>place, 'hex') FROM jsonb_array_elements(wanted) AS each, unnest(ARRAY['path', 'to_path']) AS place
        WHERE place = 'path' OR each->>place <> ''
    ));
    FOR one IN SELECT value FROM jsonb_array_elements(wanted) LOOP
        moment := COALESCE(one->>'timestamp', now_text);
        the_path := decode(one->>'path', 'hex');
        the_to_path := decode(one->>'to_path', 'hex');
        the_change := decode(one->>'change_id', 'hex');
        number := COALESCE((one->>'seq')::bigint, nextval('entry_numbers'));
        SELECT tip INTO last FROM paths WHERE ws = the_ws AND path = the_path;
        IF the_to_path <> '' THEN
            SELECT tip INTO other FROM paths WHERE ws = the_ws AND path = the_to_path;
            last := sha256(last || other);
        END IF;
        text_of_entry := (one->>'text') || '"seq":' || number || ',"timestamp":"' || moment || '"}';
        own := sha256(convert_to(encode(last, 'hex') || chr(10) || text_of_entry, 'UTF8'));
        INSERT INTO entries (ws, seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp, previous,
            hash, writer, before, after, displaced, proposal, body)
        VALUES (the_ws, number, the_change, the_path, the_to_path, decode(one->>'session', 'hex'),
            decode(one->>'agent', 'hex'), one->>'operation', decode(one->>'undoes', 'hex'), (one->>'ok')::boolean, moment,
            last, own, one->>'writer', decode(one->>'before', 'hex'), decode(one->>'after', 'hex'),
            decode(one->>'displaced', 'hex'), decode(one->>'proposal', 'hex'), text_of_entry);
        INSERT INTO unsealed (ws, seq, hash) VALUES (the_ws, number, own);
        head := one->'heads'->0;
        IF the_to_path = '' AND jsonb_array_length(one->'heads') = 1 AND head->>0 = one->>'path' THEN
            UPDATE paths SET tip = own, seq = number, version = head->>1, sha256 = head->>2, writer = one->>'writer',
                timestamp = moment WHERE ws = the_ws AND path = the_path;
        ELSE
            UPDATE paths SET tip = own WHERE ws = the_ws AND path IN (the_path, CASE WHEN the_to_path = '' THEN the_path ELSE the_to_path END);
            FOR head IN SELECT value FROM jsonb_array_elements(one->'heads') LOOP
                UPDATE paths SET seq = number, version = head->>1, sha256 = head->>2, writer = one->>'writer',
                    timestamp = moment WHERE ws = the_ws AND path = decode(head->>0, 'hex');
            END LOOP;
        END IF;
        FOR item IN SELECT value FROM jsonb_array_elements(one->'switched') LOOP
            INSERT INTO switches (ws, change_id, made_by) VALUES (the_ws, decode(item->>0, 'hex'), the_change)
                ON CONFLICT DO NOTHING;
            UPDATE trash SET state = 'restored' WHERE ws = the_ws AND change_id = decode(item->>0, 'hex') AND state = 'kept'
                AND path IN (SELECT decode(each, 'hex') FROM jsonb_array_elements_text(item->1) AS each);
        END LOOP;
        item := one->'trash';
        IF item <> 'null' THEN
            DELETE FROM trash WHERE ws = the_ws AND id = decode(item->>0, 'hex');
            INSERT INTO trash (ws, id, path, version, change_id, trashed, agent, session, state)
            VALUES (the_ws, decode(item->>0, 'hex'), decode(item->>1, 'hex'), item->>2, the_change, moment,
                decode(one->>'agent', 'hex'), decode(one->>'session', 'hex'), 'kept');
        END IF;
        IF jsonb_array_length(one->'heads') > 0 AND one->>'undoes' <> '' THEN
            UPDATE trash SET state = 'restored'
                WHERE ws = the_ws AND change_id = decode(one->>'undoes', 'hex') AND state = 'kept';
        END IF;
        IF one->>'restores' <> '' THEN
            UPDATE trash SET state = 'restored'
                WHERE ws = the_ws AND id = decode(one->>'restores', 'hex') AND state = 'kept';
        END IF;
        made := array_append(made, jsonb_build_array(number, encode(last, 'hex'), encode(own, 'hex'), moment));
    END LOOP;
    IF (SELECT sealed FROM workspaces WHERE ws = the_ws) < clock_timestamp() - interval '1 second' THEN
        PERFORM seal_entries(the_ws, false);
    END IF;
    RETURN to_jsonb(made);
END $$;
