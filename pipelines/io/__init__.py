"""JSON and Arrow text in bounded memory, prefetch and progress. This package knows no workload."""
