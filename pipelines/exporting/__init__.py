"""Workloads as traces without text, in the forms that other simulators read. No file is opened, no text is seen."""
