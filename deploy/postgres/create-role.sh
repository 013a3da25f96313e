#!/bin/sh
# Creates the service's role and database when PostgreSQL starts for the first time.
#
# Erasing a person ends with a new segment of the write-ahead log and a checkpoint, which only some
# roles may ask for. Everything else the service does as the owner of its database.
set -eu

run() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" "$@"
}

password=$(cat "${COUNSEL_PASSWORD_FILE:-/run/secrets/counsel_password}")
run --dbname postgres --set password="$password" << 'SQL'
CREATE ROLE counsel LOGIN PASSWORD :'password';
CREATE DATABASE counsel OWNER counsel;
GRANT pg_checkpoint TO counsel;
SQL
run --dbname counsel << 'SQL'
REVOKE CONNECT ON DATABASE counsel FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_switch_wal() TO counsel;
SQL
