"""What happens when requests meet: queues for the link, the token budget and memory. No tables, no figures here."""
