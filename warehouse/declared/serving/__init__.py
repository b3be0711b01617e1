"""What turns that meet have as columns and tables, and prices. No model and no machine here."""
