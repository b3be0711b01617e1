"""What a table is, where it rests, and the sourced reference rows. DuckDB is used here alone; nothing here knows a data set or a tokenizer."""
