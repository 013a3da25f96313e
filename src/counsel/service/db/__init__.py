"""The database: engine, tables, queries and migrations."""
