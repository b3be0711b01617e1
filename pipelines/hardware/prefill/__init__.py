"""The time of one iteration of prefill, part by part, out of numbers. No sourced rows, no questions."""
