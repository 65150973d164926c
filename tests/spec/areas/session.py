"""One agent's conversation."""

from spec.model import section

SESSION = (
    *section(
        "One agent's conversation",
        "session contract",
        {
            "session:library:attributed": "What a session does is recorded with its id and its agent.",
            "session:library:unchanged": "The proof `Unchanged` refuses only a file that is not what the session was shown last; without `may_be_new` also one that is gone.",
            "session:turn:library": "`with session.turn(…)` marks what happens inside as one turn, with its title; a known id goes on with that turn.",
            "session:turn:acp": "Over ACP a prompt is a turn.",
            "session:turn:call_id": "A change is recorded with the id that the host gave the tool call.",
            "session:turn:unhashed": "Entries of before turns have the hashes that they had.",
            "session:store:survives": "A session and what it was shown survive a restart of the process.",
            "session:store:batched": "Recording what was shown waits for no writer: it is known at once, written a moment later, and before the store closes or the process ends. What a kill loses is read again.",
            "session:store:at_once": "Anchors of a path that a session knows in another version too are written before they are answered, so that a kill or another replica never lets them mean a line of that other version.",
            "session:store:bounded": "Sightings are bounded: the oldest versions, paths and sessions are forgotten first.",
            "session:proof:in_the_call": "A call whose proof is in the call itself needs no session.",
            "session:sighting:read": "A read is a sighting of exactly the lines and the version that were shown.",
            "session:sighting:adds_up": "Paged reads of one version add up to the whole file.",
            "session:sighting:own_write": "A session has seen what it wrote, and the lines around it move along.",
            "session:sighting:own_only": "What one session was shown is not evidence for another.",
            "session:store:idle": "What a session was shown is forgotten when it was not used for 24 hours, or as long as a setting says.",
            "session:library:reopened": "A session that is opened again by its id goes on with what it was shown.",
            "session:stdio:process": "Over stdio the session is the server process.",
            "session:stdio:died": "A server takes up the session of a server that died without a proper end, if the same parent process started both for the same client and roots.",
            "session:stdio:per_call": "A parent that is seen to start a server for each call, by two that ended within seconds, has one session from then on.",
            "session:stdio:living": "The session of a living server is never taken up: two servers of one parent at the same time have two sessions.",
            "session:stdio:named": "`--session ID` or `SUREHOLD_SESSION` names the session of a server on stdio.",
            "session:stdio:way_out": "Over stdio, the refusal of a file that was not read names the ways out for hosts that start a server for each call.",
            "session:http:session_id": "Over HTTP up to 2025-11-25 the session is the MCP session id.",
            "session:http:handle": "In the stateless era the server mints a handle in its results and accepts it back as `session` or in `_meta`.",
            "session:http:principal": "In the stateless era without a handle the session is the authenticated principal, one for each client name.",
            "session:http:claimed": "Who sends the handle of a principal's session back has it alone: calls without a handle get another one.",
        },
    ),
)
