"""What a table is: fields, units, bounds, tables as code; how a value is written. No rows, no files, no SQL engine."""
