"""Files of records as people keep them: found, decompressed, decoded one record at a time. No format, no workload."""
