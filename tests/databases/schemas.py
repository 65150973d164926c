"""A schema of its own for each worker of the tests, empty at the beginning of each test."""

import os
from dataclasses import dataclass

import psycopg

from databases.postgres_server import shared_server
from surehold.stores.postgres import schema
from surehold.stores.postgres.address import PostgresAddress, parse_address
from surehold.stores.postgres.database import PostgresDatabase

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_version'"


@dataclass(frozen=True)
class PostgresSchema:
    """Where the state of a test is."""

    url: str

    @property
    def address(self) -> PostgresAddress:
        return parse_address(self.url)

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """Connect as somebody who may do everything, also to the ledger."""
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        connection.execute("SET session_replication_role = replica")  # no trigger keeps it from anything
        return connection

    def empty(self) -> None:
        with self.connect() as connection:
            tables = [name for (name,) in connection.execute(_TABLES)]
            for table in tables:
                connection.execute(f"DELETE FROM {table}".encode())
            connection.execute("ALTER SEQUENCE entry_numbers RESTART")


def make_schema() -> PostgresSchema:
    made = PostgresSchema(f"{shared_server()}/postgres?schema=tests_{os.getpid()}")
    set_up_schema(made.url)
    return made


def set_up_schema(url: str) -> None:
    database = PostgresDatabase(parse_address(url))
    schema.set_up(database)
    database.close()
