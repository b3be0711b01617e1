"""What a table is: fields, units, bounds, tables as code. No rows, no files, no SQL engine."""
