"""What `kappa crit` and the API are asked: a question, its checks, the rows that it chooses, its typed answers."""
