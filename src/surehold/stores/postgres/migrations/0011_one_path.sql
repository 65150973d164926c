-- Looking at one path, as almost every call does, reads its row once; what it returns is as before.
ALTER FUNCTION look_at(integer, bytea[], bytea, bytea, timestamptz) RENAME TO look_at_several;

CREATE FUNCTION look_at(the_ws integer, wanted bytea[], the_session bytea, the_key bytea, at timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz;
    known paths;
    shown jsonb;
    has_anchors boolean;
BEGIN
    IF cardinality(wanted) <> 1 THEN
        RETURN look_at_several(the_ws, wanted, the_session, the_key, at);
    END IF;
    moment := COALESCE(at, clock_timestamp());
    SELECT * INTO known FROM paths WHERE ws = the_ws AND path = wanted[1];
    IF the_session <> '' THEN
        SELECT jsonb_agg(
            jsonb_build_array(encode(path, 'hex'), sha256, spans, whole, anchored, seq) ORDER BY number DESC
        ), bool_or(anchored <> '[]') INTO shown, has_anchors
        FROM sightings WHERE ws = the_ws AND session = the_session AND path = wanted[1];
    END IF;
    RETURN jsonb_build_object(
        'heads', CASE WHEN known.seq IS NOT NULL THEN jsonb_build_object(encode(known.path, 'hex'),
            jsonb_build_array(known.version, known.writer, known.seq, known.timestamp)) END,
        'holding', CASE WHEN known.intent IS NOT NULL THEN
            jsonb_build_array(describe_intent(the_ws, known.intent, moment)) END,
        'earlier', CASE WHEN the_key <> '' THEN earlier_attempt(the_ws, the_key, moment) END,
        'sightings', shown,
        'writers', CASE WHEN has_anchors THEN jsonb_build_object(encode(wanted[1], 'hex'), writers_of(the_ws, wanted[1])) END
    );
END $$;
