"""DuckDB: build a file, query it, aggregate. Only this folder imports duckdb."""
