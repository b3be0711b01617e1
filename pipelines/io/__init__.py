"""Reading JSON and Arrow text in bounded memory, prefetch and progress. Nothing here knows a workload."""
