"""Every formula of kappa, one pure function each, on numbers or arrays. No tables, no files."""
