"""`kappa serve-sim`: its options and its text. No simulation here."""
