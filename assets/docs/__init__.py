"""The generated pages of docs/, from declarations. Nothing is written by hand here."""
