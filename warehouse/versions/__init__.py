"""Which code, data files and libraries make a product. No step, table or home folder is known here."""
