"""The command line: parsing, calling, printing. The answers are computed in pipelines."""
