"""DuckDB and the Parquet lake: build, query, aggregate. The only room that imports duckdb."""
