"""DuckDB: build a file, query it, aggregate. The only room that imports duckdb."""
