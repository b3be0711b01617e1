"""A model on a machine as the simulation sees it: times, pool, work. No queue here."""
