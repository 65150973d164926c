-- What would be several round trips, as functions. `at` is the moment to go by; NULL, as ever outside of tests, for the
-- clock of the database. A later script may add functions, but not change what these take and return: older replicas call them.

CREATE FUNCTION the_moment(at timestamptz) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT COALESCE(at, clock_timestamp())
$$;

CREATE FUNCTION spell_moment(moment timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')
$$;

-- Lock the rows of some paths, in one order, and make those that are missing.
CREATE FUNCTION lock_paths(the_ws integer, wanted bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    locked bigint;
BEGIN
    SELECT count(*) INTO locked FROM (
        SELECT 1 FROM paths WHERE ws = the_ws AND path = ANY(wanted) ORDER BY path FOR UPDATE
    ) AS found;
    IF locked < (SELECT count(DISTINCT one) FROM unnest(wanted) AS one) THEN
        INSERT INTO paths (ws, path) SELECT DISTINCT the_ws, one FROM unnest(wanted) AS one ORDER BY one
            ON CONFLICT DO NOTHING;
        PERFORM 1 FROM paths WHERE ws = the_ws AND path = ANY(wanted) ORDER BY path FOR UPDATE;
    END IF;
END $$;

-- Cover what is committed and not sealed yet by one more seal, unless the last one is younger than a second.
CREATE FUNCTION seal_entries(the_ws integer, at_once boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last record;
    taken bigint[];
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
        SELECT array_agg(seq ORDER BY seq), sha256(string_agg(hash, '' ORDER BY seq)) INTO taken, the_root FROM gone;
    IF taken IS NULL THEN
        RETURN 0;
    END IF;
    own := sha256(last.seal || the_root || convert_to((last.seals + 1) || ' ' || spell_moment(moment), 'UTF8'));
    INSERT INTO seals (ws, number, moment, seqs, root, hash)
        VALUES (the_ws, last.seals + 1, spell_moment(moment), taken, the_root, own);
    UPDATE workspaces SET seals = last.seals + 1, seal = own, sealed = moment WHERE ws = the_ws;
    RETURN array_length(taken, 1);
END $$;

-- Write entries, and the heads and trash items that follow from them; return number, hash before, hash and moment of each.
CREATE FUNCTION append_entries(the_ws integer, wanted jsonb, at timestamptz) RETURNS jsonb LANGUAGE plpgsql AS $$
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
        UPDATE paths SET tip = own WHERE ws = the_ws AND path IN (the_path, CASE WHEN the_to_path = '' THEN the_path ELSE the_to_path END);
        FOR head IN SELECT value FROM jsonb_array_elements(one->'heads') LOOP
            UPDATE paths SET seq = number, version = head->>1, sha256 = head->>2, writer = one->>'writer', timestamp = moment
                WHERE ws = the_ws AND path = decode(head->>0, 'hex');
        END LOOP;
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

-- The entries of a change that succeeded, in the order of its call: hash before, hash and body of each.
CREATE FUNCTION entries_of_change(the_ws integer, name bytea) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT COALESCE(jsonb_agg(jsonb_build_array(encode(previous, 'hex'), encode(hash, 'hex'), body) ORDER BY seq), '[]')
    FROM entries WHERE ws = the_ws AND change_id = name AND ok
$$;

CREATE FUNCTION describe_intent(the_ws integer, name bytea, moment timestamptz) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(body, expires <= moment) FROM intents WHERE ws = the_ws AND id = name
$$;

-- The first answer to a repeated call, or the attempt that is still open.
CREATE FUNCTION earlier_attempt(the_ws integer, the_key bytea, moment timestamptz) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    name bytea;
BEGIN
    IF the_key = '' THEN
        RETURN NULL;
    END IF;
    SELECT change_id INTO name FROM answers WHERE ws = the_ws AND key = the_key;
    IF FOUND THEN
        RETURN jsonb_build_object('replay', entries_of_change(the_ws, name));
    END IF;
    SELECT id INTO name FROM intents WHERE ws = the_ws AND key = the_key AND key <> '';
    IF FOUND THEN
        RETURN jsonb_build_object('busy', describe_intent(the_ws, name, moment));
    END IF;
    RETURN NULL;
END $$;

-- Everything that a call on these paths must know first, as of one moment.
CREATE FUNCTION look_at(the_ws integer, wanted bytea[], the_session bytea, the_key bytea, at timestamptz)
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
        ) END
    );
END $$;

-- Store bytes that are not there yet. Their bases are, or come with them. A process that did not store a base itself sends it
-- whole: if it is stored at the end of a long chain of differences, it is stored whole from then on, so that chains end.
CREATE FUNCTION put_blobs(
    the_ws integer, names bytea[], sizes bigint[], bases bytea[], depths integer[], packed_sizes bigint[], packings bytea[],
    objects text[], moment timestamptz
) RETURNS void LANGUAGE sql AS $$
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
        WHERE blobs.depth >= 8 AND blobs.base IS NOT NULL AND EXCLUDED.base IS NULL AND EXCLUDED.data IS NOT NULL
$$;

-- Name one of the versions that are not stored; those that are cannot be dropped before this transaction ends.
CREATE FUNCTION missing_blob(the_ws integer, kept bytea[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM blobs WHERE ws = the_ws AND sha256 = ANY(kept) ORDER BY sha256 FOR KEY SHARE;
    RETURN (
        SELECT encode(one, 'hex') FROM unnest(kept) AS one
        WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE ws = the_ws AND sha256 = one) LIMIT 1
    );
END $$;

-- Write an intent down, whose paths are locked and free. The same call at the same moment violates a key.
CREATE FUNCTION open_intent(
    the_ws integer, name bytea, the_key bytea, ends timestamptz, the_owner text, held bytea[], the_versions bytea[],
    the_body text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO intents (ws, id, key, expires, owner, paths, versions, body)
        VALUES (the_ws, name, the_key, ends, the_owner, held, the_versions, the_body);
    UPDATE paths SET intent = name WHERE ws = the_ws AND path = ANY(held);
END $$;

-- Hold paths for an intent, and write it and its bytes down; or say why not, and change nothing: an earlier attempt, another
-- holder, bytes that have to be sent, or a head that is not what the caller read (then it looks closer).
CREATE FUNCTION begin_intent(
    the_ws integer, name bytea, the_key bytea, lease interval, the_owner text, wanted bytea[], read text[],
    the_versions bytea[], the_body text, kept bytea[], names bytea[], sizes bigint[], bases bytea[], depths integer[],
    packed_sizes bigint[], packings bytea[], objects text[], at timestamptz
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := the_moment(at);
    answer jsonb;
    holder bytea;
    missing text;
BEGIN
    PERFORM lock_paths(the_ws, wanted);
    answer := earlier_attempt(the_ws, the_key, moment);
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    SELECT intent INTO holder FROM paths, unnest(wanted) WITH ORDINALITY AS asked (one, place)
        WHERE ws = the_ws AND path = one AND intent IS NOT NULL ORDER BY place LIMIT 1;
    answer := describe_intent(the_ws, COALESCE(holder, name), moment);
    IF answer IS NOT NULL THEN
        RETURN jsonb_build_object('busy', answer);
    END IF;
    PERFORM 1 FROM paths, unnest(wanted, read) AS asked (one, bytes)
        WHERE ws = the_ws AND path = one AND seq IS NOT NULL AND sha256 <> bytes;
    IF FOUND THEN
        RETURN jsonb_build_object('differs', true);
    END IF;
    missing := missing_blob(the_ws, kept);
    IF missing IS NOT NULL THEN
        RETURN jsonb_build_object('missing', missing);
    END IF;
    PERFORM open_intent(the_ws, name, the_key, moment + lease, the_owner, wanted, the_versions, the_body);
    PERFORM put_blobs(the_ws, names, sizes, bases, depths, packed_sizes, packings, objects, moment);
    RETURN jsonb_build_object('begun', true);
END $$;

-- Close an intent and let its paths go; false when it is no longer open.
CREATE FUNCTION take_intent(the_ws integer, name bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held bytea[];
BEGIN
    SELECT paths INTO held FROM intents WHERE ws = the_ws AND id = name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM lock_paths(the_ws, held);
    DELETE FROM intents WHERE ws = the_ws AND id = name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE paths SET intent = NULL WHERE ws = the_ws AND path = ANY(held) AND intent = name;
    RETURN true;
END $$;

-- Turn an intent into entries; NULL when it is no longer open.
CREATE FUNCTION finish_intent(the_ws integer, name bytea, the_key bytea, wanted jsonb, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    made jsonb;
BEGIN
    IF NOT take_intent(the_ws, name) THEN
        RETURN NULL;
    END IF;
    made := append_entries(the_ws, wanted, at);
    IF the_key <> '' THEN
        INSERT INTO answers (ws, key, change_id, timestamp)
            VALUES (the_ws, the_key, name, spell_moment(the_moment(at)))
            ON CONFLICT (ws, key) DO UPDATE SET change_id = excluded.change_id, timestamp = excluded.timestamp;
    END IF;
    RETURN made;
END $$;
