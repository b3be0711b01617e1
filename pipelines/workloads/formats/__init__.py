"""One module a format: from records to sessions or requests, and rejects with their reasons. No file is opened here."""
