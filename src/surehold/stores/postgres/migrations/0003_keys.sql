-- The id of a change is its key too, where it was given none: a call of unknown fate is told to use it.

CREATE OR REPLACE FUNCTION earlier_attempt(the_ws integer, the_key bytea, moment timestamptz)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    name bytea;
BEGIN
    IF the_key = '' THEN
        RETURN NULL;
    END IF;
    SELECT change_id INTO name FROM answers WHERE ws = the_ws AND key = the_key;
    IF NOT FOUND THEN
        SELECT change_id INTO name FROM entries WHERE ws = the_ws AND change_id = the_key AND ok LIMIT 1;
    END IF;
    IF FOUND THEN
        RETURN jsonb_build_object('replay', entries_of_change(the_ws, name));
    END IF;
    SELECT id INTO name FROM intents WHERE ws = the_ws AND key = the_key AND key <> '';
    IF NOT FOUND THEN
        SELECT id INTO name FROM intents WHERE ws = the_ws AND id = the_key;
    END IF;
    IF FOUND THEN
        RETURN jsonb_build_object('busy', describe_intent(the_ws, name, moment));
    END IF;
    RETURN NULL;
END $$;
