"""The command line: parsing, calling, printing. What computes an answer lives below, in pipelines."""
