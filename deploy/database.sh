#!/bin/sh
# Runs once, when the database is new: the role of the replicas, which owns nothing. `surehold state init` lets it use the history.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=password="$(cat /run/secrets/agents)" <<'SQL'
CREATE ROLE agents LOGIN PASSWORD :'password';
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SQL
