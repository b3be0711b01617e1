"""What a run says: percentiles, shares, limits, the largest rate, energy. No events here."""
