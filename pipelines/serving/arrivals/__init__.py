"""Arrival times from a log or a rate, and the order in which sessions take turns. No queue here."""
